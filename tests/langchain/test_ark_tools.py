"""ARK's operations as LangChain tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ark_support import films, index_of
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from graphret.ark import ArkSettings, make_tools
from langchain_graphret import ark_tools

STORE = films()
INDEX = index_of(STORE)
SEARCH, EXPLORE = ark_tools(STORE, INDEX)


class _Explore:
    @property
    def tool_constructor(self) -> BaseTool:
        return EXPLORE

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"node": "p1", "query": "red", "node_types": ["movie"], "relation_types": ["directed_by"], "k": 3}


class TestExploreUnit(_Explore, ToolsUnitTests):
    """LangChain's own suite."""


class TestExplore(_Explore, ToolsIntegrationTests):
    """The other one."""


def test_models_are_told_of_them_as_arks_agents_are() -> None:
    expected = [tool.to_dict() for tool in make_tools() if tool.name in ("global_search", "explore_neighborhood")]
    assert [convert_to_openai_tool(tool) for tool in (SEARCH, EXPLORE)] == expected
    seven = ark_tools(STORE, INDEX, settings=ArkSettings(search_k=7))[0]
    assert "; 7 unless" in json.dumps(convert_to_openai_tool(seven))


async def test_text_and_ids_come_back_in_both_forms() -> None:
    called: Any = {"type": "tool_call", "id": "1", "name": EXPLORE.name, "args": {"node": "p1"}}
    message = EXPLORE.invoke(called)
    assert message == await EXPLORE.ainvoke(called)
    header, *lines = map(json.loads, message.content.splitlines())
    assert header["explored"] == "p1"
    assert [line["id"] for line in lines] == message.artifact["nodes"] == ["f1", "f4"]
    assert message.artifact["edges"] == [["f1", "directed_by", "p1"], ["f4", "directed_by", "p1"]]
    assert (message.artifact["total"], message.artifact["failed"]) == (2, False)
    json.dumps(message.artifact)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        (SEARCH, {}, "Field required"),
        (SEARCH, {"query": {"words": "x"}}, "query"),
        (EXPLORE, {"node": "p1", "depth": 3}, "depth"),
        (EXPLORE, {"node": "Bob"}, "p1"),
        (EXPLORE, {"node": "p1", "relation_types": ["directs"]}, "directed_by"),
    ],
)
async def test_a_wrong_call_is_answered_with_an_instruction(tool: BaseTool, arguments: Any, said: str) -> None:
    called: Any = {"type": "tool_call", "id": "1", "name": tool.name, "args": arguments}
    for message in (tool.invoke(called), await tool.ainvoke(called)):
        assert message.artifact["failed"]
        assert said in json.loads(message.content)["error"]


def test_a_view_shows_nothing_else() -> None:
    where = {"year": {"$lt": 1992}}
    search, explore = ark_tools(STORE.view(where), INDEX.view(where))
    assert "f4" not in search.invoke({"query": "Red Light Dark film"})
    assert "error" in explore.invoke({"node": "f4"})

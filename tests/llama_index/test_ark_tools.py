"""ARK's operations as tools of LlamaIndex agents."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from chat_clients import llama_index_openai
from llama_index.core.agent.workflow import AgentStream, FunctionAgent, ToolCallResult
from llama_index.core.tools import FunctionTool
from llama_index.core.tools.calling import acall_tool, call_tool
from llama_support import INDEX, QUESTION, STORE

from graphret.ark import Toolbox
from graphret.testing.openai_server import OpenAIServer, text, tool_calls
from llama_index_graphret import ScriptedExplorer, ark_tools

NAMES = ["global_search", "explore_neighborhood"]


def tools(**options: Any) -> list[FunctionTool]:
    return ark_tools(STORE, INDEX, **options)


# -- the tools


def test_they_are_described_as_the_core_describes_them() -> None:
    described = [tool.metadata.to_openai_tool()["function"] for tool in tools()]
    for shown, tool in zip(described, Toolbox(STORE, INDEX).tools, strict=False):
        assert (shown["name"], shown["description"]) == (tool.name, tool.description)
        assert shown["parameters"].items() <= tool.parameters.items()
        assert shown["parameters"]["properties"]
    assert [tool.metadata.name for tool in tools()] == NAMES


@pytest.mark.parametrize("awaited", [False, True])
def test_they_answer_as_the_core_does(awaited: bool) -> None:
    search, explore = tools()
    for tool, arguments in (
        (search, {"query": "film", "k": 2}),
        (explore, {"node": "p1", "relation_types": ["starred_actors"], "query": "Big", "k": 1}),
    ):
        output = asyncio.run(acall_tool(tool, arguments)) if awaited else call_tool(tool, arguments)
        assert output.content == Toolbox(STORE, INDEX).run(tool.metadata.get_name(), arguments).text
        assert not output.is_error


@pytest.mark.parametrize("arguments", [{"node": "Tom Hank"}, {"nodes": ["p1"]}, {"node": 3.5}])
def test_what_makes_no_sense_is_answered_with_an_instruction(arguments: dict[str, Any]) -> None:
    assert json.loads(call_tool(tools()[1], arguments).content)["error"]


# -- agents


async def answer(llm: Any, streaming: bool = True, **options: Any) -> tuple[str, list[ToolCallResult], str]:
    agent = FunctionAgent(tools=tools(), llm=llm, streaming=streaming, **options)
    handler, results, streamed = agent.run(QUESTION), [], ""
    async for event in handler.stream_events():
        if isinstance(event, ToolCallResult):
            results.append(event)
        if isinstance(event, AgentStream):
            streamed += event.delta
    return str(await handler), results, streamed


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_agent_explores_offline(streaming: bool) -> None:
    said, results, streamed = await answer(ScriptedExplorer(), streaming, system_prompt="You find nodes.")
    assert {one.tool_name for one in results} == set(NAMES)
    assert not any(one.tool_output.is_error for one in results)
    for film in ("m0", "m1", "m2"):
        assert film in said
    assert "m3" not in said
    assert (streamed == said) is streaming


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_agent_with_llama_index_s_own_model_behind_http(streaming: bool) -> None:
    """LlamaIndex's package runs a call whose arguments it could not read with what it made of them, or with none."""
    script = [
        tool_calls(("global_search", {"query": "Tom Hanks"}), ("explore_neighborhood", {"node": "nobody"})),
        tool_calls(*(("explore_neighborhood", raw) for raw in ('{"node": ', '["p1"]', "{}{}", "5"))),
        tool_calls(("explore_neighborhood", {"node": "p1"})),
        text("Big, Cast Away and Splash."),
    ]
    with OpenAIServer(script) as server:
        said, results, streamed = await answer(llama_index_openai(server.base_url, retries=0), streaming)
        assert [bool(request.body.get("stream")) for request in server.requests] == [streaming] * 4
        told = [message["content"] for message in server.requests[-1].messages if message["role"] == "tool"]
    assert said == "Big, Cast Away and Splash."
    assert streamed == (said if streaming else "")
    assert sorted(told) == sorted(one.tool_output.content for one in results)  # each reply's come as they are done
    assert ["There is no node" in one for one in sorted(told[:2])] == [True, False]
    assert all("Field required" in one for one in told[2:6])
    assert '"m0"' in told[6]

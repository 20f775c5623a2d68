"""ARK in LangChain: its operations as tools, agents as one tool of another agent, and as a retriever."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ark_support import Follows, call, turns
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command
from langgraph_parts import FULL, INDEX, QUESTION, STORE, graph, models, thread
from pydantic import ValidationError

from graphret.ark import Ark, ArkSettings, Run, make_tools
from graphret.errors import RetrievalFailed
from graphret.llm.chat import ChatError, Reply
from langchain_graphret import ArkRetriever, CoreChat, ScriptedExplorer, ark_tools, create_ark_tool, to_hit

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


async def test_a_wrong_call_is_answered_with_an_instruction() -> None:
    called: Any = {"type": "tool_call", "id": "1", "name": EXPLORE.name, "args": {"node": "Bob"}}
    for message in (EXPLORE.invoke(called), await EXPLORE.ainvoke(called)):
        assert message.artifact["failed"]
        assert "p1" in json.loads(message.content)["error"]


def test_a_view_shows_nothing_else() -> None:
    where = {"year": {"$lt": 1992}}
    search, explore = ark_tools(STORE.view(where), INDEX.view(where))
    assert "f4" not in search.invoke({"query": "Red Light Dark film"})
    assert "error" in explore.invoke({"node": "f4"})


# -- a graph of agents as a tool of another agent


class _Agents:
    @property
    def tool_constructor(self) -> BaseTool:
        return create_ark_tool(graph())

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"question": QUESTION, "k": 2}


class TestAgentsUnit(_Agents, ToolsUnitTests):
    """LangChain's own suite."""


def asked(tool: BaseTool, **arguments: Any) -> ToolMessage:
    answer = tool.invoke({"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"})
    assert isinstance(answer, ToolMessage)
    return answer


def lines(answer: ToolMessage) -> list[Any]:
    return [json.loads(line) for line in str(answer.content).splitlines()]


async def test_a_model_gives_it_a_question_and_reads_the_hits() -> None:
    tool = create_ark_tool(graph())
    answer = asked(tool, question=QUESTION, k=2)
    first, best, other = lines(answer)
    assert first == {"shown": 2, "of": 2}
    assert best == {
        "id": "f4",
        "name": "Dark Red",
        "type": ["movie"],
        "because": ["3 of 3 votes, place 1", "Dark Red -directed_by→ Bob Bell"],
        "text": "Dark Red is film number 4.",
    }
    assert other["id"] == "f1"
    assert [hit["id"] for hit in answer.artifact["hits"]] == ["f4", "f1"]
    assert await tool.ainvoke({"question": QUESTION, "k": 2}) == answer.content


def test_what_is_asked_wrongly_is_answered_and_what_fails_is_raised() -> None:
    answer = asked(create_ark_tool(graph()), question=QUESTION, where={"year": {"$near": 1}})
    assert (answer.status, "$near" in str(answer.content)) == ("error", True)

    def gone(messages: Any) -> Any:
        raise ChatError("it is gone", model="m", reason="server", status=500)

    with pytest.raises(RetrievalFailed, match="it is gone"):
        asked(create_ark_tool(graph(Follows(gone), on_failure="raise")), question=QUESTION)


def outer(tool: BaseTool, **options: Any) -> Any:
    """An agent that asks the tool once, and then answers."""
    ask = [call(tool.name, "a", question=QUESTION, k=1)]
    model = CoreChat(core=Follows(turns(ask, Reply("Dark Red it is.")), "outer")).bind_tools([tool])
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([tool]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder.compile(**options)


def test_a_person_can_be_asked_through_it() -> None:
    compiled = outer(create_ark_tool(graph(approve=["global_search"])), checkpointer=InMemorySaver())
    waiting = compiled.invoke({"messages": [HumanMessage(QUESTION)]}, thread())["__interrupt__"]
    assert sorted(one.value["agent"] for one in waiting) == [1, 2, 3]
    state = compiled.invoke(Command(resume={one.id: True for one in waiting}), thread())
    *_, answer, last = state["messages"]
    assert lines(answer)[1]["id"] == "f4"
    assert last.text == "Dark Red it is."


# -- a retriever


def retriever(model: Any = None, **options: Any) -> ArkRetriever:
    options.setdefault("settings", FULL)
    return ArkRetriever(models() if model is None else model, STORE, INDEX, **options)


class TestRetrieverSuite(RetrieversIntegrationTests):
    """LangChain's own suite."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return ArkRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"model": ScriptedExplorer(), "store": STORE, "index": INDEX}

    @property
    def retriever_query_example(self) -> str:
        return "which films were directed by [Bob Bell]"


async def test_it_returns_what_the_core_does_with_its_reasons() -> None:
    expected = Ark(models(), STORE, INDEX, settings=FULL).retrieve(QUESTION, 4)
    for found in (retriever(k=4).invoke(QUESTION), await retriever(k=4).ainvoke(QUESTION)):
        assert list(map(to_hit, found)) == expected.hits


def test_agents_steps_models_and_runs_can_be_set() -> None:
    runs: list[Run] = []
    one = retriever(models()[0], n_agents=2, settings=ArkSettings(max_steps=2), on_run=runs.append, fill=False)
    assert one.invoke(QUESTION) != []  # nobody selected anything, so that the fallback answers
    assert [session.stop for session in runs[0].sessions] == ["steps", "steps"]


def test_malformed_constructions_are_refused() -> None:
    for wrong, named in (({"model": "gpt-4o"}, "model"), ({"n_agents": 0}, "n_agents"), ({"depth": 3}, "depth")):
        with pytest.raises(ValidationError, match=named):
            retriever(**wrong)

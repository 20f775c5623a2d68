"""A graph of exploring agents as a tool of another agent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ark_support import Follows, call, turns
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_tests.unit_tests import ToolsUnitTests
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command
from langgraph_parts import QUESTION, graph, thread

from graphret.errors import RetrievalFailed
from graphret.llm.chat import ChatError, Reply
from graphret.types import Trace
from langchain_graphret import CoreChat, create_ark_tool


class _Given:
    @property
    def tool_constructor(self) -> BaseTool:
        return create_ark_tool(graph())

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"question": QUESTION, "k": 2}


class TestUnit(_Given, ToolsUnitTests):
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
    assert (best["id"], best["name"], best["type"], best["text"]) == (
        "f4",
        "Dark Red",
        ["movie"],
        "Dark Red is film number 4.",
    )
    assert best["because"] == ["3 of 3 votes, place 1", "Dark Red -directed_by→ Bob Bell"]
    assert other["id"] == "f1"
    assert [hit["id"] for hit in answer.artifact["hits"]] == ["f4", "f1"]
    assert Trace.from_dict(answer.artifact["trace"]).stages
    assert await tool.ainvoke({"question": QUESTION, "k": 2}) == answer.content


def test_only_the_question_is_required_and_all_is_described() -> None:
    described = convert_to_openai_tool(create_ark_tool(graph(), name="films", description="Films and who made them."))
    function = described["function"]
    assert (function["name"], function["description"]) == ("films", "Films and who made them.")
    assert function["parameters"]["required"] == ["question"]
    assert all(one["description"] for one in function["parameters"]["properties"].values())


def test_what_is_asked_wrongly_is_answered_and_what_fails_is_raised() -> None:
    for wrong, named in (({"question": " "}, "question"), ({"where": {"year": {"$near": 1}}}, "$near")):
        answer = asked(create_ark_tool(graph()), **{"question": QUESTION, **wrong})
        assert answer.status == "error"
        assert named in str(answer.content)

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

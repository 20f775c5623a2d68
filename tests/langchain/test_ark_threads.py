"""Threads that take several questions: nothing of an earlier one is in the answer to a later one."""

from __future__ import annotations

from typing import Any

import pytest
from ark_support import Follows, call, turns
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langgraph_parts import ASK, FULL, INDEX, QUESTION, STORE, graph, ids, models, stops, thread

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.llm.chat import ChatError
from langchain_graphret.ark import create_ark_agent

OTHER = "films by Ann Archer"


def fresh(question: str) -> Any:
    return graph().invoke({"question": question})


def test_the_number_and_the_filter_of_a_question_are_its_own() -> None:
    compiled = graph(checkpointer=InMemorySaver())
    compiled.invoke({"question": QUESTION, "k": 1, "where": {"label": "genre"}}, thread())
    found = compiled.invoke({"question": OTHER}, thread())
    assert found["hits"] == fresh(OTHER)["hits"]
    assert len(found["hits"]) == 10


async def test_so_they_are_where_the_first_one_broke_off() -> None:
    def gone(messages: Any) -> Any:
        raise ChatError("it is gone", model="m", reason="server", status=500)

    saver = InMemorySaver()
    given = {"question": QUESTION, "k": 1, "where": {"label": "genre"}}
    with pytest.raises(RetrievalFailed):
        await graph(Follows(gone), on_failure="raise", checkpointer=saver).ainvoke(given, thread())
    assert ids(await graph(checkpointer=saver).ainvoke(None, thread())) == ["comedy"]  # it goes on as it was asked
    with pytest.raises(RetrievalFailed):
        await graph(Follows(gone), on_failure="raise", checkpointer=saver).ainvoke(given, thread("2"))
    found = await graph(checkpointer=saver).ainvoke({"question": OTHER}, thread("2"))
    assert found["hits"] == fresh(OTHER)["hits"]


def test_a_question_without_agents_has_none_of_another() -> None:
    compiled = graph(checkpointer=InMemorySaver())
    compiled.invoke(ASK, thread())
    found = compiled.invoke({"question": " "}, thread())
    assert (found["agents"], found["votes"]) == ([], [])
    assert ids(compiled.invoke(ASK, thread()))[:3] == ["f4", "f1", "p1"]


def test_fewer_agents_than_before_vote_alone() -> None:
    saver = InMemorySaver()
    graph(checkpointer=saver).invoke(ASK, thread())
    found = graph(models(["p1"], ["p1"]), n_agents=2, checkpointer=saver).invoke({"question": OTHER}, thread())
    assert [(vote["id"], vote["votes"]) for vote in found["votes"]] == [("p1", 2)]


@pytest.mark.parametrize("asked_again", [QUESTION, OTHER])
async def test_an_agent_with_a_checkpointer_begins_anew(asked_again: str) -> None:
    agent = create_ark_agent(models()[0], STORE, INDEX, settings=FULL, n_agents=1, checkpointer=InMemorySaver())
    first = agent.invoke({"question": QUESTION}, thread())
    again = await agent.ainvoke({"question": asked_again}, thread())
    assert again["agents"][0]["question"] == asked_again
    assert again["ark_run"]["id"] != first["ark_run"]["id"]
    assert [step["number"] for step in again["agents"][0]["steps"]] == [1, 2, 3]


@pytest.mark.parametrize("asked_again", [QUESTION, OTHER])
def test_an_agent_that_waits_for_a_person_can_be_asked_something_else(asked_again: str) -> None:
    model = Follows(turns([call("global_search", query="Bob Bell")], [call("select", nodes=["p1"]), call("finish")]))
    agent = create_ark_agent(model, STORE, INDEX, approve=True, checkpointer=InMemorySaver())
    agent.invoke({"question": QUESTION}, thread())
    waiting = agent.invoke({"question": asked_again}, thread())["__interrupt__"]
    assert [one.value["question"] for one in waiting] == [asked_again]
    assert [one.value["step"] for one in waiting] == [1]
    for _ in range(2):
        found = agent.invoke(Command(resume=True), thread())
    assert found["selection"] == ["p1"]


@pytest.mark.parametrize("given", [{}, {"question": None}, {"question": 5}, {"question": " "}])
def test_an_agent_that_is_asked_nothing_says_so(given: Any) -> None:
    with pytest.raises(InvalidInput, match=r"question: it is (empty|no string)"):
        create_ark_agent(models()[0], STORE, INDEX).invoke(given)


@pytest.mark.parametrize("on_failure", ["fallback", "raise"])
def test_agents_that_waited_for_approval_where_the_graph_that_goes_on_has_none_are_named(on_failure: str) -> None:
    saver = InMemorySaver()
    waiting = graph(approve=True, checkpointer=saver).invoke(ASK, thread())["__interrupt__"]
    go_on = Command(resume={one.id: True for one in waiting})
    compiled = graph(checkpointer=saver, on_failure=on_failure)
    if on_failure == "raise":
        with pytest.raises(RetrievalFailed, match="without `approve`"):
            compiled.invoke(go_on, thread())
        return
    found = compiled.invoke(go_on, thread())
    assert stops(found) == ["failed"] * 3
    assert all("without `approve`" in agent["error"] for agent in found["agents"])
    assert found["hits"]

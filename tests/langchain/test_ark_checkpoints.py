"""ARK in LangGraph with a checkpointer: stopping and going on, a person's approval, strict checkpoints."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

import pytest
from ark_support import Follows, call, turns
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from langgraph_parts import (
    ASK,
    FULL,
    INDEX,
    QUESTION,
    STORE,
    Gate,
    Meeting,
    asked,
    graph,
    ids,
    models,
    thread,
)

from graphret.ark import Recorder, Run, read_runs
from graphret.errors import InvalidInput, RetrievalFailed
from graphret.llm.chat import ChatError, Message
from langchain_graphret.ark import create_ark_agent, run_of

EXPECTED = graph().invoke(ASK)


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    if request.param == "memory":
        yield InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        return
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    with sqlite.SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as one:
        one.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        yield one


def same(found: Any) -> bool:
    """Whether all but the seconds are those of a run that was never stopped."""
    return bool(
        found["hits"] == EXPECTED["hits"]
        and found["votes"] == EXPECTED["votes"]
        and [agent["messages"] for agent in found["agents"]] == [agent["messages"] for agent in EXPECTED["agents"]]
    )


class Stumbles(Follows):
    """Fails once, at the reply of this number; `paid` counts the replies that it gave."""

    def __init__(self, model: Follows, at: int) -> None:
        super().__init__(self._policy, model.name)
        self.inner = model
        self.at = at
        self.paid = 0

    def _policy(self, messages: Sequence[Message]) -> Any:
        if self.paid == self.at:
            self.at = -1
            raise ChatError("it is gone", model=self.name, reason="server", status=500)
        self.paid += 1
        return self.inner.policy(messages)


# -- stopping and going on


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_run_that_broke_off_goes_on_where_it_was(saver: BaseCheckpointSaver[Any], at: int) -> None:
    """Each time in a graph made anew, as another process would."""
    asks: list[Any] = [Stumbles(model, at if i == 1 else -1) for i, model in enumerate(models())]
    with pytest.raises(RetrievalFailed, match="it is gone"):
        graph(asks, on_failure="raise", checkpointer=saver).invoke(ASK, thread())
    found = graph(asks, on_failure="raise", checkpointer=saver).invoke(None, thread())
    assert same(found)
    assert [model.paid for model in asks] == [3, 3, 3]


async def test_a_run_that_was_cancelled_goes_on_where_it_was() -> None:
    saver = InMemorySaver()
    gate = Gate(2)
    first = [Meeting(model.policy, {1: gate} if i == 2 else {}, model.name) for i, model in enumerate(models())]
    stopped = graph(first, checkpointer=saver)
    task = asyncio.create_task(stopped.ainvoke(ASK, thread()))
    while first[0].asked + first[1].asked < 6 or not gate.waiting:  # noqa: ASYNC110 -- they are about to
        await asyncio.sleep(0.001)
    while len((await stopped.aget_state(thread())).tasks[0].result or ()) == 0:  # noqa: ASYNC110 -- the first is saved
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.waiting == 0
    again = models()
    found = await graph(again, checkpointer=saver).ainvoke(None, thread())
    assert same(found)
    assert again[0].asked == 0
    assert again[2].asked == 2
    started = [step["started"] for step in found["agents"][2]["steps"]]
    assert started == sorted(started)  # the clock goes on too


def test_a_run_begun_with_more_agents_goes_on_with_as_many() -> None:
    saver = InMemorySaver()
    with pytest.raises(RetrievalFailed, match="it is gone"):
        graph([Stumbles(model, 1) for model in models()], on_failure="raise", checkpointer=saver).invoke(ASK, thread())
    with pytest.raises(InvalidInput, match=r"agent: a number from 0 to 1 .* 2; "):
        graph(models()[:2], settings=replace(FULL, n_agents=2), checkpointer=saver).invoke(None, thread())
    assert same(graph(checkpointer=saver).invoke(None, thread()))


def test_a_run_can_be_stopped_before_the_vote(saver: BaseCheckpointSaver[Any]) -> None:
    asks = models()
    compiled = graph(asks, checkpointer=saver)
    compiled.invoke(ASK, thread(), interrupt_before=["vote"])
    assert compiled.get_state(thread()).next == ("vote",)
    assert same(compiled.invoke(None, thread()))
    assert asked(asks) == [3, 3, 3]


def test_a_thread_takes_one_question_after_another(saver: BaseCheckpointSaver[Any]) -> None:
    compiled = graph(checkpointer=saver)
    assert same(compiled.invoke(ASK, thread()))
    other = compiled.invoke({"question": "films by Ann Archer", "k": 1}, thread())
    assert [agent["question"] for agent in other["agents"]] == ["films by Ann Archer"] * 3
    assert len(other["hits"]) == 1
    assert same(compiled.invoke(ASK, thread()))


# -- approval


def waiting(found: Any) -> dict[int, Any]:
    """The interrupts, by the number of the agent that waits."""
    return {one.value["agent"]: one for one in found.get("__interrupt__", ())}


def answer(found: Any, say: Any) -> Command[Any]:
    return Command(resume={one.id: say(one.value) for one in waiting(found).values()})


@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_a_person_approves_the_calls_of_several_agents_at_once(form: str) -> None:
    asks = models()
    compiled = graph(asks, approve=True, checkpointer=InMemorySaver())

    async def go(given: Any) -> Any:
        if form == "blocking":
            return await asyncio.to_thread(compiled.invoke, given, thread())
        return await compiled.ainvoke(given, thread())

    found = await go(ASK)
    assert sorted(waiting(found)) == [1, 2, 3]
    assert waiting(found)[1].value == {
        "agent": 1,
        "step": 1,
        "question": QUESTION,
        "calls": [{"id": "call_1_0", "tool": "global_search", "arguments": {"query": "Bob Bell"}}],
    }
    assert asked(asks) == [1, 1, 1]
    found = await go(answer(found, lambda value: True))
    assert [len(one.value["calls"]) for one in waiting(found).values()] == [2, 2, 2]
    found = await go(answer(found, lambda value: {one["id"]: True for one in value["calls"]}))
    assert same(found)  # nothing to approve in a step that only selects and finishes
    assert asked(asks) == [3, 3, 3]


def test_agents_can_be_answered_one_by_one(saver: BaseCheckpointSaver[Any]) -> None:
    """Each time in a graph made anew."""
    asks = models()
    found = graph(asks, approve=["global_search"], checkpointer=saver).invoke(ASK, thread())
    for agent in (2, 3, 1):
        one = waiting(found)[agent]
        compiled = graph(asks, approve=["global_search"], checkpointer=saver)
        found = compiled.invoke(Command(resume={one.id: True}), thread())
    assert same(found)
    assert asked(asks) == [3, 3, 3]


class Own(TypedDict, total=False):
    question: str
    hits: list[Any]


def test_approvals_and_steps_reach_through_a_graph_of_ones_own() -> None:
    asks = models()
    builder = StateGraph(Own)
    builder.add_node("ark", graph(asks, approve=["global_search"]))
    builder.add_edge(START, "ark")
    compiled = builder.compile(checkpointer=InMemorySaver())
    found = compiled.invoke({"question": QUESTION}, thread())
    assert sorted(waiting(found)) == [1, 2, 3]
    events = list(compiled.stream(answer(found, lambda value: True), thread(), stream_mode="custom", subgraphs=True))
    assert {len(namespace) for namespace, _ in events} == {2}
    assert ids(compiled.get_state(thread()).values)[:3] == ["f4", "f1", "p1"]
    assert asked(asks) == [3, 3, 3]


def test_refused_calls_are_answered_to_the_model() -> None:
    asks = models()
    compiled = graph(asks, approve=lambda one: one.name == "explore_neighborhood", checkpointer=InMemorySaver())
    found = compiled.invoke(ASK, thread())

    def say(value: Any) -> Any:
        first, second = (one["id"] for one in value["calls"])
        return {1: False, 2: {first: True}, 3: {first: True, second: "too many films"}}[value["agent"]]

    found = compiled.invoke(answer(found, say), thread())
    told = [
        [message["content"] for message in agent["messages"] if message.get("name") == "explore_neighborhood"]
        for agent in found["agents"]
    ]
    assert [["A person refused this call" in text for text in texts] for texts in told] == [
        [True, True],
        [False, True],
        [False, True],
    ]
    assert "too many films" in told[2][1]
    assert asked(asks) == [3, 3, 3]
    assert [one["failed"] for one in found["agents"][0]["steps"][1]["calls"]] == [True, True]
    assert ids(found)[0] == "f4"  # the second agent and the third were shown it


@pytest.mark.parametrize("other", ["not this", 1, {"call_9_9": True}, ["call_1_0"]])
def test_what_is_not_true_approves_nothing(other: Any) -> None:
    compiled = graph(approve=["global_search"], checkpointer=InMemorySaver())
    found = compiled.invoke(answer(compiled.invoke(ASK, thread()), lambda value: other), thread())
    assert all(agent["steps"][0]["calls"][0]["failed"] for agent in found["agents"])


def test_what_says_nothing_of_approval_is_refused() -> None:
    for approve in ("global_search", ["explore_neighbourhood"], ["finish"]):
        with pytest.raises(InvalidInput, match="approve: true, a list of"):
            graph(approve=approve)


# -- what is written


def test_checkpoints_hold_only_safe_types(saver: BaseCheckpointSaver[Any], caplog: pytest.LogCaptureFixture) -> None:
    """`saver` reads what LANGGRAPH_STRICT_MSGPACK lets it read, and logs what it does not."""
    compiled = graph(approve=["global_search"], checkpointer=saver)
    found = compiled.invoke(answer(compiled.invoke(ASK, thread()), lambda value: True), thread())
    kept = compiled.get_state(thread()).values
    assert {key: kept[key] for key in found} == found
    for snapshot in compiled.get_state_history(thread()):
        json.dumps(snapshot.values)
    assert "msgpack" not in caplog.text


# -- threads and runs

OTHER = "films by Ann Archer"


def test_the_number_and_the_filter_of_a_question_are_its_own() -> None:
    compiled = graph(checkpointer=InMemorySaver())
    compiled.invoke({"question": QUESTION, "k": 1, "where": {"label": "genre"}}, thread())
    found = compiled.invoke({"question": OTHER}, thread())
    assert found["hits"] == graph().invoke({"question": OTHER})["hits"]
    assert len(found["hits"]) == 10


def test_a_question_without_agents_has_none_of_another() -> None:
    compiled = graph(checkpointer=InMemorySaver())
    compiled.invoke(ASK, thread())
    found = compiled.invoke({"question": " "}, thread())
    assert (found["agents"], found["votes"]) == ([], [])
    assert ids(compiled.invoke(ASK, thread()))[:3] == ["f4", "f1", "p1"]


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


def around(inner: Any, **options: Any) -> Any:
    """A graph of one's own with ARK as its node."""
    builder = StateGraph(Own)
    builder.add_node("ark", inner)
    builder.add_edge(START, "ark")
    return builder.compile(**options)


def ends(run: Run) -> list[str | None]:
    return [session.stop for session in run.sessions]


def steps(run: Run) -> list[int]:
    return [len(session.steps) for session in run.sessions]


def test_a_run_that_never_goes_on_is_taken_from_its_checkpoint(tmp_path: Path) -> None:
    compiled = graph(approve=["explore_neighborhood"], checkpointer=InMemorySaver())
    compiled.invoke({"question": "an earlier one"}, thread("2"))
    for compile_, name in ((compiled, "1"), (compiled, "2")):
        found = compile_.invoke(ASK, thread(name))
        one = next(one for one in found["__interrupt__"] if one.value["agent"] == 2)
        compile_.invoke(Command(resume={one.id: True}), thread(name))  # it ends; the others wait on
        run = run_of(compile_.get_state(thread(name), subgraphs=True))
        assert (run.question, ends(run), steps(run)) == (QUESTION, [None, "finished", None], [2, 3, 2])
        assert run.seconds > 0
        path = tmp_path / f"{name}.jsonl"
        Recorder(path)(run)
        (read,) = read_runs(path)
        assert steps(read) == steps(run)
        assert read.created == run.created


async def test_so_it_is_of_graphs_of_ones_own_of_agents_and_of_runs_that_have_ended() -> None:
    own = around(graph(approve=True), checkpointer=InMemorySaver())
    own.invoke({"question": QUESTION}, thread())
    assert steps(run_of(await own.aget_state(thread(), subgraphs=True))) == [1, 1, 1]
    agent = create_ark_agent(models()[0], STORE, INDEX, approve=True, checkpointer=InMemorySaver())
    agent.invoke({"question": QUESTION}, thread())
    assert steps(run_of(agent.get_state(thread()))) == [1]
    compiled = graph(checkpointer=InMemorySaver())
    compiled.invoke(ASK, thread())
    assert ends(run_of(compiled.get_state(thread()))) == ["finished"] * 3
    with pytest.raises(InvalidInput, match="of one run are expected, not of 0"):
        run_of(compiled.get_state(thread("none")))

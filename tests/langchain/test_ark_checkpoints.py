"""ARK in LangGraph with a checkpointer: stopping and going on, a person's approval, strict checkpoints."""

from __future__ import annotations

import asyncio
import json
import time
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
from langgraph_parts import ASK, FULL, QUESTION, Gate, Meeting, asked, graph, ids, models, stops, thread

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.llm.chat import ChatError, Message

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


async def test_a_call_without_a_thread_is_refused_in_langgraph_s_words() -> None:
    compiled = graph(checkpointer=InMemorySaver())
    for config in (None, {"recursion_limit": 50}, {"configurable": {}}):
        with pytest.raises(ValueError, match=r"Checkpointer requires .* thread_id"):
            compiled.invoke(ASK, config)
        with pytest.raises(ValueError, match=r"Checkpointer requires .* thread_id"):
            list(compiled.stream(ASK, config))
        with pytest.raises(ValueError, match=r"Checkpointer requires .* thread_id"):
            await compiled.ainvoke(ASK, config)
        with pytest.raises(ValueError, match=r"Checkpointer requires .* thread_id"):
            await anext(compiled.astream(ASK, config))
    assert same(compiled.with_config(thread()).invoke(ASK))


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


def test_a_failure_stops_the_others_before_they_are_asked_again_and_loses_no_reply() -> None:
    saver, steps = InMemorySaver(), 300
    goes_on = [Follows(turns(*([[call("global_search", query=f"film {i}")] for i in range(steps)]))) for _ in range(2)]
    compiled = graph(
        [*goes_on, Stumbles(models()[2], 0)],
        on_failure="raise",
        checkpointer=saver,
        settings=replace(FULL, max_steps=steps, remember=False),
    )
    with pytest.raises(RetrievalFailed, match="it is gone"):
        compiled.invoke(ASK, thread())
    assert max(asked(goes_on)) < steps
    states = [task.state.values for task in compiled.get_state(thread(), subgraphs=True).tasks[:2]]
    replies = [len(state["agents"][0]["steps"]) if "agents" in state else 0 for state in states]
    assert replies == asked(goes_on)


def test_a_run_begun_with_more_agents_goes_on_with_as_many() -> None:
    saver = InMemorySaver()
    with pytest.raises(RetrievalFailed, match="it is gone"):
        graph([Stumbles(model, 1) for model in models()], on_failure="raise", checkpointer=saver).invoke(ASK, thread())
    with pytest.raises(InvalidInput, match=r"agent: a number from 0 to 1 .* 2; .* begun with more agents than 2"):
        graph(models()[:2], settings=replace(FULL, n_agents=2), checkpointer=saver).invoke(None, thread())
    assert same(graph(checkpointer=saver).invoke(None, thread()))


@pytest.mark.parametrize("as_node", [None, "__start__"])
def test_a_question_put_into_the_state_is_explored(as_node: str | None) -> None:
    """As people do in LangGraph's studio: into an empty thread, and in the place of another question."""
    compiled = graph(checkpointer=InMemorySaver())
    if as_node:
        compiled.invoke({"question": "films by Ann Archer"}, thread())
        begun = list(compiled.get_state_history(thread()))[-2].config
    else:
        begun = thread()
    there = compiled.update_state(begun, ASK, as_node=as_node)
    assert compiled.get_state(there).next == ("agent",) * 3
    assert same(compiled.invoke(None, there))


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
    short = compiled.invoke({"question": QUESTION}, thread(recursion_limit=2))  # no room for agents
    assert short["votes"] == []
    assert "stages" in short["trace"]
    assert same(compiled.invoke(ASK, thread()))


def test_agents_of_a_run_under_way_can_be_looked_at(saver: BaseCheckpointSaver[Any]) -> None:
    compiled = graph(approve=["explore_neighborhood"], checkpointer=saver)
    compiled.invoke(ASK, thread())
    under_way = compiled.get_state(thread(), subgraphs=True).tasks
    assert [len(task.state.values["agents"][0]["steps"]) for task in under_way] == [2, 2, 2]


def test_the_budget_of_tokens_goes_on_too() -> None:
    """Each of three agents spends 110 a step, and each goes on in a graph made anew, which sees no other step."""
    never = Follows(turns(*([[call("global_search", query=f"film {i}")] for i in range(50)])))
    saver, timed = InMemorySaver(), replace(FULL, max_tokens=500)

    def made() -> Any:
        return graph(never, approve=True, settings=timed, checkpointer=saver)

    found = made().invoke(ASK, thread(max_concurrency=1))
    while one := waiting(found).get(3):  # who was the last to step, and knows of the others
        found = made().invoke(Command(resume={one.id: True}), thread())
    assert never.asked == 5


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


def test_the_clock_stands_while_a_person_is_asked() -> None:
    timed = replace(FULL, max_seconds=1.5)
    compiled = graph(approve=["global_search"], checkpointer=InMemorySaver(), settings=timed)
    found = compiled.invoke(ASK, thread())
    time.sleep(1.6)
    found = compiled.invoke(answer(found, lambda value: True), thread())
    assert stops(found) == ["finished"] * 3
    assert found["trace"]["seconds"] < 1.5


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


@pytest.mark.parametrize("malformed", ["yes", 1, None, {"call_9_9": True}, {"call_1_0": 3}, ["call_1_0"]])
def test_what_is_no_answer_is_asked_for_again(malformed: Any) -> None:
    asks = models()
    compiled = graph(asks, approve=["global_search"], checkpointer=InMemorySaver())
    found = compiled.invoke(ASK, thread())
    found = compiled.invoke(Command(resume={waiting(found)[1].id: malformed}), thread())
    assert sorted(waiting(found)) == [1, 2, 3]
    assert "expected" in waiting(found)[1].value["error"] or "no call with the id" in waiting(found)[1].value["error"]
    assert same(compiled.invoke(answer(found, lambda value: True), thread()))
    assert asked(asks) == [3, 3, 3]


@pytest.mark.parametrize(
    ("approve", "named"),
    [
        (3, "names of tools"),
        ("global_search", "names of tools"),
        ([3], "names of tools"),
        (["explore_neighbourhood"], "no tool 'explore_neighbourhood'; closest: 'explore_neighborhood'$"),
        ({"global_search", "delete"}, "no tool 'delete'"),
        (["select"], "'select' reads nothing of the graph"),
        (["global_search", "finish"], "'finish' reads nothing of the graph"),
    ],
)
def test_what_says_nothing_of_approval_is_refused(approve: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=f"approve: .*{named}"):
        graph(approve=approve)


def test_an_agent_whose_calls_are_always_refused_ends() -> None:
    policy = turns(*([[call("global_search", query=f"film {i}")] for i in range(50)]))
    compiled = graph(Follows(policy), n_agents=1, approve=True, checkpointer=InMemorySaver())
    found = compiled.invoke(ASK, thread())
    for _ in range(20):
        if not waiting(found):
            break
        found = compiled.invoke(answer(found, lambda value: False), thread())
    assert stops(found) == ["silent"]
    assert len(found["hits"]) == 4


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

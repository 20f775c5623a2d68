"""ARK in LangGraph with a checkpointer: stopping and going on, a person's approval, strict checkpoints."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ark_support import Follows, call, turns
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command
from langgraph_parts import ASK, INDEX, QUESTION, STORE, Gate, Meeting, asked, graph, ids, models, thread

from graphret.errors import RetrievalFailed
from graphret.llm.chat import ChatError, Message
from langchain_graphret.ark import create_ark_agent

EXPECTED = graph().invoke(ASK)
OTHER = "films by Ann Archer"


@pytest.fixture
def saver() -> InMemorySaver:
    """Reads what LANGGRAPH_STRICT_MSGPACK lets it read, and logs what it does not."""
    return InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))


def same(found: Any) -> bool:
    """Whether all but the seconds are those of a run that was never stopped."""
    return bool(
        found["hits"] == EXPECTED["hits"]
        and found["votes"] == EXPECTED["votes"]
        and [agent["messages"] for agent in found["agents"]] == [agent["messages"] for agent in EXPECTED["agents"]]
    )


# -- stopping and going on


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


@pytest.mark.parametrize("at", [0, 2])
def test_a_run_that_broke_off_goes_on_where_it_was(tmp_path: Path, at: int) -> None:
    """Each time in a graph made anew, as another process would."""
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    asks: list[Any] = [Stumbles(model, at if i == 1 else -1) for i, model in enumerate(models())]
    with sqlite.SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        saver.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        with pytest.raises(RetrievalFailed, match="it is gone"):
            graph(asks, on_failure="raise", checkpointer=saver).invoke(ASK, thread())
        assert same(graph(asks, on_failure="raise", checkpointer=saver).invoke(None, thread()))
    assert [model.paid for model in asks] == [3, 3, 3]


async def test_a_run_that_was_cancelled_goes_on_where_it_was(saver: InMemorySaver) -> None:
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
    again = models()
    found = await graph(again, checkpointer=saver).ainvoke(None, thread())
    assert same(found)
    assert (again[0].asked, again[2].asked) == (0, 2)
    started = [step["started"] for step in found["agents"][2]["steps"]]
    assert started == sorted(started)  # the clock goes on too


def test_a_thread_takes_one_question_after_another(saver: InMemorySaver) -> None:
    compiled = graph(checkpointer=saver)
    assert same(compiled.invoke(ASK, thread()))
    one = compiled.invoke({"question": OTHER, "k": 1, "where": {"label": "genre"}}, thread())
    assert [agent["question"] for agent in one["agents"]] == [OTHER] * 3
    assert len(one["hits"]) == 1
    assert len(compiled.invoke({"question": OTHER}, thread())["hits"]) == 10  # k and filter were of that question
    assert same(compiled.invoke(ASK, thread()))


# -- approval


def waiting(found: Any) -> dict[int, Any]:
    """The interrupts, by the number of the agent that waits."""
    return {one.value["agent"]: one for one in found.get("__interrupt__", ())}


def answer(found: Any, say: Any) -> Command[Any]:
    return Command(resume={one.id: say(one.value) for one in waiting(found).values()})


@pytest.mark.parametrize("awaited", [False, True])
async def test_a_person_approves_the_calls_of_several_agents_at_once(
    saver: InMemorySaver, caplog: pytest.LogCaptureFixture, awaited: bool
) -> None:
    asks = models()
    compiled = graph(asks, approve=True, checkpointer=saver)

    async def go(given: Any) -> Any:
        return await compiled.ainvoke(given, thread()) if awaited else compiled.invoke(given, thread())

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
    for snapshot in compiled.get_state_history(thread()):
        json.dumps(snapshot.values)
    assert "msgpack" not in caplog.text


def test_agents_can_be_answered_one_by_one(saver: InMemorySaver) -> None:
    """Each time in a graph made anew."""
    asks = models()
    found = graph(asks, approve=["global_search"], checkpointer=saver).invoke(ASK, thread())
    for agent in (2, 3, 1):
        compiled = graph(asks, approve=["global_search"], checkpointer=saver)
        found = compiled.invoke(Command(resume={waiting(found)[agent].id: True}), thread())
    assert same(found)
    assert asked(asks) == [3, 3, 3]


def test_refused_calls_are_answered_to_the_model(saver: InMemorySaver) -> None:
    compiled = graph(approve=["explore_neighborhood"], checkpointer=saver)
    found = compiled.invoke(ASK, thread())

    def say(value: Any) -> Any:
        first, second = (one["id"] for one in value["calls"])
        return {1: [second], 2: {first: True}, 3: {first: True, second: "too many films"}}[value["agent"]]

    found = compiled.invoke(answer(found, say), thread())
    told = [
        [message["content"] for message in agent["messages"] if message.get("name") == "explore_neighborhood"]
        for agent in found["agents"]
    ]
    refused = [["A person refused this call" in text for text in texts] for texts in told]
    assert refused == [[True, True], [False, True], [False, True]]
    assert "too many films" in told[2][1]
    assert [one["failed"] for one in found["agents"][0]["steps"][1]["calls"]] == [True, True]
    assert ids(found)[0] == "f4"  # the second agent and the third were shown it


def test_an_agent_that_waits_for_a_person_can_be_asked_something_else(saver: InMemorySaver) -> None:
    model = Follows(turns([call("global_search", query="Bob Bell")], [call("select", nodes=["p1"]), call("finish")]))
    agent = create_ark_agent(model, STORE, INDEX, approve=True, checkpointer=saver)
    agent.invoke({"question": QUESTION}, thread())
    [one] = agent.invoke({"question": OTHER}, thread())["__interrupt__"]
    assert (one.value["question"], one.value["step"]) == (OTHER, 1)
    for _ in range(2):
        found = agent.invoke(Command(resume=True), thread())
    assert found["selection"] == ["p1"]

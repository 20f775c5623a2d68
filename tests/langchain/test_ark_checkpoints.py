"""ARK in LangGraph with a checkpointer: stopping and going on, a person's approval, strict checkpoints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ark_support import Follows
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command
from langgraph_parts import ASK, QUESTION, asked, graph, ids, models, thread

from graphret.errors import RetrievalFailed
from graphret.llm.chat import ChatError, Message

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

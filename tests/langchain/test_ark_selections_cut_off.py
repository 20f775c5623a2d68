"""In LangGraph too what an agent selects counts whatever becomes of the calls beside it, and counts once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from ark_cut_off import POLICY, SELECTED, Clock, interrupted_at, stuck
from ark_support import Follows, index_of
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_parts import ASK, thread

from graphret.ark import ArkSettings, Run
from graphret.errors import RetrievalFailed, StoreError
from graphret.llm.chat import Message
from graphret.stores import MemoryStore
from graphret.types import Node
from langchain_graphret import create_ark_graph


def graph(store: MemoryStore, policy: Any = POLICY, **options: Any) -> Any:
    options.setdefault("settings", ArkSettings(early_stop=False, max_seconds=60.0))
    return create_ark_graph(Follows(policy), store, index_of(store), n_agents=1, **options)


async def run(compiled: Any, form: str, given: Any = ASK, *config: Any) -> Any:
    if form == "awaited":
        return await compiled.ainvoke(given, *config)
    return await asyncio.to_thread(compiled.invoke, given, *config)


FORMS = pytest.mark.parametrize("form", ["blocking", "awaited"])


@FORMS
async def test_they_count_when_the_time_is_up(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, runs = Clock(monkeypatch), list[Run]()

    def late(messages: Sequence[Message]) -> Any:
        calls = POLICY(messages)
        clock.now = 99.0 if len(messages) > 2 else 0.0
        return calls

    saver = InMemorySaver()
    with stuck() as store:
        found = await run(graph(store, late, on_run=runs.append, checkpointer=saver), form, ASK, thread())
    (agent,) = found["agents"]
    assert (agent["stop"], agent["selection"], agent["steps"][1]["selected"]) == ("seconds", SELECTED, SELECTED)
    assert [hit["id"] for hit in found["hits"]][:2] == SELECTED
    assert [one.selection for one in runs[0].sessions] == [SELECTED]


async def test_they_count_when_the_run_is_cancelled_and_once_when_it_goes_on() -> None:
    runs, saver = list[Run](), InMemorySaver()
    with stuck() as store:
        task = asyncio.create_task(graph(store, on_run=runs.append, checkpointer=saver).ainvoke(ASK, thread()))
        await store.is_stuck()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [(one.stop, one.selection) for one in runs[0].sessions] == [("cancelled", SELECTED)]
    found = await graph(store, on_run=runs.append, checkpointer=saver).ainvoke(None, thread())
    (agent,) = found["agents"]
    assert agent["stop"] == "finished"
    assert agent["selection"] == ["f4", "f0", "p1"]  # f0 is among what the other call shows, now that it is answered
    assert [step["selected"] for step in agent["steps"]] == [[], ["f4", "f0", "p1"], []]
    assert [one.selection for one in runs[1].sessions] == [["f4", "f0", "p1"]]


def test_they_count_when_the_synchronous_form_is_interrupted() -> None:
    """LangGraph waits for its thread, whose agent may hear of what its other call shows until then."""
    runs: list[Run] = []
    with stuck() as store, interrupted_at(store.reached, then=store.go):
        graph(store, on_run=runs.append).invoke(ASK)
    assert [one.selection for one in runs[0].sessions] in ([SELECTED], [["f4", "f0", "p1"]])


class Down(MemoryStore):
    def get(self, ids: Sequence[str]) -> list[Node | None]:
        if "drama" in ids:
            raise StoreError("the database is down")
        return super().get(ids)


@FORMS
async def test_they_count_and_all_calls_are_recorded_when_one_fails_the_run(form: str) -> None:
    store, runs = Down(), list[Run]()
    with stuck() as filled:
        for nodes in filled.nodes():
            store.upsert(nodes)
    with pytest.raises(RetrievalFailed, match="the database is down"):
        await run(graph(store, on_failure="raise", on_run=runs.append), form)
    (session,) = runs[0].sessions
    assert (session.stop, session.selection) == ("failed", SELECTED)
    assert [(one.tool, one.failed) for one in session.steps[1].calls] == [
        ("select", False),
        ("explore_neighborhood", True),
        ("select", False),
    ]
    assert "the database is down" in str(session.steps[1].calls[1].error)

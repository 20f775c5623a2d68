"""A run of the LangGraph graph that is stopped, or fails, while the graph's schema is read reaches `on_run` too."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import pytest
from ark_cut_off import interrupted_at, stuck
from ark_support import Follows, films, index_of, selecting
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_parts import ASK, QUESTION, graph, thread

from graphret.ark import ArkSettings, Recorder, Run, read_runs
from graphret.errors import InvalidInput, RetrievalFailed, StoreError
from graphret.llm.chat import ChatError, Message
from graphret.schema import GraphSchema
from graphret.stores import MemoryStore
from langchain_graphret import create_ark_graph
from langchain_graphret.ark import create_ark_agent, live, run_of

INDEX = index_of(films())


class Broken(MemoryStore):
    def schema(self) -> GraphSchema:
        raise StoreError("the database is down")


def over(store: MemoryStore, **options: Any) -> Any:
    return create_ark_graph(Follows(selecting("f1"), "m"), store, INDEX, **{"n_agents": 2, **options})


def seen(run: Run) -> Any:
    return run.question, [(one.stop, one.model, len(one.steps), one.selection) for one in run.sessions]


async def test_one_that_is_cancelled_is_recorded_and_goes_on_from_its_checkpoint() -> None:
    runs, saver = list[Run](), InMemorySaver()
    with stuck(schema=True) as store:
        task = asyncio.create_task(over(store, on_run=runs.append, checkpointer=saver).ainvoke(ASK, thread()))
        await store.is_stuck()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [seen(run) for run in runs] == [(QUESTION, [("cancelled", "m", 0, [])] * 2)]
    assert runs[0].seconds > 0
    await over(store, on_run=runs.append, checkpointer=saver).ainvoke(None, thread())
    assert [run.cut_short for run in runs] == [True, False]
    assert runs[1].created == runs[0].created


class Unread(InMemorySaver):
    """Checkpoints in a database that does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def aget_tuple(self, config: Any) -> Any:
        self.reached.set()
        await asyncio.Event().wait()


async def test_so_is_one_that_is_cancelled_before_any_agent_is_sent_the_question() -> None:
    runs, saver = list[Run](), Unread()
    compiled = over(films(), on_run=runs.append, checkpointer=saver)
    for given in (ASK, {"question": " "}, None):  # nothing to ask, and one that goes on
        saver.reached.clear()
        task = asyncio.create_task(compiled.ainvoke(given, thread()))
        await saver.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [seen(run) for run in runs] == [(QUESTION, [("cancelled", "m", 0, [])] * 2)]


@pytest.mark.parametrize("given", [{"question": QUESTION, "k": 0}, {"question": 5}])
def test_what_is_asked_wrongly_is_no_run(given: Any) -> None:
    runs: list[Run] = []
    with pytest.raises(InvalidInput):
        over(films(), on_run=runs.append).invoke(given)
    assert runs == []


@pytest.mark.parametrize("n_agents", [1, 2])
def test_one_that_is_interrupted_is_recorded(n_agents: int) -> None:
    """LangGraph waits for its threads, whose agents may go on until then."""
    runs: list[Run] = []
    with stuck(schema=True) as store, interrupted_at(store.reached, then=store.go):
        over(store, n_agents=n_agents, on_run=runs.append).invoke(ASK)
    assert [(run.question, len(run.sessions)) for run in runs] == [(QUESTION, n_agents)]
    assert all(one.stop for one in runs[0].sessions)


@pytest.mark.parametrize("form", ["blocking", "awaited"])
@pytest.mark.parametrize("on_failure", ["fallback", "raise"])
async def test_one_whose_store_is_down_is_recorded(form: str, on_failure: str) -> None:
    runs: list[Run] = []
    compiled = over(Broken(), n_agents=1, on_failure=on_failure, on_run=runs.append)
    asking = compiled.ainvoke(ASK) if form == "awaited" else asyncio.to_thread(compiled.invoke, ASK)
    if on_failure == "raise":
        with pytest.raises(RetrievalFailed, match="the database is down"):
            await asking
    else:
        assert "the database is down" in str((await asking)["trace"])
    assert [seen(run) for run in runs] == [(QUESTION, [("failed", "m", 0, [])])]
    assert runs[0].sessions[0].error == "the database is down"


@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_the_time_of_a_run_begins_before_the_schema_is_read(form: str) -> None:
    runs: list[Run] = []
    with stuck(schema=True) as store:
        compiled = over(store, settings=ArkSettings(n_agents=2, max_seconds=0.01), on_run=runs.append)
        found = await (compiled.ainvoke(ASK) if form == "awaited" else asyncio.to_thread(compiled.invoke, ASK))
    assert [agent["stop"] for agent in found["agents"]] == ["seconds"] * 2
    assert [seen(run) for run in runs] == [(QUESTION, [("seconds", "m", 0, [])] * 2)]


def test_a_run_of_which_some_agents_have_not_begun_is_recorded_whole(tmp_path: Any) -> None:
    """Whatever LangGraph had begun when it was stopped."""

    def dies(messages: Sequence[Message]) -> Any:
        raise KeyboardInterrupt

    path, saver = tmp_path / "runs.jsonl", InMemorySaver()
    compiled = graph(Follows(dies, "m"), on_run=Recorder(path), checkpointer=saver)
    with pytest.raises(KeyboardInterrupt):
        compiled.invoke(ASK, thread(max_concurrency=1))
    [run] = read_runs(path)
    assert [(one.agent, one.stop) for one in run.sessions] == [(0, "cancelled"), (1, "cancelled"), (2, "cancelled")]
    assert any(step.error == "KeyboardInterrupt" for one in run.sessions for step in one.steps)


def test_what_a_checkpoint_knows_of_one_agent_of_several_is_read_back(tmp_path: Any) -> None:
    saver = InMemorySaver()
    agent = create_ark_agent(Follows(selecting("f1")), films(), INDEX, n_agents=3, approve=True, checkpointer=saver)
    agent.invoke({"question": QUESTION, "agent": 2}, thread())
    path = tmp_path / "runs.jsonl"
    Recorder(path)(run_of(agent.get_state(thread())))
    assert [one.agent for one in read_runs(path)[0].sessions] == [2]


def test_nothing_is_kept_of_a_run_that_died_unrecorded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: WeakSet[live.Live] = WeakSet()

    class Counted(live.Live):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            kept.add(self)

    def dies(messages: Sequence[Message]) -> Any:
        raise ChatError("it is gone", model="dead", reason="server")

    monkeypatch.setattr(live, "Live", Counted)
    compiled = graph(Follows(dies), n_agents=1, on_failure="raise")
    for _ in range(3):
        with pytest.raises(RetrievalFailed):
            compiled.invoke(ASK)
    gc.collect()
    assert len(kept) == 0

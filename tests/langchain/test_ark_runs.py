"""Every run of the LangGraph graph can be recorded: also one that fails, is cancelled, or waits and never goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypedDict

import pytest
from ark_support import Follows, call, selecting, turns
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from langgraph_parts import ASK, INDEX, QUESTION, SELECTIONS, STORE, Gate, Meeting, graph, models, thread

from graphret.ark import ArkSettings, Recorder, Run, read_runs
from graphret.ark.retriever import Explored
from graphret.errors import InvalidInput, RetrievalFailed, StoreError
from graphret.llm.chat import ChatError, Message
from langchain_graphret.ark import create_ark_agent, run_of


def steps(run: Run) -> list[int]:
    return [len(session.steps) for session in run.sessions]


def ends(run: Run) -> list[str | None]:
    return [session.stop for session in run.sessions]


class Own(TypedDict, total=False):
    question: str
    hits: list[Any]


def around(inner: Any, **options: Any) -> Any:
    """A graph of one's own with ARK as its node."""
    builder = StateGraph(Own)
    builder.add_node("ark", inner)
    builder.add_edge(START, "ark")
    return builder.compile(**options)


async def test_a_run_that_is_cancelled_is_handed_on(tmp_path: Path) -> None:
    gates = {1: Gate(4)}
    asks = [models()[0], *(Meeting(selecting("f1"), gates, f"m{i}") for i in (1, 2))]
    runs: list[Run] = []
    task = asyncio.create_task(graph(asks, on_run=runs.append).ainvoke(ASK))
    while gates[1].waiting < 2 or asks[0].asked < 3:  # noqa: ASYNC110 -- they are about to
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (run,) = runs
    assert run.question == QUESTION
    assert ends(run)[1:] == ["cancelled", "cancelled"]
    assert steps(run)[1:] == [2, 2]
    assert run.sessions[1].steps[0].calls[0].nodes == ["p1"]
    assert run.sessions[1].steps[1].error
    path = tmp_path / "runs.jsonl"
    Recorder(path)(run)
    assert ends(read_runs(path)[0]) == ends(run)


@pytest.mark.parametrize("form", ["blocking", "awaited", "below a graph of one's own"])
async def test_a_run_that_fails_is_handed_on(form: str) -> None:
    def dies(messages: Sequence[Message]) -> Any:
        if len(messages) > 2:
            raise ChatError("it is gone", model="dead", reason="server", status=500)
        return selecting("f1")(messages)

    runs: list[Run] = []
    compiled: Any = graph(Follows(dies), n_agents=1, on_failure="raise", on_run=runs.append)
    if form.startswith("below"):
        compiled = around(compiled)
    with pytest.raises(RetrievalFailed, match="it is gone"):
        await (compiled.ainvoke(ASK) if form == "awaited" else asyncio.to_thread(compiled.invoke, ASK))
    (run,) = runs
    assert ends(run) == ["failed"]
    assert ["it is gone" in step.error for step in run.sessions[0].steps] == [False, True]


def test_a_run_whose_vote_fails_is_handed_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Run] = []
    compiled = graph(on_failure="raise", on_run=runs.append)
    monkeypatch.setattr(Explored, "_hits", lambda *_: StoreError("the database is down"))
    with pytest.raises(RetrievalFailed, match="the database is down"):
        compiled.invoke(ASK)
    assert [ends(run) for run in runs] == [["finished"] * 3]


async def test_a_run_whose_vote_is_cancelled_and_taken_again_is_handed_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, voting, ask = list[Run](), asyncio.Event(), Explored.aretrieve

    async def stuck(self: Explored, *given: Any) -> Any:
        voting.set()
        await asyncio.Event().wait()

    compiled = graph(on_run=runs.append, checkpointer=InMemorySaver())
    monkeypatch.setattr(Explored, "aretrieve", stuck)
    task = asyncio.create_task(compiled.ainvoke(ASK, thread()))
    await voting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    monkeypatch.setattr(Explored, "aretrieve", ask)
    assert len((await compiled.ainvoke(None, thread()))["hits"]) == 4
    assert [ends(run) for run in runs] == [["finished"] * 3]
    await compiled.ainvoke(ASK, thread())  # asked again, it is another run
    assert len(runs) == 2


async def test_what_ends_a_run_is_raised_where_it_cannot_be_handed_on() -> None:
    def dies(messages: Sequence[Message]) -> Any:
        raise ChatError("it is gone", model="dead", reason="server", status=500)

    def full(run: Run) -> None:
        raise OSError("the disk is full")

    with pytest.raises(RetrievalFailed, match="it is gone") as caught:
        await graph(Follows(dies), on_failure="raise", on_run=full).ainvoke(ASK)
    assert "the disk is full" in " ".join(caught.value.__notes__)


@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_a_run_whose_stream_is_closed_is_handed_on(form: str) -> None:
    runs: list[Run] = []
    compiled = graph(n_agents=1, model=models()[0], on_run=runs.append)
    options: Any = {"stream_mode": "custom", "subgraphs": True}
    if form == "blocking":
        stream = compiled.stream(ASK, **options)
        next(iter(stream))
        stream.close()
    else:
        async with aclosing(compiled.astream(ASK, **options)) as chunks:
            await anext(chunks)
    (run,) = runs
    assert run.sessions[0].steps


def test_agents_stop_where_they_are_when_a_stream_is_closed() -> None:
    """Two have not said yet what the third has, of whose reply the stream tells first."""
    hangs, runs, saver = threading.Event(), list[Run](), InMemorySaver()

    def hanging(messages: Sequence[Message]) -> Any:
        hangs.wait(20)
        return selecting("f1")(messages)

    def made(model: Any) -> Any:
        return graph([models()[0], model, model], settings=ArkSettings(), on_run=runs.append, checkpointer=saver)

    stream = made(Follows(hanging)).stream(ASK, thread(), stream_mode="custom", subgraphs=True)
    next(iter(stream))
    stream.close()
    assert not hangs.is_set()
    hangs.set()
    assert ends(runs[0])[1:] == ["cancelled", "cancelled"]
    made(Follows(selecting("f1"))).invoke(None, thread())  # and they go on from there
    assert (len(runs), runs[1].cut_short) == (2, False)


def test_agents_are_not_asked_again_after_a_stream_is_closed() -> None:
    never = Follows(turns(*([[call("global_search", query=f"film {i}")] for i in range(90)])))
    stream = graph(never, max_steps=90).stream(ASK, stream_mode="custom", subgraphs=True)
    next(iter(stream))
    stream.close()
    assert never.asked < 135  # of 270


def test_a_run_that_waits_is_handed_on_when_it_ends_and_only_then() -> None:
    runs: list[Run] = []
    compiled = around(graph(approve=["global_search"], on_run=runs.append), checkpointer=InMemorySaver())
    waiting = compiled.invoke({"question": QUESTION}, thread())["__interrupt__"]
    assert runs == []
    compiled.invoke(Command(resume={one.id: True for one in waiting}), thread())
    assert [session.selection for session in runs[0].sessions] == [list(nodes) for nodes in SELECTIONS]
    assert len(runs) == 1


def test_to_leave_a_stream_at_its_interrupt_ends_no_run() -> None:
    runs: list[Run] = []
    compiled = graph(approve=["global_search"], on_run=runs.append, checkpointer=InMemorySaver())
    stream = compiled.stream(ASK, thread())
    waiting = next(one for one in stream if "__interrupt__" in one)["__interrupt__"]
    stream.close()
    assert runs == []
    while waiting:
        waiting = compiled.invoke(Command(resume={one.id: True for one in waiting}), thread()).get("__interrupt__")
    assert [ends(run) for run in runs] == [["finished"] * 3]


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


def test_so_it_is_where_the_process_died() -> None:
    """Of the request that brought no reply there is nothing in the checkpoint; all before it is there."""

    def dies(messages: Sequence[Message]) -> Any:
        if len(messages) > 4:
            raise KeyboardInterrupt
        return selecting("f1")(messages)

    compiled = graph(Follows(dies), n_agents=1, checkpointer=InMemorySaver())
    with pytest.raises(KeyboardInterrupt):
        compiled.invoke(ASK, thread())
    run = run_of(compiled.get_state(thread(), subgraphs=True))
    assert (ends(run), steps(run)) == ([None], [2])
    assert run.sessions[0].pending


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

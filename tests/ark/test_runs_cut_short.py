"""A run that is cancelled, interrupted or failed reaches `on_run` with what was done until then."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ark_support import Follows, call, films, index_of, selecting
from cli_helpers import graphret

from graphret.ark import Ark, ArkSession, ArkSettings, Run
from graphret.ark.trajectory import Recorder, read_runs
from graphret.errors import RetrievalFailed, StorageError
from graphret.llm.chat import ChatError, Message, Reply

STORE = films()
INDEX = index_of(STORE)
QUESTION = "films by Bob Bell"


class Stalls(Follows):
    """Searches and selects, and then does not answer any more."""

    def __init__(self) -> None:
        super().__init__(lambda _: [call("global_search", query="Bob Bell"), call("select", nodes=["p1"])])
        self.stalled = asyncio.Event()

    async def achat(self, messages: Sequence[Message], **options: Any) -> Reply:  # type: ignore[override]
        if len(messages) > 2:
            self.stalled.set()
            await asyncio.Event().wait()
        return await super().achat(messages, **options)


def ark(model: Any, on_run: Any, **options: Any) -> Ark:
    return Ark(model, STORE, INDEX, settings=ArkSettings(n_agents=1), on_run=on_run, **options)


async def cancelled(model: Stalls, on_run: Any) -> asyncio.CancelledError:
    task = asyncio.create_task(ark(model, on_run).aretrieve(QUESTION, 3))
    await model.stalled.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert task.cancelled()
    return caught.value


async def test_a_cancelled_run_is_recorded_read_back_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    await cancelled(Stalls(), Recorder(path))
    [run] = read_runs(path)
    [session] = run.sessions
    assert (session.stop, session.selection, run.cut_short) == ("cancelled", ["p1"], True)
    assert [step.error for step in session.steps] == ["", "nobody waited for the reply: the agent was stopped"]
    assert run.seconds >= session.steps[-1].started > 0
    shown = await asyncio.to_thread(graphret, "replay", path)
    assert (shown.code, shown.err) == (0, "")
    assert "It was cut short" in shown.out
    assert "cancelled" in shown.out
    assert (await asyncio.to_thread(graphret, "replay", path, "--json")).json["cut_short"] is True


async def test_what_cannot_be_recorded_does_not_swallow_the_cancellation() -> None:
    def full(run: Run) -> None:
        raise StorageError("the disk is full")

    stopped = await cancelled(Stalls(), full)
    assert any("the disk is full" in note for note in getattr(stopped, "__notes__", ["the disk is full"]))


INTERRUPTED = """
import os, signal, sys, threading
from ark_support import Follows, call, films, index_of
from graphret.ark import Ark, ArkSettings, Recorder

def policy(messages):
    if len(messages) > 2:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait()
    return [call("global_search", query="Bob Bell"), call("select", nodes=["p1"])]

store = films()
ark = Ark(Follows(policy), store, index_of(store), settings=ArkSettings(n_agents=1), on_run=Recorder(sys.argv[1]))
try:
    ark.retrieve("films by Bob Bell", 3)
except KeyboardInterrupt:
    print(len(open(sys.argv[1]).readlines()))
"""


def test_an_interrupt_of_the_synchronous_form_is_recorded_before_it_is_raised(tmp_path: Path) -> None:
    path, here = tmp_path / "r.jsonl", Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, path], capture_output=True, text=True, timeout=60, cwd=here
    )
    assert (done.stdout.strip(), done.stderr) == ("1", "")
    [session] = read_runs(path)[0].sessions
    assert (session.stop, session.selection, len(session.steps)) == ("cancelled", ["p1"], 2)


def test_a_run_that_raises_is_recorded() -> None:
    runs: list[Run] = []

    def dies(messages: Sequence[Message]) -> Reply:
        raise ChatError("it is gone", model="dead", reason="server")

    with pytest.raises(RetrievalFailed, match="it is gone"):
        ark(Follows(dies), runs.append, on_failure="raise").retrieve(QUESTION, 3)
    assert [(session.stop, len(session.steps)) for session in runs[0].sessions] == [("failed", 1)]
    assert not runs[0].cut_short


def test_a_run_that_its_watcher_stops_is_recorded() -> None:
    runs: list[Run] = []

    def watch(session: ArkSession) -> None:
        raise ZeroDivisionError("enough")

    with pytest.raises(ZeroDivisionError):
        ark(Follows(selecting("f1")), runs.append, on_step=watch).retrieve(QUESTION, 3)
    assert runs[0].cut_short
    assert [len(session.steps) for session in runs[0].sessions] == [1]

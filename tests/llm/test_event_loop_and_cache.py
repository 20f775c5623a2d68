"""Coroutines from synchronous code, and answers on disk."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import ContextVar
from pathlib import Path

import pytest

from graphret.errors import StorageError
from graphret.llm.cache import AnswerCache, cache_key
from graphret.llm.event_loop import in_thread, run_sync


async def which_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def fail() -> None:
    raise ValueError("as it is")


def test_all_synchronous_callers_share_one_loop() -> None:
    """Asynchronous clients keep connections that belong to the loop which opened them."""
    first = run_sync(which_loop())
    with ThreadPoolExecutor(2) as pool:
        assert {run_sync(which_loop()), *pool.map(lambda _: run_sync(which_loop()), range(4))} == {first}
    with pytest.raises(ValueError, match="as it is"):
        run_sync(fail())


async def test_under_a_running_loop_it_runs_in_another_and_never_waits_for_itself() -> None:
    variable: ContextVar[str] = ContextVar("variable")
    variable.set("the caller's")

    async def nested() -> str:
        with closing(which_loop()) as coroutine, pytest.raises(RuntimeError, match="await"):
            run_sync(coroutine)
        return variable.get()

    assert run_sync(which_loop()) is not asyncio.get_running_loop()
    assert run_sync(nested()) == "the caller's"


def test_an_interrupt_cancels_it() -> None:
    cancelled = threading.Event()

    async def wait() -> None:
        threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(KeyboardInterrupt):
        run_sync(wait())
    assert cancelled.wait(5)


async def test_blocking_work_is_awaited_and_left_behind_when_cancelled() -> None:
    started, go = threading.Barrier(41), threading.Event()

    def work() -> int:
        started.wait(10)
        go.wait(10)
        return threading.get_ident()

    tasks = [asyncio.create_task(in_thread(work)) for _ in range(40)]  # more than the threads that asyncio has
    await asyncio.to_thread(started.wait, 10)
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    go.set()
    assert len(set(await asyncio.gather(*tasks[1:]))) == 39
    with pytest.raises(ValueError, match="as it is"):
        await in_thread(lambda: run_sync(fail()))


def test_answers_stay(tmp_path: Path) -> None:
    key = cache_key("m", {"b": 1, "a": [2]})
    assert key == cache_key("m", {"a": [2], "b": 1})
    assert key != cache_key("m", {"b": 1, "a": ["2"]})
    cache, other = AnswerCache(tmp_path / "new"), AnswerCache(tmp_path / "new")
    assert cache.get(key) is None
    cache.put(key, "one")
    other.put(key, "two")
    assert cache.get(key) == "two"
    assert [file.name for file in (tmp_path / "new").iterdir()] == [f"{key}.json"]
    (tmp_path / "file").write_text("")
    for use in (lambda cache: cache.get(key), lambda cache: cache.put(key, "three")):
        with pytest.raises(StorageError, match=r"file cannot be"):
            use(AnswerCache(tmp_path / "file"))

"""Coroutines from synchronous code, also where an event loop runs already (a notebook, a server); and the reverse."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

_lock = threading.Lock()


class _Background(NamedTuple):
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread


_background: _Background | None = None


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to its end, while the caller blocks, and return its result.

    All that is run this way shares one event loop in a daemon thread, since the asynchronous clients of many packages
    keep connections that belong to the loop which opened them: over a new loop for each call they fail, or send
    requests twice. An interrupt cancels the coroutine. What it runs may call `run_sync` itself, and then gets a loop
    of its own.
    """
    loop, thread = _started()
    if threading.current_thread() is thread:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(contextvars.copy_context().run, asyncio.run, coroutine).result()
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def in_thread(work: Callable[[], T]) -> T:
    """Do blocking work in a daemon thread, which is left to itself where this is cancelled.

    ``asyncio.to_thread`` has few threads, which all of a process share, and the process waits for them at its end.
    """
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()  # so that cancelling leaves it alone
    context = contextvars.copy_context()

    def run() -> None:
        try:
            outcome.set_result(context.run(work))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True, name="graphret work").start()
    return await asyncio.wrap_future(outcome)


def _started() -> _Background:
    global _background
    with _lock:
        if _background is None:
            loop = asyncio.new_event_loop()
            _background = _Background(loop, threading.Thread(target=loop.run_forever, daemon=True, name="graphret"))
            _background.thread.start()
        return _background


def _begin_anew() -> None:
    """Threads stay behind when a process is forked."""
    global _lock, _background
    _lock, _background = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)

"""Coroutines from synchronous code, even within a running event loop, and back."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to its end, while the caller blocks, and return its result.

    All that is run this way, and by `elsewhere`, shares one event loop in a daemon
    thread, since the clients of many packages keep connections that belong to the loop
    which opened them. An interrupt cancels the coroutine. What it runs may call
    `run_sync` in another thread, as `in_thread` does, but not in its own.
    """
    if asyncio._get_running_loop() is _loop():  # it would wait for itself
        raise RuntimeError(
            "a synchronous call within the event loop that serves it; await its"
            " asynchronous form there"
        )
    future = asyncio.run_coroutine_threadsafe(coroutine, _loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def elsewhere(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that runs in the event loop of `run_sync`, from any loop."""
    return await asyncio.wrap_future(
        asyncio.run_coroutine_threadsafe(coroutine, _loop())
    )


async def in_thread(work: Callable[[], T]) -> T:
    """Do blocking work in a daemon thread, which goes on if this is cancelled.

    ``asyncio.to_thread`` has few threads, which all of a process share, and the process
    waits for them at its end.
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


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="graphret").start()
    return loop


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        after_in_child=_loop.cache_clear
    )  # threads stay behind when a process is forked

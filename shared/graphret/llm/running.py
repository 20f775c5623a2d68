"""Run a coroutine from synchronous code, also where an event loop is running already (a notebook, a server)."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to its end and return its result.

    Without a running event loop this is ``asyncio.run``. With one, the coroutine gets a loop and a thread of its own
    and the caller blocks; asynchronous callers await the coroutine instead. An interrupt cancels it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    outcome: Future[T] = Future()
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def main() -> T:
        started.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await coroutine

    def work() -> None:
        try:
            outcome.set_result(asyncio.run(main()))
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    try:
        return outcome.result()
    except BaseException:
        if not outcome.done() and started and (task := started[0][1]) is not None:
            started[0][0].call_soon_threadsafe(task.cancel)
        raise
    finally:
        thread.join()

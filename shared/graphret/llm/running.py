"""Coroutines from synchronous code, also where an event loop runs already (a notebook, a server); and the reverse."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class _Background:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        ready: Future[asyncio.AbstractEventLoop] = Future()
        self._end = asyncio.Event()

        async def serve() -> None:
            ready.set_result(asyncio.get_running_loop())
            await self._end.wait()

        self._thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True, name="graphret")
        self._thread.start()
        self.loop = ready.result()
        self.process = os.getpid()
        atexit.register(self._close)

    @property
    def alive(self) -> bool:
        return self.process == os.getpid() and self._thread.is_alive()

    def _close(self) -> None:
        """Let clients close their connections before the interpreter ends."""
        if self.alive:
            self.loop.call_soon_threadsafe(self._end.set)
            self._thread.join(timeout=2.0)


_starting = threading.Lock()
_background: _Background | None = None


def _loop() -> asyncio.AbstractEventLoop:
    global _background
    with _starting:
        if _background is None or not _background.alive:
            _background = _Background()
        return _background.loop


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to its end, while the caller blocks, and return its result.

    All that is run this way shares one event loop in a thread of its own, since the asynchronous clients of many
    packages keep connections that belong to the loop which opened them: over a new loop for each call they fail, or
    send requests twice. An interrupt cancels the coroutine. What it runs may call `run_sync` itself, and then gets a
    loop of its own.
    """
    loop = _loop()
    if _running() is loop:
        return _run_apart(coroutine)
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def in_thread(work: Callable[[], T]) -> T:
    """Do blocking work in a thread of its own, which is left behind where this is cancelled.

    ``asyncio.to_thread`` has few threads, for which calls of models would queue, and waits for them at its end.
    """
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True).start()
    return await asyncio.wrap_future(outcome)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _run_apart(coroutine: Coroutine[Any, Any, T]) -> T:
    outcome: Future[T] = Future()

    def work() -> None:
        try:
            outcome.set_result(asyncio.run(coroutine))
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join()
    return outcome.result()

"""Coroutines from synchronous code, also where an event loop runs already (a notebook, a server); and the reverse."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_GRACE = 2.0  # seconds that what was interrupted has to wind up
_KEPT = 30.0  # seconds after which an idle thread ends


class _Background:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        ready: Future[asyncio.AbstractEventLoop] = Future()
        self._end = asyncio.Event()

        async def serve() -> None:
            ready.set_result(asyncio.get_running_loop())
            await self._end.wait()

        self._thread = threading.Thread(target=_run, args=(serve(),), daemon=True, name="graphret")
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


def _run(main: Coroutine[Any, Any, None]) -> None:
    """Do what `asyncio.run` does, but for its wait for the loop's threads.

    For that it begins one more, which the interpreter may refuse when it ends, and by then they have been waited for.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(main)
    finally:
        try:
            loop.run_until_complete(_wind_up())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


async def _wind_up() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)
    await asyncio.get_running_loop().shutdown_asyncgens()


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
    send requests twice. An interrupt cancels the coroutine and waits a little for it to wind up. What it runs may call
    `run_sync` itself, and then gets a loop of its own.
    """
    loop = _loop()
    if _running() is loop:
        return _run_apart(coroutine)
    ended = threading.Event()

    async def to_its_end() -> T:
        try:
            return await coroutine
        finally:
            ended.set()

    future = asyncio.run_coroutine_threadsafe(to_its_end(), loop)
    try:
        return future.result()
    except BaseException:
        if future.cancel():
            ended.wait(_GRACE)
        raise


class Threads:
    """Daemon threads for blocking work, kept for the next piece of it: a new one is made only where none is idle.

    ``asyncio.to_thread`` has few threads, which all of a process share, and waits for them at its end.

    Parameters
    ----------
    most
        How many threads there are at most; what comes then waits for one. `None` for as many as there is work.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)  # threads stay behind

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._work: SimpleQueue[Callable[[], Callable[[], None]]] = SimpleQueue()
        self._threads = 0
        self._idle = 0  # threads that wait for work, less the work that waits for threads

    async def do(self, work: Callable[[], T]) -> T:
        """Do blocking work in a thread, which is left to itself where this is cancelled."""
        return await asyncio.wrap_future(self.submit(work))

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Do blocking work in a thread; cancelling what this returns prevents what has not begun."""
        outcome: Future[T] = Future()
        context = contextvars.copy_context()

        def run() -> Callable[[], None]:
            if not outcome.set_running_or_notify_cancel():
                return lambda: None
            try:
                return partial(outcome.set_result, context.run(work))
            except BaseException as error:
                return partial(outcome.set_exception, error)

        self._start(run)
        return outcome

    def _start(self, run: Callable[[], Callable[[], None]]) -> None:
        with self._lock:
            self._work.put(run)
            made = self._idle <= 0 and (self._most is None or self._threads < self._most)
            if made:
                self._threads += 1
            else:
                self._idle -= 1
        if made:
            threading.Thread(target=self._serve, daemon=True, name="graphret work").start()

    def _serve(self) -> None:
        while True:
            try:
                run = self._work.get(timeout=_KEPT)
            except Empty:
                with self._lock:
                    if self._idle > 0:
                        self._idle -= 1
                        self._threads -= 1
                        return
                continue  # a piece of work is on its way
            tell = run()
            with self._lock:
                self._idle += 1  # before whoever waits is told, who may bring the next piece of work
            tell()
            del run, tell  # and what they hold


_apart = Threads()


async def in_thread(work: Callable[[], T]) -> T:
    """Do blocking work in a thread of its own, which is left behind where this is cancelled."""
    return await _apart.do(work)


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

"""A reply that selects beside a call that comes to no end, for tests of what stops an agent there."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from ark_support import call, films, turns

from graphret.ark import Board
from graphret.schema import GraphSchema
from graphret.stores import MemoryStore
from graphret.types import Node

#: What the agent selects, in order; ``f0`` no tool has shown.
SELECTED = ["f4", "p1"]

#: Finds p1 and f4, and then selects in two calls of a reply whose other call is stuck.
POLICY = turns(
    [call("global_search", query="Bob Bell"), call("global_search", query="Dark Red", k=1)],
    [
        call("select", "a", nodes=["f4", "f0"]),
        call("explore_neighborhood", "b", node="drama"),
        call("select", "c", nodes=["p1", "f4"]),
    ],
)


class Stuck(MemoryStore):
    """A graph in which one node, or with `schema` what it holds, cannot be read until it is let go."""

    def __init__(self, *, schema: bool = False) -> None:
        super().__init__()
        self.unread = schema
        for nodes in (filled := films()).nodes():
            self.upsert(nodes)
        for edges in filled.edges():
            self.upsert([], edges)
        self.reached = threading.Event()
        self.go = threading.Event()

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        if "drama" in ids:
            self.reached.set()
            self.go.wait(20)
        return super().get(ids)

    def schema(self) -> GraphSchema:
        if self.unread:
            self.reached.set()
            self.go.wait(20)
        return super().schema()

    async def is_stuck(self) -> None:
        while not self.reached.is_set():  # noqa: ASYNC110 -- a thread sets it
            await asyncio.sleep(0.001)


@contextmanager
def stuck(*, schema: bool = False) -> Iterator[Stuck]:
    store = Stuck(schema=schema)
    try:
        yield store
    finally:
        store.go.set()


@contextmanager
def interrupted_at(event: threading.Event, then: threading.Event | None = None) -> Iterator[None]:
    """Expect that an interrupt ends what is done here, as Ctrl-C does, which comes when an event is set."""

    came = threading.Event()

    def handler(number: int, frame: object) -> None:
        if came.is_set():
            return
        came.set()
        if then is not None:
            then.set()
        raise KeyboardInterrupt

    main, before = threading.get_ident(), signal.signal(signal.SIGINT, handler)

    def interrupt() -> None:
        event.wait(20)
        while sys._current_frames()[main].f_code.co_name != "wait":  # it is on its way there
            time.sleep(0.001)
        while not came.wait(0.05):  # one that comes just before a thread begins to wait does not wake it
            signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    try:
        yield
        came.wait(20)
        pytest.fail("nothing was interrupted")
    except KeyboardInterrupt:
        pass
    finally:
        came.set()
        signal.signal(signal.SIGINT, before)


class Clock:
    """The seconds of every run, set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(Board, "seconds", property(lambda _: self.now))

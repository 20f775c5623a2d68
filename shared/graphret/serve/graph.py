"""The graph that is served: opened, replaced while it serves, and closed when the last
answer from it is given.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from prometheus_client import Counter

from graphret.explain import Panel, html_page, store_lookup, timeline_page
from graphret.graphs.locations import NEO4J, kind_of, place_of
from graphret.index_retriever import IndexRetriever
from graphret.methods import Method, MethodOptions, opened_graph
from graphret.retriever import Retriever
from graphret.serve.access import read_keys
from graphret.stores.neo4j.layout import PropertyNames
from graphret.trace import on_stage
from graphret.types import Retrieval
from graphret.where import Where

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """Hits, seconds and bytes of a question, and how many are answered at once; as many
    again may wait for a model.
    """

    k: int = 100
    seconds: float = 60.0
    body: int = 1 << 16
    requests: int = 128


class GraphVersion:
    """A graph as it was opened once, with views and retrievers; closed when nobody uses
    it any more.
    """

    def __init__(
        self,
        where: str,
        encoder: str | None,
        name_property: PropertyNames | None,
        options: MethodOptions,
        keys: dict[str, Where | None],
    ) -> None:
        self.keys, self.options, self._users = keys, options, 1
        self._made: dict[tuple[Method, Where | None], Retriever] = {}
        self._making = asyncio.Lock()
        with ExitStack() as stack:
            opening = opened_graph(where, encoder, name_property=name_property)
            whole = stack.enter_context(opening)
            self.views = {
                one: whole if one is None else whole.view(one)
                for one in {None, *keys.values()}
            }
            # two threads of one interpreter answer fewer questions than one does; those
            # on a database wait
            threads = 32 if whole.store.local_graph() is None else 1
            self._pool = ThreadPoolExecutor(threads)
            stack.callback(self._pool.shutdown, wait=False, cancel_futures=True)
            self._open = stack.pop_all()

    def __enter__(self) -> None:
        """Use it, in the event loop."""
        self._users += 1

    def __exit__(self, *raised: object) -> None:
        self._users -= 1
        if not self._users:
            self._open.close()

    async def retriever(self, method: Method, view: Where | None) -> Retriever:
        """Return the retriever of a method over a view; an `InvalidInput` says that
        there can be none.
        """
        async with self._making:  # once, however many ask first
            if (method, view) not in self._made:
                self._made[method, view] = await asyncio.to_thread(
                    self.views[view].retriever, method, self.options
                )
            return self._made[method, view]

    async def compute(self, work: Callable[[], T]) -> T:
        """Do work off the event loop: one after another in memory, 32 at once on a
        database.
        """
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, copy_context().run, work
        )


class ServedGraph:
    """A graph for many who ask at once; `where`, `encoder`, `name_property` and
    `options` are as `graphret.methods` has them.

    `key` and the file `keys`, which is read whenever the graph is opened, say who may
    ask (see `read_keys`). A `GraphretError` says that the graph cannot be opened, or
    that the file is malformed.
    """

    def __init__(
        self,
        where: str,
        *,
        encoder: str | None = None,
        name_property: PropertyNames | None = None,
        options: MethodOptions | None = None,
        key: str | None = None,
        keys: Path | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.limits, self.reloads, self._turn = limits or Limits(), 0, asyncio.Lock()
        self.name = _called(where)
        options = replace(options or MethodOptions(), seconds=0.9 * self.limits.seconds)
        self._open: Callable[[], GraphVersion] = lambda: GraphVersion(
            where, encoder, name_property, options, read_keys(key, keys)
        )
        self.current = self._open()

    async def reload(self) -> None:
        """Open the graph again; the old one answers until then, and stays where that
        fails, which is logged.
        """
        async with self._turn:
            try:
                fresh = await asyncio.to_thread(self._open)
            except Exception as error:
                _log.error(
                    "the graph cannot be opened again, and the one before stays: %s",
                    error,
                )
                return
            old, self.current, self.reloads = self.current, fresh, self.reloads + 1
            old.__exit__()


@dataclass(frozen=True)
class RetrievalJob:
    """A question that a retriever answers from what can be read through a view; it
    `waits` where it asks a model.
    """

    generation: GraphVersion
    view: Where | None
    method: Method
    retriever: Retriever
    waits: bool
    question: tuple[str, int, Where | None]
    fallbacks: Counter

    async def answer(self, then: Callable[[Retrieval], T]) -> T:
        """Return what `then` makes of the retrieval; both are done off the
        event loop.
        """
        awaited = await self.retriever.aretrieve(*self.question) if self.waits else None

        def work() -> T:
            found = (
                self.retriever.retrieve(*self.question) if awaited is None else awaited
            )
            self.fallbacks.inc(len(found.trace.fallbacks))
            return then(found)

        return await self.generation.compute(work)

    def drawn(self, found: Retrieval) -> list[str]:
        """Return pages that draw a retrieval beside flat search and, where agents
        explored, what they did.
        """
        graph = self.generation.views[self.view]
        lookup = store_lookup(graph.store)
        with on_stage(lambda stage: None):  # which is none of the retrieval's
            flat = IndexRetriever(graph.index, graph.store).retrieve(*self.question)
        pages = [html_page(Panel(found, flat), lookup=lookup)]
        return (
            [*pages, timeline_page(found, lookup=lookup)]
            if self.method == "ark"
            else pages
        )


def _called(where: str) -> str:
    """Return what people call a place: the name of a file or folder, or the database
    and its host.
    """
    place = place_of(where)
    if kind_of(where) != NEO4J:
        return Path(place).stem
    address = urlsplit(place)
    database = address.path.strip("/") or "Neo4j"
    return f"{database} at {address.hostname}"


def as_json(value: Any) -> bytes:
    """Return JSON as UTF-8, half a character as its escape."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "backslashreplace"
    )

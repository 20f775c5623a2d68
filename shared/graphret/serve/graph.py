"""The served graph: opened, reloaded while serving, closed after its last use."""

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
    """Limits of hits, seconds and bytes per question, and of questions at once.

    As many questions again may wait for a model.
    """

    k: int = 100
    seconds: float = 60.0
    body: int = 1 << 16
    requests: int = 128


class GraphVersion:
    """A graph as loaded at one time, with views and retrievers; closed when unused."""

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
            graph = stack.enter_context(opening)
            self.views = {
                where: graph if where is None else graph.view(where)
                for where in {None, *keys.values()}
            }
            # in memory, two threads of one interpreter answer fewer questions than one;
            # threads on a database mostly wait
            threads = 32 if graph.store.local_graph() is None else 1
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
        """Return a method's retriever over a view; `InvalidInput` if it has none."""
        async with self._making:  # only once, even for concurrent requests
            if (method, view) not in self._made:
                self._made[method, view] = await asyncio.to_thread(
                    self.views[view].retriever, method, self.options
                )
            return self._made[method, view]

    async def compute(self, work: Callable[[], T]) -> T:
        """Run work in threads: one at a time in memory, 32 at once on a database."""
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, copy_context().run, work
        )


class ServedGraph:
    """A graph that answers many requests at once, and can be reloaded meanwhile.

    `where`, `encoder`, `name_property` and `options` are as in `graphret.methods`.
    `key` and the file `keys`, which is read whenever the graph is opened, say who may
    ask (see `read_keys`). A `GraphretError` is raised if the graph cannot be opened or
    the file is malformed.
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
        self.name = _display_name(where)
        options = replace(options or MethodOptions(), seconds=0.9 * self.limits.seconds)
        self._open: Callable[[], GraphVersion] = lambda: GraphVersion(
            where, encoder, name_property, options, read_keys(key, keys)
        )
        self.current = self._open()

    async def reload(self) -> None:
        """Reload the graph; the old one serves until then, and stays if that fails.

        A failure is logged.
        """
        async with self._turn:
            try:
                fresh = await asyncio.to_thread(self._open)
            except Exception as error:
                _log.error(
                    "the graph could not be reloaded, so the previous one stays: %s",
                    error,
                )
                return
            old, self.current, self.reloads = self.current, fresh, self.reloads + 1
            old.__exit__()


@dataclass(frozen=True)
class RetrievalJob:
    """A question to a retriever over a view, which `waits` if it uses a model."""

    generation: GraphVersion
    view: Where | None
    method: Method
    retriever: Retriever
    waits: bool
    question: tuple[str, int, Where | None]
    fallbacks: Counter

    async def answer(self, then: Callable[[Retrieval], T]) -> T:
        """Retrieve, and return what `then` makes of it, both off the event loop."""
        awaited = await self.retriever.aretrieve(*self.question) if self.waits else None

        def work() -> T:
            retrieval = (
                self.retriever.retrieve(*self.question) if awaited is None else awaited
            )
            self.fallbacks.inc(len(retrieval.trace.fallbacks))
            return then(retrieval)

        return await self.generation.compute(work)

    def pages(self, retrieval: Retrieval) -> list[str]:
        """Return HTML pages of a retrieval next to flat search, and of its agents."""
        graph = self.generation.views[self.view]
        lookup = store_lookup(graph.store)
        with on_stage(lambda stage: None):  # not a stage of the retrieval
            flat = IndexRetriever(graph.index, graph.store).retrieve(*self.question)
        pages = [html_page(Panel(retrieval, flat), lookup=lookup)]
        if self.method == "ark":
            pages.append(timeline_page(retrieval, lookup=lookup))
        return pages


def _display_name(where: str) -> str:
    """Return the name of a file or folder, or a database and its host."""
    place = place_of(where)
    if kind_of(where) != NEO4J:
        return Path(place).stem
    address = urlsplit(place)
    database = address.path.strip("/") or "Neo4j"
    return f"{database} at {address.hostname}"


def as_json(value: Any) -> bytes:
    """Return JSON as UTF-8, with lone surrogates escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "backslashreplace"
    )

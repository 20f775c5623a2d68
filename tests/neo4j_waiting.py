"""`AsyncNeo4jStore` behind calls that wait, so that the suite of stores can try it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from types import TracebackType
from typing import Any

from graphret.stores.neo4j import AsyncNeo4jStore


class Waiting:
    """Runs what the asynchronous store awaits on a loop of its own."""

    dialect = "neo4j"

    def __init__(self, inner: AsyncNeo4jStore, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.inner = inner
        self.loop = loop or asyncio.new_event_loop()
        self._owner = loop is None

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def _each(self, blocks: AsyncIterator[Any]) -> Iterator[Any]:
        while (block := self._wait(anext(blocks, None))) is not None:  # type: ignore[arg-type]
            yield block

    def schema(self) -> Any:
        return self._wait(self.inner.schema())

    def get(self, ids: Any) -> Any:
        return self._wait(self.inner.get(ids))

    def neighbors(self, ids: Any, **options: Any) -> Any:
        return self._wait(self.inner.neighbors(ids, **options))

    def upsert(self, nodes: Any = (), edges: Any = ()) -> None:
        self._wait(self.inner.upsert(nodes, edges))

    def delete(self, ids: Any) -> None:
        self._wait(self.inner.delete(ids))

    def delete_edges(self, edges: Any) -> None:
        self._wait(self.inner.delete_edges(edges))

    def count(self) -> Any:
        return self._wait(self.inner.count())

    def nodes(self, labels: Any = None, where: Any = None) -> Iterator[Any]:
        return self._each(self.inner.nodes(labels, where))

    def edges(self, relations: Any = None) -> Iterator[Any]:
        return self._each(self.inner.edges(relations))

    def view(self, where: Any) -> Waiting:
        return Waiting(self.inner.view(where), self.loop)

    def query(self, cypher: str, parameters: Any = None, **options: Any) -> Any:
        return self._wait(self.inner.query(cypher, parameters, **options))

    def explain(self, cypher: str, **options: Any) -> Any:
        return self._wait(self.inner.explain(cypher, **options))

    def __enter__(self) -> Waiting:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wait(self.inner.close())
        self.loop.close()

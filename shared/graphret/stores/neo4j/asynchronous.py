"""`AsyncNeo4jStore`: the calls of `Neo4jStore`, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from graphret.schema import GraphSchema
from graphret.stores.base import Rows, require_names
from graphret.stores.neo4j import calls
from graphret.stores.neo4j.base import BLOCK, Connected
from graphret.stores.neo4j.deadline import adeadline
from graphret.stores.neo4j.failures import require_version, sending, translated
from graphret.stores.neo4j.layout import Layout
from graphret.stores.neo4j.reads import Graph
from graphret.stores.neo4j.results import row_of
from graphret.stores.neo4j.statements import Answer, Plan, Statement, Work
from graphret.stores.neo4j.values import edge_from
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike

if TYPE_CHECKING:
    import neo4j

T = TypeVar("T")


class AsyncNeo4jStore(Connected):
    """`Neo4jStore` with calls that are awaited: the same work, run in the driver's asynchronous sessions."""

    driver: neo4j.AsyncDriver

    @staticmethod
    def _connect(uri: str, settings: dict[str, Any]) -> neo4j.AsyncDriver:
        import neo4j

        return neo4j.AsyncGraphDatabase.driver(uri, **settings)

    async def close(self) -> None:
        """See `Neo4jStore.close`."""
        if self._own_driver:
            self.options.closed = True
            await self.driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def schema(self, *, refresh: bool = False) -> GraphSchema:
        """See `Neo4jStore.schema`."""
        if self._schema is None or refresh:
            self._schema = await self._run(calls.schema(await self._graph()))
        return self._schema

    async def get(self, ids: Sequence[str]) -> list[Node | None]:
        """See `Neo4jStore.get`."""
        return await self._run(calls.get(await self._graph(), ids))

    async def neighbors(
        self,
        ids: Sequence[str],
        *,
        relations: Collection[str] | None = None,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
        direction: str = "both",
        limit: int | None = None,
    ) -> list[Edge]:
        """See `Neo4jStore.neighbors`."""
        return await self._run(calls.neighbors(await self._graph(), ids, relations, labels, where, direction, limit))

    async def count(self) -> tuple[int, int]:
        """See `Neo4jStore.count`."""
        return await self._run(calls.count(await self._graph()))

    def nodes(self, labels: Collection[str] | None = None, where: WhereLike = None) -> AsyncIterator[list[Node]]:
        """See `Neo4jStore.nodes`."""
        names, condition = require_names("labels", labels), Where.parse(where)
        return self._blocks(lambda graph: graph.nodes(names, condition), lambda graph, row: graph.node(row), apart=True)

    def edges(self, relations: Collection[str] | None = None) -> AsyncIterator[list[Edge]]:
        """See `Neo4jStore.edges`."""
        names = require_names("relations", relations)
        return self._blocks(lambda graph: graph.edges(names), lambda _, row: edge_from(*row))

    async def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """See `Neo4jStore.upsert`."""
        calls.refuse_on_view(self._scope, "upsert")
        await self._write(calls.upsert(self.options, await self._layout(), nodes, edges))

    async def delete(self, ids: Iterable[str]) -> None:
        """See `Neo4jStore.delete`."""
        calls.refuse_on_view(self._scope, "delete")
        await self._write(calls.delete(self.options, await self._graph(), ids))

    async def delete_edges(self, edges: Iterable[Edge]) -> None:
        """See `Neo4jStore.delete_edges`."""
        calls.refuse_on_view(self._scope, "delete")
        await self._write(calls.delete_edges(self.options, await self._graph(), edges))

    async def query(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        max_rows: int | None = None,
    ) -> Rows:
        """See `Neo4jStore.query`."""
        calls.refuse_on_view(self._scope, "query")
        work = calls.query(await self._graph(), cypher, parameters, timeout, max_rows)
        with sending():
            return await self._run(work)

    async def explain(self, cypher: str, *, timeout: float | None = None) -> str | None:  # noqa: ASYNC109
        """See `Neo4jStore.explain`."""
        calls.refuse_on_view(self._scope, "query")
        await self._layout()
        return await self._run(calls.explain(cypher, timeout))

    async def _graph(self) -> Graph:
        return Graph(await self._layout(), self._scope)

    async def _layout(self) -> Layout:
        options = self.options
        if options.settled and options.layout is not None:
            return options.layout
        agent = await self._agent()
        require_version(agent)
        found = await self._run(calls.detect()) if options.layout is None else (options.layout, True)
        return options.settle(found, agent)

    async def _agent(self) -> str:
        from neo4j.exceptions import ServiceUnavailable

        with translated(self.options.uri):
            try:
                return str((await self.driver.get_server_info()).agent)
            except ServiceUnavailable:
                if self._unrouted is not None:
                    async with self._connect(*self._unrouted) as driver:
                        await driver.verify_connectivity()
                raise

    async def _write(self, works: Iterator[Work[None]]) -> None:
        """Run writes; what is computed for them, embeddings above all, is computed in a thread."""
        async with self._turn():
            while (work := await asyncio.to_thread(next, works, None)) is not None:
                await self._run(work)
        self._schema = None

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait until no other write is made that indexes follow; those of other event loops and threads count too."""
        turn = self.options.turn if self.options.followers else None
        while turn is not None and not turn.acquire(blocking=False):  # noqa: ASYNC110 -- no event spans threads
            await asyncio.sleep(0.002)
        try:
            yield
        finally:
            if turn is not None:
                turn.release()

    async def _run(self, work: Work[T]) -> T:
        import neo4j
        from neo4j.exceptions import DriverError, Neo4jError

        timeout = work.timeout or self.options.timeout

        @neo4j.unit_of_work(timeout=timeout)
        async def transacted(transaction: neo4j.AsyncManagedTransaction) -> T:
            return await _drive(work, lambda text, parameters: transaction.run(text, parameters))

        session = self.driver.session(**self.options.session(self.driver, writes=work.writes, rows=work.rows))
        with translated(self.options.uri):
            async with session, adeadline(None if work.writes else timeout):
                if work.writes:
                    return await session.execute_write(transacted)
                try:
                    return await _drive(
                        work, lambda text, values: session.run(neo4j.Query(text, timeout=timeout), values)
                    )
                except (DriverError, Neo4jError) as error:
                    if not error.is_retryable():
                        raise
                return await session.execute_read(transacted)

    async def _blocks(
        self,
        ask: Callable[[Graph], Statement | None],
        read: Callable[[Graph, list[Any]], T],
        *,
        apart: bool = False,
    ) -> AsyncIterator[list[T]]:
        import neo4j

        graph = await self._graph()
        if (statement := ask(graph)) is None:
            return
        session = self.driver.session(**self.options.session(self.driver, writes=False))
        query = neo4j.Query(statement.text, timeout=self.options.timeout)
        with translated(self.options.uri):
            async with session:
                result = await session.run(query, dict(statement.parameters))
                last = None
                while rows := [row_of(record) for record in await result.fetch(BLOCK)]:
                    if apart and graph.layout.may_share_ids:
                        last = await self._run(Work(partial(graph.require_apart, last, rows)))
                    yield [read(graph, row) for row in rows]


async def _drive(work: Work[T], run: Callable[[str, dict[str, Any]], Awaitable[neo4j.AsyncResult]]) -> T:
    plan, answer = work.plan(), None
    while True:
        asked = await asyncio.to_thread(_next, plan, answer) if work.computes else _next(plan, answer)
        if not isinstance(asked, Statement):
            return asked[0]
        result = await run(asked.text, dict(asked.parameters))
        records = [r async for r in result] if asked.cap is None else await result.fetch(asked.cap)
        answer = Answer(row_of(record) for record in records)
        answer.columns = list(result.keys())
        answer.kind = (await result.consume()).query_type


def _next(plan: Plan[T], answer: Any) -> Statement | tuple[T]:
    """Return the next statement of a plan, or its result, in a tuple: a `StopIteration` cannot leave a thread."""
    try:
        return plan.send(answer)
    except StopIteration as stop:
        return (stop.value,)

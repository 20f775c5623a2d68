"""`Neo4jStore`: a graph in Neo4j, through the official driver."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from graphret.schema import GraphSchema
from graphret.stores.base import Rows, require_names
from graphret.stores.changes import Written
from graphret.stores.incidence import Incidence
from graphret.stores.neo4j import calls, preparing
from graphret.stores.neo4j.base import BLOCK, Connected
from graphret.stores.neo4j.deadline import deadline
from graphret.stores.neo4j.failures import require_version, sending, translated
from graphret.stores.neo4j.journal import position
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


class Neo4jStore(Connected):
    """A `CypherStore` in Neo4j 5.13 or later. Nothing of the graph is kept in this process.

    Nothing is asked of the server before the first call. A store is safe to use from several threads; it can be used
    again when the server was down and has come back. `Connected` says what it takes.
    """

    driver: neo4j.Driver

    @staticmethod
    def _connect(uri: str, settings: dict[str, Any]) -> neo4j.Driver:
        import neo4j

        return neo4j.GraphDatabase.driver(uri, **settings)

    def close(self) -> None:
        """Close the connections, after which every call raises; a driver that the store was given stays open."""
        if self._own_driver:
            self.options.closed = True
            self.driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # reading

    def schema(self, *, refresh: bool = False) -> GraphSchema:
        """Return labels, relations and properties; read once, sampled where the graph is large.

        Labels and relations are counted, which the database does at once. Triples are counted of relations of up to
        10,000 edges (or 500,000 shared among all), and with one label at an end; else so many edges of the relation, or
        of each label that it leaves, are read. Properties are read from 1,000 nodes of each label and edges of each
        relation, and have the names that Cypher knows them by, ``id``, ``name`` and ``text`` among them.

        Parameters
        ----------
        refresh
            Read it again; the store does so too after it wrote.
        """
        if self._schema is None or refresh:
            self._schema = self.run(calls.schema(self.graph()))
        return self._schema

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here.

        Raises
        ------
        InvalidInput
            When an id is that of several nodes, as 5 and "5" are in a graph that something else wrote; it names them.
        """
        return self.run(calls.get(self.graph(), ids))

    def neighbors(
        self,
        ids: Sequence[str],
        *,
        relations: Collection[str] | None = None,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
        direction: str = "both",
        limit: int | None = None,
    ) -> list[Edge]:
        """Return the edges that touch the nodes; see `GraphStore.neighbors`.

        Raises
        ------
        InvalidInput
            When an id is that of several nodes, as from `get`, or two nodes that the edges touch have one id.
        """
        return self.run(calls.neighbors(self.graph(), ids, relations, labels, where, direction, limit))

    def state(self) -> frozenset[str] | None:
        """Return the driver's bookmarks: they change with what it writes, and with any read after others wrote."""
        return frozenset(self.driver.execute_query_bookmark_manager.get_bookmarks()) or None

    def written(self, since: frozenset[str] | None) -> Written | None:
        """Return what was written since a `state`, as far as nobody but this store and its views wrote; else `None`."""
        return self.options.journal.since(position(since), position(self.state()))

    def degree(self, node: str) -> int:
        """Return how many edges touch a node; see `Incident.degree`."""
        return self.run(calls.degree(self.graph(), node))

    def incidence(self, node: str) -> Incidence | None:
        """Return the edges of a node in columns; see `Incident.incidence`."""
        return self.run(calls.incidence(self.graph(), node))

    def hubs(self, above: int) -> list[tuple[str, int]]:
        """Return the nodes with more edges than `above`, the most first, and how many; a loop may count twice."""
        return self.run(calls.hubs(self.graph(), above))

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are."""
        return self.run(calls.count(self.graph()))

    def nodes(self, labels: Collection[str] | None = None, where: WhereLike = None) -> Iterator[list[Node]]:
        """Go through all nodes, or those that bear one of `labels` and satisfy `where`, in blocks, by id.

        Raises
        ------
        InvalidInput
            When it comes to an id of several nodes, as from `get`.
        """
        names, condition = require_names("labels", labels), Where.parse(where)
        return self._blocks(lambda graph: graph.nodes(names, condition), lambda graph, row: graph.node(row), apart=True)

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Go through all edges, or those of some relations, in blocks, each edge once.

        That several nodes have one id shows in `nodes`, and not here.
        """
        names = require_names("relations", relations)
        return self._blocks(lambda graph: graph.edges(names), lambda _, row: edge_from(*row))

    # writing

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those of the same identity, in one transaction.

        Its size is bounded by the server's memory: write a graph of millions of nodes in several calls.
        """
        calls.refuse_on_view(self._scope, "upsert")
        self._write(calls.upsert(self.options, self._layout(), nodes, edges))

    @property
    def shares_nodes(self) -> bool:
        """Whether others keep labels and properties on nodes, which `upsert` replaces and `amend` leaves alone."""
        return not self._layout().lossless

    def amend(self, changes: Iterable[tuple[Node, Node]]) -> None:
        """Write nodes in place of what was written of them before, in one transaction; what others keep on them stays.

        An embedding that others keep there, or another hidden property, stays while the name and the text do. In a
        graph that graphret wrote, which is nobody else's, nodes are replaced as by `upsert`.

        Parameters
        ----------
        changes
            Of each node what was written of it before, and what is now.

        Raises
        ------
        InvalidInput
            As from `upsert`.
        """
        calls.refuse_on_view(self._scope, "upsert")
        self._write(calls.amend(self.options, self._layout(), changes))

    def check(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Raise what `upsert` would of nodes and edges that can be told of each alone, and write nothing.

        They are taken one by one, the last that was taken is the one that is refused.
        """
        preparing.check(self._layout(), nodes, edges, self.options.nested)

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away, and every edge that touches them; unknown ids are ignored."""
        calls.refuse_on_view(self._scope, "delete")
        self._write(calls.delete(self.options, self.graph(), ids))

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Take edges away, known by source, relation, target and rows; those that are not there are ignored."""
        calls.refuse_on_view(self._scope, "delete")
        self._write(calls.delete_edges(self.options, self.graph(), edges))

    def _write(self, works: Iterator[Work[None]]) -> None:
        with self.options.turn if self.options.followers else nullcontext():
            for work in works:
                before = position(self.state())
                self.run(work)
                self.options.journal.wrote(before, position(self.state()), work.written)
        self._schema = None

    # Cypher

    def query(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
    ) -> Rows:
        """Run a query that only reads, in a read transaction; see `CypherStore.query`."""
        calls.refuse_on_view(self._scope, "query")
        work = calls.query(self.graph(), cypher, parameters, timeout, max_rows)
        with sending():
            return self.run(work)

    def explain(self, cypher: str, *, timeout: float | None = None) -> str | None:
        """Return ``r``, ``w``, ``rw`` or ``s``: what the server takes the query for; see `CypherStore.explain`."""
        calls.refuse_on_view(self._scope, "query")
        self._layout()
        return self.run(calls.explain(cypher, timeout))

    # running

    def graph(self) -> Graph:
        """How the graph lies in the database, and what of it may be seen."""
        return Graph(self._layout(), self._scope)

    def _layout(self) -> Layout:
        """How the graph lies, found out once there is one, of a server that is checked first."""
        options = self.options
        if options.settled and options.layout is not None:
            return options.layout
        agent = self._agent()
        require_version(agent)
        found = self.run(calls.detect()) if options.layout is None else (options.layout, True)
        return options.settle(found, agent)

    def _agent(self) -> str:
        """Return the name that the server gives itself."""
        from neo4j.exceptions import ServiceUnavailable

        with translated(self.options.uri):
            try:
                return str(self.driver.get_server_info().agent)
            except ServiceUnavailable:
                if self._unrouted is not None:  # a driver that finds no route keeps to itself what TLS said
                    with self._connect(*self._unrouted) as driver:
                        driver.verify_connectivity()
                raise

    def run(self, work: Work[T]) -> T:
        """Run work in a transaction, again where it fails for a passing reason.

        What only reads is first tried with a read transaction for each statement, which takes one round trip, not
        three; no more is promised of several statements in one, since the server isolates no further. Such reads end
        with their time-out whatever the server does; a write may not be cut where nobody knows whether it was made.
        """
        import neo4j
        from neo4j.exceptions import DriverError, Neo4jError

        timeout = work.timeout or self.options.timeout

        @neo4j.unit_of_work(timeout=timeout)
        def transacted(transaction: neo4j.ManagedTransaction) -> T:
            end.require()
            return _drive(work.plan(), lambda text, parameters: transaction.run(text, parameters))

        session = self.driver.session(**self.options.session(self.driver, writes=work.writes, rows=work.rows))
        cut_after = None if work.writes else timeout
        with translated(self.options.uri), session, deadline(session, cut_after) as end:
            if work.writes:
                return session.execute_write(transacted)
            try:
                return _drive(work.plan(), lambda text, values: session.run(neo4j.Query(text, timeout=timeout), values))
            except (DriverError, Neo4jError) as error:
                if end.passed or not error.is_retryable():
                    raise
            return session.execute_read(transacted)

    def _blocks(
        self,
        ask: Callable[[Graph], Statement | None],
        read: Callable[[Graph, list[Any]], T],
        *,
        apart: bool = False,
    ) -> Iterator[list[T]]:
        import neo4j

        graph = self.graph()
        if (statement := ask(graph)) is None:
            return
        session = self.driver.session(**self.options.session(self.driver, writes=False))
        query = neo4j.Query(statement.text, timeout=self.options.timeout)
        with translated(self.options.uri), session:
            result = session.run(query, dict(statement.parameters))
            last = None
            while rows := [row_of(record) for record in result.fetch(BLOCK)]:
                if apart and graph.layout.may_share_ids:
                    last = self.run(Work(partial(graph.require_apart, last, rows)))
                yield [read(graph, row) for row in rows]


def _drive(plan: Plan[T], run: Callable[[str, dict[str, Any]], neo4j.Result]) -> T:
    """Run the statements of a plan, and return its result."""
    answer: Any = None
    while True:
        try:
            statement = plan.send(answer)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        result = run(statement.text, dict(statement.parameters))
        records = result if statement.cap is None else result.fetch(statement.cap)
        answer = Answer(row_of(record) for record in records)
        answer.columns = list(result.keys())
        answer.kind = result.consume().query_type

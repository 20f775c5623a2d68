"""`Neo4jStore`: a graph in Neo4j, through the official driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NoReturn, Self, TypeVar

from graphret.errors import InvalidInput, QueryRefused, StoreError
from graphret.schema import GraphSchema
from graphret.stores.attached import AttachedIndexes
from graphret.stores.base import Rows, require_direction, require_ids, require_limit, require_names, require_seconds
from graphret.stores.conditions import require_decided
from graphret.stores.neo4j.connection import Connection, driver_of
from graphret.stores.neo4j.filters import Filter
from graphret.stores.neo4j.graph import Graph, read_rows
from graphret.stores.neo4j.layout import COUNTS, Layout, described, detected
from graphret.stores.neo4j.schema import read_schema
from graphret.stores.neo4j.values import NESTED, edge_from, edge_rows, node_from, node_rows
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike, both

T = TypeVar("T")

#: Nodes or edges in one block of `nodes` and `edges`.
BLOCK = 5_000


class Neo4jStore(AttachedIndexes):
    """A `CypherStore` in Neo4j 5.13 or later; nothing of the graph is kept in this process.

    Nothing is asked of the server before the first call. A store is safe to use from several threads, and when the
    server comes back. How a graph lies is seen from the database: what a store wrote itself, what LlamaIndex's
    ``Neo4jPropertyGraphStore`` wrote, or anything else, whose element ids are then the ids. Neo4j has no null: such
    properties are left out. Tuples come back as lists.

    Parameters
    ----------
    uri
        ``neo4j://`` or ``bolt://``, ``+s`` for TLS with a certificate that the system trusts, ``+ssc`` with any.
    auth
        User and password, or what the driver takes: bearer tokens, an auth manager.
    database
        Its name, by default the user's own.
    id_property, name_property, text_property, label
        Of a graph that something else wrote: the property that is the id (otherwise element ids are), those that are
        the name and the text, the first that a node has, and the label of the nodes to read (all nodes). Make an index
        on label and id, or each lookup reads every node. Such a graph is read as it is: an id that is a number is shown
        as text, a date or a point as its text. What `upsert` adds are nodes with the label ``__GraphretAdded__`` and
        edges of its own; nodes and edges that are there are not changed, and an attempt is an `InvalidInput`.
    hidden
        Properties of nodes that are never read, such as embeddings under a name of one's own (``embedding`` is always,
        in a graph that something else wrote).
    nested
        What happens to values that Neo4j cannot hold, maps, lists of lists or of several types, integers beyond 64
        bits: ``refuse``, or ``json``: stored as JSON text, read back as they were. A condition sees the text.
    timeout
        Seconds after which the server gives up on a call.
    options
        Settings of the driver, such as ``{"max_connection_pool_size": 20}``; it waits 10 seconds for a connection
        (``connection_timeout``) and tries for 10 again what fails for a passing reason
        (``max_transaction_retry_time``), unless they say otherwise.
    driver
        A driver to use, see `from_driver`.

    Raises
    ------
    InvalidInput
        When an option is malformed.
    StoreUnavailable, AccessDenied, StoreMismatch
        From any call: the server cannot be reached, refuses the user, or has no such database.
    """

    dialect = "neo4j"

    def __init__(
        self,
        uri: str,
        *,
        auth: Any = None,
        database: str | None = None,
        id_property: str | None = None,
        name_property: str | Sequence[str] | None = None,
        text_property: str | Sequence[str] | None = None,
        label: str | None = None,
        hidden: Sequence[str] = (),
        nested: str = "refuse",
        timeout: float | None = None,
        options: Mapping[str, Any] | None = None,
        driver: Any = None,
    ) -> None:
        if nested not in NESTED:
            raise InvalidInput(f"nested: 'refuse' or 'json' is expected, not {nested!r}")
        require_seconds("timeout", timeout)
        self._nested = nested
        self._hidden = require_names("hidden", hidden) or []
        self._described = described(id=id_property, name=name_property, text=text_property, label=label)
        self._own_driver = driver is None
        settings = {"connection_timeout": 10.0, "max_transaction_retry_time": 10.0, **(options or {})}
        self.driver = driver or driver_of(uri, auth=auth, **settings)
        self._connection = Connection(self.driver, uri, database, timeout)
        self._layout: Layout | None = None
        self._constrained = False
        self._turn = threading.Lock()  # held by the one write at a time that indexes can follow
        self._schema: GraphSchema | None = None
        self._scope: Where | None = None

    @classmethod
    def from_driver(cls, driver: Any, **options: Any) -> Self:
        """Make a store on a driver that stays its maker's to close; takes the options that are not the driver's."""
        return cls("the database", driver=driver, **options)

    def close(self) -> None:
        """Close the connections; a driver that the store was given stays open."""
        if self._own_driver:
            self.driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a store that is connected to Neo4j cannot be pickled: open it in each process")

    def _copy(self, **changes: Any) -> Self:
        other = object.__new__(type(self))
        other.__dict__ |= self.__dict__ | changes
        return other

    def view(self, where: WhereLike) -> Self:
        """Return the store as far as nodes satisfy `where`; it cannot be written to, and answers no Cypher.

        Raises
        ------
        InvalidInput
            When the database cannot decide the condition by itself.
        """
        condition = Where.parse(where)
        require_decided(Filter(Layout(), "n").write(condition)[1])
        scope = both(self._scope, condition)
        return self._copy(_scope=scope, _schema=None, _own_driver=False, _is_view=True, _followers=())

    @property
    def restriction(self) -> Where | None:
        """The condition of the view that this is; `None` where it is none."""
        return self._scope

    def graph(self) -> Graph:
        """Return what statements are made with, for indexes in the database; how the graph lies is found out here."""
        layout = self._layout
        if layout is None:
            counts = [n for (n,) in self._connection.run(COUNTS)]
            layout = detected(counts, self._described, self._hidden)
            if counts[0]:  # an empty database may be another's tomorrow
                self._layout = layout
        return Graph(self._connection.run, layout, self._scope)

    # reading

    def schema(self, *, refresh: bool = False) -> GraphSchema:
        """Return labels, relations and properties; read once, and again with `refresh` or after a write.

        All labels and relations are counted. Properties, by the names that Cypher knows, are read from 1,000 nodes of
        each label and edges of each relation, the labels at the ends of a relation from 10,000 edges.
        """
        if self._schema is None or refresh:
            self._schema = read_schema(self.graph())
        return self._schema

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here; an `InvalidInput` names an id of several nodes."""
        return self.graph().get(require_ids(ids))

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
        """Return the edges that touch the nodes; see `GraphStore.neighbors`."""
        wanted, condition = require_ids(ids), Where.parse(where)
        types, borne = require_names("relations", relations), require_names("labels", labels)
        require_direction(direction)
        require_limit(limit)
        return self.graph().neighbors(wanted, types, borne, condition, direction, limit)

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are."""
        return self.graph().count()

    def nodes(self, labels: Collection[str] | None = None, where: WhereLike = None) -> Iterator[list[Node]]:
        """Go through all nodes, or those that bear one of `labels` and satisfy `where`, in blocks, by id."""
        graph = self.graph()
        text, parameters, left = graph.nodes(require_names("labels", labels), Where.parse(where))
        for rows in self._connection.stream(text, parameters, BLOCK):
            nodes = [node_from(graph.layout, *row) for row in rows]
            if found := nodes if left is None else list(filter(left.matches, nodes)):
                yield found

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Go through all edges, or those of some relations, in blocks, each edge once."""
        if (statement := self.graph().edges(require_names("relations", relations))) is not None:
            for rows in self._connection.stream(*statement, BLOCK):
                yield [edge_from(*row) for row in rows]

    # writing

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those of the same identity, in one transaction.

        Its size is bounded by the server's memory: write a graph of millions of nodes in several calls.
        """
        self._require_writable()
        nodes, edges = list(nodes), list(edges)
        layout = self.graph().layout
        rows = node_rows(layout, nodes, self._nested), edge_rows(layout, edges, self._nested)
        self._layout = replace(layout, added=layout.added or (bool(nodes) and not layout.own))
        if nodes and not self._constrained:
            self.write(Graph.constrain)
            self._constrained = True
        self._write(lambda graph: graph.upsert(*rows), nodes, edges)

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away, and every edge that touches them; unknown ids are ignored."""
        self._require_writable()
        gone = list(dict.fromkeys(require_ids(ids)))
        self._write(lambda graph: graph.delete(gone), deletes=gone)

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Take edges away, known by source, relation, target and rows; those that are not there are ignored."""
        self._require_writable()
        gone = list(edges)
        rows = edge_rows(self.graph().layout, gone, "json")
        self._write(lambda graph: graph.delete_edges(rows), edges=gone)

    def write(self, work: Callable[[Graph], T]) -> T:
        """Do what writes, in a transaction of its own or the one that is under way, for indexes in the database."""
        self._require_writable()
        return self._connection.write(lambda connection: work(self._copy(_connection=connection).graph()))

    def _write(
        self,
        work: Callable[[Graph], None],
        nodes: Sequence[Node] = (),
        edges: Sequence[Edge] = (),
        deletes: Sequence[str] = (),
    ) -> None:
        """Write in one transaction, in which the indexes that follow see the store as it will be."""
        with self._turn if self._followers else nullcontext(), self.followed(nodes, edges, deletes) as stage:

            def all_of_it(connection: Connection) -> None:
                within = self._copy(_connection=connection, _followers=())
                work(within.graph())
                stage(within)

            self._connection.write(all_of_it)
        self._schema = None

    # Cypher

    def query(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
    ) -> Rows:
        """Run a query that only reads, in a read transaction; see `CypherStore.query`."""
        self._require_cypher(timeout)
        limits = {"max_rows": require_limit(max_rows), "max_bytes": require_limit(max_bytes)}
        graph = self.graph()
        try:
            answer = graph.run(cypher, parameters, timeout=timeout, **limits)
            return Rows(answer.columns, read_rows(graph, answer), answer.more)
        except RecursionError:
            raise StoreError("what the query returns is nested too deeply to be read") from None
        except (OverflowError, TypeError, ValueError) as error:
            raise InvalidInput(f"a parameter cannot be sent to Neo4j: {error}") from error

    def id_in_cypher(self, variable: str) -> str:
        """Return how a query writes the id of a node."""
        return self.graph().layout.id_of(variable)

    def node_in_cypher(
        self, variable: str, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> tuple[str, str, dict[str, Any]]:
        """Return how a query matches nodes; see `CypherStore.node_in_cypher`."""
        graph, names = self.graph(), require_names("labels", labels)
        clause, parameters, left = graph.conditions(variable, labels=names, where=Where.parse(where))
        require_decided(left)
        return graph.layout.node(variable), clause.removeprefix(" WHERE ") or "true", parameters

    def explain(self, cypher: str, *, timeout: float | None = None) -> str | None:
        """Return ``r``, ``w``, ``rw`` or ``s``: what the server takes the query for; see `CypherStore.explain`."""
        self._require_cypher(timeout)
        return self._connection.run(f"EXPLAIN {cypher}", timeout=timeout).kind

    def _require_cypher(self, timeout: float | None) -> None:
        require_seconds("timeout", timeout, zero=True)
        if self._is_view:
            raise QueryRefused("a view answers no free Cypher: nothing would keep it to the nodes of the view")

"""`Neo4jStore`: a graph in Neo4j, through the official driver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Self, TypeVar

from graphret.errors import InvalidInput, StoreError
from graphret.schema import GraphSchema
from graphret.stores.base import Rows, require_names, require_seconds
from graphret.stores.database import DatabaseStore
from graphret.stores.neo4j.connection import Connection, driver_of
from graphret.stores.neo4j.graph import Graph, read_rows
from graphret.stores.neo4j.layout import (
    COUNTS,
    Layout,
    PropertyNames,
    described,
    detected,
    edge_from,
    node_from,
)
from graphret.stores.neo4j.naming import with_names
from graphret.stores.neo4j.profile import memory_of, operators_of
from graphret.stores.neo4j.schema import read_schema
from graphret.stores.profile import Profile
from graphret.types import Edge, Node
from graphret.where import Where

T = TypeVar("T")

#: Nodes or edges in one block of `nodes` and `edges`.
BLOCK = 5_000


class Neo4jStore(DatabaseStore):
    """A `CypherStore` in Neo4j 5.13 or later, which keeps no graph in this process.

    The server is first contacted by the first call. A store can be used from several
    threads, and again when a server is back. The layout of a graph is detected: written
    by a store itself, by LlamaIndex's ``Neo4jPropertyGraphStore``, or by anything else,
    in which case element ids are the ids. Neo4j has no null: such properties are left
    out. Maps, mixed lists and integers beyond 64 bits are stored as JSON text and come
    back as they were; a condition sees the text. Tuples come back as lists.

    Parameters
    ----------
    uri
        ``neo4j://`` or ``bolt://``, ``+s`` for TLS with a certificate that the system
        trusts, ``+ssc`` with any.
    auth
        User and password, or what the driver takes: bearer tokens, an auth manager.
    database
        Its name, by default the user's own.
    id_property, name_property, text_property, label
        Of a graph that something else wrote: the property that is the id (otherwise
        element ids are), those that are the name and the text, the first that a node
        has, or a mapping of these by label, and the label of the nodes to read (all
        nodes). What is not told is chosen for each label from a sample (short texts
        that tell nodes apart, under a key that ends in name, title, label or code; else
        the id), and logged once. Make an index on label and
        id, or each lookup reads every node. Such a graph is read as it is: an id that
        is a number is shown as text, a date or a point as its text. What `upsert` adds
        are nodes with the label ``__GraphretAdded__`` and edges of its own; nodes and
        edges that are there are not changed, and an attempt is an `InvalidInput`.
    hidden
        Properties of nodes that are never read, such as embeddings under a name of
        one's own (``embedding`` is always, in a graph that something else wrote).
    timeout
        Seconds after which the server gives up on a call.
    options
        Settings of the driver, such as ``{"max_connection_pool_size": 20}``; it waits
        10 seconds for a connection (``connection_timeout``) and tries for 10 again what
        fails for a passing reason (``max_transaction_retry_time``), unless they say
        otherwise.
    driver
        A driver to use, see `from_driver`.

    Raises
    ------
    InvalidInput
        When an option is malformed; from any call, when no node has a property that was
        named.
    StoreUnavailable, AccessDenied, StoreMismatch
        From any call: the server cannot be reached, refuses the user, or has no such
        database.
    """

    dialect = "neo4j"

    def __init__(
        self,
        uri: str,
        *,
        auth: Any = None,
        database: str | None = None,
        id_property: str | None = None,
        name_property: PropertyNames | None = None,
        text_property: PropertyNames | None = None,
        label: str | None = None,
        hidden: Sequence[str] = (),
        timeout: float | None = None,
        options: Mapping[str, Any] | None = None,
        driver: Any = None,
    ) -> None:
        require_seconds("timeout", timeout)
        self._hidden = require_names("hidden", hidden) or []
        self._described = described(
            id=id_property, name=name_property, text=text_property, label=label
        )
        self._own_driver = driver is None
        settings = {
            "connection_timeout": 10.0,
            "max_transaction_retry_time": 10.0,
            **(options or {}),
        }
        self.driver = driver or driver_of(uri, auth=auth, **settings)
        self._connection = Connection(self.driver, uri, database, timeout)
        self._layout: Layout | None = None
        self._constrained = False
        self._turn = threading.Lock()  # held by a write while indexes are attached

    @classmethod
    def from_driver(
        cls,
        driver: Any,
        *,
        database: str | None = None,
        id_property: str | None = None,
        name_property: PropertyNames | None = None,
        text_property: str | Sequence[str] | None = None,
        label: str | None = None,
        hidden: Sequence[str] = (),
        timeout: float | None = None,
    ) -> Self:
        """Make a store on a driver, which its maker closes."""
        return cls(
            "the database",
            driver=driver,
            database=database,
            id_property=id_property,
            name_property=name_property,
            text_property=text_property,
            label=label,
            hidden=hidden,
            timeout=timeout,
        )

    def close(self) -> None:
        """Close the connections; a driver passed to the store or a view stays open."""
        if self._own_driver and not self._is_view:
            self.driver.close()

    def graph(self) -> Graph:
        """Return the graph that writes statements, detecting its layout first.

        Indexes in the database use it, too.
        """
        layout = self._layout
        if layout is None:
            counts = [n for (n,) in self._connection.run(COUNTS)]
            layout = detected(counts, self._described, self._hidden)
            if not layout.own:
                layout = with_names(Graph(self._connection.run, layout))
            if counts[0]:  # an empty database may be filled by another program
                self._layout = layout
        return Graph(self._connection.run, layout, self._scope)

    # reading

    def schema(self) -> GraphSchema:
        """Return the schema, read once and again after this store writes.

        All labels and relations are counted. Properties, by the names that Cypher
        knows, are read from 1,000 nodes of each label and edges of each relation, the
        labels at the ends of a relation from 10,000 edges.
        """
        if self._schema is None:
            self._schema = read_schema(self.graph())
        return self._schema

    def _reading(self) -> AbstractContextManager[Graph]:
        return nullcontext(self.graph())

    def _nodes(self, where: Where | None) -> Iterator[list[Node]]:
        graph = self.graph()
        for rows in self._connection.stream(*graph.nodes(where), BLOCK):
            yield [node_from(graph.layout, *row) for row in rows]

    def _edges(self, relations: list[str] | None) -> Iterator[list[Edge]]:
        for rows in self._connection.stream(*self.graph().edges(relations), BLOCK):
            yield [edge_from(*row) for row in rows]

    # writing

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add or replace nodes and edges in one go; see `GraphStore.upsert`."""
        if nodes := list(nodes):
            self._constrain()
        super().upsert(nodes, edges)

    def insert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges of which none is there, in one go.

        This takes a fraction of the time of `upsert`, which looks for each. A node that
        is there is an error; an edge that is there would be there twice.
        """
        if nodes := list(nodes):
            self._constrain()
        self._add("insert", nodes, edges)

    def _constrain(self) -> None:
        """Prepare a graph for its first nodes of graphret's."""
        if self._is_view:
            return
        layout = self.graph().layout
        self._layout = replace(layout, added=not layout.own)
        if not self._constrained:
            self.write(Graph.constrain)
            self._constrained = True

    def write(self, work: Callable[[Graph], T]) -> T:
        """Run `work` in a write transaction, a new one or the current one.

        Indexes in the database use it.
        """
        self._require_writable()
        self.graph()  # detect the layout once, and not in each copy
        return self._connection.write(
            lambda connection: work(self._copy(_connection=connection).graph())
        )

    def _write(self, work: Callable[[Graph], None], **written: Any) -> None:
        with (
            self._turn if self._followers else nullcontext(),
            self.followed(**written) as stage,
        ):

            def all_of_it(connection: Connection) -> None:
                within = self._copy(_connection=connection)
                work(within.graph())
                stage(within)

            self._connection.write(all_of_it)
        self._schema = None

    # Cypher

    def _run(self, cypher: str, parameters: Any, **limits: Any) -> Rows:
        graph = self.graph()
        try:
            answer = graph.run(cypher, parameters, **limits)
            return Rows(answer.columns, read_rows(graph, answer), answer.more)
        except RecursionError:
            raise StoreError(
                "what the query returns is nested too deeply to be read"
            ) from None
        except (OverflowError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"a parameter cannot be sent to Neo4j: {error}"
            ) from error

    def id_in_cypher(self, variable: str) -> str:
        """Return how a query writes the id of a node."""
        return self.graph().layout.id_of(variable)

    def explain(self, cypher: str, *, timeout: float | None = None) -> str | None:
        """Return the server's type of a query, ``r``, ``w``, ``rw`` or ``s``.

        See `CypherStore.explain`.
        """
        self._require_query(timeout)
        return self._connection.run(f"EXPLAIN {cypher}", timeout=timeout).kind

    def profile(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float,
    ) -> Profile:
        """Run a query and return how it ran; see `ProfilingStore.profile`."""
        self._require_query(timeout)
        started = time.perf_counter()
        answer = self._connection.run(f"PROFILE {cypher}", parameters, timeout=timeout)
        seconds = time.perf_counter() - started
        plan = answer.profile or {}
        return Profile(
            cypher, operators_of(plan), len(answer), seconds, memory_of(plan)
        )

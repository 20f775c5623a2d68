"""The contracts of graph stores. Every call takes a batch."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from graphret.contracts import restriction_of
from graphret.errors import InvalidInput
from graphret.schema import GraphSchema
from graphret.types import Edge, Node
from graphret.where import WhereLike

if TYPE_CHECKING:
    from graphret.stores.memory import Graph


@runtime_checkable
class GraphStore(Protocol):
    """Holds nodes and edges; a store of your own derives from it.

    Nodes are identified by their id, edges by source, relation, target and the
    properties ``source_row`` and ``target_row``. Writing an existing node or edge
    replaces all of it.
    """

    def schema(self) -> GraphSchema:
        """Return labels, relations and properties; large graphs are sampled."""

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for missing ones; `ids` must not be a string."""

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
        """Return the edges that touch the nodes, by source, target, relation and row.

        Parameters
        ----------
        ids
            The nodes; unknown ids are ignored.
        relations, labels, where
            Only edges of these relations, whose other end has one of the labels and
            satisfies the condition. For an edge between two of the nodes, either end
            may be the other one.
        direction
            ``out``, ``in`` or ``both``, seen from the nodes.
        limit
            At most this many edges for each of the nodes, the heaviest first, then in
            the order above.

        Raises
        ------
        InvalidInput
            If the direction is unknown, the limit below 1, or a string is given in
            place of a list of ids or names.
        """

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those with the same identity, all or none.

        Raises
        ------
        InvalidInput
            If a node or an edge is malformed (properties are JSON), `nodes` has an id
            twice, or an end of an edge is neither in the store nor among `nodes`;
            nothing is written then.
        """

    def insert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges of which none is in the store.

        A store that need not look for them first overrides this; `upsert` does it
        otherwise.
        """
        self.upsert(nodes, edges)

    def delete(self, ids: Iterable[str]) -> None:
        """Delete nodes and every edge that touches them; unknown ids are ignored.

        `ids` must not be a string.
        """

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Delete edges by source, relation, target and rows, if they exist."""

    def count(self) -> tuple[int, int]:
        """Return the number of nodes and the number of edges."""

    def nodes(
        self, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> Iterator[list[Node]]:
        """Yield nodes with one of `labels` that satisfy `where`, in blocks, by id."""

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Yield all edges, or those of some relations, once each, in blocks."""

    def view(self, where: WhereLike) -> GraphStore:
        """Return a view of the nodes that satisfy `where`, which hides all others.

        A view cannot be written to, and no index can be attached to it: attach the
        index to the store, and take a view of the index. The view has the condition, as
        a `Where`, in the attribute `restriction`: a method only takes a store and an
        index that are views with the same condition. An object without that attribute
        is not considered a view.
        """

    def local_graph(self) -> Graph | None:
        """Return the current graph if it is in this process.

        Any other store returns `None`, the default, and is read by the calls above.
        """
        return None


@dataclass(frozen=True, slots=True)
class Rows:
    """The result of a Cypher query: columns, rows, and whether a limit cut the rows."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    truncated: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as mappings from column to value."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class LabelTables:
    """A label and the tables whose nodes may have it, by their names in queries.

    It is for databases in which labels are tables.
    """

    label: str
    tables: tuple[str, ...]


@runtime_checkable
class CypherStore(GraphStore, Protocol):
    """A `GraphStore` that also runs Cypher.

    `dialect` is ``neo4j`` or ``ladybug``.
    """

    dialect: str

    def query(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
    ) -> Rows:
        """Run a read-only query in a read transaction.

        The query is not checked: run what a model wrote with
        `graphret.cypher.run_checked`. A node is returned as a `Node`, a relationship as
        an `Edge`, a path as the list of both, and anything else as a JSON value: a date
        as text, NaN as `None`.

        At most `max_rows` are read, and none after about `max_bytes` of text; the
        database gives up after `timeout` seconds.

        Raises
        ------
        QueryRefused
            If the database refuses the query, or the store is a view.
        QueryTimeout
            If it took longer than `timeout`.
        """

    def id_in_cypher(self, variable: str) -> str:
        """Return a query's expression for a node's id, such as ``elementId(n)``."""

    def node_in_cypher(
        self,
        variable: str,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
    ) -> tuple[str, str, dict[str, Any]]:
        """Return how a query matches a node with one of the labels and a condition.

        Returns
        -------
        pattern, condition, parameters
            ``(n:Label)``, an expression that is true of those nodes, and what it needs;
            their names begin with that of the variable.

        Raises
        ------
        InvalidInput
            If the database cannot decide the condition by itself.
        """

    def explain(self, cypher: str, *, timeout: float | None = None) -> str | None:
        """Return the database's type of a query (``r`` only reads), or `None`.

        The query is planned, which takes seconds for a long pattern, but does not run.
        It raises the same errors as `query`.
        """


def within(rows: Iterable[Any], max_bytes: int) -> Iterator[Any]:
    """Yield rows up to the first with which their texts exceed `max_bytes`."""
    n_characters = 0
    for row in rows:
        yield row
        n_characters += len(repr(row))
        if n_characters > max_bytes:
            return


def as_cypher(store: Any) -> CypherStore | None:
    """Return a store that runs Cypher; `None` for any other."""
    return None if getattr(store, "dialect", None) is None else store


def require_cypher(store: Any, *, whole: bool = False) -> CypherStore:
    """Return the store; refuse one that does not run Cypher, or a view if `whole`."""
    database = as_cypher(store)
    if database is None:
        raise InvalidInput(
            "store: expected one that runs Cypher, such as LadybugStore or Neo4jStore,"
            f" got {type(store).__name__}"
        )
    if whole and restriction_of(store) is not None:
        raise InvalidInput(
            "store: expected a database, got a view of one, which a query could read"
            " past"
        )
    return database


def require_direction(direction: str) -> None:
    """Refuse an unknown direction."""
    if direction not in ("out", "in", "both"):
        raise InvalidInput(
            f"direction: expected 'out', 'in' or 'both', got {direction!r}"
        )


def require_limit(limit: int | None) -> int | None:
    """Return the limit; refuse anything but `None` or a whole number of at least 1."""
    if limit is not None and (
        isinstance(limit, bool) or not isinstance(limit, int) or limit < 1
    ):
        raise InvalidInput(
            f"limit: expected a whole number of at least 1, got {limit!r}"
        )
    return limit


def require_seconds(
    what: str, seconds: float | None, *, zero: bool = False
) -> float | None:
    """Return a number of seconds; refuse anything but `None` or a number above zero."""
    if (
        seconds is None
        or (isinstance(seconds, int | float) and 0 < seconds < math.inf)
        or (zero and seconds == 0)
    ):
        return seconds
    raise InvalidInput(f"{what}: expected a number of seconds above 0, got {seconds!r}")


def require_ids(ids: Iterable[str], what: str = "ids") -> list[str]:
    """Return ids or names as a list; refuse a single string or other types."""
    listed = (
        None if isinstance(ids, str) or not isinstance(ids, Iterable) else list(ids)
    )
    if listed is None or not all(isinstance(item, str) for item in listed):
        raise InvalidInput(f"{what}: expected a list of strings, got {ids!r}")
    return listed


def require_names(what: str, names: Collection[str] | None) -> list[str] | None:
    """Return distinct names in order; refuse what `require_ids` refuses."""
    return None if names is None else sorted({*require_ids(names, what)})

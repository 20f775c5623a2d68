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
    properties ``source_row`` and ``target_row``. Writing something that is there
    replaces it in whole.
    """

    def schema(self) -> GraphSchema:
        """Return the labels, relations and properties with their counts, sampled where
        the graph is large.
        """

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here; a bare string is
        refused as no list of ids.
        """

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
            Only edges of these relations, whose other end bears one of the labels and
            satisfies the condition. Of an edge between two of the nodes, either end may
            be the other one.
        direction
            ``out``, ``in`` or ``both``, seen from the nodes.
        limit
            At most this many edges for each of the nodes, the heaviest first, then in
            the order above.

        Raises
        ------
        InvalidInput
            On another direction, a limit below 1, or a string where a list of ids or
            names is expected.
        """

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those of the same identity, all or none.

        Raises
        ------
        InvalidInput
            When a node or an edge is malformed, an id comes twice among `nodes`, or an
            end of an edge is neither here nor among `nodes`; nothing is then written.
            Properties are JSON.
        """

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away, and every edge that touches them; unknown ids are ignored, a
        bare string is refused.
        """

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Take edges away, known by source, relation, target and rows; those that are
        not here are ignored.
        """

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are."""

    def nodes(
        self, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> Iterator[list[Node]]:
        """Go through all nodes, or those that bear one of `labels` and satisfy `where`,
        in blocks, by id.
        """

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Go through all edges, or those of some relations, in blocks, each
        edge once.
        """

    def view(self, where: WhereLike) -> GraphStore:
        """Return the store as far as nodes satisfy `where`; nothing of the others can
        be read through it.

        A view cannot be written to, and no index can follow it: attach the index to the
        store, and take a view of the index. It keeps the condition, as a `Where`, in
        the attribute `restriction`: a method takes a store and an index only as views
        of the same condition. One without that attribute counts as no view.
        """

    def local_graph(self) -> Graph | None:
        """Return the graph as it is now, where it lies in this process.

        `None`, the default, is any other store: what a method needs of it is read by
        the calls above.
        """
        return None


@dataclass(frozen=True, slots=True)
class Rows:
    """What a Cypher query returned: the names of its columns, its rows, and whether a
    row cap cut them.
    """

    columns: list[str]
    rows: list[tuple[Any, ...]]
    truncated: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as mappings from column to value."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class LabelBearers:
    """A label of a database in which labels are tables, and the tables, as queries call
    them, whose nodes may bear it.
    """

    label: str
    tables: tuple[str, ...]


@runtime_checkable
class CypherStore(GraphStore, Protocol):
    """A `GraphStore` that also answers Cypher.

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
        """Run a query that only reads, in a read transaction.

        The text is run as it is: only `graphret.cypher.run_checked` may be given what a
        model wrote. A node comes back as a `Node`, a relationship as an `Edge`, a path
        as the list of both, and anything else as a JSON value: a date as text, NaN as
        `None`.

        At most `max_rows` are read, none after the first `max_bytes` (of their texts,
        about), and the database gives up after `timeout` seconds.

        Raises
        ------
        QueryRefused
            When the database refuses the query, or the store is a view.
        QueryTimeout
            When it took longer than `timeout`.
        """

    def id_in_cypher(self, variable: str) -> str:
        """Return how a query writes the id of the node that a variable stands for, such
        as ``elementId(n)``.
        """

    def node_in_cypher(
        self,
        variable: str,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
    ) -> tuple[str, str, dict[str, Any]]:
        """Return how a query matches a node that bears one of the labels and satisfies
        a condition.

        Returns
        -------
        pattern, condition, parameters
            ``(n:Label)``, an expression that is true of those nodes, and what it needs;
            their names begin with that of the variable.

        Raises
        ------
        InvalidInput
            When the database cannot decide the condition by itself.
        """

    def explain(self, cypher: str, *, timeout: float | None = None) -> str | None:
        """Return the kind of query that the database takes it for (``r`` only reads),
        `None` where it names none.

        The query does not run, but is planned, which takes seconds where a pattern is
        long; raises what `query` does.
        """


def within(rows: Iterable[Any], max_bytes: int) -> Iterator[Any]:
    """Go through rows as far as the first whose text, with those before, has more than
    `max_bytes` characters.
    """
    taken = 0
    for row in rows:
        yield row
        taken += len(repr(row))
        if taken > max_bytes:
            return


def as_cypher(store: Any) -> CypherStore | None:
    """Return a store that answers Cypher as one; `None` for any other."""
    return None if getattr(store, "dialect", None) is None else store


def require_cypher(store: Any, *, whole: bool = False) -> CypherStore:
    """Return the store; an `InvalidInput` says that it answers no Cypher or, where it
    must be `whole`, is a view.
    """
    database = as_cypher(store)
    if database is None:
        raise InvalidInput(
            f"store: {type(store).__name__} answers no Cypher; LadybugStore and"
            " Neo4jStore do"
        )
    if whole and restriction_of(store) is not None:
        raise InvalidInput(
            "store: it is a view of a database, and a query could read past it"
        )
    return database


def require_direction(direction: str) -> None:
    """Raise an `InvalidInput` if it is no direction."""
    if direction not in ("out", "in", "both"):
        raise InvalidInput(
            f"direction: expected 'out', 'in' or 'both', got {direction!r}"
        )


def require_limit(limit: int | None) -> int | None:
    """Return the limit, and raise an `InvalidInput` if it is not `None` or a whole
    number of at least 1.
    """
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
    """Return a number of seconds, and raise an `InvalidInput` if it is neither `None`
    nor above zero.
    """
    if (
        seconds is None
        or (isinstance(seconds, int | float) and 0 < seconds < math.inf)
        or (zero and seconds == 0)
    ):
        return seconds
    raise InvalidInput(f"{what}: expected a number of seconds above 0, got {seconds!r}")


def require_ids(ids: Iterable[str], what: str = "ids") -> list[str]:
    """Return ids or names as a list, and raise an `InvalidInput` on a string, which is
    no list, or on what is none.
    """
    listed = (
        None if isinstance(ids, str) or not isinstance(ids, Iterable) else list(ids)
    )
    if listed is None or not all(isinstance(one, str) for one in listed):
        raise InvalidInput(f"{what}: expected a list of strings, got {ids!r}")
    return listed


def require_names(what: str, names: Collection[str] | None) -> list[str] | None:
    """Return distinct names in order, and raise an `InvalidInput` as `require_ids`
    does.
    """
    return None if names is None else sorted({*require_ids(names, what)})

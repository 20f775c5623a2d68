"""What stores in databases have in common: views, what they check of a call, and writes
that indexes follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from operator import methodcaller
from typing import Any, NoReturn, Self

from graphret.errors import InvalidInput, QueryRefused
from graphret.schema import GraphSchema
from graphret.stores.attached import AttachedIndexes
from graphret.stores.base import (
    GraphStore,
    Rows,
    require_direction,
    require_ids,
    require_limit,
    require_names,
    require_seconds,
)
from graphret.stores.conditions import require_decided
from graphret.types import Edge, EdgeKey, Node
from graphret.validation import checked_nodes, require_edge, require_properties
from graphret.where import Where, WhereLike, both

#: So many edges of a node are read at first where the database cannot decide a
#: condition and a limit is given, and four times as many where too few of them fit.
FIRST_READ = 1_000


class DatabaseStore(AttachedIndexes, GraphStore, ABC):
    """A `CypherStore` in a database; a subclass says how it is read, written and asked.

    A view is a copy with a condition, the scope: it cannot be written to, answers no
    Cypher and closes nothing.
    """

    _scope: Where | None = None
    _schema: GraphSchema | None = None

    @abstractmethod
    def close(self) -> None:
        """Close the database, which a view leaves to its store; a second call does
        nothing.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"an open {type(self).__name__} cannot be pickled or copied: open it in"
            " each process"
        )

    def _copy(self, **changed: Any) -> Self:
        """Return another store on the same database, which no index follows."""
        other = object.__new__(type(self))
        other.__dict__ |= {
            **self.__dict__,
            "_followers": (),
            "_schema": None,
            **changed,
        }
        return other

    def view(self, where: WhereLike) -> Self:
        """Return the store as far as nodes satisfy `where`; it answers no free Cypher
        and cannot be written to.

        Raises
        ------
        InvalidInput
            When the database cannot decide the condition by itself.
        """
        view = self._copy(_scope=both(self._scope, Where.parse(where)), _is_view=True)
        with view._reading():
            return view

    @property
    def restriction(self) -> Where | None:
        """The condition of the view that this is; `None` where it is none."""
        return self._scope

    # reading

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Any]:
        """Give the graph to one call: it has `get`, `neighbors`, `count` and
        `node_in_cypher`.
        """

    @abstractmethod
    def _nodes(self, where: Where | None) -> Iterator[list[Node]]:
        """Go through the nodes that satisfy a condition as far as the database decides
        it, in blocks, by id.
        """

    @abstractmethod
    def _edges(self, relations: list[str] | None) -> Iterator[list[Edge]]:
        """Go through the edges of some relations, in blocks."""

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are."""
        with self._reading() as graph:
            return graph.count()  # type: ignore[no-any-return]

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here."""
        wanted = require_ids(ids)
        with self._reading() as graph:
            found = graph.get(wanted)
        return [found.get(node_id) for node_id in wanted]

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
        require_direction(direction)
        wanted, other, types = (
            require_ids(ids),
            condition(labels, where),
            require_names("relations", relations),
        )
        require_limit(limit)
        if not wanted or types == []:
            return []
        with self._reading() as graph:
            if other is None or graph.node_in_cypher("n", other)[-1] is None:
                return graph.neighbors(wanted, types, other, direction, limit)  # type: ignore[no-any-return]
            block = None if limit is None else max(limit, FIRST_READ)
            while True:
                read = graph.neighbors(wanted, types, None, direction, block)
                fitting, enough = _heaviest_fitting(
                    read, graph, wanted, other, direction, limit, block
                )
                if enough or block is None:
                    return fitting
                block *= 4

    def nodes(
        self, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> Iterator[list[Node]]:
        """Go through all nodes, or those that bear one of `labels` and satisfy `where`,
        in blocks, by id.
        """
        other = condition(labels, where)
        blocks = (
            [node for node in block if other is None or other.matches(node)]
            for block in self._nodes(other)
        )
        return filter(None, blocks)

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Go through all edges, or those of some relations, in blocks, each
        edge once.
        """
        types = require_names("relations", relations)
        return iter(()) if types == [] else self._edges(types)

    def node_in_cypher(
        self,
        variable: str,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
    ) -> tuple[str, str, dict[str, Any]]:
        """Return how a query matches nodes; see `CypherStore.node_in_cypher`."""
        with self._reading() as graph:
            pattern, written, parameters, left = graph.node_in_cypher(
                variable, condition(labels, where)
            )
        require_decided(left)
        return pattern, written, parameters

    @abstractmethod
    def _run(self, cypher: str, parameters: Any, **limits: Any) -> Rows:
        """Run a query that only reads, in a read transaction."""

    def query(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
    ) -> Rows:
        """Run a query that only reads, in a read transaction; see
        `CypherStore.query`.
        """
        self._require_query(timeout, max_rows, max_bytes)
        return self._run(
            cypher, parameters, timeout=timeout, max_rows=max_rows, max_bytes=max_bytes
        )

    def _require_query(self, timeout: float | None, *caps: int | None) -> None:
        """Raise an `InvalidInput` or a `QueryRefused` if free Cypher cannot be run
        within such limits, or at all.
        """
        if self._is_view:
            raise QueryRefused(
                "a view answers no free Cypher, which could read past it"
            )
        require_seconds("timeout", timeout, zero=True)
        for cap in caps:
            require_limit(cap)

    # writing

    @abstractmethod
    def _write(self, work: Callable[[Any], None], **written: Any) -> None:
        """Write in one transaction; `work` is given what has `upsert`, `delete` and
        `delete_edges`.
        """

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those of the same identity, all or none; see
        `GraphStore.upsert`.

        It is one transaction, whose size the memory of the database bounds: write
        millions of nodes in several calls.
        """
        self._require_writable()
        fresh, linked = distinct_nodes(nodes), distinct_edges(edges)
        if fresh or linked:
            self._write(
                methodcaller("upsert", fresh, linked),
                nodes=[*fresh.values()],
                edges=[*linked.values()],
            )

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away, and every edge that touches them; unknown ids are
        ignored.
        """
        self._require_writable()
        if gone := list(dict.fromkeys(require_ids(ids))):
            self._write(methodcaller("delete", gone), deletes=gone)

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Take edges away, known by source, relation, target and rows; those that are
        not there are ignored.
        """
        self._require_writable()
        if gone := distinct_edges(edges):
            self._write(methodcaller("delete_edges", gone), edges=[*gone.values()])


def _heaviest_fitting(
    edges: list[Edge],
    graph: Any,
    anchors: list[str],
    where: Where,
    direction: str,
    limit: int | None,
    block: int | None,
) -> tuple[list[Edge], bool]:
    """Return the heaviest edges of each anchor whose other end satisfies a condition.

    Of each anchor at most `block` edges were read, the heaviest; the second result says
    whether no more need be.
    """
    touching: dict[str, dict[int, list[str]]] = {anchor: {} for anchor in anchors}
    for place, edge in enumerate(edges):
        if direction != "in" and edge.source in touching:
            touching[edge.source].setdefault(place, []).append(edge.target)
        if direction != "out" and edge.target in touching:
            touching[edge.target].setdefault(place, []).append(edge.source)
    ids = list({end for edge in edges for end in (edge.source, edge.target)})
    fitting = {node.id for node in graph.get(ids).values() if where.matches(node)}
    chosen: set[int] = set()
    enough = True
    for others in touching.values():
        # an edge to another anchor may have been read as one of that
        heaviest = sorted(others, key=lambda place: (-edges[place].weight, place))
        heaviest = heaviest[:block]
        kept = [place for place in heaviest if not fitting.isdisjoint(others[place])]
        chosen.update(kept[:limit])
        complete = block is None or len(heaviest) < block
        enough = enough and (complete or (limit is not None and len(kept) >= limit))
    return [edges[place] for place in sorted(chosen)], enough


def condition(labels: Collection[str] | None, where: WhereLike) -> Where | None:
    """Return the condition of bearing one of some labels, and another."""
    wanted, other = require_names("labels", labels), Where.parse(where)
    return (
        other if wanted is None else both(Where("$in", "label", tuple(wanted)), other)
    )


def distinct_nodes(nodes: Iterable[Node]) -> dict[str, Node]:
    """Return nodes by id; an `InvalidInput` names one that is malformed, or an id that
    comes twice.
    """
    found: dict[str, Node] = {}
    for node in checked_nodes(nodes):
        require_properties(node.properties, f"node {node.id!r}")
        if node.id in found:
            raise InvalidInput(f"node {node.id!r}: the id comes twice")
        found[node.id] = node
    return found


def distinct_edges(edges: Iterable[Edge]) -> dict[EdgeKey, Edge]:
    """Return edges by what identifies them, the last of each; an `InvalidInput` names
    one that is malformed.
    """
    return {edge.identity: edge for edge in edges if require_edge(edge)}

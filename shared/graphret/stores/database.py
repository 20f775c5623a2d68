"""The base of stores in databases: views, argument checks, and writes with indexes."""

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

#: Edges of a node that are read first if there is a limit and the database cannot
#: decide the condition; if too few of them fit, four times as many are read.
FIRST_READ = 1_000


class DatabaseStore(AttachedIndexes, GraphStore, ABC):
    """A `CypherStore` in a database; subclasses define reads, writes and queries.

    A view is a copy with a condition, the scope: it cannot be written to, does not run
    Cypher and closes nothing.
    """

    _scope: Where | None = None
    _schema: GraphSchema | None = None

    @abstractmethod
    def close(self) -> None:
        """Close the database, unless this is a view; a second call does nothing."""

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
        """Return another store on the same database, without attached indexes."""
        other = object.__new__(type(self))
        other.__dict__ |= {
            **self.__dict__,
            "_followers": (),
            "_schema": None,
            **changed,
        }
        return other

    def view(self, where: WhereLike) -> Self:
        """Return a view of the nodes that satisfy `where`, for reading without Cypher.

        Raises
        ------
        InvalidInput
            If the database cannot decide the condition by itself.
        """
        view = self._copy(_scope=both(self._scope, Where.parse(where)), _is_view=True)
        with view._reading():
            return view

    @property
    def restriction(self) -> Where | None:
        """The condition of a view; `None` if this is not a view."""
        return self._scope

    # reading

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Any]:
        """Yield the graph to one call, with `get`, `neighbors` and so on."""

    @abstractmethod
    def _nodes(self, where: Where | None) -> Iterator[list[Node]]:
        """Yield nodes in blocks, by id, as far as the database decides `where`."""

    @abstractmethod
    def _edges(self, relations: list[str] | None) -> Iterator[list[Edge]]:
        """Yield the edges of some relations, in blocks."""

    def count(self) -> tuple[int, int]:
        """Return the number of nodes and the number of edges."""
        with self._reading() as graph:
            return graph.count()  # type: ignore[no-any-return]

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for missing ones."""
        node_ids = require_ids(ids)
        with self._reading() as graph:
            by_id = graph.get(node_ids)
        return [by_id.get(node_id) for node_id in node_ids]

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
        anchors, end_condition, types = (
            require_ids(ids),
            condition(labels, where),
            require_names("relations", relations),
        )
        require_limit(limit)
        if not anchors or types == []:
            return []
        with self._reading() as graph:
            if (
                end_condition is None
                or graph.node_in_cypher("n", end_condition)[-1] is None
            ):
                return graph.neighbors(anchors, types, end_condition, direction, limit)  # type: ignore[no-any-return]
            block = None if limit is None else max(limit, FIRST_READ)
            while True:
                read = graph.neighbors(anchors, types, None, direction, block)
                fitting, enough = _heaviest_fitting(
                    read, graph, anchors, end_condition, direction, limit, block
                )
                if enough or block is None:
                    return fitting
                block *= 4

    def nodes(
        self, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> Iterator[list[Node]]:
        """Yield nodes with one of `labels` that satisfy `where`, in blocks, by id."""
        node_condition = condition(labels, where)
        blocks = (
            [
                node
                for node in block
                if node_condition is None or node_condition.matches(node)
            ]
            for block in self._nodes(node_condition)
        )
        return filter(None, blocks)

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Yield all edges, or those of some relations, once each, in blocks."""
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
            pattern, written, parameters, remaining = graph.node_in_cypher(
                variable, condition(labels, where)
            )
        require_decided(remaining)
        return pattern, written, parameters

    @abstractmethod
    def _run(self, cypher: str, parameters: Any, **limits: Any) -> Rows:
        """Run a read-only query in a read transaction."""

    def query(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
    ) -> Rows:
        """Run a read-only query in a read transaction; see `CypherStore.query`."""
        self._require_query(timeout, max_rows, max_bytes)
        return self._run(
            cypher, parameters, timeout=timeout, max_rows=max_rows, max_bytes=max_bytes
        )

    def _require_query(self, timeout: float | None, *caps: int | None) -> None:
        """Refuse a query on a view, or with malformed limits."""
        if self._is_view:
            raise QueryRefused(
                "a view does not run Cypher, because a query could read past it"
            )
        require_seconds("timeout", timeout, zero=True)
        for cap in caps:
            require_limit(cap)

    # writing

    @abstractmethod
    def _write(self, work: Callable[[Any], None], **written: Any) -> None:
        """Run `work` in one transaction; its argument has `upsert`, `delete` etc."""

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add or replace nodes and edges, all or none; see `GraphStore.upsert`.

        It is one transaction, which must fit into the memory of the database: write
        millions of nodes in several calls.
        """
        self._add("upsert", nodes, edges)

    def _add(self, step: str, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
        """Write checked nodes and edges by a step of a transaction: ``upsert`` etc."""
        self._require_writable()
        new_nodes, new_edges = distinct_nodes(nodes), distinct_edges(edges)
        if new_nodes or new_edges:
            self._write(
                methodcaller(step, new_nodes, new_edges),
                nodes=[*new_nodes.values()],
                edges=[*new_edges.values()],
            )

    def delete(self, ids: Iterable[str]) -> None:
        """Delete nodes and every edge that touches them; unknown ids are ignored."""
        self._require_writable()
        if node_ids := list(dict.fromkeys(require_ids(ids))):
            self._write(methodcaller("delete", node_ids), deletes=node_ids)

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Delete edges by source, relation, target and rows, if they exist."""
        self._require_writable()
        if by_key := distinct_edges(edges):
            self._write(methodcaller("delete_edges", by_key), edges=[*by_key.values()])


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

    The `block` heaviest edges of each anchor were read; the second result says whether
    that was enough.
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
    for far_ends in touching.values():
        # an edge between two anchors may have been read for the other one
        heaviest = sorted(far_ends, key=lambda place: (-edges[place].weight, place))
        heaviest = heaviest[:block]
        fitting_places = [
            place for place in heaviest if not fitting.isdisjoint(far_ends[place])
        ]
        chosen.update(fitting_places[:limit])
        complete = block is None or len(heaviest) < block
        enough = enough and (
            complete or (limit is not None and len(fitting_places) >= limit)
        )
    return [edges[place] for place in sorted(chosen)], enough


def condition(labels: Collection[str] | None, where: WhereLike) -> Where | None:
    """Return the condition of having one of some labels, joined with another."""
    label_names, parsed = require_names("labels", labels), Where.parse(where)
    return (
        parsed
        if label_names is None
        else both(Where("$in", "label", tuple(label_names)), parsed)
    )


def distinct_nodes(nodes: Iterable[Node]) -> dict[str, Node]:
    """Return nodes by id; refuse a malformed node or a duplicated id."""
    by_id: dict[str, Node] = {}
    for node in checked_nodes(nodes):
        require_properties(node.properties, f"node {node.id!r}")
        if node.id in by_id:
            raise InvalidInput(f"node {node.id!r}: expected distinct ids, got it twice")
        by_id[node.id] = node
    return by_id


def distinct_edges(edges: Iterable[Edge]) -> dict[EdgeKey, Edge]:
    """Return edges by identity, the last of each; refuse a malformed one."""
    return {edge.identity: edge for edge in edges if require_edge(edge)}

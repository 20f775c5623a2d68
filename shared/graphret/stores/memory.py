"""`MemoryStore`: a graph in compressed sparse rows over integer positions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphret import storage
from graphret.columns import Strings
from graphret.contracts import Lock
from graphret.edges import NO_PART, EdgeTable
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.schema import GraphSchema
from graphret.stores.attached import AttachedIndexes
from graphret.stores.base import require_direction, require_ids, require_limit, require_names
from graphret.stores.summary import graph_schema
from graphret.types import PART_KEYS, Edge, Node
from graphret.where import Where, WhereLike

KIND = "graph"
BLOCK = 10_000


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and the edges among them, never changed once made."""

    nodes: NodeTable
    edges: EdgeTable

    def induced(self, where: WhereLike) -> Graph:
        """Return the graph of the nodes that satisfy `where` and the edges among them."""
        restricted = self.nodes.restricted(Where.parse(where))
        return self if restricted is None else Graph(restricted[0], self.edges.induced(restricted[1]))


class MemoryStore(AttachedIndexes):
    """A `GraphStore` in the memory of this process; a saved one is opened by memory map.

    Reads see one state of the graph; a write makes the next state and swaps it in. A write copies the columns of the
    graph and reads none of them but for the rows that it touches: give it batches. A tuple among properties comes back
    as a list.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = graph or Graph(NodeTable.of([]), EdgeTable.empty(0))
        self._writing = Lock()
        self._schema: tuple[Graph, GraphSchema] | None = None

    @classmethod
    def of(cls, nodes: Iterable[Node], edges: Iterable[Edge] = ()) -> MemoryStore:
        """Make a store of nodes and edges."""
        table = NodeTable.of(nodes)
        return cls(Graph(table, EdgeTable.of(table, edges)))

    @classmethod
    def from_arrays(
        cls,
        ids: Strings | Sequence[str],
        *,
        source: ArrayLike = (),
        target: ArrayLike = (),
        relation: ArrayLike | None = None,
        relations: Sequence[str] = ("RELATED",),
        weight: ArrayLike | None = None,
        edge_properties: Sequence[Mapping[str, Any]] | None = None,
        **nodes: Any,
    ) -> MemoryStore:
        """Make a store of columns, with no object for each node or edge; they may come in any order.

        Of edges that are equal but for weight and properties, the last is kept.

        Parameters
        ----------
        ids, nodes
            The ids of the ``n`` nodes, and the other columns that `NodeTable.build` takes.
        source, target, relation
            For each of the ``m`` edges the places of its ends in `ids`, and of its relation in `relations`, ``(m,)``.
        weight, edge_properties
            One for each edge, ``source_row`` and ``target_row`` among the latter; the weight is 1 where left out.

        Raises
        ------
        InvalidInput
            When a column of nodes is malformed, or an edge lacks an end.
        """
        table, positions = NodeTable.build(ids, **nodes)
        first, second = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
        m, bounds = len(first), (len(table), len(table), len(relations))
        codes = np.zeros(m, np.int64) if relation is None else np.asarray(relation, dtype=np.int64)
        weights = np.ones(m) if weight is None else np.asarray(weight, dtype=np.float64)
        known = [{}] * m if edge_properties is None else edge_properties
        places = zip((first, second, codes), bounds, strict=True)
        inside = all(0 <= column.min() <= column.max() < n for column, n in places if len(column))
        if {len(second), len(codes), len(weights), len(known)} != {m} or not inside or not np.isfinite(weights).all():
            raise InvalidInput("edges: places of both ends and of relations, and finite weights, are expected of each")
        first_row, second_row = (np.asarray([own.get(key, NO_PART) for own in known]) for key in PART_KEYS)
        edges = EdgeTable.build(
            len(table),
            positions[first],
            positions[second],
            codes,
            relations,
            weights,
            first_row,
            second_row,
            [{k: v for k, v in own.items() if k not in PART_KEYS} for own in known] if any(known) else None,
        )
        return cls(Graph(table, edges))

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are."""
        graph = self.graph
        return len(graph.nodes), len(graph.edges)

    def schema(self) -> GraphSchema:
        """Return labels and triples with their counts, and properties; see `graph_schema`."""
        graph, known = self.graph, self._schema
        if known is None or known[0] is not graph:
            self._schema = known = graph, graph_schema(graph.nodes, graph.edges)
        return known[1]

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here."""
        nodes = self.graph.nodes
        found = nodes.find(require_ids(ids))
        there = iter(nodes.at(found[found >= 0]))
        return [next(there) if i >= 0 else None for i in found.tolist()]

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
        require_limit(limit)
        nodes, edges = self.graph.nodes, self.graph.edges
        anchors = np.unique(nodes.find(require_ids(ids)))
        anchors = anchors[anchors >= 0]
        none = np.empty(0, dtype=np.int64)
        leaving = edges.leaving(anchors) if direction != "in" else none
        entering = edges.entering(anchors) if direction != "out" else none
        if direction == "both":  # a loop counts once
            entering = entering[edges.source[entering] != edges.target[entering]]
        edge = np.concatenate([leaving, entering])
        anchor = np.concatenate([edges.source[leaving], edges.target[entering]])
        other = np.concatenate([edges.target[leaving], edges.source[entering]])
        keep = np.ones(len(edge), dtype=bool)
        of_relation = edges.relation_mask(require_names("relations", relations))
        if of_relation is not None and len(edges.relations):
            keep &= of_relation[edges.relation[edge]]
        fits = nodes.fits(other, Where.parse(where), require_names("labels", labels))
        if fits is not None:
            keep &= fits
        edge, anchor = edge[keep], anchor[keep]
        if limit is not None:
            # For each anchor its edges, the heaviest first, then in their order.
            order = np.lexsort((edge, -edges.weight[edge], anchor))
            anchor = anchor[order]
            edge = edge[order[np.arange(len(order)) - np.searchsorted(anchor, anchor) < limit]]
        edge.sort()
        return edges.at(edge[np.diff(edge, prepend=-1) > 0], nodes.ids)  # one between two of the nodes came twice

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those of the same identity; an edge's ends must exist."""
        self._require_writable()
        listed, fresh_edges = list(nodes), list(edges)
        fresh = NodeTable.of(listed)
        with self._writing:
            table, kept = self.graph.nodes, self.graph.edges
            if len(fresh):
                before = len(table)
                table, moved = table.merged(fresh)
                if len(table) > before:
                    kept = kept.moved(len(table), moved)
            if fresh_edges:
                kept = kept.merged(EdgeTable.of(table, fresh_edges))
            self._adopt(Graph(table, kept), nodes=listed, edges=fresh_edges)

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away, and every edge that touches them; unknown ids are ignored."""
        self._require_writable()
        with self._writing:
            nodes, listed = self.graph.nodes, require_ids(ids)
            positions = _without(len(nodes), nodes.find(listed))
            if len(positions) < len(nodes):
                self._adopt(Graph(nodes.take(positions), self.graph.edges.induced(positions)), deletes=listed)

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Take edges away, known by source, relation, target and rows; those that are not here are ignored."""
        self._require_writable()
        listed = list(edges)
        with self._writing:
            graph = self.graph
            positions = _without(len(graph.edges), graph.edges.find(graph.nodes, listed))
            if len(positions) < len(graph.edges):
                self._adopt(Graph(graph.nodes, graph.edges.take(positions)), edges=listed)

    def _adopt(self, graph: Graph, **written: Sequence[Any]) -> None:
        with self.followed(**written) as stage:
            stage(MemoryStore(graph))
            self.graph = graph

    def nodes(self, labels: Collection[str] | None = None, where: WhereLike = None) -> Iterator[list[Node]]:
        """Go through all nodes, or those that bear one of `labels` and satisfy `where`, in blocks, by id."""
        nodes = self.graph.nodes
        mask = nodes.mask(Where.parse(where), require_names("labels", labels))
        positions = np.arange(len(nodes)) if mask is None else np.flatnonzero(mask)
        return (nodes.at(positions[i : i + BLOCK]) for i in range(0, len(positions), BLOCK))

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Go through all edges, or those of some relations, in blocks, each edge once."""
        graph = self.graph
        mask = graph.edges.relation_mask(require_names("relations", relations))
        positions = np.arange(len(graph.edges)) if mask is None else np.flatnonzero(mask[graph.edges.relation])
        return (graph.edges.at(positions[i : i + BLOCK], graph.nodes.ids) for i in range(0, len(positions), BLOCK))

    def view(self, where: WhereLike) -> MemoryStore:
        """Return a store of only the nodes that now satisfy `where` and the edges among them; it cannot be changed."""
        view = MemoryStore(self.graph.induced(where))
        view._is_view = True
        return view

    @property
    def restriction(self) -> Where | None:
        """The condition of the view that this is; `None` where it is none."""
        return self.graph.nodes.restriction

    def save(self, folder: str | Path) -> None:
        """Write the graph to a folder, in whole or not at all."""
        storage.save(folder, graph_parts(self.graph), kind=KIND)

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = False) -> MemoryStore:
        """Open a saved graph by memory map.

        Parameters
        ----------
        verify
            Whether to compare the checksum of every file, which reads each once. Without it the sizes of all files are
            compared, and the checksums of the smallest, up to `storage.QUICK_BYTES` in all: every one in a graph that
            is not large, while a large one opens within a second. `storage.verify` and ``graphret inspect`` check all.
        """
        return cls(graph_from_bundle(storage.load(folder, kind=KIND, verify=verify)))


def graph_parts(graph: Graph) -> storage.Parts:
    """The graph as it is saved."""
    parts = storage.Parts()
    parts.add("nodes", graph.nodes.parts())
    parts.add("edges", graph.edges.parts())
    return parts


def graph_from_bundle(bundle: storage.Bundle) -> Graph:
    """Open a saved graph."""
    return Graph(NodeTable.from_bundle(bundle.sub("nodes")), EdgeTable.from_bundle(bundle.sub("edges")))


def _without(n: int, gone: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.delete(np.arange(n), gone[gone >= 0])

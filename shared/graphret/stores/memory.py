"""`MemoryStore`: a graph in compressed sparse rows over integer positions."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret import storage
from graphret._checked import PART_KEYS, checked_edges
from graphret.edges import NO_PART, EdgeTable
from graphret.errors import StoreError
from graphret.nodes import NodeTable
from graphret.schema import GraphSchema
from graphret.storage import Records, Strings
from graphret.stores.arrays import checked_edge_columns
from graphret.stores.base import require_direction, require_ids, require_limit, require_names
from graphret.stores.following import Following
from graphret.stores.neighbors import neighbor_edges
from graphret.stores.summary import graph_schema
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike

KIND = "graph"
VERSION = 1
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


class MemoryStore(Following):
    """A `GraphStore` in the memory of this process; a saved one is opened by memory map.

    Reads see one state of the graph; a write makes the next state and swaps it in. A write copies the columns of the
    graph and reads none of them but for the rows that it touches: give it batches.

    Weights are kept in single precision (about seven digits): one is rounded when it is written, so that `limit` may
    rank two edges as equal that differ beyond, and one of 3.4e38 or more is refused. A tuple among properties comes
    back as a list; all else as it was.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = graph or Graph(NodeTable.of([]), EdgeTable.empty(0))
        self._writing = threading.Lock()
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
        names: Strings | Sequence[str] | None = None,
        texts: Strings | Sequence[str] | None = None,
        labels: NDArray[Any] | None = None,
        label_sets: Sequence[tuple[str, ...]] = (("Node",),),
        properties: Records | Sequence[Mapping[str, Any]] | None = None,
        source: NDArray[Any] | Sequence[int] = (),
        target: NDArray[Any] | Sequence[int] = (),
        relation: NDArray[Any] | Sequence[int] | None = None,
        relations: Sequence[str] = ("RELATED",),
        weight: NDArray[Any] | Sequence[float] | None = None,
        source_row: NDArray[Any] | None = None,
        target_row: NDArray[Any] | None = None,
        edge_properties: Records | Sequence[Mapping[str, Any]] | None = None,
        double: bool = False,
    ) -> MemoryStore:
        """Make a store of columns, with no object for each node or edge; they may come in any order.

        Of edges that are equal but for weight and properties, the last is kept.

        Parameters
        ----------
        ids, names, texts, properties
            One for each of the ``n`` nodes; `Records` are taken as they are, other properties are checked.
        labels
            For each node the position of its tuple of labels in `label_sets`, ``(n,)``.
        source, target
            For each of the ``m`` edges the places of its ends in `ids`, ``(m,)``.
        relation
            For each edge the position of its relation in `relations`, ``(m,)``.
        weight
            ``(m,)``; 1 where left out.
        source_row, target_row
            The rows that an edge is about, -1 for none, ``(m,)``.
        edge_properties
            One for each edge. The rows may be among them, unless they are `Records`.
        double
            Keep weights in double precision: for a graph that is on its way to a database, which keeps it too.

        Raises
        ------
        InvalidInput
            Names the column and the row of what is malformed: columns of different length, an id that is empty or
            comes twice, an edge to a place that there is not, a weight that is not finite.
        """
        table, positions = NodeTable.build(ids, names, texts, labels, label_sets, properties)
        given = checked_edge_columns(
            len(table), source, target, relation, relations, weight, source_row, target_row, edge_properties, double
        )
        edges = EdgeTable.build(
            len(table),
            positions[given.source],
            positions[given.target],
            given.relation,
            list(relations),
            given.weight,
            given.source_row,
            given.target_row,
            given.properties,
            distinct=True,
            double=double,
        )
        return cls(Graph(table, edges))

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are."""
        graph = self.graph
        return len(graph.nodes), len(graph.edges)

    def schema(self) -> GraphSchema:
        """Return labels and triples with their counts, and properties, the last two sampled where the graph is large.

        An edge counts under every pair of the labels of its ends. A graph is large where more than 2,000 nodes have
        the same labels, or more than 2,000 edges one relation (10,000 of either in all): the properties of so many are
        read. Triples are counted exactly up to ten million edges (in 0.3 s); but only to half a million where the sets
        of labels, squared, times the relations are more than 4,194,304, and where there are no more than 250,000
        triples. Beyond that they are estimated from edges drawn at random, the same each time: a million, and of more
        kinds 50,000, in equal parts from each relation. Labels are always counted exactly, no name of a label or
        a relation is missing, and the schema says what was read in part.
        """
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
        graph = self.graph
        found = neighbor_edges(
            graph.nodes,
            graph.edges,
            require_ids(ids),
            require_names("relations", relations),
            require_names("labels", labels),
            Where.parse(where),
            require_direction(direction),
            require_limit(limit),
        )
        return graph.edges.at(found, graph.nodes.ids)

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
            gone = nodes.find(listed)
            keep = np.ones(len(nodes), dtype=bool)
            keep[gone[gone >= 0]] = False
            if keep.all():
                return
            positions = np.flatnonzero(keep)
            self._adopt(Graph(nodes.take(positions), self.graph.edges.induced(positions)), deletes=listed)

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Take edges away, known by source, relation, target and rows; those that are not here are ignored."""
        self._require_writable()
        listed = list(checked_edges(edges))
        with self._writing:
            graph = self.graph
            keep = np.ones(len(graph.edges), dtype=bool)
            keep[_places(graph, listed)] = False
            if not keep.all():
                self._adopt(Graph(graph.nodes, graph.edges.take(np.flatnonzero(keep))), edges=listed)

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

    def _require_writable(self) -> None:
        if self._is_view:
            raise StoreError("a view of a store cannot be written to; write to the store itself")

    def save(self, folder: str | Path) -> None:
        """Write the graph to a folder, in whole or not at all."""
        storage.save(folder, graph_parts(self.graph), kind=KIND, version=VERSION)

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool | None = None) -> MemoryStore:
        """Open a saved graph by memory map.

        Parameters
        ----------
        verify
            Whether to compare the checksum of every file, which reads each once. Without it the sizes of all files are
            compared, and the checksums of the smallest, up to `storage.QUICK_BYTES` in all: every one in a graph that
            is not large, while a large one opens within a second. `storage.verify` and ``graphret inspect`` check all.
        """
        return cls(graph_from_bundle(storage.load(folder, kind=KIND, version=VERSION, verify=verify)))


def graph_parts(graph: Graph) -> storage.Parts:
    """The graph as it is saved."""
    parts = storage.Parts()
    parts.add("nodes", graph.nodes.parts())
    parts.add("edges", graph.edges.parts())
    return parts


def graph_from_bundle(bundle: storage.Bundle) -> Graph:
    """Open a saved graph."""
    return Graph(NodeTable.from_bundle(bundle.sub("nodes")), EdgeTable.from_bundle(bundle.sub("edges")))


def _places(graph: Graph, listed: Sequence[Edge]) -> NDArray[np.int64]:
    """The positions of edges in a graph, found by what identifies them; those that are not there are left out."""
    nodes, edges = graph.nodes, graph.edges
    code = {name: i for i, name in enumerate(edges.relations)}
    sources, targets = nodes.find([e.source for e in listed]), nodes.find([e.target for e in listed])
    rows = ([e.properties.get(key, NO_PART) for e in listed] for key in PART_KEYS)
    wanted = set(
        zip(sources.tolist(), targets.tolist(), [code.get(e.relation, -1) for e in listed], *rows, strict=True)
    )
    near = edges.leaving(np.unique(sources[sources >= 0]))
    columns = edges.source, edges.target, edges.relation, edges.source_part, edges.target_part
    there = [key in wanted for key in zip(*(column[near].tolist() for column in columns), strict=True)]
    return np.asarray(near[np.asarray(there, dtype=bool)])

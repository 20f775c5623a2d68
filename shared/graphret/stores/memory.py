"""`MemoryStore`: a graph in compressed sparse rows over integer positions."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphret import storage
from graphret.edges import EdgeTable
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.schema import GraphSchema
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


class MemoryStore:
    """A `GraphStore` in the memory of this process; a saved one is opened by memory map.

    Reads see one state of the graph; a write makes the next state and swaps it in.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = graph or Graph(NodeTable.of([]), EdgeTable.empty(0))
        self._writing = threading.Lock()

    @classmethod
    def of(cls, nodes: Iterable[Node], edges: Iterable[Edge] = ()) -> MemoryStore:
        """Make a store of nodes and edges."""
        table = NodeTable.of(nodes)
        return cls(Graph(table, EdgeTable.of(table, edges)))

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are."""
        return len(self.graph.nodes), len(self.graph.edges)

    def schema(self) -> GraphSchema:
        """Return the labels and relations with their counts; an edge counts under the primary labels of its ends."""
        nodes, edges = self.graph.nodes, self.graph.edges
        primary = [labels[0] if labels else "" for labels in nodes.label_sets]
        triples = np.stack([nodes.labels[edges.source], edges.relation, nodes.labels[edges.target]])
        relations: Counter[tuple[str, str, str]] = Counter()
        for (source, relation, target), n in zip(*_unique_columns(triples), strict=True):
            relations[primary[source], edges.relations[relation], primary[target]] += n
        return GraphSchema(dict(sorted(nodes.label_counts().items())), dict(sorted(relations.items())))

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here."""
        nodes = self.graph.nodes
        return [nodes[i] if i >= 0 else None for i in nodes.find(ids).tolist()]

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
        nodes, edges = self.graph.nodes, self.graph.edges
        if limit is not None and limit < 1:
            raise InvalidInput(f"limit: a whole number of at least 1 is expected, not {limit!r}")
        anchors = nodes.find(dict.fromkeys(ids))
        anchors = anchors[anchors >= 0]
        found = edges.incident(anchors, direction)
        of_relation = edges.relation_mask(relations)
        if of_relation is not None:
            found = found[of_relation[edges.relation[found]]] if len(edges.relations) else found
        fits = nodes.mask(Where.parse(where), labels)
        is_anchor = np.zeros(len(nodes), dtype=bool)
        is_anchor[anchors] = True
        leaves = is_anchor[edges.source[found]] if direction != "in" else np.zeros(len(found), dtype=bool)
        enters = is_anchor[edges.target[found]] if direction != "out" else np.zeros(len(found), dtype=bool)
        if fits is not None:
            leaves &= fits[edges.target[found]]
            enters &= fits[edges.source[found]]
            kept = leaves | enters
            found, leaves, enters = found[kept], leaves[kept], enters[kept]
        if limit is not None:
            order = np.argsort(-edges.weight[found], kind="stable")
            chosen = np.zeros(len(found), dtype=bool)
            taken: Counter[int] = Counter()
            for i in order.tolist():
                ends = ([int(edges.source[found[i]])] if leaves[i] else []) + (
                    [int(edges.target[found[i]])] if enters[i] else []
                )
                if any(taken[end] < limit for end in ends):
                    chosen[i] = True
                    taken.update(ends)
            found = found[chosen]
        return [edges.edge(i, nodes.ids) for i in found.tolist()]

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those of the same identity; an edge's ends must exist."""
        fresh_nodes, fresh_edges = list(nodes), list(edges)
        with self._writing:
            old = self.graph
            table = old.nodes.changed(fresh_nodes) if fresh_nodes else old.nodes
            self.graph = Graph(table, EdgeTable.of(table, [*old.edges.edges(old.nodes.ids), *fresh_edges]))

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away, and every edge that touches them; unknown ids are ignored."""
        with self._writing:
            nodes = self.graph.nodes
            keep = np.ones(len(nodes), dtype=bool)
            gone = nodes.find(ids)
            keep[gone[gone >= 0]] = False
            positions = np.flatnonzero(keep)
            self.graph = Graph(nodes.take(positions), self.graph.edges.induced(positions))

    def nodes(self, labels: Collection[str] | None = None, where: WhereLike = None) -> Iterator[list[Node]]:
        """Go through all nodes, or those that bear one of `labels` and satisfy `where`, in blocks, by id."""
        nodes = self.graph.nodes
        mask = nodes.mask(Where.parse(where), labels)
        positions = np.arange(len(nodes)) if mask is None else np.flatnonzero(mask)
        return (nodes.at(positions[i : i + BLOCK]) for i in range(0, len(positions), BLOCK))

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Go through all edges, or those of some relations, in blocks, each edge once."""
        graph = self.graph
        mask = graph.edges.relation_mask(relations)
        positions = np.arange(len(graph.edges)) if mask is None else np.flatnonzero(mask[graph.edges.relation])
        return (graph.edges.at(positions[i : i + BLOCK], graph.nodes.ids) for i in range(0, len(positions), BLOCK))

    def view(self, where: WhereLike) -> MemoryStore:
        """Return a store of only the nodes that satisfy `where` and the edges among them."""
        return MemoryStore(self.graph.induced(where))

    def save(self, folder: str | Path) -> None:
        """Write the graph to a folder, in whole or not at all."""
        storage.save(folder, graph_parts(self.graph), kind=KIND, version=VERSION)

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = True) -> MemoryStore:
        """Open a saved graph by memory map, checking every checksum unless told not to."""
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


def _unique_columns(columns: np.ndarray) -> tuple[list[list[int]], list[int]]:
    if not columns.shape[1]:
        return [], []
    values, counts = np.unique(columns, axis=1, return_counts=True)
    return values.T.tolist(), counts.tolist()

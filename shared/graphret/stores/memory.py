"""`MemoryStore`: a graph in compressed sparse rows over integer positions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret import storage
from graphret.contracts import Lock
from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.numeric import unique
from graphret.schema import GraphSchema, SchemaBuilder
from graphret.stores.attached import AttachedIndexes
from graphret.stores.base import (
    GraphStore,
    require_direction,
    require_ids,
    require_limit,
    require_names,
)
from graphret.stores.waiting import Waiting
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike

KIND = "graph"
BLOCK = 10_000
#: The properties are read of at most so many nodes of each set of labels, and edges of
#: each relation, and of all.
SAMPLE, READ = 2_000, 10_000
#: What a query of a database that graphret makes of a graph may read beside the
#: properties of a node, and of an edge.
_NODE_FIELDS, _EDGE_FIELDS = (
    ("id", "name", "text"),
    ("weight", "source_row", "target_row"),
)


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and the edges among them, never changed once made."""

    nodes: NodeTable
    edges: EdgeTable

    def induced(self, where: WhereLike) -> Graph:
        """Return the graph of the nodes that satisfy `where`, and of their edges."""
        restricted = self.nodes.restricted(Where.parse(where))
        return (
            self
            if restricted is None
            else Graph(restricted[0], self.edges.induced(restricted[1]))
        )

    def relation_counts(self) -> dict[str, int]:
        """Count the edges of each relation that there is."""
        relations = self.edges.relations
        counts = np.bincount(self.edges.relation, minlength=len(relations)).tolist()
        return {name: n for name, n in zip(relations, counts, strict=True) if n}


def fetch_graph(store: GraphStore, ids: Iterable[str], edges: Iterable[Edge]) -> Graph:
    """Read nodes from a store, and join them by those of the edges that they have."""
    node_ids = list(dict.fromkeys(ids))
    nodes = NodeTable.of(node for node in store.get(node_ids) if node is not None)
    fetched_ids = set(nodes.ids)
    joined = (
        edge
        for edge in edges
        if edge.source in fetched_ids and edge.target in fetched_ids
    )
    return Graph(nodes, EdgeTable.of(nodes, joined))


class MemoryStore(AttachedIndexes, GraphStore):
    """A `GraphStore` in the memory of this process; a saved one is memory-mapped.

    Reads see one state of the graph. What is upserted is checked and waits; the next
    read of anything but nodes by their ids puts it into the columns of the graph, which
    copies these. So writes that follow each other cost what they write. An attached
    index changes with each write: give it batches. A tuple among properties comes back
    as a list.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self._graph = graph or Graph(NodeTable.of([]), EdgeTable.empty(0))
        self._waiting = Waiting()
        self._writing = Lock()
        self._schema: tuple[Graph, GraphSchema] | None = None

    @classmethod
    def of(cls, nodes: Iterable[Node], edges: Iterable[Edge] = ()) -> MemoryStore:
        """Make a store of nodes and edges."""
        table = NodeTable.of(nodes)
        return cls(Graph(table, EdgeTable.of(table, edges)))

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are."""
        graph = self.graph
        return len(graph.nodes), len(graph.edges)

    def schema(self) -> GraphSchema:
        """Return labels, triples and properties, as `graph_schema` describes them."""
        graph, cached = self.graph, self._schema
        if cached is None or cached[0] is not graph:
            self._schema = cached = graph, graph_schema(graph.nodes, graph.edges)
        return cached[1]

    @property
    def graph(self) -> Graph:
        """The graph as it is now."""
        if self._waiting:
            with self._writing:
                self._put_in()
        return self._graph

    def _put_in(self) -> None:
        """Put what waits into the graph; the lock is held."""
        before = self._graph
        self._graph = Graph(*self._waiting.put_into(before.nodes, before.edges))
        self._waiting = Waiting()

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here."""
        listed = require_ids(ids)
        with self._writing:
            graph = self._graph
            fresh = [self._waiting.nodes.get(node_id) for node_id in listed]
        stored = graph.nodes.get(listed)
        return [new or old for new, old in zip(fresh, stored, strict=True)]

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
        anchors = unique(nodes.find(require_ids(ids)))
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
            if (
                len(anchors) == 1 and len(edge) > limit
            ):  # most edges of a hub need not be put in order
                heavy = (
                    edges.weight[edge]
                    >= np.partition(edges.weight[edge], -limit)[-limit]
                )
                edge, anchor = edge[heavy], anchor[heavy]
            # For each anchor its edges, the heaviest first, then in their order.
            order = np.lexsort((edge, -edges.weight[edge], anchor))
            anchor = anchor[order]
            edge = edge[
                order[np.arange(len(order)) - np.searchsorted(anchor, anchor) < limit]
            ]
        edge.sort()
        return edges.at(
            edge[np.diff(edge, prepend=-1) > 0], nodes.ids
        )  # one between two of the nodes came twice

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those with the same identity.

        Both ends of an edge must exist.
        """
        self._require_writable()
        listed, fresh_edges = list(nodes), list(edges)
        with self._writing:
            if self._followers:
                graph, written = self.graph, Waiting()
                written.add(graph.nodes, listed, fresh_edges)
                after = Graph(*written.put_into(graph.nodes, graph.edges))
                self._adopt(after, nodes=listed, edges=fresh_edges)
                return
            graph = self._graph
            self._waiting.add(graph.nodes, listed, fresh_edges)
            if self._waiting.are_many(graph.nodes, graph.edges):
                self._put_in()

    def delete(self, ids: Iterable[str]) -> None:
        """Delete nodes and every edge that touches them; unknown ids are ignored."""
        self._require_writable()
        with self._writing:
            nodes, listed = self.graph.nodes, require_ids(ids)
            positions = _without(len(nodes), nodes.find(listed))
            if len(positions) < len(nodes):
                self._adopt(
                    Graph(nodes.take(positions), self.graph.edges.induced(positions)),
                    deletes=listed,
                )

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Delete edges by source, relation, target and rows; ignore unknown ones."""
        self._require_writable()
        listed = list(edges)
        with self._writing:
            graph = self.graph
            positions = _without(
                len(graph.edges), graph.edges.find(graph.nodes, listed)
            )
            if len(positions) < len(graph.edges):
                self._adopt(
                    Graph(graph.nodes, graph.edges.take(positions)), edges=listed
                )

    def _adopt(self, graph: Graph, **written: Sequence[Any]) -> None:
        with self.followed(**written) as stage:
            stage(MemoryStore(graph))
            self._graph = graph

    def nodes(
        self, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> Iterator[list[Node]]:
        """Yield blocks of nodes by id, optionally with some labels or a condition."""
        nodes = self.graph.nodes
        mask = nodes.mask(Where.parse(where), require_names("labels", labels))
        positions = np.arange(len(nodes)) if mask is None else np.flatnonzero(mask)
        return (
            nodes.at(positions[i : i + BLOCK]) for i in range(0, len(positions), BLOCK)
        )

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Yield blocks of edges, optionally of some relations, each edge once."""
        graph = self.graph
        mask = graph.edges.relation_mask(require_names("relations", relations))
        positions = (
            np.arange(len(graph.edges))
            if mask is None
            else np.flatnonzero(mask[graph.edges.relation])
        )
        return (
            graph.edges.at(positions[i : i + BLOCK], graph.nodes.ids)
            for i in range(0, len(positions), BLOCK)
        )

    def view(self, where: WhereLike) -> MemoryStore:
        """Return a read-only store of the nodes that satisfy `where` now.

        It has the edges among them.
        """
        view = MemoryStore(self.graph.induced(where))
        view._is_view = True
        return view

    def local_graph(self) -> Graph:
        """Return the graph as it is now."""
        return self.graph

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
            Whether to compare the checksum of every file. Without it all sizes are
            compared, and the checksums of the smallest files, up to
            `storage.QUICK_BYTES` in all; `storage.verify` and ``graphret inspect``
            check all.
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
    return Graph(
        NodeTable.from_bundle(bundle.sub("nodes")),
        EdgeTable.from_bundle(bundle.sub("edges")),
    )


def _without(n: int, gone: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.delete(np.arange(n), gone[gone >= 0])


def graph_schema(nodes: NodeTable, edges: EdgeTable) -> GraphSchema:
    """Return the schema of a graph.

    Labels and triples are counted exactly; an edge counts under every pair of the
    labels of its ends. Properties are read from a sample, the same each time, and the
    schema says which labels and relations were read in part.
    """
    builder = SchemaBuilder()
    labels_in_part: set[str] = set()
    relations_in_part: set[str] = set()
    for code, at, n in _samples(nodes.labels, len(nodes.label_sets)):
        labels, times = nodes.label_sets[code], round(n / len(at))
        builder.observe_nodes(
            [
                Node("-", labels, properties=properties)
                for properties in nodes.properties.take(at)
            ],
            times,
        )
        labels_in_part.update((labels or ("",)) if n > len(at) else ())
    for code, at, n in _samples(edges.relation, len(edges.relations)):
        relation, times = edges.relations[code], round(n / len(at))
        builder.observe_edges(
            [
                Edge("-", relation, "-", 1.0, properties)
                for properties in edges.properties.take(at)
            ],
            times=times,
        )
        relations_in_part.update([relation] if n > len(at) else [])
    label_counts = dict(nodes.label_counts())
    return builder.build(
        label_counts,
        _triples(nodes, edges),
        sampled_properties=labels_in_part,
        sampled_relation_properties=relations_in_part,
        columns=dict.fromkeys(label_counts, _NODE_FIELDS),
        relation_columns=dict.fromkeys(edges.relations, _EDGE_FIELDS),
    )


def _samples(
    codes: NDArray[np.int32], n_codes: int
) -> Iterator[tuple[int, NDArray[np.int64], int]]:
    """Yield each code with positions that have it, evenly spread, and its count."""
    most = min(SAMPLE, max(1, READ // max(1, n_codes)))
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes, minlength=n_codes)
    for code, those in enumerate(
        np.split(order, np.cumsum(counts)[:-1]) if n_codes else ()
    ):
        if n := len(those):
            yield code, those[np.arange(min(n, most)) * n // min(n, most)], n


def _triples(nodes: NodeTable, edges: EdgeTable) -> dict[tuple[str, str, str], int]:
    """Count edges by source label (or ""), relation and target label."""
    shape = len(nodes.label_sets), len(edges.relations), len(nodes.label_sets)
    kinds = (
        nodes.labels[edges.source].astype(np.int64) * shape[1] + edges.relation
    ) * shape[2]
    kinds += nodes.labels[edges.target]
    distinct_kinds, counts = np.unique(kinds, return_counts=True)
    triples: dict[tuple[str, str, str], int] = {}
    for kind, n in zip(distinct_kinds.tolist(), counts.tolist(), strict=True):
        source, relation, target = np.unravel_index(kind, shape)
        end_labels = (
            dict.fromkeys(nodes.label_sets[end] or ("",)) for end in (source, target)
        )
        for source_label, target_label in product(*end_labels):
            key = source_label, edges.relations[relation], target_label
            triples[key] = triples.get(key, 0) + n
    return dict(sorted(triples.items()))

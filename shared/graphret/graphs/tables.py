"""`GraphTables`: a graph in columns on its way from a source into a store, edges by integer positions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphret.types import Edge, Node

if TYPE_CHECKING:
    from graphret.graphs.places import Places

_NONE: Mapping[str, Any] = {}
_PART_KEYS = ("source_row", "target_row")


@dataclass(frozen=True, slots=True)
class GraphTables:
    """Nodes and edges in columns, checked: ids are distinct and every end of an edge is a node.

    Parameters
    ----------
    ids, names
        ``n`` strings each.
    texts
        ``n`` strings; `None` where no node has a text.
    labels
        For each node the position of its tuple of labels in `label_sets`, ``(n,)``.
    label_sets
        The distinct tuples of labels.
    properties
        ``n`` mappings of JSON values; `None` where no node has any.
    source, target
        Positions of the ends of each edge, ``(m,)``.
    relation
        Position of each edge's relation in `relations`, ``(m,)``.
    relations
        The names of the relations.
    weight
        ``(m,)``; `None` where all are 1.
    edge_properties
        ``m`` mappings of JSON values; `None` where no edge has any.
    merged
        How many edges were dropped, since a later one has the same identity (see `GraphStore`).
    remarks
        What was not read as it was meant to be, in words.
    node_places, edge_places
        Where each was read, for what is refused; `None` where that is not known.
    """

    ids: Sequence[str]
    names: Sequence[str]
    texts: Sequence[str] | None
    labels: NDArray[np.int32]
    label_sets: Sequence[tuple[str, ...]]
    properties: Sequence[Mapping[str, Any]] | None
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    relation: NDArray[np.int64]
    relations: Sequence[str]
    weight: NDArray[np.float64] | None = None
    edge_properties: Sequence[Mapping[str, Any]] | None = None
    merged: int = 0
    remarks: tuple[str, ...] = ()
    node_places: Places | None = None
    edge_places: Places | None = None

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are."""
        return len(self.ids), len(self.source)

    def label_counts(self) -> dict[str, int]:
        """How many nodes bear each label, by label."""
        counts: Counter[str] = Counter()
        of_set = np.bincount(self.labels, minlength=len(self.label_sets)).tolist()
        for labels, n in zip(self.label_sets, of_set, strict=True):
            counts.update(dict.fromkeys(labels, n))
        return dict(sorted(counts.items()))

    def relation_counts(self) -> dict[str, int]:
        """How many edges there are of each relation, by relation."""
        counts = np.bincount(self.relation, minlength=len(self.relations)).tolist()
        return {name: n for name, n in sorted(zip(self.relations, counts, strict=True)) if n}

    def nodes(self, size: int, start: int = 0) -> Iterator[list[Node]]:
        """Go through the nodes from a position on as objects, in blocks of `size`."""
        labels = [self.label_sets[code] for code in self.labels.tolist()]
        for first in range(start, len(self.ids), size):
            yield [
                Node(
                    self.ids[i],
                    labels[i],
                    self.names[i],
                    self.texts[i] if self.texts else "",
                    self.properties[i] if self.properties else _NONE,
                )
                for i in range(first, min(first + size, len(self.ids)))
            ]

    def edges(self, size: int, start: int = 0) -> Iterator[list[Edge]]:
        """Go through the edges from a position on as objects, in blocks of `size`."""
        ids, relations, properties = self.ids, self.relations, self.edge_properties
        for first in range(start, len(self.source), size):
            at = slice(first, first + size)
            source, target, relation = (column[at].tolist() for column in (self.source, self.target, self.relation))
            weight = [1.0] * len(source) if self.weight is None else self.weight[at].tolist()
            own = [_NONE] * len(source) if properties is None else properties[at]
            yield [
                Edge(ids[i], relations[r], ids[j], w, p)
                for i, r, j, w, p in zip(source, relation, target, weight, own, strict=True)
            ]

    def distinct(self) -> GraphTables:
        """Return the graph with one edge of each identity, the last; `merged` says how many went."""
        parts = [self._parts(key) for key in _PART_KEYS]
        keys = [key for key in (*parts, self.target, self.relation, self.source) if key is not None]
        order = np.lexsort([np.arange(len(self.source)), *keys])
        last = np.ones(len(order), dtype=bool)
        if len(order) > 1:
            last[:-1] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
        if last.all():
            return self
        kept = np.sort(order[last])
        own = self.edge_properties
        return replace(
            self,
            source=self.source[kept],
            target=self.target[kept],
            relation=self.relation[kept],
            weight=None if self.weight is None else self.weight[kept],
            edge_properties=None if own is None else [own[i] for i in kept.tolist()],
            merged=self.merged + int((~last).sum()),
            edge_places=self.edge_places and self.edge_places.taken(kept),
        )

    def grouped(self) -> GraphTables:
        """Return the graph with nodes of the same labels together, and edges of the same relation, else in order.

        A database takes a block of them in few statements.
        """
        nodes, edges = (np.argsort(column, kind="stable") for column in (self.labels, self.relation))
        place = np.empty(len(nodes), dtype=np.int64)
        place[nodes] = np.arange(len(nodes))

        def taken(column: Sequence[Any] | None, order: NDArray[np.int64]) -> Any:
            return None if column is None else [column[i] for i in order.tolist()]

        return replace(
            self,
            ids=taken(self.ids, nodes),
            names=taken(self.names, nodes),
            texts=taken(self.texts, nodes),
            labels=self.labels[nodes],
            properties=taken(self.properties, nodes),
            source=place[self.source[edges]],
            target=place[self.target[edges]],
            relation=self.relation[edges],
            weight=None if self.weight is None else self.weight[edges],
            edge_properties=taken(self.edge_properties, edges),
            node_places=self.node_places and self.node_places.taken(nodes),
            edge_places=self.edge_places and self.edge_places.taken(edges),
        )

    def _parts(self, key: str) -> NDArray[np.int64] | None:
        """Return the rows that edges are about, -1 for the whole node; `None` where none has any."""
        if self.edge_properties is None or not any(key in own for own in self.edge_properties):
            return None
        return np.asarray([own.get(key, -1) for own in self.edge_properties], dtype=np.int64)

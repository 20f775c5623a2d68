"""`EdgeTable`: the edges between the nodes of a table in columns, with adjacency, never changed once made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.storage import Bundle, Parts, Records, Strings
from graphret.types import Edge

#: A part of a node (the row of a table) that an edge does not single out.
NO_PART = -1
_PART_KEYS = ("source_row", "target_row")


class EdgeTable:
    """Edges by position, sorted by source, target, relation and parts.

    Parameters
    ----------
    n_nodes
        How many nodes there are; sources and targets are positions below it.
    source, target
        Positions of the nodes, ``(m,)``.
    relation
        Position of each edge's relation in `relations`, ``(m,)``.
    relations
        The names of the relations.
    weight
        ``(m,)``.
    source_part, target_part
        The part of the source and of the target that the edge is about, such as a row of a table segment, counted from
        0 within the node; `NO_PART` where it is about the whole node. ``(m,)``.
    properties
        What else is known of each edge, ``m`` JSON objects.
    """

    def __init__(
        self,
        n_nodes: int,
        source: NDArray[np.int32],
        target: NDArray[np.int32],
        relation: NDArray[np.int16],
        relations: Sequence[str],
        weight: NDArray[np.float32],
        source_part: NDArray[np.int32],
        target_part: NDArray[np.int32],
        properties: Records,
        *,
        adjacency: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None = None,
    ) -> None:
        self.n_nodes = n_nodes
        self.source = source
        self.target = target
        self.relation = relation
        self.relations = list(relations)
        self.weight = weight
        self.source_part = source_part
        self.target_part = target_part
        self.properties = properties
        self.out_indptr, self.in_indptr, self.in_order = adjacency or self._adjacency()

    @classmethod
    def empty(cls, n_nodes: int) -> EdgeTable:
        """A table with no edges."""
        none = np.empty(0, dtype=np.int32)
        return cls(n_nodes, none, none, none.astype(np.int16), [], none.astype(np.float32), none, none, Records.of([]))

    @classmethod
    def build(
        cls,
        n_nodes: int,
        source: NDArray[Any],
        target: NDArray[Any],
        relation: NDArray[Any],
        relations: Sequence[str],
        weight: NDArray[Any],
        source_part: NDArray[Any] | None = None,
        target_part: NDArray[Any] | None = None,
        properties: Sequence[Mapping[str, Any]] | None = None,
    ) -> EdgeTable:
        """Make a table of edges in any order; relations are renumbered in the order of their names."""
        names = sorted(set(relations))
        rank = np.asarray([names.index(name) for name in relations], dtype=np.int16)
        codes = rank[np.asarray(relation, dtype=np.int64)] if len(relations) else np.empty(0, np.int16)
        whole = np.full(len(source), NO_PART, dtype=np.int32)
        parts = [whole if part is None else np.asarray(part, dtype=np.int32) for part in (source_part, target_part)]
        order = np.lexsort((parts[1], parts[0], codes, target, source))
        chosen = Records.of({} for _ in order) if properties is None else Records.of(properties[int(i)] for i in order)
        return cls(
            n_nodes,
            np.asarray(source, dtype=np.int32)[order],
            np.asarray(target, dtype=np.int32)[order],
            codes[order],
            names,
            np.asarray(weight, dtype=np.float32)[order],
            parts[0][order],
            parts[1][order],
            chosen,
        )

    @classmethod
    def of(cls, nodes: NodeTable, edges: Iterable[Edge]) -> EdgeTable:
        """Make a table of `Edge` objects; the properties ``source_row`` and ``target_row`` become parts.

        Edges that are equal but for weight and properties are one; the last wins.

        Raises
        ------
        InvalidInput
            When an edge names a node that is not in the table, or its weight is not a finite number.
        """
        distinct: dict[tuple[Any, ...], Edge] = {}
        for edge in edges:
            if not edge.relation or not isinstance(edge.relation, str):
                raise InvalidInput(f"edge {edge.source!r} to {edge.target!r}: the relation must be a non-empty string")
            if isinstance(edge.weight, bool) or not np.isfinite(edge.weight):
                raise InvalidInput(f"edge {edge.source!r} to {edge.target!r}: the weight must be a finite number")
            rows = tuple(edge.properties.get(key, NO_PART) for key in _PART_KEYS)
            distinct[edge.source, edge.target, edge.relation, rows] = edge
        chosen = list(distinct.values())
        ends = [nodes.find([e.source for e in chosen]), nodes.find([e.target for e in chosen])]
        for edge, i, j in zip(chosen, *(end.tolist() for end in ends), strict=True):
            if i < 0 or j < 0:
                absent = edge.source if i < 0 else edge.target
                raise InvalidInput(f"edge {edge.source!r} to {edge.target!r}: there is no node {absent!r}")
        relations = sorted({e.relation for e in chosen})
        parts = [np.asarray([e.properties.get(key, NO_PART) for e in chosen], dtype=np.int32) for key in _PART_KEYS]
        return cls.build(
            len(nodes),
            ends[0],
            ends[1],
            np.asarray([relations.index(e.relation) for e in chosen], dtype=np.int16),
            relations,
            np.asarray([e.weight for e in chosen], dtype=np.float32),
            parts[0],
            parts[1],
            properties=[{k: v for k, v in e.properties.items() if k not in _PART_KEYS} for e in chosen],
        )

    def __len__(self) -> int:
        return len(self.source)

    def _adjacency(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        def indptr(ends: NDArray[np.int32]) -> NDArray[np.int64]:
            return np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=self.n_nodes))]).astype(np.int64)

        order = np.argsort(self.target, kind="stable").astype(np.int64)
        return indptr(self.source), indptr(self.target), order

    def incident(self, positions: NDArray[np.int64], direction: str = "both") -> NDArray[np.int64]:
        """Return the edges, ascending and distinct, that leave (``out``), enter (``in``) or touch the nodes."""
        found = []
        if direction in ("out", "both"):
            found.append(_ranges(self.out_indptr, positions))
        if direction in ("in", "both"):
            found.append(self.in_order[_ranges(self.in_indptr, positions)])
        if not found:
            raise InvalidInput(f"direction: 'out', 'in' or 'both' is expected, not {direction!r}")
        return np.unique(np.concatenate(found))

    def incident_each(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the edges that touch each of the nodes, and for each edge the number of its node in `positions`."""
        found, which = [], []
        for indptr, order in ((self.out_indptr, None), (self.in_indptr, self.in_order)):
            at = _ranges(indptr, positions)
            found.append(at if order is None else order[at])
            which.append(np.repeat(np.arange(len(positions)), indptr[np.asarray(positions) + 1] - indptr[positions]))
        return np.concatenate(found), np.concatenate(which)

    def degrees(self) -> NDArray[np.int64]:
        """How many edges touch each node, ``(n_nodes,)``."""
        return np.diff(self.out_indptr) + np.diff(self.in_indptr)

    def edge(self, i: int, ids: Sequence[str]) -> Edge:
        """Return one edge, with its parts among its properties."""
        properties = dict(self.properties[i])
        for key, part in zip(_PART_KEYS, (self.source_part[i], self.target_part[i]), strict=True):
            if part != NO_PART:
                properties[key] = int(part)
        return Edge(
            ids[self.source[i]],
            self.relations[self.relation[i]],
            ids[self.target[i]],
            float(self.weight[i]),
            properties,
        )

    def at(self, positions: NDArray[np.int64], ids: Strings) -> list[Edge]:
        """Return the edges at `positions`, in that order, with their parts among their properties."""
        columns = (
            ids.take(self.source[positions]),
            self.relation[positions].tolist(),
            ids.take(self.target[positions]),
            self.weight[positions].tolist(),
            self.properties.take(positions),
            self.source_part[positions].tolist(),
            self.target_part[positions].tolist(),
        )
        found = []
        for source, relation, target, weight, properties, *rows in zip(*columns, strict=True):
            properties.update({key: row for key, row in zip(_PART_KEYS, rows, strict=True) if row != NO_PART})
            found.append(Edge(source, self.relations[relation], target, weight, properties))
        return found

    def edges(self, ids: Sequence[str]) -> Iterator[Edge]:
        """All edges, in order."""
        return (self.edge(i, ids) for i in range(len(self)))

    def relation_mask(self, relations: Collection[str] | None) -> NDArray[np.bool_] | None:
        """Which relation codes are among `relations`; `None` for all."""
        if relations is None:
            return None
        if isinstance(relations, str):
            raise InvalidInput(f"relations: a list of names is expected, not the string {relations!r}")
        return np.asarray([name in relations for name in self.relations], dtype=bool)

    def induced(self, positions: NDArray[np.int64]) -> EdgeTable:
        """Return the edges among the nodes at `positions` (ascending), renumbered to that order."""
        new = np.full(self.n_nodes, -1, dtype=np.int32)
        new[positions] = np.arange(len(positions), dtype=np.int32)
        kept = np.flatnonzero((new[self.source] >= 0) & (new[self.target] >= 0))
        used = sorted({int(code) for code in np.unique(self.relation[kept])})
        codes = np.zeros(len(self.relations), dtype=np.int16)
        codes[used] = np.arange(len(used), dtype=np.int16)
        return EdgeTable(
            len(positions),
            new[self.source[kept]],
            new[self.target[kept]],
            codes[self.relation[kept]] if len(self.relations) else self.relation[kept],
            [self.relations[code] for code in used],
            self.weight[kept],
            self.source_part[kept],
            self.target_part[kept],
            Records.of(self.properties.take(kept)),
        )

    def parts(self) -> Parts:
        """The table as it is saved."""
        names = (
            "source",
            "target",
            "relation",
            "weight",
            "source_part",
            "target_part",
            "out_indptr",
            "in_indptr",
            "in_order",
        )
        return Parts(
            arrays={name: getattr(self, name) for name in names},
            strings={},
            records={"properties": self.properties},
            meta={"n_nodes": self.n_nodes, "relations": self.relations},
        )

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> EdgeTable:
        """Open a saved table; its columns stay on disk until they are read."""
        array: Callable[[str], NDArray[Any]] = bundle.array
        return cls(
            bundle.meta["n_nodes"],
            array("source"),
            array("target"),
            array("relation"),
            bundle.meta["relations"],
            array("weight"),
            array("source_part"),
            array("target_part"),
            bundle.records("properties"),
            adjacency=(array("out_indptr"), array("in_indptr"), array("in_order")),
        )


def _ranges(indptr: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the concatenation of ``range(indptr[p], indptr[p + 1])`` over `positions`."""
    starts = indptr[positions]
    lengths = indptr[np.asarray(positions) + 1] - starts
    total = int(lengths.sum())
    if not total:
        return np.empty(0, dtype=np.int64)
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.asarray(shift + np.arange(total), dtype=np.int64)

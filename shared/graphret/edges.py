"""`EdgeTable`: the edges between the nodes of a table in columns, with adjacency, never changed once made."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret._checked import PART_KEYS, checked_edges, property_column
from graphret._edge_order import Merge, fewest, last_of_equals, ranges, row_starts, sorted_order
from graphret.columns import all_empty, assemble, no_records, to_records
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.storage import Bundle, Parts, Records, Strings
from graphret.types import Edge

#: A part of a node (the row of a table) that an edge does not single out.
NO_PART = -1
_BLOCK = 1 << 14
_SCANS = 16  # nodes whose entering edges are looked for among all before these are put in order: that takes as long


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
        weight: NDArray[Any],
        source_part: NDArray[np.int32],
        target_part: NDArray[np.int32],
        properties: Records,
        *,
        adjacency: Sequence[NDArray[np.int64]] | None = None,
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
        out, *incoming = adjacency or (row_starts(source, n_nodes),)
        self.out_indptr = out
        self._incoming: Sequence[NDArray[np.int64]] = incoming
        self._scans = _SCANS

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
        properties: Records | Sequence[Mapping[str, Any]] | None = None,
        *,
        distinct: bool = False,
        double: bool = False,
    ) -> EdgeTable:
        """Make a table of edges in any order; relations are renumbered in the order of their names,
        without those that no edge has.

        With `distinct`, of edges that are equal but for weight and properties only the last is kept. With `double`
        weights keep their precision, which is single otherwise.
        """
        n, m = n_nodes, len(source)
        names = sorted(set(relations))
        place = {name: i for i, name in enumerate(names)}
        rank = np.asarray([place[name] for name in relations], dtype=np.int32)
        codes, names = fewest(rank[np.asarray(relation)] if len(relations) else np.empty(0, np.int32), names)
        ends = [np.asarray(end, dtype=np.int32) for end in (source, target)]
        parts = [
            np.full(m, NO_PART, dtype=np.int32) if part is None else np.asarray(part, dtype=np.int32)
            for part in (source_part, target_part)
        ]
        keys: list[NDArray[Any]] = [*ends, codes, *parts]
        order = sorted_order(n, keys, len(names))
        if distinct and m:
            order = order[last_of_equals(order, keys)]
        records = no_records(m) if properties is None else to_records("properties", properties)
        return cls(
            n,
            ends[0][order],
            ends[1][order],
            codes[order],
            names,
            np.asarray(weight, dtype=np.float64 if double else np.float32)[order],
            parts[0][order],
            parts[1][order],
            assemble([records], order),
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
        last: dict[tuple[Any, ...], Edge] = {}
        for edge in checked_edges(edges):
            rows = tuple(edge.properties.get(key, NO_PART) for key in PART_KEYS)
            last[edge.source, edge.target, edge.relation, rows] = edge
        chosen = list(last.values())
        ends = [nodes.find([e.source for e in chosen]), nodes.find([e.target for e in chosen])]
        for edge, i, j in zip(chosen, *(end.tolist() for end in ends), strict=True):
            if i < 0 or j < 0:
                absent = edge.source if i < 0 else edge.target
                raise InvalidInput(f"edge {edge.source!r} to {edge.target!r}: there is no node {absent!r}")
        relations = sorted({e.relation for e in chosen})
        code = {relation: i for i, relation in enumerate(relations)}
        parts = [np.asarray([e.properties.get(key, NO_PART) for e in chosen], dtype=np.int32) for key in PART_KEYS]
        return cls.build(
            len(nodes),
            ends[0],
            ends[1],
            np.asarray([code[e.relation] for e in chosen], dtype=np.int64),
            relations,
            np.asarray([e.weight for e in chosen], dtype=np.float32),
            parts[0],
            parts[1],
            property_column(chosen, [{k: v for k, v in e.properties.items() if k not in PART_KEYS} for e in chosen]),
        )

    def __len__(self) -> int:
        return len(self.source)

    @property
    def in_indptr(self) -> NDArray[np.int64]:
        """Where the edges that enter each node begin in `in_order`, ``(n_nodes + 1,)``."""
        return self._entering()[0]

    @property
    def in_order(self) -> NDArray[np.int64]:
        """The edges by target, then in their order, ``(m,)``."""
        return self._entering()[1]

    def _entering(self) -> Sequence[NDArray[np.int64]]:
        if not self._incoming:  # when it is first asked for: a write makes tables that nobody reads
            shape = self.n_nodes, self.n_nodes
            rows = sp.csr_array((np.arange(len(self)), self.target, self.out_indptr), shape=shape)
            columns = rows.tocsc()  # a counting sort, stable
            self._incoming = columns.indptr.astype(np.int64), columns.data.astype(np.int64, copy=False)
        return self._incoming

    def incident(self, positions: NDArray[np.int64], direction: str = "both") -> NDArray[np.int64]:
        """Return the edges, ascending and distinct, that leave (``out``), enter (``in``) or touch the nodes."""
        found = []
        if direction in ("out", "both"):
            found.append(self.leaving(positions))
        if direction in ("in", "both"):
            found.append(self.entering(positions))
        if not found:
            raise InvalidInput(f"direction: 'out', 'in' or 'both' is expected, not {direction!r}")
        return np.unique(np.concatenate(found))

    def leaving(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the edges that leave each of the nodes in turn."""
        return ranges(self.out_indptr, positions)

    def entering(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the edges that enter each of the nodes in turn."""
        if len(positions) == 1 and not self._incoming and self._scans:
            self._scans -= 1
            return np.flatnonzero(self.target == positions[0])
        return self.in_order[ranges(self.in_indptr, positions)]

    def incident_each(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the edges that touch each of the nodes, and for each edge the number of its node in `positions`."""
        found, which = [], []
        for indptr, order in ((self.out_indptr, None), (self.in_indptr, self.in_order)):
            at = ranges(indptr, positions)
            found.append(at if order is None else order[at])
            which.append(np.repeat(np.arange(len(positions)), indptr[np.asarray(positions) + 1] - indptr[positions]))
        return np.concatenate(found), np.concatenate(which)

    def degrees(self) -> NDArray[np.int64]:
        """How many edges touch each node, ``(n_nodes,)``."""
        return np.diff(self.out_indptr) + np.diff(self.in_indptr)

    def edge(self, i: int, ids: Sequence[str]) -> Edge:
        """Return one edge, with its parts among its properties."""
        properties = dict(self.properties[i])
        for key, part in zip(PART_KEYS, (self.source_part[i], self.target_part[i]), strict=True):
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
        properties = self._properties_at(positions)
        for key, parts in zip(PART_KEYS, (self.source_part[positions], self.target_part[positions]), strict=True):
            for i in np.flatnonzero(parts != NO_PART).tolist():
                properties[i][key] = int(parts[i])
        relations, n = self.relations, len(positions)
        ends = ids.take(np.concatenate([self.source[positions], self.target[positions]]))
        return _edges(
            ends[:n],
            [relations[code] for code in self.relation[positions].tolist()],
            ends[n:],
            self.weight[positions].tolist(),
            properties,
        )

    def _properties_at(self, positions: NDArray[np.int64]) -> list[dict[str, Any]]:
        column, n = self.properties, len(positions)
        if isinstance(column, Records) and (
            all_empty(column) or (column.offsets[positions + 1] - column.offsets[positions] == 2).all()
        ):
            return [{} for _ in range(n)]  # empty ones are not read
        return column.take(positions)

    def edges(self, ids: Sequence[str]) -> Iterator[Edge]:
        """All edges, in order."""
        column = ids if isinstance(ids, Strings) else Strings.of(ids)
        for start in range(0, len(self), _BLOCK):
            yield from self.at(np.arange(start, min(start + _BLOCK, len(self))), column)

    def relation_mask(self, relations: Collection[str] | None) -> NDArray[np.bool_] | None:
        """Which relation codes are among `relations`; `None` for all."""
        if relations is None:
            return None
        if isinstance(relations, str):
            raise InvalidInput(f"relations: a list of names is expected, not the string {relations!r}")
        return np.asarray([name in relations for name in self.relations], dtype=bool)

    def induced(self, positions: NDArray[np.int64]) -> EdgeTable:
        """Return the edges among the nodes at `positions` (ascending), renumbered to that order."""
        new = np.full(self.n_nodes, -1, dtype=np.int64)
        new[positions] = np.arange(len(positions))
        return self.moved(len(positions), new)

    def moved(self, n_nodes: int, new: NDArray[np.int64]) -> EdgeTable:
        """Return the edges among the nodes that stay, where each node gets a new position in the same order.

        Parameters
        ----------
        n_nodes
            How many nodes there then are.
        new
            The position of each node then, -1 for one that is gone, ``(n_nodes before,)``.
        """
        to, source, target = new.astype(np.int32), self.source, self.target
        rest = self.relation, self.relations, self.weight, self.source_part, self.target_part, self.properties
        if (new >= 0).all():
            if len(new) and new[-1] != len(new) - 1:  # else they are where they were
                source, target = to[source], to[target]
            out = np.zeros(n_nodes + 1, dtype=np.int64)
            out[new + 1] = np.diff(self.out_indptr)
            return EdgeTable(n_nodes, source, target, *rest, adjacency=[np.cumsum(out)])
        source, target = to[source], to[target]
        kept = np.flatnonzero((source >= 0) & (target >= 0))
        if len(kept) == len(self):
            return EdgeTable(n_nodes, source, target, *rest)
        return EdgeTable(
            n_nodes,
            source[kept],
            target[kept],
            *fewest(self.relation[kept], self.relations),
            self.weight[kept],
            self.source_part[kept],
            self.target_part[kept],
            assemble([_records(self)], kept),
        )

    def take(self, positions: NDArray[np.int64]) -> EdgeTable:
        """Return the table of the edges at `positions`, which must be ascending, over the same nodes."""
        return EdgeTable(
            self.n_nodes,
            self.source[positions],
            self.target[positions],
            *fewest(self.relation[positions], self.relations),
            self.weight[positions],
            self.source_part[positions],
            self.target_part[positions],
            assemble([_records(self)], positions),
        )

    def merged(self, fresh: EdgeTable) -> EdgeTable:
        """Return a table over the same nodes in which the edges of another take the place of those that they equal.

        It is what a table built of the same edges would be.
        """
        if not len(fresh) or not len(self):
            return fresh if len(fresh) else self
        names = sorted({*self.relations, *fresh.relations})
        code = {name: i for i, name in enumerate(names)}
        ours, theirs = (
            table.relation
            if table.relations == names
            else np.asarray([code[name] for name in table.relations], dtype=np.int32)[table.relation]
            for table in (self, fresh)
        )
        keys = [
            (self.source, fresh.source),
            (self.target, fresh.target),
            (ours, theirs),
            (self.source_part, fresh.source_part),
            (self.target_part, fresh.target_part),
        ]
        merge = Merge(self.out_indptr, [mine for mine, _ in keys], [new for _, new in keys])
        source, target, relation, *parts = (merge.column(mine, new) for mine, new in keys)
        weight, records = merge.column(self.weight, fresh.weight), [_records(self), _records(fresh)]
        empty = all(map(all_empty, records))
        properties = no_records(len(source)) if empty else assemble(records, merge.order())
        codes, names = fewest(relation, names)
        return EdgeTable(
            self.n_nodes, source, target, codes, names, weight, parts[0], parts[1], properties, adjacency=[merge.indptr]
        )

    def parts(self) -> Parts:
        """The table as it is saved."""
        columns = "source", "target", "relation", "weight", "source_part", "target_part"
        adjacency = "out_indptr", "in_indptr", "in_order"
        return Parts(
            arrays={name: getattr(self, name) for name in (*columns, *adjacency)},
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
            relations=bundle.meta["relations"],
            properties=bundle.records("properties"),
            adjacency=(array("out_indptr"), array("in_indptr"), array("in_order")),
            **{name: array(name) for name in ("source", "target", "relation", "weight", "source_part", "target_part")},
        )


_FILL = [getattr(Edge, name).__set__ for name in ("source", "relation", "target", "weight", "properties")]


def _edges(*columns: Sequence[Any]) -> list[Edge]:
    """Edges of the columns of their fields, in half the time that the constructor of a frozen class takes for each."""
    edges = [*map(object.__new__, repeat(Edge, len(columns[0])))]
    for fill, values in zip(_FILL, columns, strict=True):
        deque(map(fill, edges, values), maxlen=0)
    return edges


def _records(table: EdgeTable) -> Records:
    return table.properties if isinstance(table.properties, Records) else Records.of(table.properties)

"""`EdgeTable`: the edges between the nodes of a table, in immutable columns."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.columns import Records, Strings, TextArray
from graphret.errors import InvalidInput
from graphret.lists import ends_of
from graphret.nodes import NodeTable
from graphret.numeric import ranges, renumbered, spans, unique
from graphret.splice import Merge, Splice, spliced_codes
from graphret.storage import Bundle, Parts
from graphret.types import ROW_KEYS, Edge
from graphret.validation import checked_edges, edge_words, property_column

#: In place of a row of a table, where an edge is about the whole node.
NO_ROW = -1
_BLOCK = 1 << 14
_TYPES = {
    **dict.fromkeys(("source", "target", "source_row", "target_row"), np.int32),
    "weight": np.float64,
}
_ADJACENCY = ("out_indptr", "in_indptr", "in_order")


@dataclass(eq=False)
class EdgeTable:
    """Edges by position, in columns of ``(m,)``.

    They are sorted by source, target, relation and rows. Sources and targets are
    positions of nodes, of which there are `n_nodes`; `relation` has positions in
    `relations`. A row is what of its node an edge is about, the row of a table segment,
    counted from 0 within the node, or `NO_ROW` for the whole node. The properties are
    JSON objects.
    """

    n_nodes: int
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    relation: NDArray[np.int32]
    relations: list[str]
    weight: NDArray[Any]
    source_row: NDArray[np.int32]
    target_row: NDArray[np.int32]
    properties: Records

    @classmethod
    def empty(cls, n_nodes: int) -> EdgeTable:
        """A table with no edges."""
        none = np.empty(0, dtype=np.int32)
        return cls(
            n_nodes,
            none,
            none,
            none,
            [],
            none.astype(np.float32),
            none,
            none,
            Records.repeat({}, 0),
        )

    @classmethod
    def build(
        cls,
        n_nodes: int,
        source: NDArray[Any],
        target: NDArray[Any],
        relation: NDArray[Any],
        relations: Sequence[str],
        weight: NDArray[Any],
        source_row: NDArray[Any] | None = None,
        target_row: NDArray[Any] | None = None,
        properties: Records | Sequence[Mapping[str, Any]] | None = None,
    ) -> EdgeTable:
        """Make a table of edges that are in any order.

        Relations are renumbered in the order of their names, without those that no edge
        has. Of edges that are equal but for weight and properties the last is kept.
        """
        m = len(source)
        whole = np.full(m, NO_ROW, dtype=np.int32)
        first, second = (
            whole if row is None else row for row in (source_row, target_row)
        )
        records = (
            Records.repeat({}, m)
            if properties is None
            else Records.of(properties, "properties")
        )
        named = list(relations)
        return joined(
            n_nodes,
            [
                cls(
                    n_nodes,
                    source,
                    target,
                    relation,
                    named,
                    weight,
                    first,
                    second,
                    records,
                )
            ],
        )

    @classmethod
    def of(cls, nodes: NodeTable, edges: Iterable[Edge]) -> EdgeTable:
        """Make a table of `Edge` objects.

        The properties ``source_row`` and ``target_row`` become rows. An `InvalidInput`
        names an edge that is malformed, or whose source or target is not in the table.
        """
        chosen = list(checked_edges(edges))
        sources, targets = (
            nodes.find([e.source for e in chosen]),
            nodes.find([e.target for e in chosen]),
        )
        for i in np.flatnonzero((sources < 0) | (targets < 0)).tolist():
            end = chosen[i].source if sources[i] < 0 else chosen[i].target
            raise InvalidInput(f"{edge_words(chosen[i])}: there is no node {end!r}")
        relations = list(dict.fromkeys(e.relation for e in chosen))
        code = {relation: i for i, relation in enumerate(relations)}
        codes = np.asarray([code[e.relation] for e in chosen], dtype=np.int64)
        weights = np.asarray([e.weight for e in chosen], dtype=np.float64)
        about: list[Any] = []
        if any(e.properties for e in chosen):
            about = [
                np.asarray([e.properties.get(k, NO_ROW) for e in chosen], np.int32)
                for k in ROW_KEYS
            ]
            others = [
                {k: v for k, v in e.properties.items() if k not in ROW_KEYS}
                for e in chosen
            ]
            about.append(property_column(chosen, others))
        return cls.build(
            len(nodes), sources, targets, codes, relations, weights, *about
        )

    def __len__(self) -> int:
        return len(self.source)

    @cached_property
    def out_indptr(self) -> NDArray[np.int64]:
        """Where the edges that leave each node begin, ``(n_nodes + 1,)``."""
        return row_starts(self.source, self.n_nodes)

    @cached_property
    def by_target(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the edges that enter each node begin, and the order by target.

        The former is ``(n_nodes + 1,)``; the latter, ``(m,)``, has positions of edges.
        """
        shape = self.n_nodes, self.n_nodes
        columns = sp.csr_array(
            (np.arange(len(self)), self.target, self.out_indptr), shape=shape
        ).tocsc()
        return columns.indptr.astype(np.int64), columns.data.astype(
            np.int64, copy=False
        )

    def leaving(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the edges that leave each of the nodes in turn."""
        if "out_indptr" in self.__dict__:
            return ranges(self.out_indptr, positions)
        # one change after another asks for few, and never where those of all begin
        nodes = np.asarray(positions, self.source.dtype)
        starts = np.searchsorted(self.source, nodes)
        ends = np.searchsorted(self.source, nodes, side="right")
        return spans(starts, ends - starts)

    def entering(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the edges that enter each of the nodes in turn."""
        indptr, order = self.by_target
        return order[ranges(indptr, positions)]

    def incident(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the edges, ascending and distinct, that touch the nodes."""
        return unique(self.leaving(positions), self.entering(positions))

    def incident_each(
        self, positions: NDArray[np.int64], direction: str = "both"
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the edges that leave, enter or touch each of the nodes.

        With each edge comes the number of its node in `positions`.
        """
        at, edges, which = np.asarray(positions), [], []
        for way, indptr, follow in (
            ("out", self.out_indptr, self.leaving),
            ("in", self.by_target[0], self.entering),
        ):
            if direction in (way, "both"):
                edges.append(follow(at))
                which.append(np.repeat(np.arange(len(at)), indptr[at + 1] - indptr[at]))
        return np.concatenate(edges), np.concatenate(which)

    def degrees(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many edges touch each of the nodes."""
        out, into = (
            indptr[positions + 1] - indptr[positions]
            for indptr in (self.out_indptr, self.by_target[0])
        )
        return out + into

    def at(self, positions: NDArray[np.int64], ids: Strings) -> list[Edge]:
        """Return the edges at `positions`, in that order.

        Their rows are among their properties.
        """
        properties: list[dict[str, Any]] = self.properties.take(positions)
        for key, parts in zip(
            ROW_KEYS,
            (self.source_row[positions], self.target_row[positions]),
            strict=True,
        ):
            for i in np.flatnonzero(parts != NO_ROW).tolist():
                properties[i][key] = int(parts[i])
        relations = [self.relations[code] for code in self.relation[positions].tolist()]
        ends, n = (
            ids.take(np.concatenate([self.source[positions], self.target[positions]])),
            len(relations),
        )
        edges = [object.__new__(Edge) for _ in relations]
        columns = (
            ends[:n],
            relations,
            ends[n:],
            self.weight[positions].tolist(),
            properties,
        )
        for one, values in zip(
            fields(Edge), columns, strict=True
        ):  # faster than the constructor of a frozen class
            deque(map(getattr(Edge, one.name).__set__, edges, values), maxlen=0)
        return edges

    def edges(self, ids: Strings) -> Iterator[Edge]:
        """All edges, in order."""
        for start in range(0, len(self), _BLOCK):
            yield from self.at(np.arange(start, min(start + _BLOCK, len(self))), ids)

    def find(self, nodes: NodeTable, edges: Iterable[Edge]) -> NDArray[np.int64]:
        """Return the positions of those of the given edges that are here.

        Edges are the same if source, relation, target and rows are.
        """
        wanted = {edge.identity for edge in checked_edges(edges)}
        sources = nodes.find({source for source, *_ in wanted})
        near = self.leaving(np.sort(sources[sources >= 0]))
        return (
            near[[edge.identity in wanted for edge in self.at(near, nodes.ids)]]
            if len(near)
            else near
        )

    def relation_mask(
        self, relations: Collection[str] | None
    ) -> NDArray[np.bool_] | None:
        """Which relation codes are among `relations`; `None` for all."""
        if relations is None:
            return None
        return np.asarray([name in relations for name in self.relations], dtype=bool)

    def induced(self, positions: NDArray[np.int64]) -> EdgeTable:
        """Return the edges among the nodes at `positions`, which must be ascending.

        The nodes are renumbered in that order.
        """
        new = np.full(self.n_nodes, -1, dtype=np.int64)
        new[positions] = np.arange(len(positions))
        return self.moved(len(positions), new)

    def moved(self, n_nodes: int, new: NDArray[np.signedinteger[Any]]) -> EdgeTable:
        """Return the edges among the nodes that stay, of which there are `n_nodes`.

        `new` is the position that each node then has, in the same order, -1 for one
        that is gone.
        """
        source, target = renumbered(self.source, new), renumbered(self.target, new)
        moved = replace(self, n_nodes=n_nodes, source=source, target=target)
        if not len(new) or new.min() >= 0:
            return moved
        return moved.take(np.flatnonzero((source >= 0) & (target >= 0)))

    def take(self, positions: NDArray[np.int64]) -> EdgeTable:
        """Return the table of the edges at `positions`, which must be ascending.

        The nodes stay the same.
        """
        return (
            self
            if len(positions) == len(self)
            else EdgeTable._assembled([self], Splice([len(self)], positions))
        )

    def merged(
        self, fresh: EdgeTable, void: NDArray[np.int64] | None = None
    ) -> EdgeTable:
        """Return a table with the edges of another merged in, over the same nodes.

        They take the place of the edges that they equal and of those at the positions
        `void`. The result is what a table built of the same edges would be.
        """
        if not len(self):
            return fresh
        if not len(fresh) and void is None:
            return self
        stays = np.ones(len(self), dtype=bool)
        if void is not None:
            stays[void] = False
        if not len(fresh):
            return self.take(np.flatnonzero(stays))
        # The edges that leave the sources of fresh ones are put in order anew; all
        # others stay as they are.
        near = self.leaving(unique(fresh.source))
        rows = joined(self.n_nodes, [self.take(near[stays[near]]), fresh])
        stays[near] = False
        places = np.searchsorted(self.source, rows.source)
        merge = Merge(len(self), np.flatnonzero(~stays), places)
        return EdgeTable._assembled([self, rows], merge)

    @staticmethod
    def _assembled(tables: Sequence[EdgeTable], splice: Splice) -> EdgeTable:
        """The edges of tables in the order of a splice.

        Relations that none of them has are left out.
        """
        column: dict[str, Any] = {
            name: splice.of(
                *(np.asarray(getattr(table, name), kind) for table in tables)
            )
            for name, kind in _TYPES.items()
        }
        relation, relations = spliced_codes(
            splice, [(table.relation, table.relations) for table in tables]
        )
        properties = Records(
            splice.of_lists(*(table.properties.array for table in tables))
        )
        return EdgeTable(
            tables[0].n_nodes,
            relation=relation,
            relations=relations,
            properties=properties,
            **column,
        )

    def parts(self, *, with_adjacency: bool = True) -> Parts:
        """The table as it is saved: its columns and its adjacency.

        The ends of edges are positions of nodes. Without its adjacency, which grows
        with the number of nodes, a table finds it again when it is asked for.
        """
        columns = {name: getattr(self, name) for name in (*_TYPES, "relation")}
        parts = Parts(columns, {"n_nodes": self.n_nodes})
        if with_adjacency:
            adjacency = (self.out_indptr, *self.by_target)
            parts.arrays |= dict(zip(_ADJACENCY, adjacency, strict=True))
        parts.add_texts("relations", TextArray.of(self.relations))
        parts.add_texts("properties", self.properties.array)
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> EdgeTable:
        """Open a saved table; its columns stay on disk until they are read."""
        columns: dict[str, Any] = {
            name: bundle.arrays[name] for name in (*_TYPES, "relation")
        }
        table = cls(
            bundle.meta["n_nodes"],
            relations=bundle.texts("relations").tolist(),
            properties=Records(bundle.texts("properties")),
            **columns,
        )
        if _ADJACENCY[0] in bundle.arrays:
            table.out_indptr, in_indptr, in_order = (
                bundle.arrays[name] for name in _ADJACENCY
            )
            table.by_target = in_indptr, in_order
        return table


def joined(n_nodes: int, tables: Sequence[EdgeTable]) -> EdgeTable:
    """Return the edges of tables over the same nodes in one, in their order.

    Of edges that are equal but for weight and properties only the last is kept.
    """
    filled = [table for table in tables if len(table)]
    if not filled:
        return EdgeTable.empty(n_nodes)
    source, target, *parts = (
        np.concatenate([getattr(table, name) for table in filled]).astype(np.int64)
        for name in ("source", "target", "source_row", "target_row")
    )
    splice = Splice([len(table) for table in filled], np.arange(len(source)))
    relation, relations = spliced_codes(
        splice, [(table.relation, table.relations) for table in filled]
    )
    keys: list[NDArray[Any]] = [source, target, relation, *parts]
    if n_nodes * n_nodes * len(relations) < 2**62:  # one key for three
        keys = [
            (source * n_nodes + target) * len(relations) + relation,
            *(p for p in parts if p.min() != p.max()),
        ]
    order = (
        np.lexsort(keys[::-1]) if len(keys) > 1 else np.argsort(keys[0], kind="stable")
    )
    same = np.all([np.diff(key[order]) == 0 for key in keys], axis=0)
    lengths = [len(table) for table in filled]
    return EdgeTable._assembled(filled, Splice(lengths, order[np.append(~same, True)]))


def row_starts(
    source: NDArray[np.signedinteger[Any]], n_nodes: int
) -> NDArray[np.int64]:
    """Return where the edges of each source begin in a sorted table.

    The result is ``(n_nodes + 1,)``.
    """
    return ends_of(np.bincount(source, minlength=n_nodes))

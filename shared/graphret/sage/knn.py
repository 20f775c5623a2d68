"""Nearest-neighbour tables: exact in blocks that never hold an n × n matrix, HNSW past a size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.sage.scan import Floats, exact_rows, scan

#: Connections a node of the approximate index (SAGE, appendix E: "HNSW (M=64)").
HNSW_M = 64

_HNSW_BREADTH = 128
_EXPANDED = 1 << 21


@dataclass(frozen=True, eq=False)
class NearestTable:
    """The nearest targets of each row, best first, ties by position.

    Parameters
    ----------
    positions
        ``(n, m)`` int32, padded with -1.
    similarities
        ``(n, m)`` float32 cosines rounded to six decimals, all above 0; 0 where padded.
    """

    positions: NDArray[np.int32]
    similarities: Floats

    def __len__(self) -> int:
        return len(self.positions)

    @classmethod
    def empty(cls, n: int, m: int) -> NearestTable:
        """A table in which no row has a neighbour."""
        return cls(np.full((n, m), -1, np.int32), np.zeros((n, m), np.float32))

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows and the positions of all neighbours, ``(p,)`` each."""
        rows, columns = np.nonzero(self.positions >= 0)
        return rows, self.positions[rows, columns].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a search: nodes, and which vector each has for the signal.

    Parameters
    ----------
    positions
        The nodes, ascending, ``(p,)``.
    index
        The row of each node's vector among the vectors of all texts, ``(p,)``; nodes with the same text share one.
    """

    positions: NDArray[np.int64]
    index: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.positions)

    def at(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> Side:
        """Return a part of the side."""
        return Side(self.positions[chosen], self.index[chosen])


@dataclass(frozen=True, eq=False)
class _Groups:
    """The nodes of a side by text, groups in the order of their first nodes."""

    texts: NDArray[np.int64]
    group: NDArray[np.int64]
    members: NDArray[np.int64]
    start: NDArray[np.int64]

    @classmethod
    def of(cls, side: Side) -> _Groups:
        texts, first, inverse = np.unique(side.index, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        group = rank[inverse.ravel()]
        start = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(texts)))]).astype(np.int64)
        return cls(texts[order], group, side.positions[np.argsort(group, kind="stable")], start)


def nearest(
    queries: Floats,
    targets: Floats | None = None,
    m: int = 20,
    *,
    block_mb: int = 64,
    hnsw_above: int = 200_000,
) -> NearestTable:
    """Return the `m` nearest targets of each query by cosine, of vectors that are unit rows or zero.

    Parameters
    ----------
    queries
        ``(n_a, d)`` float32.
    targets
        ``(n_b, d)`` float32; `None` for the queries themselves, each excluding itself. Zero rows find nothing and are
        never found.
    m
        How many.
    block_mb
        Memory for a block of similarities, in MiB. The result does not depend on it.
    hnsw_above
        Number of targets above which the search is approximate.
    """
    same = targets is None
    vectors = queries if targets is None else np.concatenate([queries, targets])
    count = len(queries)
    alive = np.flatnonzero(vectors.any(axis=1))
    rows = Side(alive[alive < count], alive[alive < count])
    sought = rows if same else Side(alive[alive >= count], alive[alive >= count])
    found = nearest_nodes(vectors, rows, sought, m, block_mb=block_mb, hnsw_above=hnsw_above)
    table = NearestTable.empty(count, m)
    shift = 0 if same else count
    table.positions[rows.positions] = np.where(found.positions >= 0, found.positions - shift, -1)
    table.similarities[rows.positions] = found.similarities
    return table


def nearest_nodes(
    vectors: Floats, rows: Side, targets: Side, m: int, *, block_mb: int = 64, hnsw_above: int = 200_000
) -> NearestTable:
    """Return the `m` nearest target nodes of each row node, none its own neighbour; positions are those of nodes.

    Every distinct text is compared once, however many nodes bear it.
    """
    if not len(rows) or not len(targets):
        return NearestTable.empty(len(rows), m)
    a, b = _Groups.of(rows), _Groups.of(targets)
    same = rows is targets
    left = vectors[a.texts]
    right = left if same else vectors[b.texts]
    found = _nearest_texts(left, right, m + 1, same, block_mb, hnsw_above)[0]
    return _expand(found, rows, a, b, m)


def nearest_both(
    vectors: Floats, left: Side, right: Side, m: int, *, block_mb: int = 64, hnsw_above: int = 200_000
) -> tuple[NearestTable, NearestTable]:
    """Return the tables of both directions from one pass over the similarities."""
    if not len(left) or not len(right):
        return NearestTable.empty(len(left), m), NearestTable.empty(len(right), m)
    a, b = _Groups.of(left), _Groups.of(right)
    found = _nearest_texts(vectors[a.texts], vectors[b.texts], m + 1, False, block_mb, hnsw_above, both=True)
    return _expand(found[0], left, a, b, m), _expand(found[1], right, b, a, m)


def updated(
    old: NearestTable,
    vectors: Floats,
    rows: Side,
    targets: Side,
    came_from: NDArray[np.int64],
    moved: NDArray[np.int64],
    is_new: NDArray[np.bool_],
    m: int,
    *,
    block_mb: int = 64,
    hnsw_above: int = 200_000,
) -> NearestTable:
    """Return the table after a change; in exact mode it equals one built from scratch.

    Rows that lost no neighbour merge what is new among the targets, the others are looked up again.

    Parameters
    ----------
    rows, targets
        The sides after the change.
    came_from
        The row of `old` that each row was, -1 for new ones, ``(len(rows),)``.
    moved
        The position after the change of each node before it, -1 for those that are gone or new, ``(n_before,)``.
    is_new
        Which of `targets` are new, ``(len(targets),)``.
    """
    options = {"block_mb": block_mb, "hnsw_above": hnsw_above}
    kept = came_from >= 0
    before = old.positions[came_from[kept]]
    after = np.where(before >= 0, moved[before], -1).astype(np.int32)
    lost = ((before >= 0) & (after < 0)).any(axis=1)
    again = ~kept
    again[np.flatnonzero(kept)[lost]] = True
    if 2 * int(again.sum()) > len(rows):
        return nearest_nodes(vectors, rows, targets, m, **options)
    table = NearestTable.empty(len(rows), m)
    redone = nearest_nodes(vectors, rows.at(again), targets, m, **options)
    table.positions[again], table.similarities[again] = redone.positions, redone.similarities
    fresh = nearest_nodes(vectors, rows.at(~again), targets.at(is_new), m, **options)
    positions = np.concatenate([after[~lost], fresh.positions], axis=1)
    similarities = np.concatenate([old.similarities[came_from[kept][~lost]], fresh.similarities], axis=1)
    table.positions[~again], table.similarities[~again] = _best(positions, similarities, m)
    return table


def _best(positions: NDArray[np.int32], similarities: Floats, m: int) -> tuple[NDArray[np.int32], Floats]:
    order = np.lexsort((positions, -similarities), axis=1)[:, :m]
    return np.take_along_axis(positions, order, 1), np.take_along_axis(similarities, order, 1)


def _nearest_texts(
    a: Floats, b: Floats, k: int, same: bool, block_mb: int, hnsw_above: int, both: bool = False
) -> list[NearestTable]:
    """Return the `k` nearest rows of `b` for each of `a`, a row of both its own first; and the reverse for `both`."""
    sides = [(a, b), (b, a)] if both else [(a, b)]
    if max(len(y) for _, y in sides) > hnsw_above and 10 * len(a) > len(b):
        return [_approximate(x, y, k) for x, y in sides]
    found = scan(a, b, k, block_mb << 20, same=same, both=both)
    return [NearestTable(*part) for part in found]


def _approximate(a: Floats, b: Floats, k: int) -> NearestTable:
    from usearch.index import Index

    index = Index(ndim=b.shape[1], metric="cos", dtype="f32", connectivity=HNSW_M, expansion_add=_HNSW_BREADTH)
    index.add(np.arange(len(b)), b, threads=1)  # several threads would make another graph each time
    k = min(k, len(b))
    table = NearestTable.empty(len(a), k)
    for start in range(0, len(a), 1 << 14):
        part = a[start : start + (1 << 14)]
        matches: Any = index.search(part, k, threads=0)
        if len(part) == 1:
            keys, counts = np.asarray(matches.keys)[None], np.asarray([len(matches.keys)])
        else:
            keys, counts = np.asarray(matches.keys), np.asarray(matches.counts)
        filled = np.arange(keys.shape[1]) < counts[:, None]
        rows, columns = np.nonzero(filled)
        exact = exact_rows(part, b, rows, keys[rows, columns].astype(np.int64), k)
        table.positions[start : start + len(part)], table.similarities[start : start + len(part)] = exact
    return table


def _expand(found: NearestTable, rows: Side, a: _Groups, b: _Groups, m: int) -> NearestTable:
    """Turn neighbouring texts into neighbouring nodes.

    The `m` nodes wanted are among the bearers of the first ``m + 1`` texts, since texts are in the order of their first
    bearers and at most one node, the row itself, is left out.
    """
    table = NearestTable.empty(len(rows), m)
    sizes = np.diff(b.start)
    if sizes.max() == 1:
        texts = found.positions[a.group]
        nodes = np.where(texts >= 0, b.members[texts], -1)
        order = np.argsort((nodes < 0) | (nodes == rows.positions[:, None]), axis=1, kind="stable")[:, :m]
        width = order.shape[1]
        table.positions[:, :width] = np.take_along_axis(nodes, order, 1)
        table.similarities[:, :width] = np.take_along_axis(found.similarities[a.group], order, 1)
        own = table.positions == rows.positions[:, None]
        table.positions[own], table.similarities[own] = -1, 0
        return table
    step = max(1, _EXPANDED // max(1, found.positions.shape[1] * 2))
    for start in range(0, len(rows), step):
        own = rows.positions[start : start + step]
        texts = found.positions[a.group[start : start + step]]
        similarities = found.similarities[a.group[start : start + step]]
        count = np.where(texts >= 0, np.minimum(sizes[texts], m + 1), 0)
        enough = np.cumsum(count, axis=1) - count > m
        last = np.where(enough | (texts < 0), np.inf, similarities).min(axis=1)
        count[similarities < last[:, None]] = 0
        lengths = count.ravel()
        which = np.repeat(np.arange(lengths.size), lengths)
        offset = np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        nodes = b.members[b.start[texts.ravel()[which]] + offset]
        row = which // texts.shape[1]
        other = nodes != own[row]
        row, nodes, value = row[other], nodes[other], similarities.ravel()[which[other]]
        order = np.lexsort((nodes, -value, row))
        row, nodes, value = row[order], nodes[order], value[order]
        first = np.searchsorted(row, np.arange(len(own)))
        rank = np.arange(len(row)) - first[row]
        best = rank < m
        table.positions[start + row[best], rank[best]] = nodes[best]
        table.similarities[start + row[best], rank[best]] = value[best]
    return table

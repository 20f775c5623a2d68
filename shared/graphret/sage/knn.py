"""Nearest-neighbour tables: exact in blocks of a matrix product, never n × n; HNSW past a size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphret.search.dense import HnswSettings, hnsw_graph
from graphret.search.vectors import Floats

#: Decimals that similarities are rounded to, so that they do not depend on the shape of the block they come from.
DECIMALS = 6

_SLACK = np.float32(2e-6)  # between a product of matrices and a product of rows, with rounding
_SMALLEST = np.float32(2e-7)  # below what rounds to 0, however it was computed
_GATHERED = 1 << 20  # numbers of rows that are multiplied at once
_SEARCHED = 1 << 14  # queries that HNSW is asked at once


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

    @classmethod
    def of(
        cls, n: int, m: int, row: NDArray[np.int64], position: NDArray[np.int64], similarity: Floats
    ) -> NearestTable:
        """Return the `m` best of the given neighbours of each of `n` rows."""
        table = cls.empty(n, m)
        order = np.lexsort((position, -similarity, row))
        row, position, similarity = row[order], position[order], similarity[order]
        rank = np.arange(len(row)) - np.searchsorted(row, np.arange(n))[row]
        best = rank < m
        table.positions[row[best], rank[best]] = position[best]
        table.similarities[row[best], rank[best]] = similarity[best]
        return table

    def neighbors(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return the row, the position and the similarity of all neighbours, ``(p,)`` each."""
        row, column = np.nonzero(self.positions >= 0)
        return row, self.positions[row, column].astype(np.int64), self.similarities[row, column]


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


def pair_similarities(a: Floats, b: Floats, i: NDArray[np.int64], j: NDArray[np.int64]) -> Floats:
    """Return the rounded dot products of rows ``a[i]`` and ``b[j]``, ``(p,)``: the same for a pair in any company."""
    out = np.empty(len(i), np.float32)
    step = max(1, _GATHERED // max(1, a.shape[1]))
    for start in range(0, len(i), step):
        part = slice(start, start + step)
        out[part] = np.einsum("ij,ij->i", a[i[part]], b[j[part]])
    return np.round(out, DECIMALS, out=out)


def nearest_nodes(
    vectors: Floats, rows: Side, targets: Side, m: int, *, block_mb: int = 64, hnsw_above: int = 200_000
) -> NearestTable:
    """Return the `m` nearest target nodes of each row node by cosine, none its own neighbour.

    Every distinct text is compared once, however many nodes bear it.

    Parameters
    ----------
    vectors
        Unit rows, or zero ones, which find nothing and are never found, ``(u, d)`` float32.
    block_mb
        Memory for a block of similarities, in MiB. The result does not depend on it.
    hnsw_above
        Number of distinct targets above which the search is approximate.
    """
    if not len(rows) or not len(targets):
        return NearestTable.empty(len(rows), m)
    asked, of_row = np.unique(rows.index, return_inverse=True)
    order = np.argsort(targets.index, kind="stable")
    texts, first = np.unique(targets.index[order], return_index=True)
    bearers = targets.positions[order]  # of each text in turn, ascending
    counts = np.minimum(np.diff(np.append(first, len(order))), m + 1)
    tables = []
    for start, size, (row, text) in _blocks(vectors[asked], vectors[texts], m + 1, block_mb, hnsw_above):
        value = pair_similarities(vectors, vectors, asked[row + start], texts[text])
        row, text, value = row[value > 0], text[value > 0], value[value > 0]
        # The m nodes wanted are among the first m + 1 bearers of each text; one of these may be the row itself.
        repeats = counts[text]
        offset = np.arange(int(repeats.sum())) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        nodes = bearers[np.repeat(first[text], repeats) + offset]
        tables.append(NearestTable.of(size, m + 1, np.repeat(row, repeats), nodes, np.repeat(value, repeats)))
    positions = np.concatenate([table.positions for table in tables])[of_row]
    similarities = np.concatenate([table.similarities for table in tables])[of_row]
    others_first = np.argsort(positions == rows.positions[:, None], axis=1, kind="stable")[:, :m]
    return NearestTable(
        np.take_along_axis(positions, others_first, 1), np.take_along_axis(similarities, others_first, 1)
    )


def _blocks(
    a: Floats, b: Floats, k: int, block_mb: int, hnsw_above: int
) -> Iterator[tuple[int, int, tuple[NDArray[np.int64], ...]]]:
    """Yield where a block of the rows of `a` begins, its size, and its rows with what may be their `k` nearest."""
    if len(b) > hnsw_above and 10 * len(a) > len(b):  # a few rows are compared with all sooner than a graph is built
        graph = hnsw_graph(b.shape[1], HnswSettings(), b, threads=1)  # more would make another graph each time
        for start in range(0, len(a), _SEARCHED):
            block = a[start : start + _SEARCHED]
            found = graph.search(np.concatenate([block, block[:1]]), k)  # two queries at least: one has another answer
            filled = np.arange(k) < np.asarray(found.counts)[: len(block), None]
            row, column = np.nonzero(filled)
            yield start, len(block), (row, np.asarray(found.keys)[row, column].astype(np.int64))
        return
    step = max(1, (block_mb << 20) // (12 * len(b)))  # a block, a copy of it in part ordered, and a mask
    for start in range(0, len(a), step):
        block = a[start : start + step] @ b.T
        floor = np.full(len(block), _SMALLEST)
        if k < len(b):
            kth = np.partition(block, len(b) - k, axis=1)[:, len(b) - k]
            floor = np.maximum(floor, kth - _SLACK)
        yield start, len(block), np.divmod(np.flatnonzero(block >= floor[:, None]), len(b))  # sooner than `nonzero`


def updated(
    old: NearestTable,
    vectors: Floats,
    rows: Side,
    targets: Side,
    came_from: NDArray[np.int64],
    moved: NDArray[np.int64],
    is_new: NDArray[np.bool_],
    m: int,
    **options: int,
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
    options
        As for `nearest_nodes`.
    """
    if not len(old):
        return nearest_nodes(vectors, rows, targets, m, **options)
    before = np.where((came_from >= 0)[:, None], old.positions[came_from], -1)
    after = np.where(before >= 0, moved[before], -1).astype(np.int32)
    again = (came_from < 0) | ((before >= 0) & (after < 0)).any(axis=1)
    if 2 * int(again.sum()) > len(rows):
        return nearest_nodes(vectors, rows, targets, m, **options)
    kept = np.flatnonzero(~again)
    same = NearestTable(after[kept], old.similarities[came_from[kept]])
    fresh = nearest_nodes(vectors, rows.at(kept), targets.at(is_new), m, **options)
    redone = nearest_nodes(vectors, rows.at(again), targets, m, **options)
    found = [(kept, same), (kept, fresh), (np.flatnonzero(again), redone)]
    places = np.concatenate([place[table.neighbors()[0]] for place, table in found])
    positions = np.concatenate([table.neighbors()[1] for _, table in found])
    similarities = np.concatenate([table.neighbors()[2] for _, table in found])
    return NearestTable.of(len(rows), m, places, positions, similarities)

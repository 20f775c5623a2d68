"""Nearest rows of vectors: exact in blocks, or by shards of HNSW past a size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.executors.blocks import BLOCK, Executor, batched
from graphret.search.dense import HNSW_ABOVE, hnsw_graph
from graphret.search.vectors import Floats

#: Bytes for one block of similarities.
BLOCK_BYTES = 64 << 20
#: The most rows of one HNSW graph; of more rows, several graphs are built and searched.
HNSW_SHARD = 1 << 20

_ROWS = 4 * BLOCK  # rows compared at once
# Similarities are rounded, so that they do not depend on the shape of their block.
_DECIMALS = 6
# The most that a product of matrices differs from products of rows, with rounding.
_SLACK = np.float32(2e-6)
_SMALLEST = np.float32(2e-7)  # less rounds to 0 in any case
_GATHERED = 1 << 20  # numbers of rows that are multiplied at once
# The products of fewer rows than one in so many with all, and of so many bytes at most,
# are worked out at once.
_FEW, _HELD = 8, 1 << 28

Positions: TypeAlias = NDArray[np.int64]
#: Rows, columns, and the similarities of these pairs, ``(p,)`` each.
Pairs: TypeAlias = tuple[Positions, Positions, Floats]


def nearest_rows(
    a: Floats, b: Floats, k: int, executor: Executor, least: Floats | None = None
) -> Iterator[Iterator[Pairs]]:
    """Yield pairs of similar rows, at least the `k` nearest of `b` for each of `a`.

    Similarities are above 0. The pairs come by shards of `b`, each by blocks of `a`.
    `least`, ``(len(a),)``, says for each row which similarities are too low to count.
    """
    if least is None:
        least = np.zeros(len(a), np.float32)
    shards: list[Floats] = [b]
    graphs: Iterator[NDArray[np.uint8] | None] = iter([None])
    # A few rows are compared with all sooner than graphs are built.
    if len(b) > HNSW_ABOVE and 10 * len(a) > len(b):
        shards = [*batched(b, HNSW_SHARD)]
        graphs = executor.map(_saved_graph, shards)
    first = 0
    for shard, graph in zip(shards, graphs, strict=True):
        parts = zip(batched(a, _ROWS), batched(least, _ROWS), strict=True)
        blocks = executor.map(_Search(shard, k, graph), parts)
        yield (
            (row + n * _ROWS, column + first, value)
            for n, (row, column, value) in enumerate(blocks)
        )
        first += len(shard)


def pair_similarities(a: Floats, b: Floats, i: Positions, j: Positions) -> Floats:
    """Return the rounded products of rows `i` of `a` and `j` of `b`, ``(p,)``.

    The result of a pair does not depend on the others.
    """
    out = np.empty(len(i), np.float32)
    step = max(1, _GATHERED // max(1, a.shape[1]))
    for start in range(0, len(i), step):
        part = slice(start, start + step)
        out[part] = np.einsum("ij,ij->i", a[i[part]], b[j[part]])
    return np.round(out, _DECIMALS, out=out)


def _saved_graph(rows: Floats) -> NDArray[np.uint8]:
    # With more threads each run would build another graph.
    graph = hnsw_graph(rows.shape[1], rows, threads=1)
    return np.frombuffer(graph.save(), dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class _Search:
    """Finds the `k` nearest rows to each row of a block, exactly or by HNSW."""

    rows: Floats
    k: int
    graph: NDArray[np.uint8] | None = None

    def __call__(self, part: tuple[Floats, Floats]) -> Pairs:
        block, least = part
        exact = self.graph is None
        pairs = self._exact(block, least) if exact else [self._approximate(block)]
        row, column = np.concatenate([*map(np.stack, pairs)], axis=1)
        value = pair_similarities(block, self.rows, row, column)
        return row[value > 0], column[value > 0], value[value > 0]

    @cached_property
    def _hnsw(self) -> Any:
        graph = hnsw_graph(self.rows.shape[1])
        graph.view(self.graph)
        return graph

    def _approximate(self, block: Floats) -> tuple[Positions, Positions]:
        # Ray sets the variable on its workers.
        threads = int(os.environ.get("OMP_NUM_THREADS") or 0)
        # At least two queries: a single one has results of another shape.
        queries = np.concatenate([block, block[:1]])
        matches = self._hnsw.search(queries, self.k, threads=threads)
        row, column = np.nonzero(
            np.arange(self.k) < np.asarray(matches.counts)[: len(block), None]
        )
        return row, np.asarray(matches.keys)[row, column].astype(np.int64)

    def _exact(
        self, block: Floats, least: Floats
    ) -> Iterator[tuple[Positions, Positions]]:
        # A block, a partly sorted copy of it, and a mask fit into the limit.
        step = max(1, BLOCK_BYTES // (12 * len(self.rows)))
        for start in range(0, len(block), step):
            part = slice(start, start + step)
            row, column = _highest(block[part] @ self.rows.T, self.k, least[part])
            yield row + start, column


def _highest(product: Floats, k: int, least: Floats) -> tuple[Positions, Positions]:
    """Return the places of products that may be among the `k` highest of their row.

    They are also such as may not be below the row's `least`.
    """
    n = product.shape[1]
    floor = np.maximum(least - _SLACK, _SMALLEST)
    if k < n:
        kth = np.partition(product, n - k, axis=1)[:, n - k]
        floor = np.maximum(floor, kth - _SLACK)
    # This is faster than `nonzero`.
    row, column = np.divmod(np.flatnonzero(product >= floor[:, None]), n)
    return row, column


@dataclass(frozen=True, eq=False)
class Products:
    """The products of a few rows with all, made at once for all who compare them.

    Parameters
    ----------
    vectors
        All rows, ``(u, d)``.
    chosen
        Which of them are the few, ascending, ``(c,)``.
    values
        The products, ``(c, u)``.
    """

    vectors: Floats
    chosen: Positions
    values: Floats

    @classmethod
    def of(cls, vectors: Floats, chosen: Positions) -> Products | None:
        """Return the products of some rows, or `None` where these are not few."""
        are_few = len(chosen) * _FEW <= len(vectors)
        if not are_few or 4 * len(chosen) * len(vectors) > _HELD:
            return None
        return cls(vectors, chosen, vectors[chosen] @ vectors.T)

    def nearest(self, a: Positions, b: Positions, k: int, least: Floats) -> Pairs:
        """Return pairs as `nearest_rows` does, of rows that are given by position.

        All of `a` or all of `b` are among the few.
        """
        if np.isin(a, self.chosen).all():
            product = self._between(a, b)
        else:
            product = self._between(b, a).T
        row, column = _highest(product, k, least)
        value = pair_similarities(self.vectors, self.vectors, a[row], b[column])
        return row[value > 0], column[value > 0], value[value > 0]

    def _between(self, few: Positions, others: Positions) -> Floats:
        """Return the products of some of the few with others."""
        return self.values[np.searchsorted(self.chosen, few)][:, others]

"""Nearest neighbours against a search that compares every pair one by one."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graphret.sage.knn import NearestTable, Side, nearest_nodes, pair_similarities, updated

Floats = NDArray[np.float32]


def rows_of(n: int, d: int, seed: int = 0, *, whole: bool = False) -> Floats:
    """Random unit rows; of whole numbers many are alike, and some are zero."""
    rows = np.random.default_rng(seed).standard_normal((n, d))
    rows = np.round(rows) if whole else rows
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0).astype(np.float32)


def side(positions: Any, index: Any = None) -> Side:
    positions = np.asarray(positions)
    return Side(positions, positions if index is None else np.asarray(index))


def assert_exact(found: NearestTable, vectors: Floats, rows: Side, targets: Side, m: int, step: int = 1) -> None:
    """Every step-th row has the best targets, ties by position."""
    for i in range(0, len(rows), step):
        s = pair_similarities(vectors, vectors, np.full(len(targets), rows.index[i]), targets.index)
        pairs = [(-x, p) for x, p in zip(s, targets.positions, strict=True) if x > 0 and p != rows.positions[i]]
        best = sorted(pairs)[:m] + [(0, -1)] * m
        np.testing.assert_array_equal(found.positions[i], [p for _, p in best[:m]])
        np.testing.assert_array_equal(found.similarities[i], np.asarray([-x for x, _ in best[:m]], np.float32))


@pytest.mark.parametrize(("n", "n_rows", "d", "m"), [(1, 1, 3, 5), (60, 60, 8, 20), (3, 1, 4, 20), (900, 500, 16, 20)])
@pytest.mark.parametrize("block_mb", [1, 64])
@pytest.mark.parametrize("whole", [False, True])
def test_neighbours_are_exact_and_ties_fall_by_position(
    n: int, n_rows: int, d: int, m: int, block_mb: int, whole: bool
) -> None:
    vectors, every = rows_of(n, d, whole=whole), side(np.arange(n))
    for rows, targets in ((every, every), (every.at(slice(n_rows)), every.at(slice(n // 3, n)))):  # type: ignore[arg-type]
        found = nearest_nodes(vectors, rows, targets, m, block_mb=block_mb)
        assert_exact(found, vectors, rows, targets, m, step=7)


def test_zero_and_opposite_rows_are_no_neighbours() -> None:
    vectors = np.asarray([[1, 0], [-1, 0], [0, 0], [0.8, 0.6]], np.float32)
    every = side(np.arange(4))
    assert nearest_nodes(vectors, every, every, 2).positions.tolist() == [[3, -1], [-1, -1], [-1, -1], [0, -1]]
    none = every.at(np.zeros(4, bool))
    assert nearest_nodes(vectors, every, none, 2).positions.max() == -1
    assert nearest_nodes(vectors, none, every, 2).positions.shape == (0, 2)


def test_similarity_of_a_pair_does_not_depend_on_its_company() -> None:
    a = rows_of(500, 384)
    i, j = np.random.default_rng(1).integers(0, 500, (2, 3000))
    together = pair_similarities(a, a, i, j)
    alone = np.concatenate([pair_similarities(a, a, i[p : p + 1], j[p : p + 1]) for p in range(300)])
    np.testing.assert_array_equal(together[:300], alone)
    np.testing.assert_array_equal(together, pair_similarities(a, a, j, i))
    np.testing.assert_allclose(together, np.sum(a[i] * a[j], axis=1), atol=2e-6)


def test_nodes_with_the_same_text_are_neighbours_each() -> None:
    vectors = rows_of(6, 4)
    bearers = side(np.arange(90) * 2, np.random.default_rng(3).integers(0, 6, 90))
    assert_exact(nearest_nodes(vectors, bearers, bearers, 25), vectors, bearers, bearers, 25)
    many = side(np.arange(30_000), np.zeros(30_000, np.int64))  # which costs no square
    assert nearest_nodes(vectors, many, many, 3).positions[:3].tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3]]


@pytest.mark.parametrize("whole", [False, True])
def test_updated_equals_built(whole: bool) -> None:
    vectors = rows_of(400, 5, whole=whole)
    rng = np.random.default_rng(5)
    before, after = (np.sort(rng.permutation(400)[:360]) for _ in range(2))
    old_side, new_side = (side(np.arange(360), chosen) for chosen in (before, after))
    came_from, moved = (
        np.asarray([{int(v): i for i, v in enumerate(there)}.get(int(v), -1) for v in here])
        for here, there in ((after, before), (before, after))
    )
    old = nearest_nodes(vectors, old_side, old_side, 6)
    found = updated(old, vectors, new_side, new_side, came_from, moved, came_from < 0, 6)
    assert_exact(found, vectors, new_side, new_side, 6)


def test_hnsw_finds_most_of_the_neighbours() -> None:
    vectors, every = rows_of(600, 12), side(np.arange(600))
    exact, rough, again = (nearest_nodes(vectors, every, every, 5, hnsw_above=above) for above in (10**6, 100, 100))
    shared = [len(set(x) & set(y)) for x, y in zip(exact.positions.tolist(), rough.positions.tolist(), strict=True)]
    assert sum(shared) / (5 * 600) > 0.95
    np.testing.assert_array_equal(rough.positions, again.positions)


def test_memory_is_far_below_all_pairs() -> None:
    vectors, every = rows_of(20_000, 64), side(np.arange(20_000))
    tracemalloc.start()
    try:
        nearest_nodes(vectors, every, every, 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 300 << 20  # all pairs would be 1.6 GB

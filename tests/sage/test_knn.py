from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from graphret.sage.knn import Side, nearest, nearest_both, nearest_nodes, updated
from graphret.sage.scan import pair_similarities

Floats = NDArray[np.float32]


def unit(rows: NDArray[np.float64]) -> Floats:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0).astype(np.float32)


def random_rows(n: int, d: int, seed: int = 0, whole: bool = False) -> Floats:
    rows = np.random.default_rng(seed).standard_normal((n, d))
    return unit(np.round(rows) if whole else rows)


def naive(a: Floats, b: Floats, m: int, same: bool) -> tuple[NDArray[np.int64], Floats]:
    positions = np.full((len(a), m), -1)
    similarities = np.zeros((len(a), m), np.float32)
    for i in range(len(a)):
        s = pair_similarities(a, b, np.full(len(b), i), np.arange(len(b)))
        best = sorted((j for j in range(len(b)) if s[j] > 0 and not (same and i == j)), key=lambda j: (-s[j], j))[:m]
        positions[i, : len(best)] = best
        similarities[i, : len(best)] = s[best]
    return positions, similarities


@pytest.mark.parametrize(
    ("n", "n_targets", "d"), [(1, None, 3), (60, None, 8), (1300, None, 16), (1200, 500, 16), (3, 1, 4)]
)
@pytest.mark.parametrize("block_mb", [1, 64])
def test_nearest_is_exact(n: int, n_targets: int | None, d: int, block_mb: int) -> None:
    a = random_rows(n, d)
    b = a if n_targets is None else random_rows(n_targets, d, 1)
    table = nearest(a, None if n_targets is None else b, 20, block_mb=block_mb)
    positions, similarities = naive(a, b, 20, n_targets is None)
    np.testing.assert_array_equal(table.positions, positions)
    np.testing.assert_array_equal(table.similarities, similarities)


def test_many_ties_fall_by_position() -> None:
    a = random_rows(1500, 4, whole=True)
    table = nearest(a, None, 7, block_mb=1)
    positions, _ = naive(a, a, 7, True)
    np.testing.assert_array_equal(table.positions, positions)


def test_zero_rows_find_nothing_and_are_not_found() -> None:
    a = random_rows(40, 6)
    a[[0, 7, 39]] = 0
    table = nearest(a, None, 40)
    assert (table.positions[[0, 7, 39]] == -1).all()
    assert not np.isin(table.positions, [0, 7, 39]).any()


def test_negative_similarities_are_no_neighbours() -> None:
    a = unit(np.array([[1.0, 0], [-1, 0.1], [1, 0.1]]))
    assert nearest(a, None, 2).positions.tolist() == [[2, -1], [-1, -1], [0, -1]]


def test_similarity_of_a_pair_does_not_depend_on_its_company() -> None:
    a = random_rows(500, 384)
    i, j = np.random.default_rng(1).integers(0, 500, (2, 3000))
    together = pair_similarities(a, a, i, j)
    alone = np.concatenate([pair_similarities(a, a, i[p : p + 1], j[p : p + 1]) for p in range(300)])
    np.testing.assert_array_equal(together[:300], alone)
    np.testing.assert_array_equal(together, pair_similarities(a, a, j, i))
    np.testing.assert_allclose(together, np.sum(a[i] * a[j], axis=1), atol=2e-6)


def test_nodes_with_the_same_text_are_expanded() -> None:
    vectors = random_rows(6, 4)
    rng = np.random.default_rng(3)
    index = rng.integers(0, 6, 90)
    side = Side(np.arange(90) * 2, index)
    found = nearest_nodes(vectors, side, side, 25)
    positions, similarities = naive(vectors[index], vectors[index], 25, True)
    np.testing.assert_array_equal(found.positions, np.where(positions >= 0, positions * 2, -1))
    np.testing.assert_array_equal(found.similarities, similarities)


def test_one_text_borne_by_many_costs_no_square() -> None:
    vectors = random_rows(2, 4)
    side = Side(np.arange(30_000), np.zeros(30_000, np.int64))
    found = nearest_nodes(vectors, side, side, 3)
    assert found.positions[:4].tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]


def test_both_directions_equal_two_searches() -> None:
    vectors = random_rows(700, 8)
    left, right = Side(np.arange(0, 400), np.arange(0, 400)), Side(np.arange(400, 700), np.arange(400, 700))
    for got, expected in zip(
        nearest_both(vectors, left, right, 5, block_mb=1),
        (nearest_nodes(vectors, left, right, 5), nearest_nodes(vectors, right, left, 5)),
        strict=True,
    ):
        np.testing.assert_array_equal(got.positions, expected.positions)


@pytest.mark.parametrize("whole", [False, True])
def test_updated_equals_built(whole: bool) -> None:
    vectors = random_rows(400, 5, whole=whole)
    vectors = vectors[vectors.any(axis=1)]
    n = len(vectors)
    rng = np.random.default_rng(5)
    before, after = np.sort(rng.permutation(n)[: n - 40]), np.sort(rng.permutation(n)[: n - 40])
    old_side = Side(np.arange(len(before)), before)
    new_side = Side(np.arange(len(after)), after)
    place = {int(v): i for i, v in enumerate(after)}
    came = {int(v): i for i, v in enumerate(before)}
    moved = np.asarray([place.get(int(v), -1) for v in before])
    came_from = np.asarray([came.get(int(v), -1) for v in after])
    old = nearest_nodes(vectors, old_side, old_side, 6)
    got = updated(old, vectors, new_side, new_side, came_from, moved, came_from < 0, 6)
    expected = nearest_nodes(vectors, new_side, new_side, 6)
    np.testing.assert_array_equal(got.positions, expected.positions)
    np.testing.assert_array_equal(got.similarities, expected.similarities)


def test_hnsw_finds_most_of_the_neighbours() -> None:
    a = random_rows(600, 12)
    exact = nearest(a, None, 5)
    rough = nearest(a, None, 5, hnsw_above=100)
    shared = [len(set(x) & set(y)) for x, y in zip(exact.positions.tolist(), rough.positions.tolist(), strict=True)]
    assert sum(shared) / (5 * 600) > 0.95
    np.testing.assert_array_equal(rough.positions, nearest(a, None, 5, hnsw_above=100).positions)


def test_memory_is_far_below_all_pairs() -> None:
    a = random_rows(20_000, 64)
    tracemalloc.start()
    try:
        nearest(a, None, 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 300 << 20  # all pairs would be 1.6 GB


def test_crowds_and_ties_are_ranked_alike_however_blocks_are_cut() -> None:
    rng = np.random.default_rng(11)
    vectors = random_rows(2600, 24, 7)
    vectors[rng.integers(0, 2600, 400)] = vectors[5]  # one text borne by many, beside which all rows are crowded
    vectors[1200:1800] = unit(vectors[1200:1800] + 2 * vectors[9])
    left, right = np.arange(1400), np.arange(1400, 2600)
    sides = Side(left, left), Side(right, right)
    for table, (a, b) in zip(nearest_both(vectors, *sides, 9, block_mb=1), (sides, sides[::-1]), strict=True):
        positions, similarities = naive(vectors[a.index[::9]], vectors[b.index], 9, False)
        np.testing.assert_array_equal(table.positions[::9], np.where(positions >= 0, positions + b.positions[0], -1))
        np.testing.assert_array_equal(table.similarities[::9], similarities)

"""Nearest neighbours against a search that compares every pair one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graphret.sage import neighbors
from graphret.sage.neighbors import Neighbors, Side, changed, nearest, pair_similarities

Floats = NDArray[np.float32]


def rows_of(n: int, d: int, *, whole: bool = False) -> Floats:
    """Random unit rows; of whole numbers many are alike, and some are zero."""
    rows = np.random.default_rng(0).standard_normal((n, d))
    rows = np.round(rows) if whole else rows
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0).astype(np.float32)


def side(positions: Any, rows: Any = None) -> Side:
    positions = np.asarray(positions)
    return Side(positions, positions if rows is None else np.asarray(rows))


def assert_exact(found: Neighbors, vectors: Floats, rows: Side, targets: Side, m: int) -> None:
    """Every seventh node has the best targets, ties by position."""
    for own, row in list(zip(rows.positions.tolist(), rows.rows.tolist(), strict=True))[::7]:
        values = pair_similarities(vectors, np.full(len(targets.rows), row), targets.rows).tolist()
        pairs = [(-x, p) for x, p in zip(values, targets.positions.tolist(), strict=True) if x > 0 and p != own]
        at = found.own == own
        got = zip((-found.similarity[at]).tolist(), found.other[at].tolist(), strict=True)
        assert list(got) == sorted(pairs)[:m]


@pytest.mark.parametrize(("n", "d", "m"), [(1, 3, 5), (60, 8, 20), (300, 16, 20)])
@pytest.mark.parametrize("whole", [False, True])
def test_neighbours_are_exact_and_ties_fall_by_position(
    monkeypatch: pytest.MonkeyPatch, n: int, d: int, m: int, whole: bool
) -> None:
    monkeypatch.setattr(neighbors, "BLOCK_BYTES", 1 << 14)
    vectors, every = rows_of(n, d, whole=whole), side(np.arange(n))
    for rows, targets in ((every, every), (every.at(np.arange(n) < n // 2), every.at(np.arange(n) >= n // 3))):
        assert_exact(nearest(vectors, rows, targets, m), vectors, rows, targets, m)


def test_nodes_with_the_same_text_are_neighbours_each() -> None:
    vectors = rows_of(6, 4)
    bearers = side(np.arange(90) * 2, np.random.default_rng(3).integers(0, 6, 90))
    assert_exact(nearest(vectors, bearers, bearers, 25), vectors, bearers, bearers, 25)
    many = side(np.arange(30_000), np.zeros(30_000, np.int64))  # which costs no square
    assert nearest(vectors, many, many, 3).other[:9].tolist() == [1, 2, 3, 0, 2, 3, 0, 1, 3]


@pytest.mark.parametrize("whole", [False, True])
def test_a_change_leaves_what_a_search_of_all_finds(whole: bool) -> None:
    vectors, rng = rows_of(400, 5, whole=whole), np.random.default_rng(5)
    before, after = (np.sort(rng.permutation(400)[:360]) for _ in range(2))
    old, new = (side(np.arange(360), chosen) for chosen in (before, after))
    places = {row: i for i, row in enumerate(before.tolist())}
    came_from = np.asarray([places.get(row, -1) for row in after.tolist()])
    found = changed(nearest(vectors, old, old, 6), vectors, [new], came_from, 6)
    assert_exact(found, vectors, new, new, 6)


def test_hnsw_finds_most_of_the_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, every = rows_of(600, 12), side(np.arange(600))
    exact = nearest(vectors, every, every, 5)
    monkeypatch.setattr(neighbors, "HNSW_ABOVE", 100)
    rough, again = (nearest(vectors, every, every, 5) for _ in range(2))
    pairs = [set(zip(one.own.tolist(), one.other.tolist(), strict=True)) for one in (exact, rough)]
    assert len(pairs[0] & pairs[1]) / (5 * 600) > 0.95
    np.testing.assert_array_equal(rough.other, again.other)

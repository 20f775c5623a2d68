"""The k largest cosines of each row, from blocks of a product of matrices."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Ranked: TypeAlias = tuple[NDArray[np.int32], Floats]

#: Decimals that similarities are rounded to, so that they do not depend on the shape of the block they come from.
DECIMALS = 6

_SMALLEST = 2e-7  # below what rounds to 0, however it was computed
_SLACK = np.float32(2e-6)  # between a product of matrices and a product of rows, with rounding
_SPARE = 6
_SAMPLE = 512
_GATHERED = 1 << 17
_WORKERS = min(8, os.cpu_count() or 1)
_WORTH_THREADS = 1 << 15
_UNITS = np.float32(10**DECIMALS)
_VALUE_BITS, _COLUMN_BITS = 21, 31


def pair_similarities(a: Floats, b: Floats, i: NDArray[np.int64], j: NDArray[np.int64]) -> Floats:
    """Return the rounded dot products of rows ``a[i]`` and ``b[j]``, ``(p,)``: the same for a pair in any company."""
    out = np.empty(len(i), np.float32)
    share = -(-len(i) // _WORKERS) if len(i) > _WORTH_THREADS else max(len(i), 1)
    parts = [slice(start, start + share) for start in range(0, len(i), share)]

    def fill(part: slice) -> None:
        _multiply(a, b, i[part], j[part], out[part])

    if len(parts) < 2:
        for part in parts:
            fill(part)
    else:
        with ThreadPoolExecutor(_WORKERS) as pool:
            list(pool.map(fill, parts))
    return out


def _multiply(a: Floats, b: Floats, i: NDArray[np.int64], j: NDArray[np.int64], out: Floats) -> None:
    step = max(1, _GATHERED // max(1, a.shape[1]))
    left, right = (np.empty((min(step, len(i)), a.shape[1]), np.float32) for _ in range(2))
    for start in range(0, len(i), step):
        part = slice(start, start + step)
        size = len(out[part])
        np.take(a, i[part], axis=0, out=left[:size], mode="clip")
        np.take(b, j[part], axis=0, out=right[:size], mode="clip")
        np.einsum("ij,ij->i", left[:size], right[:size], out=out[part])
    np.round(out, DECIMALS, out=out)


def scan(a: Floats, b: Floats, k: int, memory: int, *, same: bool = False, both: bool = False) -> list[Ranked]:
    """Return positions and similarities of the `k` best rows of `b` for each of `a`; for `both`, the reverse as well.

    A floor for each row, guessed from a sample of the columns and rising from block to block, lets one comparison drop
    nearly all of a block. What is kept is computed again row by row. Rows for which the guess was too high, or in which
    something dropped may equal the k-th best up to rounding, are ranked in full, so that ties fall by position.

    Parameters
    ----------
    a, b
        Unit rows, ``(n_a, d)`` and ``(n_b, d)``; with `same` they are one matrix, of whose symmetry use is made.
    memory
        Bytes for a block.

    Returns
    -------
    list
        ``(n, k)`` positions, int32 padded with -1, and similarities, float32, best first, all above 0.
    """
    side = max(64, int((memory / 6) ** 0.5))
    best_a = _Best(a, b, k, memory)
    best_b = best_a if same else _Best(b, a, k, memory) if both else None
    block = np.empty(min(side, len(a)) * min(side, len(b)), np.float32)
    for i in range(0, len(a), side):
        rows = a[i : i + side]
        for j in range(i if same else 0, len(b), side):
            columns = b[j : j + side]
            s = block[: len(rows) * len(columns)].reshape(len(rows), len(columns))
            np.matmul(rows, columns.T, out=s)
            best_a.offer(s, i, j, False)
            if best_b is not None and not (same and i == j):
                best_b.offer(s, j, i, True)
    return [best.ranked() for best in ((best_a, best_b) if both and best_b is not None else (best_a,))]


class _Best:
    """The best columns of each row seen so far, a few more than asked for."""

    def __init__(self, a: Floats, b: Floats, k: int, memory: int) -> None:
        self.a, self.b, self.k, self.memory = a, b, min(k, len(b)), memory
        self.wanted = k
        self.kept = min(len(b), k + _SPARE)
        self.values = np.full((len(a), self.kept), -np.inf, np.float32)
        self.columns = np.full((len(a), self.kept), -1, np.int32)
        self.floor = np.full(len(a), _SMALLEST, np.float32)
        if len(b) > 2 * _SAMPLE > 2 * self.kept:
            self._guess(np.ascontiguousarray(b[np.linspace(0, len(b) - 1, _SAMPLE).astype(np.int64)]))
        self.guessed = self.floor > _SMALLEST

    def _guess(self, sample: Floats) -> None:
        """Set floors that a few times as many columns as are kept lie above, judging by a sample of them."""
        expected = self.kept * _SAMPLE / len(self.b)
        rank = min(self.kept, int(2.5 * expected + 2.5))
        step = max(1, self.memory // (8 * _SAMPLE))
        for start in range(0, len(self.a), step):
            s = self.a[start : start + step] @ sample.T
            s.partition(_SAMPLE - rank, axis=1)
            part = self.floor[start : start + step]
            np.maximum(part, s[:, _SAMPLE - rank] - _SLACK, out=part)

    def offer(self, s: Floats, start: int, column_start: int, transposed: bool) -> None:
        """Take in a block: rows from `start`, columns from `column_start`, or the other way round if `transposed`."""
        height = s.shape[1] if transposed else s.shape[0]
        floor = self.floor[start : start + height]
        flat = np.flatnonzero(s >= (floor[None, :] if transposed else floor[:, None]))
        if not len(flat):
            return
        values = s.ravel()[flat]
        row, column = np.divmod(flat, s.shape[1])
        if transposed:
            order = np.argsort(column, kind="stable")
            row, column, values = column[order], row[order], values[order]
        counts = np.bincount(row, minlength=height)
        # Rows with few and with many newcomers apart: one crowded row must not widen the work for all.
        usual = 2 * len(flat) // height + 16
        for chosen in (counts > usual, (counts > 0) & (counts <= usual)):
            taken = chosen[row]
            if taken.any():
                self._merge(row[taken], column[taken] + column_start, values[taken], counts * chosen, start)

    def _merge(
        self,
        row: NDArray[np.int64],
        column: NDArray[np.int64],
        values: Floats,
        counts: NDArray[np.int64],
        start: int,
    ) -> None:
        touched = np.flatnonzero(counts)
        width = int(counts.max())
        local = np.empty(len(counts), np.int64)
        local[touched] = np.arange(len(touched))
        slot = self.kept + np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
        all_values = np.full((len(touched), self.kept + width), -np.inf, np.float32)
        all_columns = np.full((len(touched), self.kept + width), -1, np.int32)
        all_values[:, : self.kept] = self.values[start + touched]
        all_columns[:, : self.kept] = self.columns[start + touched]
        all_values[local[row], slot] = values
        all_columns[local[row], slot] = column
        chosen = np.argpartition(all_values, width, axis=1)[:, width:]
        kept = np.take_along_axis(all_values, chosen, 1)
        self.values[start + touched] = kept
        self.columns[start + touched] = np.take_along_axis(all_columns, chosen, 1)
        self.floor[start + touched] = np.maximum(self.floor[start + touched], kept.min(axis=1))

    def ranked(self) -> Ranked:
        """Return the `k` best of each row, computed again and ordered."""
        row, slot = np.nonzero(self.columns >= 0)
        column = self.columns[row, slot].astype(np.int64)
        value = pair_similarities(self.a, self.b, row, column)
        # One sort of one integer: falling value, column.
        highest = (1 << _VALUE_BITS) - 1
        key = np.full(self.columns.shape, highest << _COLUMN_BITS, np.int64)
        units = np.rint(value * _UNITS).astype(np.int64)
        key[row, slot] = ((highest - np.maximum(units, 0)) << _COLUMN_BITS) | column
        key.sort(axis=1)
        key = key[:, : self.k]
        positions = np.full((len(key), self.wanted), -1, np.int32)
        similarities = np.zeros((len(key), self.wanted), np.float32)
        units = highest - (key >> _COLUMN_BITS)
        positions[:, : self.k] = np.where(units > 0, key & ((1 << _COLUMN_BITS) - 1), -1)
        similarities[:, : self.k] = units.astype(np.float32) / _UNITS
        if self.kept < len(self.b):
            dropped = self.values.min(axis=1)  # nothing above it was, unless the row did not fill
            close = similarities[:, self.k - 1] <= dropped + _SLACK
            doubtful = np.flatnonzero(np.where(np.isfinite(dropped), close, self.guessed))
            for part, found in self._in_full(doubtful):
                positions[part], similarities[part] = found
        return positions, similarities

    def _in_full(self, rows: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], Ranked]]:
        found = []
        step = max(1, self.memory // (8 * len(self.b)))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            s = self.a[part] @ self.b.T
            floor = np.partition(s, len(self.b) - self.k, axis=1)[:, len(self.b) - self.k] - _SLACK
            row, column = np.nonzero(s >= np.maximum(floor, _SMALLEST)[:, None])
            found.append((part, exact_rows(self.a[part], self.b, row, column, self.wanted)))
        return found


def exact_rows(a: Floats, b: Floats, row: NDArray[np.int64], column: NDArray[np.int64], k: int) -> Ranked:
    """Return the `k` best of the given pairs for each row of `a`, by similarity and then by position."""
    positions = np.full((len(a), k), -1, np.int32)
    similarities = np.zeros((len(a), k), np.float32)
    value = pair_similarities(a, b, row, column)
    above = value > 0
    row, column, value = row[above], column[above], value[above]
    order = np.lexsort((column, -value, row))
    row, column, value = row[order], column[order], value[order]
    rank = np.arange(len(row)) - np.searchsorted(row, np.arange(len(a)))[row]
    best = rank < k
    positions[row[best], rank[best]] = column[best]
    similarities[row[best], rank[best]] = value[best]
    return positions, similarities

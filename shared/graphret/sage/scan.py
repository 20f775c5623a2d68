"""The k largest cosines of each row, from blocks of a product of matrices."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Ranked: TypeAlias = tuple[NDArray[np.int32], Floats]
_Item = TypeVar("_Item")

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
_KEY_BITS, _COLUMN = 32, (1 << 32) - 1
_LOOKED_AT = 1 << 17


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
    with ThreadPoolExecutor(_WORKERS) as pool:
        for i in range(0, len(a), side):
            rows = a[i : i + side]
            for j in range(i if same else 0, len(b), side):
                columns = b[j : j + side]
                s = block[: len(rows) * len(columns)].reshape(len(rows), len(columns))
                np.matmul(rows, columns.T, out=s)
                offers = [(best_a, part, i, j, False) for part in _shares(len(rows), s.size)]
                if best_b is not None and not (same and i == j):
                    offers += [(best_b, part, j, i, True) for part in _shares(len(columns), s.size)]
                _each(pool, lambda offer, s=s: offer[0].offer(s, *offer[1:]), offers)  # type: ignore[misc]
    return [best.ranked() for best in ((best_a, best_b) if both and best_b is not None else (best_a,))]


def _shares(n: int, work: int) -> list[slice]:
    """Return one slice of `n` rows for each worker, all in one where there is little to do."""
    share = -(-n // _WORKERS) if work > _WORTH_THREADS else max(n, 1)
    return [slice(start, min(start + share, n)) for start in range(0, n, share)]


def _each(pool: ThreadPoolExecutor, work: Callable[[_Item], object], items: Sequence[_Item]) -> None:
    if len(items) > 1:
        list(pool.map(work, items))
    else:
        for item in items:
            work(item)


class _Best:
    """The best columns of each row seen so far, a few more than asked for.

    A value and its column are one integer, the bits of the value above those of the column: positive floats are in the
    order of their bits, so that one partition of integers finds the highest.
    """

    def __init__(self, a: Floats, b: Floats, k: int, memory: int) -> None:
        self.a, self.b, self.k, self.memory = a, b, min(k, len(b)), memory
        self.wanted = k
        self.kept = min(len(b), k + _SPARE)
        self.keys = np.full((len(a), self.kept), -1, np.int64)
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

    def offer(self, s: Floats, part: slice, start: int, column_start: int, transposed: bool) -> None:
        """Take in some rows of a block: its rows from `start`, its columns from `column_start`.

        With `transposed` the rows are the columns of `s`. Other parts of the block may be taken in meanwhile.
        """
        floor = self.floor[start + part.start : start + part.stop]
        s = s[:, part] if transposed else s[part]
        step = max(1, _LOOKED_AT // s.shape[1])
        above = np.empty((min(step, len(s)), s.shape[1]), np.bool_)
        found = []
        for top in range(0, len(s), step):  # as much at a time as stays in a processor's cache
            piece = s[top : top + step]
            limit = floor[None, :] if transposed else floor[top : top + step, None]
            flat = np.flatnonzero(np.greater_equal(piece, limit, out=above[: len(piece)]))
            across, along = np.divmod(flat, s.shape[1])
            found.append((across + top, along, piece[across, along]))
        across, along, values = (np.concatenate(column) for column in zip(*found, strict=True))
        row, column = (along, across) if transposed else (across, along)
        if not len(row):
            return
        if transposed:
            order = np.argsort(row.astype(np.min_scalar_type(len(floor))), kind="stable")  # few bits: a radix sort
            row, column, values = row[order], column[order], values[order]
        keys = (values.view(np.int32).astype(np.int64) << _KEY_BITS) | (column + column_start)
        counts = np.bincount(row, minlength=len(floor))
        # Rows with few and with many newcomers apart: one crowded row must not widen the work for all.
        usual = 2 * len(row) // len(floor) + 16
        crowded = counts > usual
        if not crowded.any():
            self._merge(row, keys, counts, start + part.start)
            return
        for chosen in (crowded, (counts > 0) & ~crowded):
            taken = chosen[row]
            if taken.any():
                self._merge(row[taken], keys[taken], counts * chosen, start + part.start)

    def _merge(self, row: NDArray[np.int64], keys: NDArray[np.int64], counts: NDArray[np.int64], start: int) -> None:
        """Take in keys by row, counted from `start`; `counts` of each row."""
        touched = np.flatnonzero(counts)
        width = int(counts.max())
        local = np.empty(len(counts), np.int64)
        local[touched] = np.arange(len(touched))
        slot = self.kept + np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
        together = np.full((len(touched), self.kept + width), -1, np.int64)
        together[:, : self.kept] = self.keys[start + touched]
        together[local[row], slot] = keys
        together.partition(width, axis=1)
        kept = together[:, width:]
        self.keys[start + touched] = kept
        lowest = kept[:, 0]  # partition puts the lowest of what is kept first
        full = lowest >= 0
        at = start + touched[full]
        self.floor[at] = np.maximum(self.floor[at], _value(lowest[full]))

    def ranked(self) -> Ranked:
        """Return the `k` best of each row, computed again and ordered."""
        self.keys.sort(axis=1)
        # What lies so far below the k-th that no rounding lifts it there need not be computed again.
        least = _value(self.keys[:, -self.k]) - 2 * _SLACK
        values = _value(self.keys)
        row, slot = np.nonzero((self.keys >= 0) & ~(values < least[:, None]))
        column = self.keys[row, slot] & _COLUMN
        value = pair_similarities(self.a, self.b, row, column)
        # One sort of one integer: falling value, column.
        highest = (1 << _VALUE_BITS) - 1
        key = np.full(self.keys.shape, highest << _COLUMN_BITS, np.int64)
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
            filled = self.keys[:, 0] >= 0
            close = similarities[:, self.k - 1] <= values[:, 0] + _SLACK  # nothing above it was dropped
            doubtful = np.flatnonzero(np.where(filled, close, self.guessed))
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


def _value(keys: NDArray[np.int64]) -> Floats:
    """Return the values in keys; NaN where a key is -1."""
    return (keys >> _KEY_BITS).astype(np.int32).view(np.float32)


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

"""Small steps with arrays of numbers that numpy lacks, or takes longer for."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)

# Places that are looked up at once.
_BLOCK = 1 << 16
# With fewer, numbers are sooner compared with each than looked up.
_FEW = 4
# With more shifts, numbers are sooner looked up than shifted.
_FEW_SHIFTS = 4


def unique(*several: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """Return the distinct numbers of one or more arrays, ascending.

    `numpy.unique` hashes whole numbers since 2.3: it takes up to thirty times as long.
    """
    values = np.sort(np.concatenate([one.ravel() for one in several]))
    is_first = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    return values.compress(is_first)


def flags(codes: NDArray[np.integer[Any]], n: int) -> NDArray[np.bool_]:
    """Return which of the numbers up to `n` are among `codes`, ``(n,)``."""
    mask = np.zeros(n, dtype=bool)
    mask[codes] = True
    return mask


def padded(column: NDArray[T], n: int, value: object) -> NDArray[T]:
    """Return a column by number that is long enough for `n` numbers."""
    missing = np.full(n - len(column), value, column.dtype)
    return np.concatenate([column, missing])


def ranges(
    indptr: NDArray[np.int64], positions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return ``range(indptr[p], indptr[p + 1])`` of all `positions`, concatenated."""
    starts = indptr[positions]
    return spans(starts, indptr[np.asarray(positions) + 1] - starts)


def spans(starts: NDArray[Any], lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Return spans of places, given where each begins and how long it is."""
    shift = np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
    return np.asarray(shift + np.arange(len(shift)), dtype=np.int64)


def gathered(values: NDArray[T], places: NDArray[np.signedinteger[Any]]) -> NDArray[T]:
    """Return the values at very many places, in half the time of an index.

    numpy makes numbers of 64 bits of places of 32: here block by block, in the cache.
    Places are trusted: those from -1 down count from behind, and none is checked.
    """
    out = np.empty(len(places), values.dtype)
    for start in range(0, len(places), _BLOCK):
        at = slice(start, start + _BLOCK)
        # numpy would check places, and write to a copy first
        np.take(values, places[at], out=out[at], mode="wrap")
    return out


def renumbered(
    codes: NDArray[np.int32], new: NDArray[np.signedinteger[Any]]
) -> NDArray[np.int32]:
    """Return the new number of each of very many codes, ``new[codes]``.

    Where numbers stay beside each other they are shifted, which is far sooner done than
    looking each up.
    """
    if not len(codes):
        return codes
    firsts = np.append(0, 1 + np.flatnonzero(new[1:] != new[:-1] + 1))
    if len(firsts) > _FEW_SHIFTS:
        return gathered(np.asarray(new, np.int32), codes)
    shifts = (new[firsts] - firsts).astype(np.int32)
    out = np.empty(len(codes), np.int32)
    for start in range(0, len(codes), _BLOCK):
        block = codes[start : start + _BLOCK]
        shifted = block + shifts[0]
        for first, shift in zip(firsts[1:].tolist(), np.diff(shifts), strict=True):
            shifted += (block >= first) * shift
        out[start : start + _BLOCK] = shifted
    return out


def marked(
    are_marked: NDArray[np.bool_], codes: NDArray[np.signedinteger[Any]]
) -> NDArray[np.int64]:
    """Return where very many numbers are marked ones, ascending."""
    sought = np.flatnonzero(are_marked)
    if not len(sought):
        return sought
    if len(sought) > _FEW:
        return np.flatnonzero(gathered(are_marked, codes))
    found = np.zeros(len(codes), np.bool_)
    for code in sought.astype(codes.dtype):
        found |= codes == code
    return np.flatnonzero(found)

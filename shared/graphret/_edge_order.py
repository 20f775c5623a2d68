"""The order in which edges lie: by source, target, relation and parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput

MOST_RELATIONS = 2**15 - 1
_BLOCK = 1 << 20
_PIECES = 10_000


def ranges(indptr: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the concatenation of ``range(indptr[p], indptr[p + 1])`` over `positions`."""
    starts = indptr[positions]
    lengths = indptr[np.asarray(positions) + 1] - starts
    total = int(lengths.sum())
    if not total:
        return np.empty(0, dtype=np.int64)
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.asarray(shift + np.arange(total), dtype=np.int64)


def row_starts(source: NDArray[np.signedinteger[Any]], n_nodes: int) -> NDArray[np.int64]:
    """Return where the edges of each source begin in a sorted table, ``(n_nodes + 1,)``."""
    indptr = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(source, minlength=n_nodes), out=indptr[1:])
    return indptr


def fewest(codes: NDArray[Any], relations: Sequence[str]) -> tuple[NDArray[np.int16], list[str]]:
    """Leave out the names of relations that no edge has; an `InvalidInput` says if there are too many."""
    used = np.zeros(len(relations), dtype=bool)
    for start in range(0, len(codes), _BLOCK):  # counting turns codes into 64 bits each
        used |= np.bincount(codes[start : start + _BLOCK], minlength=len(relations)) > 0
    kept = [name for name, there in zip(relations, used.tolist(), strict=True) if there]
    if len(kept) > MOST_RELATIONS:
        raise InvalidInput(f"relations: {len(kept):,} names are more than the {MOST_RELATIONS:,} that can be kept")
    if len(kept) == len(relations):
        return codes.astype(np.int16, copy=False), kept
    return (np.cumsum(used) - 1).astype(np.int16)[codes], kept


def sorted_order(n_nodes: int, keys: Sequence[NDArray[Any]], n_relations: int) -> NDArray[np.int64]:
    """Return the stable order by source, target, relation and parts."""
    source, target, relation, *parts = keys
    n_relations = max(n_relations, 1)
    whole = all(not len(part) or part.min() == part.max() for part in parts)
    if not whole or n_nodes * n_nodes * n_relations >= 2**62:
        return np.lexsort(keys[::-1])
    key = source.astype(np.int64) * n_nodes  # one key for three
    key += target
    key *= n_relations
    key += relation
    return np.arange(len(key)) if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")


def last_of_equals(order: NDArray[np.int64], keys: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
    """Return which places of an order hold the last of those with the same keys."""
    last = np.ones(len(order), dtype=bool)
    same = np.ones(len(order) - 1, dtype=bool)
    for key in keys:
        ordered = key[order]
        same &= ordered[1:] == ordered[:-1]
    last[:-1] = ~same
    return last


class Merge:
    """Two sorted tables of edges as one, without the old edges that equal a fresh one.

    Only the rows of the fresh edges' sources are compared, and columns are copied in the stretches that stay together.

    Parameters
    ----------
    indptr
        Where the edges of each source begin in the old table.
    old, fresh
        The keys of each table, the first the source; no two fresh edges are equal.
    """

    def __init__(self, indptr: NDArray[np.int64], old: Sequence[NDArray[Any]], fresh: Sequence[NDArray[Any]]) -> None:
        self._m, f = len(old[0]), len(fresh[0])
        near = ranges(indptr, np.unique(fresh[0]))
        keys = [np.concatenate([mine[near], new]) for mine, new in zip(old, fresh, strict=True)]
        order = np.lexsort(keys[::-1])  # stable: of equals the old one is first
        is_fresh = order >= len(near)
        same = np.all([np.diff(key[order]) == 0 for key in keys], axis=0)
        following = np.where(is_fresh, indptr[keys[0][order] + 1], np.append(near, np.zeros(f, np.int64))[order])
        # Before which old edge each fresh one comes, and the old edges that go.
        self._at = np.minimum.accumulate(following[::-1])[::-1][is_fresh]
        self._fresh = order[is_fresh] - len(near)
        self._gone = near[order[:-1][same]]
        counts = np.bincount(fresh[0], minlength=len(indptr) - 1)
        counts -= np.bincount(old[0][self._gone], minlength=len(indptr) - 1)
        self.indptr: NDArray[np.int64] = indptr.copy()
        self.indptr[1:] += np.cumsum(counts)

    def order(self) -> NDArray[np.int64]:
        """The order of the two tables laid end to end."""
        merged = np.insert(np.arange(self._m), self._at, self._m + self._fresh)
        if len(self._gone):
            gone = np.zeros(self._m + len(self._fresh), dtype=bool)
            gone[self._gone] = True
            merged = merged[~gone[merged]]
        return merged

    def column(self, old: NDArray[Any], fresh: NDArray[Any]) -> NDArray[Any]:
        """A column of the merged table."""
        if len(self._at) + len(self._gone) > _PIECES:
            return np.concatenate([old, fresh])[self.order()]
        return np.concatenate([(old if own else fresh)[start:stop] for own, start, stop in self._pieces()])

    def _pieces(self) -> Iterator[tuple[bool, int, int]]:
        """Stretches of the old table, and single fresh edges."""
        places = np.concatenate([self._at, self._gone])
        which = np.append(self._fresh, np.full(len(self._gone), -1))
        ordered = np.argsort(places, kind="stable")  # what comes before an edge that goes comes before
        last = 0
        for place, one in zip(places[ordered].tolist(), which[ordered].tolist(), strict=True):
            yield True, last, place
            last = place + (one < 0)
            if one >= 0:
                yield False, one, one + 1
        yield True, last, self._m

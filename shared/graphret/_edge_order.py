"""The order in which edges lie: by source, target, relation and parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput

MOST_RELATIONS = 2**15 - 1


def ranges(indptr: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the concatenation of ``range(indptr[p], indptr[p + 1])`` over `positions`."""
    starts = indptr[positions]
    lengths = indptr[np.asarray(positions) + 1] - starts
    total = int(lengths.sum())
    if not total:
        return np.empty(0, dtype=np.int64)
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.asarray(shift + np.arange(total), dtype=np.int64)


def fewest(codes: NDArray[Any], relations: Sequence[str]) -> tuple[NDArray[np.int16], list[str]]:
    """Leave out the names of relations that no edge has; an `InvalidInput` says if there are too many."""
    used = np.bincount(codes, minlength=len(relations)) > 0
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


def merged_order(
    indptr: NDArray[np.int64], old: Sequence[NDArray[Any]], fresh: Sequence[NDArray[Any]]
) -> NDArray[np.int64]:
    """Return the order of two sorted tables of edges laid end to end, without the old edges that equal a fresh one.

    Only the rows of the fresh edges' sources are compared.

    Parameters
    ----------
    indptr
        Where the edges of each source begin in the old table.
    old, fresh
        The keys of each table, the first the source.
    """
    m, f = len(old[0]), len(fresh[0])
    near = ranges(indptr, np.unique(fresh[0]))
    keys = [np.concatenate([mine[near], new]) for mine, new in zip(old, fresh, strict=True)]
    order = np.lexsort(keys[::-1])  # stable: of equals the old one is first
    is_fresh = order >= len(near)
    same = np.all([np.diff(key[order]) == 0 for key in keys], axis=0)
    following = np.where(is_fresh, indptr[keys[0][order] + 1], np.append(near, np.zeros(f, np.int64))[order])
    at = np.minimum.accumulate(following[::-1])[::-1][is_fresh]  # the next old edge, or the end of the row
    merged = np.insert(np.arange(m), at, m + order[is_fresh] - len(near))
    if same.any():
        gone = np.zeros(m + f, dtype=bool)
        gone[near[order[:-1][same]]] = True
        merged = merged[~gone[merged]]
    return merged

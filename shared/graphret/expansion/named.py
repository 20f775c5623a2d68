"""Nodes that a question calls by name."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from graphret.expansion.frontier import Frontier
from graphret.text import normalize_name, short_names


@lru_cache(maxsize=200_000)
def _spoken(name: str) -> tuple[str, ...]:
    forms = (normalize_name(form) for form in (name, *short_names(name)))
    return tuple(dict.fromkeys(form for form in forms if form))


def named_pairs(frontier: Frontier, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of nodes that the question names in different places, ``(p,)`` each.

    Of names that overlap the longest counts, as in any text; nodes that share a name are no pair.

    Parameters
    ----------
    positions
        The nodes whose names are looked for.
    """
    question = f" {normalize_name(frontier.query)} "
    spans: list[tuple[int, int, int]] = []
    for position, name in zip(positions.tolist(), frontier.graph.nodes.names.take(positions), strict=True):
        said = [(question.find(f" {form} "), len(form)) for form in _spoken(name)]
        at, length = max(said, key=lambda found: (found[0] >= 0, found[1]), default=(-1, 0))
        if at >= 0:
            spans.append((at, at + length, position))
    spans.sort(key=lambda span: (span[0] - span[1], span))
    kept: list[tuple[int, int, int]] = []
    for start, end, position in spans:
        if not any(s < end and start < e and (s, e) != (start, end) for s, e, _ in kept):
            kept.append((start, end, position))
    pairs = [(one[2], other[2]) for one, other in combinations(kept, 2) if one[:2] != other[:2]]
    left, right = zip(*pairs, strict=True) if pairs else ((), ())
    return np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)

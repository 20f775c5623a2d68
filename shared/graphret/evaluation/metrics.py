"""Measures of a ranking against a set of right answers, and how sure a difference between two systems is.

Every measure takes the ids of a ranking, best first, and the ids that are right (`gold`), and lies between 0 and 1.
Binary relevance as in Manning, Raghavan and Schütze, *Introduction to Information Retrieval*, chapter 8. An empty
`gold` and a `k` below 1 are an `InvalidInput`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike

from graphret.errors import InvalidInput
from graphret.search.index import require_k

#: Resamples of the bootstrap; with 2,000 the ends of a 95 % interval are steady to about a twentieth of its width.
RESAMPLES = 2000


def recall_at_k(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of the right answers among the first `k`: ``|gold ∩ ranked[:k]| / |gold|``."""
    right = _checked(gold, k)
    return len(right.intersection(ranked[:k])) / len(right)


def hit_at_k(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return 1 if any of the first `k` is right, 0 if not: ``[gold ∩ ranked[:k] ≠ ∅]``."""
    return float(not _checked(gold, k).isdisjoint(ranked[:k]))


def all_at_k(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return 1 if the first `k` hold every right answer, 0 if not: ``[gold ⊆ ranked[:k]]``.

    What a question over several passages needs before a reader can answer it.
    """
    return float(_checked(gold, k).issubset(ranked[:k]))


def mrr(ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return ``1 / rank`` of the first right answer, 0 if there is none (Voorhees 1999, TREC-8 question answering).

    Its mean over questions is the mean reciprocal rank.
    """
    right = _checked(gold, 1)
    return next((1.0 / rank for rank, one in enumerate(ranked, start=1) if one in right), 0.0)


def _checked(gold: Collection[str], k: int) -> set[str]:
    if isinstance(gold, str) or not gold:
        raise InvalidInput(f"gold: at least one right answer is expected, not {gold!r}")
    require_k(k)
    return set(gold)


def paired_bootstrap(ours: ArrayLike, theirs: ArrayLike) -> dict[str, float]:
    """Return the mean of ``ours − theirs`` over the same questions, and its 95 % bootstrap percentile interval.

    Questions are drawn with replacement, both systems' values of a question together (Efron and Tibshirani 1993,
    section 13.3; Sakai 2006 for retrieval), each time the same.

    Parameters
    ----------
    ours, theirs
        The measure of each question, ``(q,)``; an `InvalidInput` when they are empty or not of one length.

    Returns
    -------
    dict
        ``gain``, and ``low`` and ``high``, the ends of the interval, in percent, rounded to two places.
    """
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or not len(a):
        raise InvalidInput(f"values of the same questions are expected, not of shapes {a.shape} and {b.shape}")
    difference = a - b
    drawn = np.random.default_rng(0).integers(len(difference), size=(RESAMPLES, len(difference)))
    low, high = np.percentile(difference[drawn].mean(axis=1), [2.5, 97.5])
    return {"gain": percent(difference.mean()), "low": percent(low), "high": percent(high)}


def percent(share: float) -> float:
    """Return a share in percent, rounded to two places."""
    return round(100 * float(share), 2)

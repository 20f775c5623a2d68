"""Measures of a ranking against the right answers, and intervals of differences.

Every measure takes the ids of a ranking, best first, and the ids that are right
(`gold`), and lies between 0 and 1. Binary relevance as in Manning, Raghavan and
Schütze, *Introduction to Information Retrieval*, chapter 8. An empty `gold` and a `k`
below 1 are an `InvalidInput`.

The graded measures take parts of what answers a question (`GoldPart`), which several
nodes may hold a share of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from graphret.errors import InvalidInput
from graphret.search.index import require_k

#: Resamples of the bootstrap; with 2,000 the ends of a 95 % interval are steady to
#: about a twentieth of its width.
RESAMPLES = 2000
#: By how much a sum of shares may fall short of 1 and still be all of them.
ROUNDING = 1e-9


def recall_at_k(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of `gold` in the first `k`: ``|gold ∩ ranked[:k]| / |gold|``."""
    right = _checked(gold, k)
    return len(right.intersection(ranked[:k])) / len(right)


def hit_at_k(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return 1 if any of the first `k` is right, else 0: ``gold ∩ ranked[:k] ≠ ∅``."""
    return float(not _checked(gold, k).isdisjoint(ranked[:k]))


def all_at_k(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return 1 if the first `k` hold all right answers, else 0: ``gold ⊆ ranked[:k]``.

    What a question over several passages needs before a reader can answer it.
    """
    return float(_checked(gold, k).issubset(ranked[:k]))


def mrr(ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return 1 / rank of the first right answer, 0 if there is none (Voorhees 1999).

    Its mean over questions is the mean reciprocal rank.
    """
    right = _checked(gold, 1)
    return next(
        (
            1.0 / rank
            for rank, node_id in enumerate(ranked, start=1)
            if node_id in right
        ),
        0.0,
    )


def _checked(gold: Collection[str], k: int) -> set[str]:
    if isinstance(gold, str) or not gold:
        raise InvalidInput(f"gold: expected at least one right answer, got {gold!r}")
    require_k(k)
    return set(gold)


@dataclass(frozen=True, slots=True)
class GoldPart:
    """A part of what answers a question, and how much of it each node holds.

    A passage is held whole by one node, a table whole by each of its segments, and a
    span of a text in shares by the chunks that it runs through.

    Parameters
    ----------
    weight
        What the part counts for; the weights of a question's parts sum to 1.
    shares
        The share of the part that a node holds, above 0 and at most 1, by the node's
        id.
    """

    weight: float
    shares: Mapping[str, float]


def holders(gold: Collection[GoldPart]) -> set[str]:
    """Return the ids of the nodes that hold some of any part."""
    return {node_id for part in gold for node_id in part.shares}


def graded_recall_at_k(
    ranked: Sequence[str], gold: Collection[GoldPart], k: int
) -> float:
    """Return how much of the parts the first `k` hold: ``Σ weight · min(1, share)``."""
    retrieved = _checked(holders(gold), k).intersection(ranked[:k])
    covered = [
        min(1.0, sum(part.shares.get(node_id, 0.0) for node_id in retrieved))
        for part in gold
    ]
    return sum(part.weight * share for part, share in zip(gold, covered, strict=True))


def graded_all_at_k(ranked: Sequence[str], gold: Collection[GoldPart], k: int) -> float:
    """Return 1 if the first `k` hold all of every part, up to rounding, else 0."""
    return float(graded_recall_at_k(ranked, gold, k) >= 1 - ROUNDING)


def paired_bootstrap(ours: ArrayLike, theirs: ArrayLike) -> dict[str, float]:
    """Return the mean of ``ours − theirs`` with its 95 % bootstrap percentile interval.

    Questions are drawn with replacement, both systems' values of a question together
    (Efron and Tibshirani 1993, section 13.3; Sakai 2006 for retrieval), each time the
    same.

    Parameters
    ----------
    ours, theirs
        The measure of each question, ``(q,)``; an `InvalidInput` when they are empty or
        not of one length.

    Returns
    -------
    dict
        ``gain``, and ``low`` and ``high``, the ends of the interval, in percent,
        rounded to two places.
    """
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or not len(a):
        raise InvalidInput(
            f"expected values of the same questions, got shapes {a.shape} and {b.shape}"
        )
    return mean_gain([a - b])


def mean_gain(differences: Sequence[ArrayLike]) -> dict[str, float]:
    """Return the mean gain over sets of questions, with its 95 % bootstrap interval.

    Each set counts alike, however many questions it has. Questions are drawn with
    replacement within each set, as many as it has (Efron and Tibshirani 1993, section
    8.4, for several samples), each time the same.

    Parameters
    ----------
    differences
        For each set ``ours − theirs`` of each question, ``(q,)``; an `InvalidInput`
        when there are none.

    Returns
    -------
    dict
        ``gain``, ``low`` and ``high``, as of `paired_bootstrap`.
    """
    sets = [
        np.asarray(question_differences, dtype=np.float64)
        for question_differences in differences
    ]
    if not sets or not all(
        question_differences.ndim == 1 and len(question_differences)
        for question_differences in sets
    ):
        raise InvalidInput(
            "differences: expected at least one set of questions, and one question"
            " in each"
        )
    generator = np.random.default_rng(0)
    resampled = np.zeros(RESAMPLES)
    for question_differences in sets:
        drawn = generator.integers(
            len(question_differences), size=(RESAMPLES, len(question_differences))
        )
        resampled += question_differences[drawn].mean(axis=1)
    low, high = np.percentile(resampled / len(sets), [2.5, 97.5])
    gain = sum(
        float(question_differences.mean()) for question_differences in sets
    ) / len(sets)
    return {"gain": percent(gain), "low": percent(low), "high": percent(high)}


def percent(share: float) -> float:
    """Return a share in percent, rounded to two places."""
    return round(100 * float(share), 2)

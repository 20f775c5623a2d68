"""Choosing GRASP's fusion on labelled questions: the paper's grid, searched whole
(section 3.2, appendix A).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from graphret.grasp.retriever import Grasp
from graphret.grasp.settings import GraspSettings, StaticWeights
from graphret.training.questions import LabelledQuestion
from graphret.training.tuned import Progress, cross_validated, middle
from graphret.types import Signals

#: The weights and constants that are tried (appendix A).
STATIC_WEIGHTS = tuple(round(0.05 * step, 2) for step in range(21))
STATIC_K = (1, 2, 5, 10, 20, 40, 60, 80, 100)
_SHOWN = ("hit@1", "hit@5", "recall@20", "mrr")


@dataclass(frozen=True)
class FusionCase:
    """A question as fusion sees it: the two ranked lists, what the plan signals, and
    the right answers.
    """

    plan: Sequence[str]
    text: Sequence[str]
    signals: Signals
    gold: frozenset[str]

    def ranked(self, weights: Sequence[float], rrf_k: float) -> list[str]:
        """Return the ids of both lists by their weighted reciprocal ranks, ties
        by id.
        """
        scores: dict[str, float] = {}
        for ids, weight in zip((self.plan, self.text), weights, strict=True):
            for rank, node in enumerate(ids, 1):
                scores[node] = scores.get(node, 0.0) + weight / (rrf_k + rank)
        return sorted(scores, key=lambda node: (-scores[node], node))


def cases_of(
    grasp: Grasp,
    questions: Sequence[LabelledQuestion],
    *,
    progress: Progress = lambda done, of: None,
) -> list[FusionCase]:
    """Ask both stages once a question; everything else of tuning is arithmetic over
    their lists.
    """
    found = []
    for number, question in enumerate(questions, 1):
        plan = grasp.plan.retrieve(question.text, grasp.settings.depth)
        text = grasp.text.retrieve(question.text, grasp.settings.depth)
        found.append(
            FusionCase(
                plan.ids,
                [hit.id for hit in text if not hit.fill],
                plan.signals,
                question.gold,
            )
        )
        progress(number, len(questions))
    return found


def tune_fusion(
    cases: Sequence[FusionCase], default: GraspSettings | None = None
) -> tuple[GraspSettings, dict[str, dict[str, float]]]:
    """Choose the weights and the constant of the fusion by Hit@1, then MRR, in
    cross-validation.

    Returned are the settings, the default where nothing is better, and the metrics in
    percent, of ``default``, of the ``static`` weights that were searched and of what is
    ``tuned``, on folds that they were not chosen on. An `InvalidInput` says that there
    are fewer than ten questions.
    """
    default = default or GraspSettings()
    grid = [
        replace(default, weights=StaticWeights(w), rrf_k=float(k))
        for w, k in product(STATIC_WEIGHTS, STATIC_K)
    ]
    hits = np.stack([_values(cases, settings)[:, 0] for settings in grid], axis=1)

    def static(rows: NDArray[np.intp]) -> GraspSettings:
        w, k = middle(
            hits[rows].mean(axis=0).reshape(len(STATIC_WEIGHTS), len(STATIC_K))
        )
        return grid[w * len(STATIC_K) + k]

    def values(rows: NDArray[np.intp], settings: GraspSettings) -> NDArray[np.float64]:
        return _values([cases[row] for row in rows], settings)

    settings, metrics = cross_validated(
        len(cases), default, {"static": static}, values, _SHOWN
    )
    return settings, metrics


def _values(
    cases: Sequence[FusionCase], settings: GraspSettings
) -> NDArray[np.float64]:
    """The metrics of each question, ``(n, 4)``."""

    def of(case: FusionCase) -> tuple[float, ...]:
        ranked = case.ranked(
            settings.weights([case.signals, Signals()]), settings.rrf_k
        )
        first = next(
            (rank for rank, node in enumerate(ranked, 1) if node in case.gold), np.inf
        )
        found = len(case.gold.intersection(ranked[:20]))
        return first == 1, first <= 5, found / len(case.gold), 1 / first

    return np.asarray([of(case) for case in cases])

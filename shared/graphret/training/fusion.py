"""Tuning GRASP's fusion on labelled questions by the paper's grids (3.2, A)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from graphret.grasp.retriever import Grasp
from graphret.grasp.settings import (
    BUCKETS,
    RISKS,
    DynamicWeights,
    GraspSettings,
    StaticWeights,
    cell_of,
)
from graphret.rerank import Rerank, Reranker
from graphret.retriever import Fuse
from graphret.training.questions import LabelledQuestion
from graphret.training.tuned import (
    SHOWN,
    Progress,
    Search,
    Values,
    cross_validated,
    first_right,
    middle,
    ranking_values,
)
from graphret.types import Signals

#: The weights and constants that are tried (appendix A).
STATIC_WEIGHTS = tuple(round(0.05 * step, 2) for step in range(21))
STATIC_K = (1, 2, 5, 10, 20, 40, 60, 80, 100)
DYNAMIC_K = (5, 10, 20, 40, 80, 150, 300)
BUCKET_WEIGHTS: tuple[tuple[float, ...], ...] = (
    (1.0, 1.2, 1.4, 1.6, 2.0),
    (0.8, 1.0, 1.2, 1.4),
    (0.2, 0.4, 0.6, 0.8),
    (0.0, 0.05, 0.1),
    (0.0, 0.05, 0.1),
)
RISK_WEIGHTS: tuple[tuple[float, ...], ...] = (
    (0.0, 0.25, 0.5, 0.75),
    (0.5, 0.75, 1.0, 1.25),
    (0.75, 1.0, 1.25, 1.5),
    (1.0, 1.25, 1.5, 2.0),
)


@dataclass(frozen=True)
class FusionCase:
    """A question for fusion: two ranked lists, the plan's signals, and the answers."""

    plan: Sequence[str]
    text: Sequence[str]
    signals: Signals
    gold: frozenset[str]

    def ranked(self, weights: Sequence[float], rrf_k: float) -> list[str]:
        """Return the ids of both lists by weighted reciprocal ranks, ties by id."""
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
    """Ask both stages each question once; tuning only needs their lists."""
    cases = []
    for number, question in enumerate(questions, 1):
        plan = grasp.plan.retrieve(question.text, grasp.settings.depth)
        text = grasp.text.retrieve(question.text, grasp.settings.depth)
        cases.append(
            FusionCase(
                plan.ids,
                [hit.id for hit in text if not hit.fill],
                plan.signals,
                question.gold,
            )
        )
        progress(number, len(questions))
    return cases


def tune_fusion(
    cases: Sequence[FusionCase], default: GraspSettings | None = None
) -> tuple[GraspSettings, dict[str, dict[str, float]]]:
    """Choose static or dynamic weights and the fusion's constant by cross-validation.

    The criterion is Hit@1, then MRR. Returns the settings (the default if nothing is
    better), and the metrics in percent of the ``default``, the ``static`` and
    ``dynamic`` weights, and the ``tuned`` settings, on folds that they were not chosen
    on. Fewer than ten questions are an `InvalidInput`.
    """
    default = default or GraspSettings()
    grid = [
        replace(default, weights=StaticWeights(w), rrf_k=float(k))
        for w, k in product(STATIC_WEIGHTS, STATIC_K)
    ]
    searches = {
        "static": _static_search(cases, grid),
        "dynamic": _DynamicGrid(cases, default).best,
    }
    return cross_validated(len(cases), default, searches, _values_of_rows(cases), SHOWN)


def rerank_cases_of(
    grasp: Grasp,
    settings: GraspSettings,
    reranker: Reranker,
    questions: Sequence[LabelledQuestion],
    *,
    progress: Progress = lambda done, of: None,
) -> list[FusionCase]:
    """Ask both stages and a reranker each question once.

    The reranked order is the case's ``plan``, and the order fused by the settings its
    ``text``.
    """
    depth = settings.rerank_depth
    fused_stages = Fuse(
        [grasp.plan, grasp.text],
        weights=settings.weights,
        rrf_k=settings.rrf_k,
        depth=settings.depth,
    )
    rerank = Rerank(fused_stages, reranker, depth=depth, weight=1.0, rrf_k=1.0)
    cases = []
    for number, question in enumerate(questions, 1):
        reranked = rerank.retrieve(question.text, depth)
        fused = sorted(reranked.hits, key=lambda hit: hit.evidence[-1].rank or 0)
        cases.append(
            FusionCase(
                reranked.ids,
                [hit.id for hit in fused],
                Signals(plan_valid=True),
                question.gold,
            )
        )
        progress(number, len(questions))
    return cases


def tune_reranking(
    cases: Sequence[FusionCase], default: GraspSettings
) -> tuple[GraspSettings, dict[str, dict[str, float]]]:
    """Choose the reranker's weight and constant like static ones (3.3, figure A2)."""
    before = replace(
        default, weights=StaticWeights(default.rerank_weight), rrf_k=default.rerank_k
    )
    grid = [
        replace(default, weights=StaticWeights(w), rrf_k=float(k))
        for w, k in product(STATIC_WEIGHTS, STATIC_K)
    ]
    chosen, metrics = cross_validated(
        len(cases),
        before,
        {"static": _static_search(cases, grid)},
        _values_of_rows(cases),
        SHOWN,
    )
    [weight, _] = chosen.weights([Signals(plan_valid=True)])
    return replace(default, rerank_weight=weight, rerank_k=chosen.rrf_k), metrics


def _static_search(
    cases: Sequence[FusionCase], grid: Sequence[GraspSettings]
) -> Search:
    """Return the search for the middle of the best static weights."""
    hits = np.stack([_values(cases, settings)[:, 0] for settings in grid], axis=1)

    def best(rows: NDArray[np.intp]) -> GraspSettings:
        w, k = middle(
            hits[rows].mean(axis=0).reshape(len(STATIC_WEIGHTS), len(STATIC_K))
        )
        return grid[w * len(STATIC_K) + k]

    return best


def _values_of_rows(cases: Sequence[FusionCase]) -> Values:
    return lambda rows, settings: _values([cases[row] for row in rows], settings)


class _DynamicGrid:
    """Hit@1 and reciprocal ranks, joined, of every question under dynamic weights.

    A question falls into one bucket and one risk level, so that for given risks the
    buckets can be chosen one by one: the whole grid of 1.3 million settings is searched
    by the few products that each cell can have.
    """

    def __init__(self, cases: Sequence[FusionCase], default: GraspSettings) -> None:
        self.default = default
        self.cells = [cell_of(case.signals) for case in cases]
        most = max(map(len, BUCKET_WEIGHTS)), max(map(len, RISK_WEIGHTS))
        self.value = np.zeros((len(cases), len(DYNAMIC_K), *most))
        for row, (case, cell) in enumerate(zip(cases, self.cells, strict=True)):
            weights = (
                np.zeros((1, 1))
                if cell is None
                else np.outer(BUCKET_WEIGHTS[cell[0]], RISK_WEIGHTS[cell[1]])
            )
            n_buckets, n_risks = weights.shape
            for place, rrf_k in enumerate(DYNAMIC_K):
                for b, r in product(range(n_buckets), range(n_risks)):
                    self.value[row, place, b, r] = _value(
                        case, (weights[b, r], 1.0), rrf_k
                    )

    def best(self, rows: NDArray[np.intp]) -> GraspSettings:
        """Return the best of the grid on some questions."""
        sums = np.zeros((len(BUCKETS) + 1, len(RISKS), *self.value.shape[1:]))
        without_plan = np.zeros(len(DYNAMIC_K))
        for row in rows.tolist():
            cell = self.cells[row]
            if cell is None:
                without_plan += self.value[row, :, 0, 0]
            else:
                sums[cell] += self.value[row]
        best_of = [_best_cells(sums[:, :, place]) for place in range(len(DYNAMIC_K))]
        totals = [
            total + best_value
            for total, (best_value, *_) in zip(without_plan, best_of, strict=True)
        ]
        place = int(np.argmax(np.round(totals, 9)))
        _, buckets, risks = best_of[place]
        return self._settings(DYNAMIC_K[place], buckets, risks)

    def _settings(
        self, rrf_k: float, buckets: Sequence[int], risks: Sequence[int]
    ) -> GraspSettings:
        weights = DynamicWeights(
            tuple(
                options[at] for options, at in zip(BUCKET_WEIGHTS, buckets, strict=True)
            ),
            tuple(options[at] for options, at in zip(RISK_WEIGHTS, risks, strict=True)),
        )
        return replace(self.default, weights=weights, rrf_k=float(rrf_k))


def _best_cells(
    sums: NDArray[np.float64],
) -> tuple[float, Sequence[int], Sequence[int]]:
    """Return the highest value of the grid, with its bucket and risk weights' places.

    `sums` is by bucket, risk level, bucket weight and risk weight.
    """
    by_bucket = []
    for bucket, weights in zip(sums, BUCKET_WEIGHTS, strict=True):
        # the weight of the bucket, then that of each risk level, on an axis of its own
        parts = [
            risk[: len(weights)].reshape(
                len(weights),
                *(-1 if axis == level else 1 for axis in range(len(RISKS))),
            )
            for level, risk in enumerate(bucket)
        ]
        by_bucket.append(parts[0] + parts[1] + parts[2] + parts[3])
    totals = np.sum([values.max(axis=0) for values in by_bucket], axis=0)
    risks = np.unravel_index(int(np.round(totals, 9).argmax()), totals.shape)
    buckets = [int(values[:, *risks].argmax()) for values in by_bucket]
    return float(totals[risks]), buckets, [int(at) for at in risks]


def _value(case: FusionCase, weights: Sequence[float], rrf_k: float) -> float:
    """Return Hit@1, plus a thousandth of the reciprocal rank to break ties."""
    first = first_right(case.ranked(weights, rrf_k), case.gold)
    return (first == 1) + 1e-3 / first


def _values(
    cases: Sequence[FusionCase], settings: GraspSettings
) -> NDArray[np.float64]:
    """Return the metrics of each question, ``(n, 4)``."""

    def of(case: FusionCase) -> tuple[float, ...]:
        weights = settings.weights([case.signals, Signals()])
        return ranking_values(case.ranked(weights, settings.rrf_k), case.gold)

    return np.asarray([of(case) for case in cases])

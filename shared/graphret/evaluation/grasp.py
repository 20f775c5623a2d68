"""What each stage of GRASP adds (section 4.4).

The stages are the graph alone, fused with the text, reranked, and reranked by a model
that was trained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.evaluation.metrics import paired_bootstrap
from graphret.evaluation.runner import Progress
from graphret.grasp import Grasp, GraspSettings
from graphret.grasp.settings import BUCKETS, RISKS, cell_of
from graphret.llm.causal import settings_of
from graphret.rerank import (
    CausalReranker,
    Judgement,
    Rerank,
    Reranker,
    load_reranker,
)
from graphret.retriever import Fuse, Retriever
from graphret.stores.base import GraphStore
from graphret.training.fusion import (
    cases_of,
    rerank_cases_of,
    tune_fusion,
    tune_reranking,
)
from graphret.training.questions import LabelledQuestion
from graphret.training.tuned import SHOWN, percent_of, ranking_values
from graphret.types import Retrieval, Signals
from graphret.where import Where

#: The stages that need no reranker, each with what those above it have.
TEXT, GRAPH, FUSED = "text alone", "graph alone", "+ text"
_DEPTH = 20  # hits that are measured


def bench_grasp(
    grasp: Grasp,
    questions: Sequence[LabelledQuestion],
    *,
    rerankers: Mapping[str, Reranker] | None = None,
    validation: Sequence[LabelledQuestion] = (),
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Answer questions with one stage of GRASP more each time (section 4.4).

    Planner and search are asked once a question, whatever the number of stages.

    Parameters
    ----------
    grasp
        Whose planner, search and settings are taken; a reranker of its own is not.
    rerankers
        What reranks, by the name of its row: `rerankers_of` has those of a folder.
    validation
        Questions on which the fusion, and that of each reranker, is chosen before, as
        the paper does (section 3.2).

    Returns
    -------
    dict
        ``rows``: for ``text alone``, ``graph alone``, ``+ text`` and each reranker
        Hit@1, Hit@5, Recall@20 and MRR in percent; ``intervals``: the gain of a row
        over the one above it, from ``+ text`` on; ``plans``: of how many plans there
        were so many candidates at each risk level (figure 2), and ``modes`` where
        plans have retrieval modes.

    Raises
    ------
    InvalidInput
        When there are no questions, or fewer than ten to validate on.
    """
    if not questions:
        raise InvalidInput("questions: expected at least one, got none")
    report = progress or (lambda stage, done, total: None)
    asked_once = _asked_once(grasp)
    if validation:
        cases = cases_of(asked_once, validation, progress=partial(report, "validate"))
        asked_once.settings, _ = tune_fusion(cases, grasp.settings)
    stages = _stages(asked_once, rerankers or {}, validation)
    depth = _depth(asked_once.settings)
    values: dict[str, NDArray[np.float64]] = {}
    for stage, retriever in stages.items():
        values[stage] = _values(stage, retriever, questions, depth, report)
    plans = [asked_once.plan.retrieve(question.text, depth) for question in questions]
    return {
        "name": "grasp",
        "rows": {
            stage: percent_of(stage_values) for stage, stage_values in values.items()
        },
        "intervals": _gains(values),
        "shown": list(SHOWN),
        "counts": {"questions": len(questions), "validation": len(validation)},
        "plans": _distribution([plan.signals for plan in plans]),
        "modes": dict(Counter(filter(None, map(_mode_of, plans)))),
        "notes": [f"from {FUSED!r} on, gains are over the row above"],
    }


def rerankers_of(source: str | Path) -> dict[str, Reranker]:
    """Return the rerankers of a name or folder, by the names of their rows.

    For one that ``graphret train reranker`` wrote, the model that it was trained from
    has a row too.
    """
    settings = settings_of(source)
    if "judgement" not in settings:
        return {"+ reranker": load_reranker(source)}
    untrained = CausalReranker(
        settings["model"],
        judgement=Judgement(**settings["judgement"]),
        max_tokens=settings.get("max_tokens"),
    )
    return {
        "+ zero-shot reranker": untrained,
        "+ trained reranker": load_reranker(source),
    }


class _Remembered(Retriever):
    """A retriever that is asked once for the same."""

    def __init__(self, inner: Retriever) -> None:
        self.inner, self.name = inner, inner.name
        self.answers: dict[tuple[str, int], Retrieval] = {}

    @property
    def graph_store(self) -> GraphStore | None:
        return self.inner.graph_store

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        if (query, k) not in self.answers:
            self.answers[query, k] = self.inner.retrieve(query, k, where)
        return self.answers[query, k]


def _asked_once(grasp: Grasp) -> Grasp:
    """Return a GRASP whose planner and search are asked once a question."""
    once = copy(grasp)
    once.plan = _Remembered(grasp.plan)  # type: ignore[assignment]  # all that is used
    once.text = _Remembered(grasp.text)
    return once


def _depth(settings: GraspSettings) -> int:
    return max(settings.depth, _DEPTH)


def _stages(
    grasp: Grasp,
    rerankers: Mapping[str, Reranker],
    validation: Sequence[LabelledQuestion],
) -> dict[str, Retriever]:
    """Return the stages, each with what those above it have."""
    settings = grasp.settings
    fused = Fuse(
        [grasp.plan, grasp.text],
        weights=settings.weights,
        rrf_k=settings.rrf_k,
        depth=_depth(settings),
    )
    stages: dict[str, Retriever] = {TEXT: grasp.text, GRAPH: grasp.plan, FUSED: fused}
    for stage, reranker in rerankers.items():
        chosen = settings
        if validation:
            cases = rerank_cases_of(grasp, settings, reranker, validation)
            chosen, _ = tune_reranking(cases, settings)
        stages[stage] = Rerank(
            fused,
            reranker,
            depth=chosen.rerank_depth,
            weight=chosen.rerank_weight,
            rrf_k=chosen.rerank_k,
            on_failure="raise",
        )
    return stages


def _values(
    stage: str,
    retriever: Retriever,
    questions: Sequence[LabelledQuestion],
    depth: int,
    report: Progress,
) -> NDArray[np.float64]:
    """Return the metrics of each question, ``(n, 4)``."""
    values = []
    for number, question in enumerate(questions, 1):
        retrieval = retriever.retrieve(question.text, depth)
        ids = [hit.id for hit in retrieval if not hit.fill]
        values.append(ranking_values(ids[:_DEPTH], question.gold))
        report(stage, number, len(questions))
    return np.asarray(values, dtype=np.float64)


def _gains(
    values: Mapping[str, NDArray[np.float64]],
) -> dict[str, dict[str, dict[str, float]]]:
    """Return the gain of each stage over the one above it, from the fusion on."""
    stages = list(values)
    return {
        stage: {
            metric: paired_bootstrap(values[stage][:, column], values[above][:, column])
            for column, metric in enumerate(SHOWN)
        }
        for above, stage in pairwise(stages[stages.index(GRAPH) :])
    }


def _distribution(signals: Sequence[Signals]) -> dict[str, dict[str, int]]:
    """Return how many plans found so many candidates, by their risk level.

    Plans that have no weight in the fusion are ``0`` where they found nothing, and
    ``invalid``.
    """
    buckets = [f"at most {most}" for most in BUCKETS] + [f"more than {BUCKETS[-1]}"]
    counts: dict[str, Counter[str]] = {}
    for plan in signals:
        cell = cell_of(plan)
        if cell is not None:
            bucket, risk = buckets[cell[0]], RISKS[cell[1]]
        else:
            bucket, risk = "0", plan.risk or "invalid"
        counts.setdefault(bucket, Counter())[risk] += 1
    return {
        bucket: dict(counts[bucket]) for bucket in ("0", *buckets) if bucket in counts
    }


def _mode_of(plan: Retrieval) -> str | None:
    """Return the retrieval mode of a plan, if it has one."""
    written = plan.trace.stages[0].details.get("plan") or {}
    mode: str | None = written.get("retrieval_mode")
    return mode

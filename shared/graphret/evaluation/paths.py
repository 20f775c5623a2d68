"""Candidate paths that are ranked for questions, in the layout of GraphRAFT's validation file of STaRK-MAG."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphret.evaluation.runner import Progress
from graphret.planning import PathScorer
from graphret.training.candidates import choice_of, path_space, read_records
from graphret.training.paths import Choice, fit_scorer

SHOWN = ("top_is_best", "hit@1", "recall@20")
_K = 20


def bench_paths(data: str | Path, train: str | Path | None = None, progress: Progress | None = None) -> dict[str, Any]:
    """Rank the candidate queries of each question, and measure the ranking by their hits and results.

    Parameters
    ----------
    data, train
        JSON Lines, gzipped or not: ``question``, ``answer_ids``, ``cypher_queries``, ``hits`` and ``num_results`` of
        each query. `train` is what a `PathScorer` is fitted to.

    Returns
    -------
    dict
        ``rows``: ``untrained``, ``trained`` where there is something to train on, and ``fewest`` results first.
        ``top_is_best`` is the share of questions with the best query first: that of most hits, then of the fewest
        results. ``hit@1`` and ``recall@20`` are what is to be expected when results of a query come in any order.
    """
    start = time.perf_counter()
    records = read_records(data)
    known = [] if train is None else read_records(train)
    space = path_space(records + known)
    asked = [choice_of(record, space) for record in records]
    read = time.perf_counter()
    models: dict[str, Callable[[Choice], Any]] = {"untrained": _by(PathScorer())}
    if known:
        models["trained"] = _by(fit_scorer([choice_of(record, space) for record in known]))
    models["fewest"] = lambda choice: choice.facts[:, 1]
    rows = {}
    for name, costs in models.items():
        measured = []
        for nth, (record, choice) in enumerate(zip(records, asked, strict=True)):
            if progress is not None and nth % 100 == 0:
                progress(name, nth, len(records))
            measured.append(_measured(record, np.argsort(costs(choice), kind="stable").tolist(), choice.best))
        means = map(statistics.mean, zip(*measured, strict=True))
        rows[name] = {metric: round(100 * mean, 2) for metric, mean in zip(SHOWN, means, strict=True)}
    return {
        "name": "paths",
        "rows": rows,
        "counts": {"questions": len(records), "queries": sum(len(c.paths) for c in asked), "trained_on": len(known)},
        "seconds": {"read": round(read - start, 3), "total": round(time.perf_counter() - start, 3)},
        "shown": list(SHOWN),
    }


def _by(scorer: PathScorer) -> Callable[[Choice], Any]:
    return lambda choice: scorer.costs(choice.words, scorer.parts_of(choice.paths), choice.facts)


def _measured(record: Mapping[str, Any], order: Sequence[int], best: int) -> tuple[float, float, float]:
    hits, results = record["hits"], record["num_results"]
    top, left, found = order[0], float(_K), 0.0
    for i in order:
        taken = min(left, results[i])
        found += hits[i] * taken / max(results[i], 1)
        left -= taken
    right = (hits[top], results[top]) == (hits[best], results[best])
    return float(right), hits[top] / max(results[top], 1), min(1.0, found / max(len(record["answer_ids"]), 1))

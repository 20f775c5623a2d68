"""Candidate paths ranked for questions, in the layout of GraphRAFT's STaRK-MAG file."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.evaluation.runner import Progress
from graphret.graphraft.writer import Writer
from graphret.planning import PathScorer
from graphret.planning.patterns import bare_pattern
from graphret.training.candidates import (
    candidates_of,
    choice_of,
    path_space,
    read_records,
)
from graphret.training.paths import PathChoice, fit_scorer

SHOWN = ("top_is_best", "hit@1", "recall@20")
_K, _BATCH = 20, 8


def bench_paths(
    data: str | Path, train: str | Path | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Rank the candidate queries of each question, measured by their hits and results.

    Parameters
    ----------
    data, train
        JSON Lines, gzipped or not: ``question``, ``answer_ids``, ``cypher_queries``,
        ``hits`` and ``num_results`` of each query. `train` is what a `PathScorer` is
        fitted to.

    Returns
    -------
    dict
        ``rows``: ``untrained``, ``trained`` where there is something to train on, and
        ``fewest`` results first. ``top_is_best`` is the share of questions with the
        best query first: that of most hits, then of the fewest results. ``hit@1`` and
        ``recall@20`` are what is to be expected when results of a query come in any
        order.
    """
    return _ranked("paths", read_records(data), train, {}, progress)


def bench_graphraft(
    data: str | Path,
    writer: str | Path | None = None,
    train: str | Path | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Rank the candidate queries of the first `limit` questions as GraphRAFT does.

    As `bench_paths`, with a `Writer`.

    Returns
    -------
    dict
        ``rows``: ``fewest``, ``paths`` with no model, ``writer`` alone, ``writer,
        paths`` both, as `GraphRAFT` ranks, and ``writer, free``, which is held to
        nothing: what its four beams write counts where it is a candidate.
    """
    records, models = read_records(data)[:limit], {}
    if writer is not None:
        models = _by_writer(Writer.load(writer), records)
    result = _ranked("graphraft", records, train, models, progress)
    rows = result["rows"]
    paths = rows.pop("trained", rows.pop("untrained"))
    return result | {"rows": {"fewest": rows.pop("fewest"), "paths": paths, **rows}}


_Order = Callable[[Mapping[str, Any], PathChoice, PathScorer], Sequence[int]]


def _ranked(
    name: str,
    records: list[dict[str, Any]],
    train: str | Path | None,
    models: dict[str, _Order],
    progress: Any,
) -> dict[str, Any]:
    start = time.perf_counter()
    training_records = [] if train is None else read_records(train)
    space = path_space(records + training_records)
    choices = [choice_of(record, space) for record in records]
    read = time.perf_counter()
    scorer = (
        fit_scorer([choice_of(record, space) for record in training_records])
        if training_records
        else PathScorer()
    )
    orders: dict[str, _Order] = {
        "untrained": lambda _, choice, __: _in_order(_costs(PathScorer(), choice))
    }
    if training_records:
        orders["trained"] = lambda _, choice, scorer: _in_order(_costs(scorer, choice))
    orders |= {"fewest": lambda _, choice, __: _in_order(choice.facts[:, 1]), **models}
    rows = {}
    for row, order in orders.items():
        measured = []
        for nth, (record, choice) in enumerate(zip(records, choices, strict=True)):
            if progress is not None and nth % 10 == 0:
                progress(row, nth, len(records))
            measured.append(
                _measured(record, order(record, choice, scorer), choice.best)
            )
        means = map(statistics.mean, zip(*measured, strict=True))
        rows[row] = {
            metric: round(100 * mean, 2)
            for metric, mean in zip(SHOWN, means, strict=True)
        }
    return {
        "name": name,
        "rows": rows,
        "counts": {
            "questions": len(records),
            "queries": sum(len(c.paths) for c in choices),
            "trained_on": len(training_records),
        },
        "seconds": {
            "read": round(read - start, 3),
            "total": round(time.perf_counter() - start, 3),
        },
        "shown": list(SHOWN),
    }


def _by_writer(
    writer: Writer, records: Sequence[Mapping[str, Any]]
) -> dict[str, _Order]:
    combined_costs, free = [], _freely(writer, records)

    def alone(
        record: Mapping[str, Any], choice: PathChoice, scorer: PathScorer
    ) -> list[int]:
        candidates = candidates_of(record)
        probabilities = dict(
            writer.rank(record["question"], candidates, len(candidates))
        )
        by_words = writer.prior_weight * _costs(scorer, choice)
        combined_costs.append(
            [
                by_words[i] - math.log(max(probabilities[i], 1e-300))
                for i in range(len(candidates))
            ]
        )
        return [*probabilities]

    orders = (_in_order(costs) for costs in combined_costs)
    return {
        "writer": alone,
        "writer, paths": lambda *_: next(orders),
        "writer, free": lambda *_: next(free),
    }


def _freely(
    writer: Writer, records: Sequence[Mapping[str, Any]]
) -> Iterator[list[int]]:
    """Return each question's candidates written without constraints, best first."""
    for start in range(0, len(records), _BATCH):
        batch = records[start : start + _BATCH]
        for record, texts in zip(
            batch, writer.write([item["question"] for item in batch]), strict=True
        ):
            yield written_among(record["cypher_queries"], texts)


def written_among(queries: Sequence[str], texts: Sequence[str]) -> list[int]:
    """Return the places of the queries that were written, in the order of the texts."""
    places = {
        bare_pattern(query): place for place, query in reversed([*enumerate(queries)])
    }
    return [places[text] for text in texts if text in places]


def _costs(scorer: PathScorer, choice: PathChoice) -> NDArray[np.float64]:
    return scorer.costs(choice.words, scorer.parts_of(choice.paths), choice.facts)


def _in_order(costs: Any) -> list[int]:
    return [int(place) for place in np.argsort(costs, kind="stable")]


def _measured(
    record: Mapping[str, Any], order: Sequence[int], best: int
) -> tuple[float, float, float]:
    hits, results = record["hits"], record["num_results"]
    if not order:
        return 0.0, 0.0, 0.0
    top, places_left, expected_hits = order[0], float(_K), 0.0
    for i in order:
        n_results = min(places_left, results[i])
        expected_hits += hits[i] * n_results / max(results[i], 1)
        places_left -= n_results
    right = (hits[top], results[top]) == (hits[best], results[best])
    return (
        float(right),
        hits[top] / max(results[top], 1),
        min(1.0, expected_hits / max(len(record["answer_ids"]), 1)),
    )

"""One benchmark for any corpus: the default retrieval beside flat search."""

from __future__ import annotations

import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.evaluation.metrics import (
    graded_all_at_k,
    graded_recall_at_k,
    hit_at_k,
    holders,
    mean_gain,
    mrr,
    percent,
)
from graphret.evaluation.runner import (
    ALL_AT,
    Progress,
    cached_encoder,
    plain_retrievers,
)
from graphret.evaluation.sets import (
    GradedQuestion,
    LabelledSet,
    SetFiles,
    find_sets,
    load_set,
)
from graphret.evaluation.table import shown_metrics
from graphret.index_retriever import IndexRetriever
from graphret.retriever import Retriever
from graphret.sage import SageGraph
from graphret.search.encoder import Encoder
from graphret.search.index import require_k

#: A value for each question, by metric.
Values: TypeAlias = Mapping[str, NDArray[np.float64]]

GENERAL_K = (1, 2, 5, 10, 20)
#: The rows of flat search of which a gain is over the best.
FLAT_ROWS = ("bm25", "flat", "hybrid")
#: What rows of the mean over sets are called.
ALL = "all"
#: What is counted of a set.
COUNTS = ("nodes", "edges", "questions")
#: What tables show by default: with one column more they are too wide for a terminal.
SHOWN = ("recall@1", "recall@5", "recall@10", "recall@20", f"all@{ALL_AT}")


@dataclass
class SetRun:
    """What was measured on a set: a value for each row, metric and question."""

    name: str
    values: dict[str, Values] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def best(self) -> dict[str, str]:
        """Return the best row of flat search for each metric."""
        metrics = next(iter(self.values.values()))
        return {metric: best_flat_row(self.values, metric) for metric in metrics}

    def differences(self, row: str, metric: str) -> NDArray[np.float64]:
        """Return a row's gain over the best flat row on each question."""
        best = best_flat_row(self.values, metric)
        ours, theirs = self.values[row][metric], self.values[best][metric]
        return np.asarray(ours - theirs, dtype=np.float64)


def bench_general(
    data: str | Path,
    k: Sequence[int] | None = GENERAL_K,
    limit: int | None = None,
    sets: Collection[str] | None = None,
    encoder: Any = "default",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare retrievers on every set in a folder; rows are ``<set>/bm25`` and so on.

    Parameters
    ----------
    data
        See `find_sets`, and `graphret.evaluation.sets` for the layouts.
    k
        Where recall is taken.
    limit
        The first questions of each set alone; the corpora stay whole.
    sets
        The names of the sets to run; all by default.
    encoder
        What embeds; ``"default"`` goes without where none is installed, and `None`
        always does.
    progress
        Called as the work goes on.

    Returns
    -------
    dict
        ``name``, ``rows`` (row → metric → percent), ``counts``, ``seconds``,
        ``intervals`` (row → metric → gain over the best flat row with its 95 %
        bootstrap interval), ``best`` (set → metric → that flat row), ``baseline``,
        ``shown`` and ``titles`` (for the tables) and ``notes``.

        Rows are those of `retrievers`. Where there are several sets, ``all/<row>`` has
        the means over sets, each counting alike. ``seconds`` are of each set, to read
        and cut it (``load``), to make the graph (``build``), and as ``query_<row>`` the
        median of a question with the largest k, its embedding given.
    """
    ks = sorted({require_k(cutoff) for cutoff in k or GENERAL_K})
    report = progress or (lambda stage, done, total: None)
    chosen_sets, notes = find_sets(data, sets)
    model = cached_encoder(encoder, notes)
    if model is None:
        notes.append("hybrid is BM25 over weighted fields here, without embeddings")
    runs = [run_set(files, model, ks, limit, report) for files in chosen_sets]
    return _result(runs, ks, notes)


def run_set(
    files: SetFiles,
    encoder: Encoder | None,
    ks: Sequence[int],
    limit: int | None,
    report: Progress,
) -> SetRun:
    """Measure every row on a set; an `InvalidInput` names the set."""
    if files.name == ALL:
        raise InvalidInput(f"{files.questions}: a set cannot be called {ALL!r}")
    run = SetRun(files.name)
    try:
        start = time.perf_counter()
        labelled = load_set(files, encoder)
        run.seconds["load"] = time.perf_counter() - start
        _measure_set(run, labelled, encoder, ks, limit, report)
    except InvalidInput as error:
        raise InvalidInput(f"the set {files.name}: {error}") from error
    return run


def _measure_set(
    run: SetRun,
    labelled: LabelledSet,
    encoder: Encoder | None,
    ks: Sequence[int],
    limit: int | None,
    report: Progress,
) -> None:
    """Make the graph of a set, and put questions to each retriever over it."""
    questions = labelled.questions[:limit]
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as raised:  # notes say of which set
        graph = SageGraph.from_nodes(
            labelled.nodes,
            encoder=encoder,
            metadata=None,
            progress=report,
        )
    run.notes += [f"{run.name}: {warning.message}" for warning in raised]
    run.seconds["build"] = time.perf_counter() - start
    sizes = (len(graph), len(graph.edges), len(questions))
    run.counts |= dict(zip(COUNTS, sizes, strict=True))
    if graph.index.dense is not None:
        graph.index.dense.prepare([question.text for question in questions])
    rows = retrievers(graph)
    for nth, (row, retriever) in enumerate(rows.items()):
        report(run.name, nth, len(rows))
        run.values[row], median = measure(retriever, questions, ks, row, report)
        run.seconds[f"query_{row}"] = median
    report(run.name, len(rows), len(rows))


def retrievers(graph: SageGraph) -> dict[str, Retriever]:
    """Return what is compared, by row.

    ``bm25`` is plain BM25 over one text a node, ``dense`` the cosine, ``flat`` the
    hybrid of the two; ``hybrid`` is the graph's own index without its edges, and
    ``default`` what ``SageGraph.retriever()`` gives. Without an encoder there is no
    ``dense`` and no ``flat``.
    """
    by_row = plain_retrievers(graph.index)
    by_row["hybrid"] = IndexRetriever(graph.index)
    by_row["default"] = graph.retriever()
    return by_row


def measure(
    retriever: Retriever,
    questions: Sequence[GradedQuestion],
    ks: Sequence[int],
    row: str,
    report: Progress,
) -> tuple[Values, float]:
    """Return a retriever's value of each metric on each question, and its median time.

    The first hits of an index are the same whatever `k`, so that it is asked once; any
    other retriever may choose by `k`, and is asked for each.
    """
    columns: defaultdict[str, list[float]] = defaultdict(list)
    seconds: list[float] = []
    largest, *smaller = sorted({*ks, ALL_AT}, reverse=True)
    for nth, question in enumerate(questions):
        if nth % 50 == 0:
            report(row, nth, len(questions))
        start = time.perf_counter()
        ranked = {largest: retriever.retrieve(question.text, largest).ids}
        seconds.append(time.perf_counter() - start)
        for k in smaller:
            if isinstance(retriever, IndexRetriever):
                ranked[k] = ranked[largest][:k]
            else:
                ranked[k] = retriever.retrieve(question.text, k).ids
        for metric, value in _metrics(ranked, question, ks).items():
            columns[metric].append(value)
    report(row, len(questions), len(questions))
    values = {metric: np.asarray(column) for metric, column in columns.items()}
    return values, statistics.median(seconds)


def _metrics(
    ranked: Mapping[int, Sequence[str]],
    question: GradedQuestion,
    ks: Sequence[int],
) -> dict[str, float]:
    """Return the value of each metric, from the ids that were found for each k."""
    gold = question.gold
    holding = holders(gold)
    values = {f"recall@{k}": graded_recall_at_k(ranked[k], gold, k) for k in ks}
    values["hit@1"] = hit_at_k(ranked[ks[0]], holding, 1)
    values["mrr"] = mrr(ranked[ks[-1]], holding)
    values[f"all@{ALL_AT}"] = graded_all_at_k(ranked[ALL_AT], gold, ALL_AT)
    return values


def best_flat_row(values: Mapping[str, Values], metric: str) -> str:
    """Return the flat row whose mean is highest, the first of those that tie."""
    present = [row for row in FLAT_ROWS if row in values]
    return max(present, key=lambda row: percent(values[row][metric].mean()))


def _result(
    runs: Sequence[SetRun],
    ks: Sequence[int],
    notes: list[str],
) -> dict[str, Any]:
    """Return the result of all sets, as `bench_general` does."""
    rows: dict[str, dict[str, float]] = {}
    intervals: dict[str, dict[str, dict[str, float]]] = {}
    counts = {"sets": len(runs), **dict.fromkeys(COUNTS, 0)}
    seconds: dict[str, float] = {}
    titles: dict[str, str] = {}
    for run in runs:
        _add_rows(rows, intervals, run.name, [run])
        for name, count in run.counts.items():
            counts[name] += count
            counts[f"{run.name}/{name}"] = count
        nodes, edges, n_questions = (run.counts[name] for name in COUNTS)
        about = f"{nodes:,} nodes, {edges:,} edges, {n_questions:,} questions"
        titles[run.name] = f"{run.name}, {about}"
        notes += run.notes
        for name, value in run.seconds.items():
            seconds[f"{run.name}/{name}"] = round(value, 6)
    if len(runs) > 1:
        _add_rows(rows, intervals, ALL, runs)
        about = f"the mean over {len(runs)} sets, {counts['questions']:,} questions"
        titles[ALL] = f"{ALL}, {about}"
    compared = [row for row in FLAT_ROWS if row in runs[0].values]
    notes.append(f"gains are over the best of {', '.join(compared)} for each metric")
    return {
        "name": "general",
        "rows": rows,
        "counts": counts,
        "seconds": seconds,
        "intervals": intervals,
        "best": {run.name: run.best() for run in runs},
        "baseline": "best flat row",
        "shown": [*SHOWN] if tuple(ks) == GENERAL_K else shown_metrics(rows),
        "titles": titles,
        "notes": notes,
    }


def _add_rows(
    rows: dict[str, dict[str, float]],
    intervals: dict[str, dict[str, dict[str, float]]],
    name: str,
    runs: Sequence[SetRun],
) -> None:
    """Add the rows of some sets, each the mean over them, and the gains of each."""
    for row, metrics in runs[0].values.items():
        key = f"{name}/{row}"
        rows[key], intervals[key] = {}, {}
        for metric in metrics:
            means = [float(run.values[row][metric].mean()) for run in runs]
            rows[key][metric] = percent(statistics.fmean(means))
            differences = [run.differences(row, metric) for run in runs]
            intervals[key][metric] = mean_gain(differences)

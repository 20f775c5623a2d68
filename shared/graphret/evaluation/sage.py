"""SAGE's edges and recall by percentile and logic, and their signals (section 3.3).

See also appendix B.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.evaluation.metrics import (
    GoldPart,
    graded_recall_at_k,
    paired_bootstrap,
    percent,
)
from graphret.evaluation.ottqa import TABLES as OTTQA_TABLES
from graphret.evaluation.ottqa import load_ottqa
from graphret.evaluation.runner import Progress, cached_encoder
from graphret.evaluation.sets import (
    GradedQuestion,
    LabelledSet,
    find_sets,
    load_set,
)
from graphret.expansion import SageRanking
from graphret.index_retriever import IndexRetriever
from graphret.retriever import Retriever
from graphret.sage import SageGraph, SageSettings
from graphret.sage.edge_statistics import (
    EdgeCounts,
    Logic,
    PairStatistics,
    count_candidates,
    counts_per_node,
    edge_counts,
    pair_statistics,
    similarity_of,
    with_similarity,
)
from graphret.search.encoder import Encoder
from graphret.search.index import require_k

PERCENTILES = (80.0, 85.0, 90.0, 95.0, 97.0, 99.0)
LOGICS: tuple[Logic, ...] = ("or", "and")
SAGE_K = (5, 20)
#: The flat search that finds the seeds, which gains are over.
FLAT = "flat"
#: The columns of table 5, with decimal places; recall follows them.
PLACES = {"edges": 0, "% cand.": 1, "degree": 1, "density": 4}
#: What is told of the nodes of each role.
PER_NODE = ("entities", "events")


@dataclass
class Sweep:
    """What was measured on a set."""

    name: str
    nodes: int
    questions: Sequence[GradedQuestion]
    candidates: int
    pairs: list[PairStatistics]
    per_node: dict[str, dict[str, list[int]]]
    edges: dict[str, EdgeCounts] = field(default_factory=dict)
    #: By row and metric, a value for each question.
    recall: dict[str, dict[str, NDArray[np.float64]]] = field(default_factory=dict)
    seconds: float = 0.0


def bench_sage(
    data: str | Path,
    k: Sequence[int] | None = SAGE_K,
    limit: int | None = None,
    sets: Collection[str] | None = None,
    split: str = "dev",
    percentiles: Sequence[float] = PERCENTILES,
    logics: Sequence[Logic] = LOGICS,
    encoder: Any = "default",
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Count the edges and recall of SAGE's graphs at every percentile and logic.

    The graph is that of ``SageSettings.paper()``, the ranking ``SageRanking.paper()``.
    Entities that two nodes share make an edge of their own, by one signal, whatever the
    logic.

    Parameters
    ----------
    data
        A folder in the layout of OTT-QA, or of sets as `find_sets` reads them.
    k
        Where recall is taken.
    limit
        The first questions of each set alone; the corpora stay whole.
    sets, split
        The names of the sets to run, all by default; of OTT-QA the split.
    percentiles, logics
        What is gone through (SAGE, table 5).
    encoder
        What embeds; there are no similarity edges without one.
    seed
        Of the pairs that are drawn for scatter plots.
    progress
        Called as the work goes on.

    Returns
    -------
    dict
        ``rows``, ``intervals`` (gains in recall over flat search, ``baseline``),
        ``titles``, ``shown`` and ``places`` are for `render`: of every set edges and
        recall by logic and percentile, edges by kind of pair, the mean of each signal
        (table 3), and correlations (tables 17 to 19). ``pairs`` and ``per_node`` have
        what is drawn: of every set and kind of pair the histograms of the signals and
        points of their scatter plots, and how many nodes have how many entities.
    """
    ks = sorted({require_k(one) for one in k or SAGE_K})
    report = progress or (lambda stage, done, total: None)
    notes: list[str] = []
    model = cached_encoder(encoder, notes)
    if model is None:
        raise InvalidInput("encoder: there are no similarity edges without one")
    sweeps = []
    for labelled in _labelled_sets(data, sets, split, model, notes):
        sweep = _swept(labelled, model, ks, limit, (percentiles, logics), seed, report)
        sweeps.append(sweep)
    return _result(sweeps, notes)


def _labelled_sets(
    data: str | Path,
    sets: Collection[str] | None,
    split: str,
    encoder: Encoder,
    notes: list[str],
) -> list[LabelledSet]:
    """Read OTT-QA, or every set of a folder."""
    if (Path(data) / OTTQA_TABLES).is_dir():
        dataset = load_ottqa(data, split)
        questions = []
        for question in dataset.questions:
            weight = 1 / len(question.gold)
            ids = sorted(question.gold)
            gold = tuple(GoldPart(weight, {node_id: 1.0}) for node_id in ids)
            questions.append(GradedQuestion(question.text, gold))
        return [LabelledSet(dataset.name, dataset.nodes, questions)]
    found, remarks = find_sets(data, sets)
    notes += remarks
    return [load_set(files, encoder) for files in found]


def _swept(
    labelled: LabelledSet,
    encoder: Encoder,
    ks: Sequence[int],
    limit: int | None,
    swept: tuple[Sequence[float], Sequence[Logic]],
    seed: int,
    report: Progress,
) -> Sweep:
    """Build the graph of a set, and go through percentiles and logics."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        # that links add little: the paper's graph has no links by names
        warnings.simplefilter("ignore", UserWarning)
        graph = SageGraph.from_nodes(
            labelled.nodes,
            encoder=encoder,
            metadata=None,
            settings=SageSettings.paper(),
            progress=report,
        )
    candidates = count_candidates(similarity_of(graph).candidates, len(graph))
    sweep = Sweep(
        labelled.name,
        len(graph),
        labelled.questions[:limit],
        candidates,
        pair_statistics(graph, seed),
        {name: counts_per_node(graph, name) for name in PER_NODE},
    )
    if graph.index.dense is not None:
        graph.index.dense.prepare([question.text for question in sweep.questions])
    # the search that finds the seeds, so that gains are those of edges
    sweep.recall[FLAT] = _recall(IndexRetriever(graph.index), sweep.questions, ks)
    percentiles, logics = swept
    cells = [(logic, percentile) for logic in logics for percentile in percentiles]
    for nth, (logic, percentile) in enumerate(cells):
        report(labelled.name, nth, len(cells))
        row = f"{logic} {percentile:g}"
        other = with_similarity(graph, percentile, logic)
        sweep.edges[row] = edge_counts(other, candidates)
        retriever = other.retriever(SageRanking.paper(), fill=False)
        sweep.recall[row] = _recall(retriever, sweep.questions, ks)
    report(labelled.name, len(cells), len(cells))
    sweep.seconds = time.perf_counter() - start
    return sweep


def _recall(
    retriever: Retriever, questions: Sequence[GradedQuestion], ks: Sequence[int]
) -> dict[str, NDArray[np.float64]]:
    """Return recall on each question; each k has its own retrieval.

    The places are divided between seeds and neighbours.
    """
    return {
        f"recall@{k}": np.asarray(
            [
                graded_recall_at_k(
                    retriever.retrieve(question.text, k).ids, question.gold, k
                )
                for question in questions
            ]
        )
        for k in ks
    }


def _result(sweeps: Sequence[Sweep], notes: list[str]) -> dict[str, Any]:
    """Return what `bench_sage` does."""
    result: dict[str, Any] = {
        "name": "sage",
        "rows": {},
        "intervals": {},
        "titles": {},
        "shown": {},
        "places": {**PLACES},
        "counts": {"sets": len(sweeps), "questions": 0},
        "seconds": {},
        "baseline": FLAT,
        "pairs": {},
        "per_node": {},
        "notes": [
            *notes,
            "recall is of the paper's ranking, in percent, with gains over flat search",
        ],
    }
    for sweep in sweeps:
        _add_edges(result, sweep)
        _add_kinds(result, sweep)
        _add_signals(result, sweep)
        result["counts"]["questions"] += len(sweep.questions)
        result["seconds"][sweep.name] = round(sweep.seconds, 3)
        result["per_node"][sweep.name] = sweep.per_node
        result["pairs"][sweep.name] = {
            one.kind: {
                "pairs": one.pairs,
                "histograms": {
                    name: asdict(histogram)
                    for name, histogram in one.histograms.items()
                },
                "points": {
                    f"{name} × {other}": points
                    for (name, other), points in one.points.items()
                },
            }
            for one in sweep.pairs
        }
    return result


def _add_edges(result: dict[str, Any], sweep: Sweep) -> None:
    """Add edges and recall by logic and percentile (table 5)."""
    group = f"{sweep.name}/edges"
    flat = sweep.recall[FLAT]
    for row, values in sweep.recall.items():
        cells: dict[str, float] = {}
        if row in sweep.edges:
            counted = sweep.edges[row]
            cells = {
                "edges": counted.edges,
                "% cand.": percent(counted.of_candidates),
                "degree": round(counted.degree, 2),
                "density": round(counted.density, 6),
                "components": counted.components,
                "isolated": counted.isolated,
            }
            result["intervals"][f"{group}/{row}"] = {
                metric: paired_bootstrap(column, flat[metric])
                for metric, column in values.items()
            }
        found = {metric: percent(column.mean()) for metric, column in values.items()}
        result["rows"][f"{group}/{row}"] = cells | found
    result["shown"][group] = [*PLACES, *flat]
    result["titles"][group] = (
        f"{sweep.name}: edges of {sweep.candidates:,} candidates over"
        f" {sweep.nodes:,} nodes, {len(sweep.questions):,} questions"
    )


def _add_kinds(result: dict[str, Any], sweep: Sweep) -> None:
    """Add how many edges there are by kind of pair."""
    group = f"{sweep.name}/kinds"
    kinds = sorted({kind for one in sweep.edges.values() for kind in one.kinds})
    for row, counted in sweep.edges.items():
        result["rows"][f"{group}/{row}"] = {
            kind: counted.kinds.get(kind, 0) for kind in kinds
        }
    result["shown"][group] = kinds
    result["places"] |= dict.fromkeys(kinds, 0)
    result["titles"][group] = f"{sweep.name}: edges by kind of pair"


def _add_signals(result: dict[str, Any], sweep: Sweep) -> None:
    """Add the mean of each signal (table 3), and correlations (tables 17 to 19)."""
    means, name = f"{sweep.name}/means", sweep.name
    columns = [one.kind.replace("document", "doc") for one in sweep.pairs]
    for signal in dict.fromkeys(signal for one in sweep.pairs for signal in one.means):
        result["rows"][f"{means}/{signal}"] = {
            column: round(one.means[signal], 3)
            for column, one in zip(columns, sweep.pairs, strict=True)
            if signal in one.means
        }
    result["shown"][means] = columns
    result["places"] |= dict.fromkeys(columns, 3)
    result["titles"][means] = f"{name}: mean of each signal over the candidates"
    for one in sweep.pairs:
        group = f"{name}/{one.kind}"
        numbers = [f"({nth})" for nth in range(1, len(one.means) + 1)]
        rows = zip(numbers, one.means, one.correlations, strict=True)
        for number, signal, row in rows:
            result["rows"][f"{group}/{number} {signal}"] = {
                column: value
                for column, value in zip(numbers, row, strict=True)
                if value is not None
            }
        result["shown"][group] = numbers
        result["places"] |= dict.fromkeys(numbers, 3)
        result["titles"][group] = (
            f"{name}: correlations over {one.pairs:,} pairs, {one.kind}"
        )

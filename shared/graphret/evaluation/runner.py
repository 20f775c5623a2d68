"""Retrievers side by side on one data set."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput, MissingDependency
from graphret.evaluation.dataset import HELD, TUNED, Dataset
from graphret.evaluation.metrics import (
    all_at_k,
    hit_at_k,
    mrr,
    paired_bootstrap,
    recall_at_k,
)
from graphret.evaluation.multihop import load_multihop
from graphret.evaluation.ottqa import load_ottqa
from graphret.expansion import Coverage
from graphret.expansion.frontier import SHARES_NAME, STRENGTH
from graphret.index_retriever import IndexRetriever
from graphret.rerank import CrossEncoderReranker, Rerank
from graphret.retriever import Retriever
from graphret.sage import SageGraph, SageRetriever
from graphret.search.bm25 import BM25Index, BM25Settings
from graphret.search.encoder import CachedEncoder, Encoder, as_encoder
from graphret.search.fields import FieldText, NodeText
from graphret.search.hybrid import DEFAULT_ALPHA, HybridIndex
from graphret.search.index import require_k
from graphret.training import read_questions, train_ranking
from graphret.types import Hit, Node

#: Called with the name of a stage, how much of it is done, and how much there is.
Progress: TypeAlias = Callable[[str, int, int], None]

OTTQA_K = (5, 10, 20, 50, 100)
MULTIHOP_K = (2, 5, 8, 20)
ALL_AT = 8
RANKINGS = ("paper", "propagate", "coverage")
ROWS = (
    "bm25",
    "bm25f",
    "dense",
    "flat",
    "hybrid",
    *RANKINGS,
    "lexical",
    "fixed",
    "default",
)


class SingleFieldText(NodeText):
    """A node as one text without fields, which plain BM25 searches."""

    def all_fields(self, nodes: Sequence[Node]) -> list[dict[str, FieldText]]:
        """Return the name and text of each node as one field."""
        texts = [
            node.text
            if node.text.startswith(node.name)
            else f"{node.name}\n{node.text}"
            for node in nodes
        ]
        return [{"text": text} if text.strip() else {} for text in texts]


@dataclass
class BenchmarkRun:
    """The results of retrievers: a value for each row, metric and question."""

    dataset: Dataset
    baseline: str
    values: dict[str, dict[str, NDArray[np.float64]]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def rows(self, half: str | None = None) -> dict[str, dict[str, float]]:
        """Return by row each metric's mean in percent, over all questions or a half."""
        chosen = self.chosen(half)
        return {
            row: {
                metric: round(100 * float(values[chosen].mean()), 2)
                for metric, values in metrics.items()
            }
            for row, metrics in self.values.items()
        }

    def intervals(
        self, half: str | None = None
    ) -> dict[str, dict[str, dict[str, float]]]:
        """Return gains over the baseline with 95 % bootstrap intervals, in points."""
        chosen, flat = self.chosen(half), self.values[self.baseline]
        return {
            row: {
                metric: paired_bootstrap(values[chosen], flat[metric][chosen])
                for metric, values in metrics.items()
            }
            for row, metrics in self.values.items()
            if row != self.baseline
        }

    def halves(self) -> list[str]:
        """Return the halves of the questions; none if the data is not divided."""
        present = {question.half for question in self.dataset.questions}
        return [half for half in (TUNED, HELD) if half in present]

    def chosen(self, half: str | None) -> NDArray[np.int64]:
        """Return the positions of the questions of a half; `None` for all."""
        questions = self.dataset.questions
        return np.asarray(
            [i for i, q in enumerate(questions) if half in (None, q.half)],
            dtype=np.int64,
        )

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - start

    def to_dict(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "rows": self.rows(),
            "counts": self.counts,
            "seconds": {key: round(value, 6) for key, value in self.seconds.items()},
            "baseline": self.baseline,
            "intervals": self.intervals(),
            "notes": self.notes,
        }


def bench_ottqa(
    data: str | Path,
    split: str = "dev",
    k: Sequence[int] | None = OTTQA_K,
    limit: int | None = None,
    encoder: Any = "default",
    reranker: Any = None,
    train: str | Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare retrievers on OTT-QA: mean recall of answer passages and answer segments.

    Parameters
    ----------
    data, split
        See `load_ottqa`.
    k
        Where recall is taken.
    limit
        The first questions alone; the corpus stays whole.
    encoder
        What embeds; ``"default"`` goes without where none is installed, and `None`
        always does.
    reranker
        A cross-encoder, as `CrossEncoderReranker` takes it; there is a row ``reranked``
        then, and gains are over ``default``.
    train
        Questions that a ranking is trained on, a file, or ``"tuned"`` for those of the
        tuned half, so that the other half is what it did not see; there is a row
        ``trained`` then, and gains are over ``default``.
    progress
        Called as the work goes on.

    Returns
    -------
    dict
        ``name``, ``rows`` (row → metric → percent), ``counts``, ``seconds``,
        ``baseline``, ``intervals`` (row → metric → gain over the baseline with its 95 %
        bootstrap interval), ``halves`` (the same rows and intervals for the tables that
        settings were chosen on and for the others) and ``notes``. ``seconds`` are of
        each stage, and as ``query_<row>`` the median of a question with the largest k,
        its embedding given.
    """
    start = time.perf_counter()
    dataset = load_ottqa(data, split).limited(limit)
    loaded = time.perf_counter() - start
    run = compare(
        dataset,
        k or OTTQA_K,
        encoder=encoder,
        reranker=reranker,
        train=train,
        progress=progress,
    )
    run.seconds = {"load": loaded, **run.seconds}
    halves = {
        half: {
            "questions": len(run.chosen(half)),
            "rows": run.rows(half),
            "intervals": run.intervals(half),
        }
        for half in run.halves()
    }
    return run.to_dict("ottqa") | {"halves": halves}


def bench_multihop(
    data: str | Path,
    split: str | None = None,
    k: Sequence[int] | None = MULTIHOP_K,
    limit: int | None = None,
    encoder: Any = "default",
    reranker: Any = None,
    train: str | Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare retrievers on questions over several passages (``<name>/<method>``).

    Parameters
    ----------
    data
        See `load_multihop`; every data set of the folder is run.
    split
        Only the data sets whose name ends in it, such as ``"train"``; all by default.
        One alone where `train` is given.
    k, limit, encoder, reranker, train, progress
        As for `bench_ottqa`; ``all@8`` is always among the metrics.
    """
    datasets = [
        candidate
        for candidate in load_multihop(data)
        if split is None or candidate.name.endswith(split)
    ]
    if not datasets:
        raise InvalidInput(
            f"{data}: expected a data set whose name ends with {split!r}, found none"
        )
    merged: dict[str, Any] = {
        "name": "multihop",
        "rows": {},
        "counts": {},
        "seconds": {},
        "intervals": {},
        "notes": [],
    }
    for dataset in datasets:
        options = {
            "encoder": encoder,
            "reranker": reranker,
            "train": train,
            "progress": progress,
        }
        run = compare(dataset.limited(limit), k or MULTIHOP_K, all_at=ALL_AT, **options)
        result = run.to_dict(dataset.name)
        for part in ("rows", "counts", "seconds", "intervals"):
            merged[part].update(
                {f"{dataset.name}/{key}": value for key, value in result[part].items()}
            )
        merged["notes"] = list(dict.fromkeys([*merged["notes"], *result["notes"]]))
        merged["baseline"] = result["baseline"]
    for name in ("nodes", "questions"):
        merged["counts"][name] = sum(
            merged["counts"][f"{candidate.name}/{name}"] for candidate in datasets
        )
    return merged


def compare(
    dataset: Dataset,
    k: Sequence[int],
    *,
    encoder: Any = "default",
    rows: Sequence[str] | None = None,
    all_at: int | None = None,
    reranker: Any = None,
    train: str | Path | None = None,
    progress: Progress | None = None,
) -> BenchmarkRun:
    """Run retrievers over a data set.

    Parameters
    ----------
    rows
        Which of `ROWS` to run; all by default. ``bm25`` and ``flat`` are plain BM25
        over one text a node and its hybrid with cosine, as the paper has them;
        ``bm25f`` and ``hybrid`` are the same over weighted fields, the seeds of every
        row below them. ``default`` is what ``SageGraph.retriever()`` gives, ``lexical``
        the same without an encoder, ``fixed`` the same with the paper's share of words
        and no links by shared names.
    all_at
        Where the share of questions is taken all of whose right answers are found.
    """
    cutoffs = sorted({require_k(cutoff) for cutoff in k})
    report = progress or (lambda stage, done, total: None)
    run = BenchmarkRun(dataset, "flat")
    model = cached_encoder(encoder, run.notes)
    default_is_base = reranker is not None or train is not None
    run.baseline = _baseline(model, default_is_base)
    graph = _built(run, model, report)
    bare = graph
    if model is not None and (rows is None or "lexical" in rows):
        with run.timed("build_lexical"):
            bare = _graph_of(dataset, None, report)
    run.counts = _counts(run, graph)
    retrievers = _retrievers(graph, bare, rows)
    if reranker is not None:
        once = _CachedReranker(reranker)
        retrievers["reranked"] = Rerank(graph.retriever(), once, on_failure="raise")
    if train is not None:
        retrievers["trained"] = _trained(run, graph, train)
    _evaluate_each(run, retrievers, bare, cutoffs, all_at, report)
    return run


def _baseline(model: Encoder | None, default_is_base: bool) -> str:
    """Return the row that gains are over."""
    if default_is_base:
        return "default"
    return "bm25" if model is None else "flat"


def _graph_of(dataset: Dataset, model: Encoder | None, report: Progress) -> SageGraph:
    return SageGraph.from_nodes(
        dataset.nodes, encoder=model, metadata=None, progress=report
    )


def _built(run: BenchmarkRun, model: Encoder | None, report: Progress) -> SageGraph:
    """Build the graph, and embed the questions, which no row is timed for."""
    questions = run.dataset.questions
    with run.timed("build"):
        graph = _graph_of(run.dataset, model, report)
    if graph.index.dense is not None:
        report("questions", 0, len(questions))
        with run.timed("questions"):
            graph.index.dense.prepare([question.text for question in questions])
    return graph


def _counts(run: BenchmarkRun, graph: SageGraph) -> dict[str, int]:
    dataset = run.dataset
    return {
        "nodes": len(graph),
        "edges": len(graph.edges),
        "questions": len(dataset.questions),
        "gold": sum(len(question.gold) for question in dataset.questions),
        **dataset.counts,
        **{f"questions_{half}": len(run.chosen(half)) for half in run.halves()},
    }


def _trained(run: BenchmarkRun, graph: SageGraph, train: str | Path) -> Retriever:
    """Train a ranking on a file of questions, or on those of the tuned half."""
    tuned = [question for question in run.dataset.questions if question.half == TUNED]
    with run.timed("train"):
        questions = tuned if train == TUNED else read_questions(train)
        ranking, metrics = train_ranking(graph, questions)
    run.notes.append(
        f"trained, on questions that it was not trained on: {metrics['tuned']}"
    )
    return graph.retriever(ranking)


def _evaluate_each(
    run: BenchmarkRun,
    retrievers: Mapping[str, Retriever],
    bare: SageGraph,
    cutoffs: Sequence[int],
    all_at: int | None,
    report: Progress,
) -> None:
    """Evaluate each row, of those with the same ranking and graph only the first."""
    first_row: dict[tuple[str, bool], str] = {}
    for row, retriever in retrievers.items():
        same = row
        if isinstance(retriever, SageRetriever):
            # the default is one of the rankings: no need to run it twice
            key = (repr(retriever.ranking), retriever.graph is bare)
            same = first_row.setdefault(key, row)
        if same == row:
            _evaluate(run, row, retriever, cutoffs, all_at, report)
        else:
            run.values[row] = run.values[same]
            run.seconds[f"query_{row}"] = run.seconds[f"query_{same}"]


class _CachedReranker(CrossEncoderReranker):
    """A cross-encoder that scores the hits of a question once, for any `k`."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.known: dict[tuple[str, ...], list[float]] = {}

    def scores(self, query: str, hits: Sequence[Hit]) -> list[float]:
        key = (query, *(hit.id for hit in hits))
        if key not in self.known:
            self.known[key] = super().scores(query, hits)
        return self.known[key]


def cached_encoder(encoder: Any, notes: list[str]) -> Encoder | None:
    """Return the encoder with a cache on disk; without one, a note, and none."""
    note = "run without an encoder: the rows that need one are left out"
    try:
        model = as_encoder(encoder)
    except MissingDependency as error:
        model, note = (
            None,
            f"no encoder, so the rows that need one are left out: {error}",
        )
    if model is None:
        notes.append(note)
        return None
    return model if isinstance(model, CachedEncoder) else CachedEncoder(model)


def plain_retrievers(index: HybridIndex) -> dict[str, Retriever]:
    """Return flat search: ``bm25``, and with embeddings ``dense`` and ``flat``."""
    plain = BM25Index.build(
        index.table, text=SingleFieldText(), settings=BM25Settings(field_b={})
    )
    by_row: dict[str, Retriever] = {"bm25": IndexRetriever(plain)}
    if index.dense is not None:
        by_row["dense"] = IndexRetriever(index.dense)
        by_row["flat"] = IndexRetriever(
            HybridIndex(plain, index.dense, alpha=DEFAULT_ALPHA)
        )
    return by_row


def _retrievers(
    graph: SageGraph, bare: SageGraph, rows: Sequence[str] | None
) -> dict[str, Retriever]:
    index = graph.index
    by_row = {**plain_retrievers(index), "bm25f": IndexRetriever(index.lexical)}
    if index.dense is not None:
        by_row["hybrid"] = IndexRetriever(index)
    by_row |= {name: graph.retriever(name) for name in RANKINGS}
    without = {**STRENGTH, SHARES_NAME: 0.0}
    fixed = Coverage(
        alpha=DEFAULT_ALPHA,
        trust=1.0,
        meaning=0.5,
        mention_source_weight=1.0,
        phrases=0.0,
        redundancy_penalty=0.0,
        strength=without,
    )
    by_row |= {
        "lexical": bare.retriever(),
        "fixed": graph.retriever(fixed),
        "default": graph.retriever(),
    }
    return {
        row: by_row[row]
        for row in ROWS
        if row in by_row and (rows is None or row in rows)
    }


def _evaluate(
    run: BenchmarkRun,
    row: str,
    retriever: Retriever,
    ks: Sequence[int],
    all_at: int | None,
    report: Progress,
) -> None:
    questions = run.dataset.questions
    columns: defaultdict[str, list[float]] = defaultdict(list)
    seconds: list[float] = []  # with the most hits, the question's embedding given
    depths = sorted({*ks, *([] if all_at is None else [all_at])}, reverse=True)
    for nth, question in enumerate(questions):
        if nth % 50 == 0:
            report(row, nth, len(questions))
        start = time.perf_counter()
        ranked = {depths[0]: retriever.retrieve(question.text, depths[0]).ids}
        seconds.append(time.perf_counter() - start)
        ranked |= {k: retriever.retrieve(question.text, k).ids for k in depths[1:]}
        for k in ks:
            columns[f"recall@{k}"].append(recall_at_k(ranked[k], question.gold, k))
        if all_at is not None:
            columns[f"all@{all_at}"].append(
                all_at_k(ranked[all_at], question.gold, all_at)
            )
        columns["hit@1"].append(hit_at_k(ranked[ks[0]], question.gold, 1))
        columns["mrr"].append(mrr(ranked[ks[-1]], question.gold))
    report(row, len(questions), len(questions))
    run.values[row] = {metric: np.asarray(values) for metric, values in columns.items()}
    run.seconds[f"query_{row}"] = statistics.median(seconds)

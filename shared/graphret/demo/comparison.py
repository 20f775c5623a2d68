"""Flat search and the graph side by side on the corpus of the demo."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import mean
from typing import Any

from graphret.demo.data import DemoQuestion, load_corpus, load_questions
from graphret.errors import MissingDependency
from graphret.evaluation.metrics import percent, recall_at_k
from graphret.executors import Progress
from graphret.explain.words import Marker
from graphret.index_retriever import IndexRetriever
from graphret.retriever import Retriever
from graphret.sage import SageGraph
from graphret.types import Retrieval

K = (5, 10, 20, 50)
SHOWN_K = 5
SHOWN = 5
FLAT, SAGE = "flat", "sage"


@dataclass(frozen=True)
class QuestionComparison:
    """A question, its gold, and the `max(K)` hits of flat search and of the graph."""

    question: DemoQuestion
    gold: frozenset[str]
    answers: Mapping[str, Retrieval]

    def found(self, row: str, k: int = SHOWN_K) -> int:
        """Return how many gold nodes are among the first `k` hits of a retriever."""
        return len(self.gold.intersection(self.answers[row].ids[:k]))

    @cached_property
    def holding(self) -> frozenset[str]:
        """The ids of the hits whose name or text has the answer word for word."""
        marker = Marker(self.question.question, self.question.answer)
        return frozenset(
            hit.id
            for answer in self.answers.values()
            for hit in answer.hits
            if marker.answered(hit.node)
        )

    def answered(self, row: str, k: int = SHOWN_K) -> int:
        """Return how many of the first `k` hits of a retriever have the answer."""
        return len(self.holding.intersection(self.answers[row].ids[:k]))

    def first(self, row: str, k: int = SHOWN_K) -> Retrieval:
        """Return the retrieval cut to its first `k` hits."""
        answer = self.answers[row]
        return Retrieval(answer.query, k, answer.hits[:k], answer.signals, answer.trace)


@dataclass
class DemoResult:
    """The result of the demo, with the comparison of each question.

    `rows` has ``recall@k`` of each retriever in percent, the mean over all questions.
    `note` says why there is no encoder, if there is none.
    """

    graph: SageGraph
    comparisons: list[QuestionComparison]
    rows: dict[str, dict[str, float]]
    seconds: dict[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def encoder(self) -> str | None:
        return self.graph.encoder.name if self.graph.encoder else None

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of tables, passages, nodes, edges, questions and gold nodes."""
        labels = self.graph.nodes.label_counts()
        tables = {
            properties["source_id"]
            for properties in self.graph.nodes.properties
            if "table_rows" in properties
        }
        return {
            "tables": len(tables),
            "passages": labels["Document"],
            "nodes": len(self.graph),
            "edges": len(self.graph.edges),
            "questions": len(self.comparisons),
            "gold": sum(len(comparison.gold) for comparison in self.comparisons),
        }

    def shown(self, n: int = SHOWN) -> list[QuestionComparison]:
        """Return the questions to show.

        These are the first `n` by id whose answer takes a table and a passage and is
        among the first hits of the graph but not of flat search, and after them the
        first one the other way round. The figures are over all questions.
        """
        gains = [
            (comparison.found(SAGE) - comparison.found(FLAT), comparison)
            for comparison in self.comparisons
        ]
        better = [
            comparison
            for gain, comparison in gains
            if gain > 0
            and comparison.question.passages
            and not comparison.answered(FLAT)
        ]
        worse = [
            comparison
            for gain, comparison in gains
            if gain < 0 and not comparison.answered(SAGE)
        ]
        return [*better[:n], *worse[:1]]

    def compared(self, k: int = SHOWN_K) -> dict[str, int]:
        """Count the questions for which the graph finds more, as much or less gold.

        The first `k` hits count.
        """
        gains = [
            comparison.found(SAGE, k) - comparison.found(FLAT, k)
            for comparison in self.comparisons
        ]
        return {
            "more": sum(gain > 0 for gain in gains),
            "same": gains.count(0),
            "less": sum(gain < 0 for gain in gains),
        }

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": "demo",
            "rows": self.rows,
            "counts": self.counts,
            "seconds": self.seconds,
            "encoder": self.encoder,
            "compared": self.compared(),
            "questions": [_question(comparison) for comparison in self.shown()],
        }


def run(encoder: Any = "default", *, progress: Progress | None = None) -> DemoResult:
    """Build the graph of the corpus, and ask all questions with and without it.

    Flat search uses the graph's own index: BM25F and, with an encoder, cosine. The two
    differ in the graph alone.

    Parameters
    ----------
    encoder
        As for `SageGraph.build`; the demo continues without one that is not installed.
    progress
        Called with the progress of each stage.
    """
    note = ""
    start = time.perf_counter()
    try:
        graph = SageGraph.build(
            load_corpus(), encoder=encoder, chunker=None, progress=progress
        )
    except MissingDependency as error:
        note = str(error)
        graph = SageGraph.build(
            load_corpus(), encoder=None, chunker=None, progress=progress
        )
    built = time.perf_counter()
    retrievers = _retrievers(graph)
    questions = load_questions()
    if graph.index.dense is not None:
        graph.index.dense.prepare([question.question for question in questions])
    comparisons: list[QuestionComparison] = []
    for number, question in enumerate(questions):
        if progress is not None:
            progress("ask", number + 1, len(questions))
        answers = {
            name: retriever.retrieve(question.question, max(K))
            for name, retriever in retrievers.items()
        }
        gold = question.gold(graph.nodes)
        comparisons.append(QuestionComparison(question, gold, answers))
    rows = {
        name: {f"recall@{k}": _recall(comparisons, name, k) for k in K}
        for name in retrievers
    }
    seconds = {
        "build": round(built - start, 3),
        "ask": round(time.perf_counter() - built, 3),
    }
    return DemoResult(graph, comparisons, rows, seconds, note)


def _recall(comparisons: Sequence[QuestionComparison], name: str, k: int) -> float:
    """Return the mean recall of a retriever in percent."""
    return percent(
        mean(
            recall_at_k(comparison.answers[name].ids, comparison.gold, k)
            for comparison in comparisons
        )
    )


def _retrievers(graph: SageGraph) -> dict[str, Retriever]:
    parts: dict[str, Retriever] = {}
    if graph.index.dense is not None:
        parts = {
            "bm25": IndexRetriever(graph.index.lexical),
            "dense": IndexRetriever(graph.index.dense),
        }
    return parts | {FLAT: IndexRetriever(graph.index), SAGE: graph.retriever()}


def _question(comparison: QuestionComparison) -> dict[str, Any]:
    return {
        "id": comparison.question.id,
        "question": comparison.question.question,
        "answer": comparison.question.answer,
        "gold": sorted(comparison.gold),
        "holding": sorted(comparison.holding),
        FLAT: comparison.answers[FLAT].ids[:SHOWN_K],
        SAGE: [
            {
                "id": hit.id,
                "score": hit.score,
                "evidence": [evidence.to_dict() for evidence in hit.evidence],
            }
            for hit in comparison.answers[SAGE].hits[:SHOWN_K]
        ],
    }

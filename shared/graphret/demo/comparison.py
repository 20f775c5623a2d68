"""Flat search and the graph side by side on the corpus of the demo."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import mean
from typing import Any

from graphret.demo.data import DemoQuestion, load_corpus, load_questions
from graphret.errors import MissingDependency
from graphret.evaluation.metrics import percent, recall_at_k
from graphret.explain.words import Marker
from graphret.index_retriever import IndexRetriever
from graphret.retriever import Retriever
from graphret.sage import SageGraph
from graphret.sage.graph import Progress
from graphret.types import Retrieval

K = (5, 10, 20, 50)
SHOWN_K = 5
SHOWN = 5
FLAT, SAGE = "flat", "sage"


@dataclass(frozen=True)
class QuestionComparison:
    """A question with its gold and what flat search and the graph returned, `max(K)`
    hits each.
    """

    question: DemoQuestion
    gold: frozenset[str]
    answers: Mapping[str, Retrieval]

    def found(self, row: str, k: int = SHOWN_K) -> int:
        """How much of the gold is among the first `k` of a retriever."""
        return len(self.gold.intersection(self.answers[row].ids[:k]))

    @cached_property
    def holding(self) -> frozenset[str]:
        """The ids of what was returned whose name or text holds the answer word for
        word.
        """
        marker = Marker(self.question.question, self.question.answer)
        return frozenset(
            hit.id
            for answer in self.answers.values()
            for hit in answer.hits
            if marker.answered(hit.node)
        )

    def answered(self, row: str, k: int = SHOWN_K) -> int:
        return len(self.holding.intersection(self.answers[row].ids[:k]))

    def first(self, row: str, k: int = SHOWN_K) -> Retrieval:
        """Return the retrieval cut to its first `k` hits."""
        whole = self.answers[row]
        return Retrieval(whole.query, k, whole.hits[:k], whole.signals, whole.trace)


@dataclass
class DemoResult:
    """What the demo found: `rows` has ``recall@k`` of each retriever in percent, mean
    over the questions `asked`.

    `note` says why there is no encoder, where there is none.
    """

    graph: SageGraph
    asked: list[QuestionComparison]
    rows: dict[str, dict[str, float]]
    seconds: dict[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def encoder(self) -> str | None:
        return self.graph.encoder.name if self.graph.encoder else None

    @property
    def counts(self) -> dict[str, int]:
        """Every denominator."""
        labels = self.graph.nodes.label_counts()
        tables = {
            given["source_id"]
            for given in self.graph.nodes.properties
            if "table_rows" in given
        }
        return {
            "tables": len(tables),
            "passages": labels["Document"],
            "nodes": len(self.graph),
            "edges": len(self.graph.edges),
            "questions": len(self.asked),
            "gold": sum(len(one.gold) for one in self.asked),
        }

    def shown(self, n: int = SHOWN) -> list[QuestionComparison]:
        """Return the questions to look at.

        These are the first `n` by id whose answer takes a table and a passage and for
        which it is among the first hits of the graph and not of flat search, and behind
        them the first one the other way round. The figures are over all questions.
        """
        gains = [(one.found(SAGE) - one.found(FLAT), one) for one in self.asked]
        better = [
            one
            for gain, one in gains
            if gain > 0 and one.question.passages and not one.answered(FLAT)
        ]
        worse = [one for gain, one in gains if gain < 0 and not one.answered(SAGE)]
        return [*better[:n], *worse[:1]]

    def compared(self, k: int = SHOWN_K) -> dict[str, int]:
        """Return for how many questions the graph finds more, the same and less of the
        gold in its first `k` hits.
        """
        gains = [one.found(SAGE, k) - one.found(FLAT, k) for one in self.asked]
        return {
            "more": sum(g > 0 for g in gains),
            "same": gains.count(0),
            "less": sum(g < 0 for g in gains),
        }

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": "demo",
            "rows": self.rows,
            "counts": self.counts,
            "seconds": self.seconds,
            "encoder": self.encoder,
            "compared": self.compared(),
            "questions": [_question(one) for one in self.shown()],
        }


def run(encoder: Any = "default", *, progress: Progress | None = None) -> DemoResult:
    """Build the graph of the corpus and ask all of its questions, of flat search and of
    the graph.

    Flat search is that of the graph's own index: BM25F and, with an encoder, cosine.
    The two differ in the graph alone.

    Parameters
    ----------
    encoder
        As for `SageGraph.build`; the demo goes on without one where it is not
        installed.
    progress
        Called as the work goes on.
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
    asked: list[QuestionComparison] = []
    for number, question in enumerate(questions):
        if progress is not None:
            progress("ask", number + 1, len(questions))
        answers = {
            name: retriever.retrieve(question.question, max(K))
            for name, retriever in retrievers.items()
        }
        asked.append(QuestionComparison(question, question.gold(graph.nodes), answers))
    rows = {
        name: {
            f"recall@{at}": percent(
                mean(recall_at_k(one.answers[name].ids, one.gold, at) for one in asked)
            )
            for at in K
        }
        for name in retrievers
    }
    seconds = {
        "build": round(built - start, 3),
        "ask": round(time.perf_counter() - built, 3),
    }
    return DemoResult(graph, asked, rows, seconds, note)


def _retrievers(graph: SageGraph) -> dict[str, Retriever]:
    parts: dict[str, Retriever] = {}
    if graph.index.dense is not None:
        parts = {
            "bm25": IndexRetriever(graph.index.lexical),
            "dense": IndexRetriever(graph.index.dense),
        }
    return parts | {FLAT: IndexRetriever(graph.index), SAGE: graph.retriever()}


def _question(one: QuestionComparison) -> dict[str, Any]:
    return {
        "id": one.question.id,
        "question": one.question.question,
        "answer": one.question.answer,
        "gold": sorted(one.gold),
        "holding": sorted(one.holding),
        FLAT: one.answers[FLAT].ids[:SHOWN_K],
        SAGE: [
            {
                "id": hit.id,
                "score": hit.score,
                "evidence": [e.to_dict() for e in hit.evidence],
            }
            for hit in one.answers[SAGE].hits[:SHOWN_K]
        ],
    }

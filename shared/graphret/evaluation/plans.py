"""Plans on graphs of properties: conditions, orders and absences, and silent errors."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.evaluation.metrics import percent
from graphret.evaluation.runner import Progress
from graphret.evaluation.spark import ScriptedPlanner, filled
from graphret.graphs import read_tables
from graphret.grasp import Grasp
from graphret.retriever import Retriever
from graphret.search.bm25 import BM25Index
from graphret.spark import Spark
from graphret.stores import MemoryStore
from graphret.training.questions import json_lines
from graphret.types import Retrieval

#: Confidence up to which an answer counts as one with a sign that it may be none.
UNSURE = 0.5
#: The shares of a row: a right node first, of the questions that nodes answer; wrong
#: without a sign, of all; and right though with a sign, of those that are right.
RIGHT, UNSIGNED, DOUBTED = "right@1", "wrong unsigned", "right doubted"

_FILES = ("nodes.jsonl", "edges.jsonl", "questions.jsonl")
_K = 10


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """A question of some kind, its answers and the Cypher of a model's plan.

    There are no answers where nodes cannot be one, and no Cypher is ``""``.
    """

    text: str
    kind: str
    answers: frozenset[str]
    cypher: str = ""


def load_plan_questions(path: str | Path) -> list[PlanQuestion]:
    """Read JSON Lines of ``question``, ``kind``, ``answers`` and ``cypher``."""
    return [_question(record, where) for where, record in json_lines(path)]


def _question(record: Any, where: str) -> PlanQuestion:
    fields = record if isinstance(record, dict) else {}
    texts = [fields.get("question"), fields.get("kind"), fields.get("cypher", "")]
    answers = fields.get("answers")
    if not all(isinstance(text, str) for text in texts) or not isinstance(
        answers, list
    ):
        raise InvalidInput(
            f'{where}: expected {{"question": text, "kind": text, "answers": [ids]}}'
        )
    question, kind, cypher = map(str, texts)
    return PlanQuestion(question, kind, frozenset(map(str, answers)), cypher)


def bench_plans(
    data: str | Path,
    limit: int | None = None,
    *,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure plans on graphs whose questions set conditions.

    Rows ``<domain>, grasp/<kind>`` are GRASP without a model; ``<domain>,
    spark/<kind>`` are the plans in the data, which stand for those of a capable model,
    run by SPARK on an embedded database.

    Parameters
    ----------
    data
        A folder with a folder for each domain, in which ``nodes.jsonl``,
        ``edges.jsonl`` and ``questions.jsonl`` are.
    limit
        Only the first questions of each domain.

    Returns
    -------
    dict
        ``name``, ``rows``, ``counts`` (the denominators), ``seconds`` and ``shown``.
        ``right@1`` is the share of the questions which nodes answer whose first hit is
        right, ``wrong unsigned`` that of all questions whose first hit is wrong though
        the confidence is above 0.5, and ``right doubted`` that of right first hits
        whose confidence is not.
    """
    domains = sorted(
        folder
        for folder in Path(data).iterdir()
        if all((folder / name).is_file() for name in _FILES)
    )
    if not domains:
        raise InvalidInput(
            f"{data}: expected folders with {', '.join(_FILES)}, found none"
        )
    report: Progress = progress or (lambda stage, done, total: None)
    began, bench = time.perf_counter(), _Plans(report)
    for folder in domains:
        nodes_and_edges = [folder / name for name in _FILES[:2]]
        store = read_tables(nodes_and_edges).store()
        bench.measure(
            folder.name, store, load_plan_questions(folder / _FILES[2])[:limit]
        )
    bench.seconds["total"] = time.perf_counter() - began
    return {
        "name": "plans",
        "rows": bench.rows,
        "counts": bench.counts,
        "seconds": {name: round(value, 6) for name, value in bench.seconds.items()},
        "shown": [RIGHT, UNSIGNED, DOUBTED],
        "titles": bench.titles,
        "notes": ["the plans that SPARK runs were written by hand, not by a model"],
    }


class _Plans:
    """The rows of the benchmark, as retrievers are measured."""

    def __init__(self, report: Progress) -> None:
        self.report = report
        self.rows: dict[str, dict[str, float]] = {}
        self.counts: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self.titles: dict[str, str] = {}

    def measure(
        self, domain: str, store: MemoryStore, questions: Sequence[PlanQuestion]
    ) -> None:
        """Measure GRASP without a model on all questions, and the plans of some."""
        nodes, edges = store.count()
        self.counts |= {f"{domain}_nodes": nodes, f"{domain}_edges": edges}
        grasp = Grasp(None, store, BM25Index.of_store(store))
        self._measure(f"{domain}, grasp", grasp, questions)
        planned = [question for question in questions if question.cypher]
        plans = {
            question.text: json.dumps({"steps": [{"cypher": question.cypher}]})
            for question in planned
        }
        with filled(store, None) as database:
            index = BM25Index.of_store(database)
            spark = Spark(ScriptedPlanner(plans), database, index)
            self._measure(f"{domain}, spark", spark, planned)

    def _measure(
        self, group: str, retriever: Retriever, questions: Sequence[PlanQuestion]
    ) -> None:
        began = time.perf_counter()
        counted: dict[str, Counter[str]] = {}
        for nth, question in enumerate(questions):
            self.report(group, nth, len(questions))
            outcome = Counter(_verdict(question, retriever.retrieve(question.text, _K)))
            for kind in (question.kind, "all"):
                counted[kind] = counted.get(kind, Counter()) + outcome
        self.report(group, len(questions), len(questions))
        seconds = time.perf_counter() - began
        self.seconds[f"query_{group}"] = seconds / max(1, len(questions))
        self.titles[group] = f"{group}, {len(questions)} questions"
        total = counted.pop("all", Counter())
        for kind, n in [*counted.items(), ("all", total)]:
            self.counts[f"{group}/{kind}"] = n["asked"]
            self.counts[f"{group}/{kind}, answerable"] = n["answerable"]
            self.rows[f"{group}/{kind}"] = _shares(n)


def _verdict(question: PlanQuestion, retrieval: Retrieval) -> Iterator[str]:
    """What counts of the answer to a question."""
    yield "asked"
    confidence = retrieval.signals.confidence
    signed = confidence is not None and confidence <= UNSURE
    right = bool(question.answers.intersection(retrieval.ids[:1]))
    if question.answers:
        yield "answerable"
    if right:
        yield RIGHT
    if right and signed:
        yield DOUBTED
    if not right and not signed:
        yield UNSIGNED


def _shares(counted: Counter[str]) -> dict[str, float]:
    """The shares of a row, those alone that are shares of something."""
    of = {
        RIGHT: counted["answerable"],
        UNSIGNED: counted["asked"],
        DOUBTED: counted[RIGHT],
    }
    return {name: percent(counted[name] / n) for name, n in of.items() if n}

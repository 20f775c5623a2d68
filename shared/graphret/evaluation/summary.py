"""What the answers of several methods come to: measures, costs and paired intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.evaluation.journal import Answer, Answers
from graphret.evaluation.metrics import (
    hit_at_k,
    mrr,
    paired_bootstrap,
    percent,
    recall_at_k,
)
from graphret.evaluation.questions import EvaluationQuestion
from graphret.llm.chat import Usage

#: Hits that each method is asked for.
K = 20
#: The measures of STaRK, in the order of a table.
MEASURES = ("hit@1", "hit@5", "recall@20", "mrr")
#: The rows over all questions, beside those of each kind.
ALL = "all"
#: Decimal places of what an answer takes: calls, tokens, dollars and seconds.
PLACES = {"calls": 1, "tokens": 0, "cost": 5, "seconds": 3}

#: A value for each question, by the name of the measure.
_Values: TypeAlias = "dict[str, NDArray[np.float64]]"


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, in dollars: those that a model reads and writes."""

    input: float
    output: float

    def of(self, usage: Answer | Usage) -> float:
        """Return what an answer or some tokens cost, in dollars."""
        read, written = usage.input_tokens, usage.output_tokens
        return (read * self.input + written * self.output) / 1e6


class Summary:
    """The measures of every answer, over all questions and over those of each kind.

    Parameters
    ----------
    questions, methods, answers
        Who answered what; every method every question. Gains are over the first.
    prices
        Of tokens, for the column ``cost``.
    by_model
        Whether a model was asked, so that calls and tokens are told.
    """

    def __init__(
        self,
        questions: Sequence[EvaluationQuestion],
        methods: Sequence[str],
        answers: Answers,
        *,
        prices: Prices | None = None,
        by_model: bool = False,
    ) -> None:
        self.questions = questions
        self.methods = methods
        self.answers = {
            method: [answers[method, question.id] for question in questions]
            for method in methods
        }
        self.measures = {method: self._measured(method) for method in methods}
        self.costs = {
            method: self._costs(method, prices, by_model) for method in methods
        }

    def _measured(self, method: str) -> _Values:
        pairs = [
            (question.counted(answer.ids), question.answers)
            for answer, question in zip(
                self.answers[method], self.questions, strict=True
            )
        ]
        return {
            "hit@1": np.asarray([hit_at_k(ids, gold, 1) for ids, gold in pairs]),
            "hit@5": np.asarray([hit_at_k(ids, gold, 5) for ids, gold in pairs]),
            "recall@20": np.asarray([recall_at_k(ids, gold, K) for ids, gold in pairs]),
            "mrr": np.asarray([mrr(ids, gold) for ids, gold in pairs]),
        }

    def _costs(self, method: str, prices: Prices | None, by_model: bool) -> _Values:
        answers = self.answers[method]
        costs: dict[str, list[float]] = {}
        if by_model:
            costs["calls"] = [answer.calls for answer in answers]
            costs["tokens"] = [
                answer.input_tokens + answer.output_tokens for answer in answers
            ]
        if by_model and prices is not None:
            costs["cost"] = [prices.of(answer) for answer in answers]
        costs["seconds"] = [answer.seconds for answer in answers]
        return {name: np.asarray(values, dtype=float) for name, values in costs.items()}

    def groups(self) -> dict[str, NDArray[np.intp]]:
        """Return the places of all questions, and of each kind if there are several."""
        kinds = dict.fromkeys(question.kind for question in self.questions)
        places = {ALL: np.arange(len(self.questions))}
        if len(kinds) > 1:
            places |= {
                kind or "other": np.flatnonzero(
                    [question.kind == kind for question in self.questions]
                )
                for kind in kinds
            }
        return places

    def to_dict(
        self, counts: Mapping[str, int], remarks: Sequence[str]
    ) -> dict[str, Any]:
        """Return the result of `evaluate`, with the graph's counts and the remarks."""
        groups, baseline = self.groups(), self.methods[0]
        rows, spread, intervals = {}, {}, {}
        for group, places in groups.items():
            for method in self.methods:
                row = f"{group}/{method}"
                rows[row] = self._means(method, places)
                spread[row] = self._spread(method, places)
                if method != baseline:
                    intervals[row] = self._gains(method, places)
        group_counts = {
            f"{group}/questions": len(places) for group, places in groups.items()
        }
        return {
            "name": "evaluate",
            "rows": rows,
            "intervals": intervals,
            "spread": spread,
            "recall": {method: self._recall_curve(method) for method in self.methods},
            "counts": {**counts, "questions": len(self.questions), **group_counts},
            "titles": {
                group: f"{group}, {len(places)} questions"
                for group, places in groups.items()
            },
            "baseline": baseline,
            "shown": list(rows[f"{ALL}/{baseline}"]),
            "places": PLACES,
            "notes": [*self._notes(), *remarks],
        }

    def _means(self, method: str, places: NDArray[np.intp]) -> dict[str, float]:
        measured = {
            name: percent(values[places].mean())
            for name, values in self.measures[method].items()
        }
        costs = {
            name: round(float(values[places].mean()), 6)
            for name, values in self.costs[method].items()
        }
        # the first question also waits for what a method prepares once
        seconds = float(np.median(self.costs[method]["seconds"][places]))
        return measured | costs | {"seconds": round(seconds, 6)}

    def _spread(
        self, method: str, places: NDArray[np.intp]
    ) -> dict[str, dict[str, float]]:
        """Return the bootstrap interval of each measure itself."""
        return {
            name: paired_bootstrap(values[places], np.zeros(len(places)))
            for name, values in self.measures[method].items()
        }

    def _gains(
        self, method: str, places: NDArray[np.intp]
    ) -> dict[str, dict[str, float]]:
        """Return the gains over the first method, questions paired."""
        baseline = self.measures[self.methods[0]]
        return {
            name: paired_bootstrap(values[places], baseline[name][places])
            for name, values in self.measures[method].items()
        }

    def _recall_curve(self, method: str) -> list[float]:
        """Return recall at 1 … 20 over all questions, in percent."""
        pairs = list(zip(self.answers[method], self.questions, strict=True))
        curve = []
        for k in range(1, K + 1):
            recalls = [
                recall_at_k(question.counted(answer.ids), question.answers, k)
                for answer, question in pairs
            ]
            curve.append(percent(float(np.mean(recalls))))
        return curve

    def _notes(self) -> list[str]:
        notes = []
        if len(self.methods) > 1:
            notes.append(f"gains are over {self.methods[0]}, in points, paired")
        for method, answers in self.answers.items():
            failed = [answer for answer in answers if answer.failures]
            if failed:
                notes.append(
                    f"{method}: something failed in {len(failed)} of {len(answers)}"
                    f" questions, first {failed[0].failures[0]}"
                )
        return notes

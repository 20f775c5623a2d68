"""The best query for each question, from questions and answers (GraphRAFT, 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphret.graphraft import Candidate, CandidateFinder, Entity
from graphret.training.questions import LabelledQuestion, continued, json_objects
from graphret.training.tuned import Progress

#: What is read of a line that an earlier run wrote.
_FIELDS = ("question", "hits", "best")


@dataclass
class SynthesisReport:
    """Counts of questions, and of those with candidates, answers, a good query."""

    questions: int = 0
    candidates: int = 0
    answerable: int = 0
    kept: int = 0


def synthesize(
    finder: CandidateFinder,
    entities: Callable[[str], list[Entity]],
    questions: Sequence[LabelledQuestion],
    out: str | Path,
    *,
    recall: float = 0.0,
    precision: float = 0.0,
    progress: Progress = lambda done, of: None,
) -> SynthesisReport:
    """Write each question's best query and all candidates, with hits and sizes.

    Each line is a question in GraphRAFT's published layout: ``question, answer_ids,
    predicted_entities, cypher_queries, hits, num_results``, queries ordered by most
    hits, then fewest results, and the ``best`` of them. It is `None` if no query has a
    hit or is good enough; such questions are not used to train a writer. An existing
    file is continued: its questions are not asked again.

    Parameters
    ----------
    finder
        Finds the candidates.
    entities
        Finds what a question names, such as ``partial(mentioned_entities, planner)`` of
        `graphret.graphraft.entities`.
    recall, precision
        The minimum recall and precision of a question's best query.
    progress
        Called with the number of finished questions, and of all questions.

    Raises
    ------
    InvalidInput
        If the file contains anything else, or a truncated line, which is named.
    """
    path, report = Path(out), SynthesisReport()
    written = json_objects(path, _FIELDS) if path.exists() else ()
    done = {record["question"]: record for _, record in written}

    def record_of(question: LabelledQuestion) -> dict[str, Any]:
        named = entities(question.text)
        return _record(finder, named, question, recall, precision)

    for record in continued(path, done, questions, record_of, progress):
        report.questions += 1
        report.candidates += bool(record["hits"])
        report.answerable += any(record["hits"])
        report.kept += record["best"] is not None
    return report


def _record(
    finder: CandidateFinder,
    entities: Sequence[Entity],
    question: LabelledQuestion,
    recall: float,
    precision: float,
) -> dict[str, Any]:
    ranked = sorted(
        finder.find(entities, question.gold),
        key=lambda candidate: (-(candidate.hits or 0), candidate.size, candidate.text),
    )
    return {
        "question": question.text,
        "answer_ids": sorted(question.gold),
        "predicted_entities": [candidate.name for candidate in entities],
        "cypher_queries": [candidate.query for candidate in ranked],
        "hits": [candidate.hits for candidate in ranked],
        "num_results": [candidate.size for candidate in ranked],
        "best": next(
            (
                candidate.query
                for candidate in ranked
                if _good(candidate, question, recall, precision)
            ),
            None,
        ),
    }


def _good(
    candidate: Candidate, question: LabelledQuestion, recall: float, precision: float
) -> bool:
    hits = candidate.hits or 0
    return (
        hits > 0
        and hits >= recall * len(question.gold)
        and hits >= precision * candidate.size
    )

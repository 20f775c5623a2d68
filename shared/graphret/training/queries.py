"""The best query for each question, from questions and answers (GraphRAFT, 4.1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.graphraft import Candidate, CandidateFinder, Entity
from graphret.training.questions import LabelledQuestion, json_lines


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
    progress: Callable[[int, int], None] | None = None,
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
    done = {}
    for where, record in json_lines(path) if path.exists() else ():
        if (
            not isinstance(record, dict)
            or not {"question", "hits", "best"} <= record.keys()
        ):
            raise InvalidInput(
                f"{where}: expected a line of train queries, with question, hits and"
                " best"
            )
        done[record["question"]] = record
    with path.open("a", encoding="utf-8") as file:
        for nth, question in enumerate(questions):
            if question.text not in done:
                done[question.text] = record = _record(
                    finder, entities(question.text), question, recall, precision
                )
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                file.flush()
            record = done[question.text]
            report.questions += 1
            report.candidates += bool(record["hits"])
            report.answerable += any(record["hits"])
            report.kept += record["best"] is not None
            if progress is not None:
                progress(nth + 1, len(questions))
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

"""Questions and answers become questions and queries: of the candidates of each the
best (GraphRAFT, section 4.1).
"""

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
    """How many questions there are, how many have candidates, one with an answer, and
    one that is good enough.
    """

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
    """Write the best query of each question, and all candidates with their hits and
    sizes, to a file.

    Each line is a question in the layout that GraphRAFT published: ``question,
    answer_ids, predicted_entities, cypher_queries, hits, num_results``, the queries
    with the most hits first, then those with the fewest results, and the ``best`` of
    them; `None` where none has a hit, or none is good enough, which a writer is not
    trained on. A file that is there is gone on with: its questions are not asked again.

    Parameters
    ----------
    finder
        Finds the candidates.
    entities
        Finds what a question names, such as ``partial(mentioned_entities, planner)`` of
        `graphret.graphraft.entities`.
    recall, precision
        The least share of the answers that the best query finds, and of answers among
        what it finds.
    progress
        Told how many of how many questions are done.

    Raises
    ------
    InvalidInput
        When the file holds what this does not write, or a line that was cut off; the
        line is named.
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
        for nth, one in enumerate(questions):
            if one.text not in done:
                done[one.text] = record = _record(
                    finder, entities(one.text), one, recall, precision
                )
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                file.flush()
            record = done[one.text]
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
        key=lambda one: (-(one.hits or 0), one.size, one.text),
    )
    return {
        "question": question.text,
        "answer_ids": sorted(question.gold),
        "predicted_entities": [one.name for one in entities],
        "cypher_queries": [one.query for one in ranked],
        "hits": [one.hits for one in ranked],
        "num_results": [one.size for one in ranked],
        "best": next(
            (one.query for one in ranked if _good(one, question, recall, precision)),
            None,
        ),
    }


def _good(
    one: Candidate, question: LabelledQuestion, recall: float, precision: float
) -> bool:
    hits = one.hits or 0
    return (
        hits > 0
        and hits >= recall * len(question.gold)
        and hits >= precision * one.size
    )

"""Pools of candidates for labelled questions, to train a reranker (GRASP, 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.rerank import HitText, HitTexts
from graphret.retriever import Retriever
from graphret.training.objectives import CandidateGroup
from graphret.training.questions import LabelledQuestion, continued, json_lines
from graphret.training.tuned import Progress


@dataclass
class PoolReport:
    """Counts of questions, of those with a correct answer, and of those to train on.

    The last also have a wrong candidate.
    """

    questions: int = 0
    found: int = 0
    kept: int = 0


def collect_pools(
    retriever: Retriever,
    questions: Sequence[LabelledQuestion],
    out: str | Path,
    *,
    text: HitTexts | None = None,
    depth: int = 100,
    negatives: int = 30,
    progress: Progress = lambda done, of: None,
) -> PoolReport:
    """Write the texts of each question's correct and hardest wrong hits to a file.

    The wrong ones are those ranked highest. Each line is ``{"question", "positives":
    [texts], "negatives": [texts]}``. An existing file is continued: its questions are
    not asked again.

    Parameters
    ----------
    retriever
        The retriever whose hits will be reranked.
    text
        How hits become text: as in the reranker, by default as `CausalReranker` does.
    depth, negatives
        The number of hits to read, and of wrong ones to keep (section 3.3: 100 and 30).

    Raises
    ------
    InvalidInput
        If the file contains anything else, or a truncated line, which is named.
    """
    path, report = Path(out), PoolReport()
    pools = read_pools(path) if path.exists() else []
    done = {pool.question: asdict(pool) for pool in pools}
    reading = text or HitText(labelled=True)

    def record_of(question: LabelledQuestion) -> dict[str, Any]:
        return asdict(_pool(retriever, question, reading, depth, negatives))

    for record in continued(path, done, questions, record_of, progress):
        report.questions += 1
        report.found += bool(record["positives"])
        report.kept += bool(record["positives"] and record["negatives"])
    return report


def _pool(
    retriever: Retriever,
    question: LabelledQuestion,
    reading: HitTexts,
    depth: int,
    negatives: int,
) -> CandidateGroup:
    hits = retriever.retrieve(question.text, depth).hits
    texts = list(zip(hits, reading.texts(hits), strict=True))
    right = [text for hit, text in texts if hit.id in question.gold]
    wrong = [text for hit, text in texts if hit.id not in question.gold]
    return CandidateGroup(question.text, right, wrong[:negatives])


def read_pools(path: str | Path) -> list[CandidateGroup]:
    """Read the pools that `collect_pools` wrote; refuse malformed lines."""
    return [_read(record, where) for where, record in json_lines(path)]


def _read(record: Any, where: str) -> CandidateGroup:
    fields = record if isinstance(record, dict) else {}
    lists = [fields.get("positives"), fields.get("negatives")]
    texts = [
        text
        for texts_of_kind in lists
        if isinstance(texts_of_kind, list)
        for text in texts_of_kind
    ]
    if (
        not isinstance(fields.get("question"), str)
        or not all(isinstance(texts_of_kind, list) for texts_of_kind in lists)
        or not all(isinstance(text, str) for text in texts)
    ):
        raise InvalidInput(
            f'{where}: expected {{"question": text, "positives": [texts], "negatives":'
            " [texts]}"
        )
    positives, negatives = (tuple(texts_of or ()) for texts_of in lists)
    return CandidateGroup(fields["question"], positives, negatives)

"""Training data for GraphRAFT's reasoner: found nodes and the correct choice (4.3)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from graphret.graphraft import GraphRAFT
from graphret.graphraft.reasoner import chosen_conversation, shown_nodes
from graphret.llm import Message
from graphret.retriever import drive
from graphret.trace import Trace
from graphret.training.questions import LabelledQuestion, continued, json_objects
from graphret.training.tuned import Progress
from graphret.types import Hit

_FIELDS = ("question", "found", "messages")


@dataclass
class ConversationReport:
    """Counts of questions, of those with results, and of those to train on.

    The last have a correct answer among the results that the model is shown.
    """

    questions: int = 0
    found: int = 0
    kept: int = 0


def write_conversations(
    raft: GraphRAFT,
    questions: Sequence[LabelledQuestion],
    out: str | Path,
    *,
    progress: Progress = lambda done, of: None,
) -> ConversationReport:
    """Write for each question the conversation with the correct choice of its results.

    Each line is ``{"question", "found", "messages"}``; there are no messages if no
    correct answer was shown, and `train_reasoner` leaves such a question out. An
    existing file is continued: its questions are not asked again.

    Parameters
    ----------
    raft
        It runs the best queries, a beam of its writer; its reasoner is not asked.

    Raises
    ------
    InvalidInput
        If the file contains anything else.
    """
    path, report = Path(out), ConversationReport()
    written = json_objects(path, _FIELDS) if path.exists() else ()
    done = {record["question"]: record for _, record in written}
    for record in continued(path, done, questions, partial(_record, raft), progress):
        report.questions += 1
        report.found += bool(record["found"])
        report.kept += bool(record["messages"])
    return report


def _found(raft: GraphRAFT, query: str) -> Generator[Any, Any, list[Hit]]:
    """Return the results of the best queries, as the reasoner gets them."""
    trace = Trace()
    entities = yield from raft.entities(query, trace)
    candidates = yield from raft.candidates(entities, trace)
    written = yield from raft.write(query, candidates, trace)
    most = raft.settings.nodes
    hits: list[Hit] = yield from raft.run(
        query, most, None, candidates, written, trace, every=True
    )
    return hits


def _record(raft: GraphRAFT, question: LabelledQuestion) -> dict[str, Any]:
    hits = drive(_found(raft, question.text))
    shown, fitting = shown_nodes(hits)
    right = [
        number
        for number, hit in enumerate(hits[:fitting], 1)
        if hit.id in question.gold
    ]
    turns = list[Message]()
    if right:
        turns = chosen_conversation(question.text, shown, right)
    return {
        "question": question.text,
        "found": len(hits),
        "messages": [turn.to_dict() for turn in turns],
    }

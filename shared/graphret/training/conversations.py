"""What GraphRAFT's reasoner is trained on: labelled questions with what their queries
found, and the right choice (section 4.3).
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.graphraft import GraphRAFT
from graphret.graphraft.reasoner import chosen_conversation, shown_nodes
from graphret.llm import Message
from graphret.retriever import drive
from graphret.trace import Trace
from graphret.training.questions import LabelledQuestion, json_lines
from graphret.training.tuned import Progress
from graphret.types import Hit


@dataclass
class ConversationReport:
    """How many questions there are, of how many queries find anything, and of how many
    a right answer among what a model is shown, which a reasoner is trained on.
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
    """Write for each question the conversation in which the right nodes are chosen of
    those that the best queries, a beam of the writer, found.

    Each line is ``{"question", "found", "messages"}``; there are no messages where no
    right answer was shown, and `train_reasoner` leaves such a question out. A file that
    is there is gone on with: its questions are not asked again.

    Parameters
    ----------
    raft
        Whose queries are run, up to where its reasoner would choose.

    Raises
    ------
    InvalidInput
        When the file holds what this does not write.
    """
    path, report = Path(out), ConversationReport()
    done: dict[str, Any] = {}
    for where, record in json_lines(path) if path.exists() else ():
        fields = {"question", "found", "messages"}
        if not isinstance(record, dict) or not record.keys() >= fields:
            raise InvalidInput(
                f"{where}: expected an object with question and messages"
            )
        done[record["question"]] = record
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for number, question in enumerate(questions, 1):
            if question.text not in done:
                done[question.text] = _record(raft, question)
                line = json.dumps(done[question.text], ensure_ascii=False)
                file.write(f"{line}\n")
                file.flush()
            record = done[question.text]
            report.questions += 1
            report.found += bool(record["found"])
            report.kept += bool(record["messages"])
            progress(number, len(questions))
    return report


def _found(raft: GraphRAFT, query: str) -> Generator[Any, Any, list[Hit]]:
    """Return what the best queries find, which is what a reasoner is given."""
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

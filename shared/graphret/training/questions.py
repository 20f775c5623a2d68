"""Questions whose right answers are known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the ids of the nodes that answer it, and the part of the data that it belongs to."""

    text: str
    gold: frozenset[str]
    half: str = ""


def read_questions(path: str | Path, limit: int | None = None) -> list[Question]:
    """Read labelled questions, JSON Lines of ``{"question": …, "answers": [ids]}``; an error names the line."""
    found: list[Question] = []
    try:
        with Path(path).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip() and (limit is None or len(found) < limit):
                    found.append(_question(json.loads(line), f"{path}, line {number}"))
    except (OSError, ValueError) as error:
        raise error if isinstance(error, InvalidInput) else InvalidInput(f"{path}: {error}") from error
    return found


def _question(record: Any, where: str) -> Question:
    text = record.get("question") if isinstance(record, dict) else None
    answers = record.get("answers") if isinstance(record, dict) else None
    if not isinstance(text, str) or not isinstance(answers, list) or not answers:
        raise InvalidInput(f'{where}: {{"question": text, "answers": [ids]}} is expected')
    return Question(text, frozenset(map(str, answers)))

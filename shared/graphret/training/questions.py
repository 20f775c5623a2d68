"""Questions whose right answers are known."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, the ids of its right nodes, and its part of the data."""

    text: str
    gold: frozenset[str]
    half: str = ""


def read_questions(
    path: str | Path, limit: int | None = None
) -> list[LabelledQuestion]:
    """Read questions: JSON Lines of ``{"question": …, "answers": [ids]}``."""
    return [
        _question(record, where) for where, record in islice(json_lines(path), limit)
    ]


def json_lines(path: str | Path) -> Iterator[tuple[str, Any]]:
    """Yield the values of JSON Lines, gzipped or not, each with its place in words.

    Errors name that place.
    """
    where = str(path)
    try:
        with (gzip.open if where.endswith(".gz") else open)(
            path, "rt", encoding="utf-8"
        ) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    where = f"{path}, line {number}"
                    yield where, json.loads(line)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{where}: {error}") from error


def _question(record: Any, where: str) -> LabelledQuestion:
    text = record.get("question") if isinstance(record, dict) else None
    answers = record.get("answers") if isinstance(record, dict) else None
    if not isinstance(text, str) or not isinstance(answers, list) or not answers:
        raise InvalidInput(f'{where}: expected {{"question": text, "answers": [ids]}}')
    return LabelledQuestion(text, frozenset(map(str, answers)))

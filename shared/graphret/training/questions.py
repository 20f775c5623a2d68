"""Questions whose right answers are known."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.training.tuned import Progress


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


def json_objects(
    path: str | Path, fields: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of JSON Lines as `json_lines` does; all must have `fields`."""
    for where, record in json_lines(path):
        if not isinstance(record, dict) or not record.keys() >= {*fields}:
            raise InvalidInput(f"{where}: expected an object with {', '.join(fields)}")
        yield where, record


def continued(
    path: Path,
    done: Mapping[str, dict[str, Any]],
    questions: Sequence[LabelledQuestion],
    record_of: Callable[[LabelledQuestion], dict[str, Any]],
    progress: Progress,
) -> Iterator[dict[str, Any]]:
    """Yield the record of each question, and append to a file those that it lacks.

    Parameters
    ----------
    path
        The file, a line for each record; it and its folder are made if need be.
    done
        The records that it has, by question.
    record_of
        Makes the record of a question.
    """
    records = dict(done)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for number, question in enumerate(questions, 1):
            if question.text not in records:
                record = records[question.text] = record_of(question)
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                file.flush()
            yield records[question.text]
            progress(number, len(questions))


def _question(record: Any, where: str) -> LabelledQuestion:
    text = record.get("question") if isinstance(record, dict) else None
    answers = record.get("answers") if isinstance(record, dict) else None
    if not isinstance(text, str) or not isinstance(answers, list) or not answers:
        raise InvalidInput(f'{where}: expected {{"question": text, "answers": [ids]}}')
    return LabelledQuestion(text, frozenset(map(str, answers)))

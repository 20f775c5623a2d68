"""What every loader returns: nodes to search, and questions whose right answers are known."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.types import Node

#: The part of the questions that settings were chosen on, and the part that they were not.
TUNED, HELD = "tuned", "held"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the ids of the nodes that answer it, and the part of the data that it belongs to."""

    text: str
    gold: frozenset[str]
    half: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A corpus as nodes, and questions over it.

    Parameters
    ----------
    counts
        What the loader left out and why, by name.
    """

    name: str
    nodes: Sequence[Node]
    questions: Sequence[Question]
    counts: dict[str, int] = field(default_factory=dict)

    def limited(self, limit: int | None) -> Dataset:
        """Return the data with the first `limit` questions; the corpus stays whole."""
        if limit is None:
            return self
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InvalidInput(f"limit: a whole number of at least 1 is expected, not {limit!r}")
        return replace(self, questions=self.questions[:limit])


class Shares:
    """Rows of shares in percent, the numbers that they are shares of, and examples of what was missed."""

    def __init__(self) -> None:
        self.rows: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self.counts: dict[str, int] = {}
        self.missed: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)

    def share(self, row: str, metric: str, found: int, of: int, places: int = 2) -> None:
        """Add ``found / of`` to a row; where `of` is 0 the count alone."""
        self.counts[f"{row}/{metric}"] = of
        if of:
            self.rows[row][metric] = round(100 * found / of, places)

    def result(self, name: str, seconds: Mapping[str, float]) -> dict[str, Any]:
        """Return the result of a benchmark, with twenty examples of each kind."""
        missed = {what: examples[:20] for what, examples in self.missed.items()}
        return {"name": name, "rows": dict(self.rows), "counts": self.counts, "seconds": seconds, "missed": missed}


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


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; an `InvalidInput` names a file that is missing or holds none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(f"{path}: there is no such file") from None
    except (ValueError, OSError) as error:
        raise InvalidInput(f"{path}: {error}") from error

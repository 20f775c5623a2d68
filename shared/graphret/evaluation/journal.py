"""The answers of a run in a file, from which an interrupted run continues."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from graphret.errors import InvalidInput
from graphret.storage import storing

#: The answers of a run, by the method and the id of the question.
Answers: TypeAlias = "dict[tuple[str, str], Answer]"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a method answered to a question, and what that took.

    `question` is the id of the question, `text` what it asks; `failures` are what
    failed on the way, though there is an answer.
    """

    method: str
    question: str
    text: str
    ids: tuple[str, ...]
    seconds: float
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    failures: tuple[str, ...] = ()


class Journal:
    """A file of JSON Lines: first what the run is about, then a line for each answer.

    Parameters
    ----------
    path
        The file; it and its folder are made where they are not there. `None` keeps
        nothing.
    about
        What a run is about, as JSON values: an answer of a run about something else is
        never taken for one of this.
    """

    def __init__(self, path: Path | None, about: Mapping[str, Any]) -> None:
        self.path = path
        self.about = dict(about)

    def read(self) -> Answers:
        """Return the answers that are kept; a last line that was cut short is dropped.

        Raises
        ------
        InvalidInput
            When the file is of another run, which it names, or no journal; it is left
            as it is.
        """
        if self.path is None:
            return {}
        if not self.path.exists():
            self._write("w", json.dumps({"run": self.about}) + "\n")
            return {}
        try:
            text = self.path.read_text(encoding="utf-8")
            complete_lines = text[: text.rfind("\n") + 1]
            first, *lines = [json.loads(line) for line in complete_lines.splitlines()]
            answers = [Answer(**{**line, "ids": tuple(line["ids"])}) for line in lines]
            run = dict(first["run"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"{self.path}: expected the answers of a run: {error}"
            ) from error
        self._require_same(run)
        if complete_lines != text:
            self._write("w", complete_lines)
        return {(answer.method, answer.question): answer for answer in answers}

    def add(self, answer: Answer) -> None:
        """Keep an answer."""
        if self.path is not None:
            self._write("a", json.dumps(asdict(answer)) + "\n")

    def _require_same(self, run: Mapping[str, Any]) -> None:
        differing = [
            f"{name} {run.get(name)!r}, now {self.about.get(name)!r}"
            for name in {**run, **self.about}
            if run.get(name) != self.about.get(name)
        ]
        if differing:
            raise InvalidInput(
                f"{self.path}: it contains answers of another run and was left"
                f" unchanged: {'; '.join(differing)}"
            )

    def _write(self, mode: str, text: str) -> None:
        assert self.path is not None
        with storing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open(mode, encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())

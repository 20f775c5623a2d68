"""What every loader returns: nodes to search, and questions with known answers."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.training.questions import LabelledQuestion
from graphret.types import Node

#: The part of the questions that settings were chosen on, and the part that they were
#: not.
TUNED, HELD = "tuned", "held"


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
    questions: Sequence[LabelledQuestion]
    counts: dict[str, int] = field(default_factory=dict)

    def limited(self, limit: int | None) -> Dataset:
        """Return the data with the first `limit` questions; the corpus stays whole."""
        return replace(self, questions=self.questions[:limit])


class ShareTable:
    """Shares in percent, their denominators, and examples of what was missed."""

    def __init__(self) -> None:
        self.rows: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self.counts: dict[str, int] = {}
        self.missed: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)

    def share(self, row: str, metric: str, n: int, of: int, places: int = 2) -> None:
        """Add ``found / of`` to a row; where `of` is 0 the count alone."""
        self.counts[f"{row}/{metric}"] = of
        if of:
            self.rows[row][metric] = round(100 * n / of, places)

    def result(self, name: str, seconds: Mapping[str, float]) -> dict[str, Any]:
        """Return the result of a benchmark, with twenty examples of each kind."""
        missed = {what: examples[:20] for what, examples in self.missed.items()}
        return {
            "name": name,
            "rows": dict(self.rows),
            "counts": self.counts,
            "seconds": seconds,
            "missed": missed,
        }


def json_files(folder: Path) -> dict[str, Path]:
    """Return the JSON files of a folder by name, without ``.json`` or ``.json.gz``.

    Where a file is there both plain and gzipped, it is the plain one.
    """
    files: dict[str, Path] = {}
    for suffix in (".json.gz", ".json"):
        for path in sorted(folder.glob(f"*{suffix}")):
            files[path.name.removesuffix(suffix)] = path
    return dict(sorted(files.items()))


def read_json(path: Path) -> Any:
    """Return what a JSON file holds, gzipped where its name ends in ``.gz``.

    Raises
    ------
    InvalidInput
        When it is missing or holds no JSON; the message names it.
    """
    try:
        raw = path.read_bytes()
        if path.suffix == ".gz":
            raw = gzip.decompress(raw)
        return json.loads(raw.decode("utf-8"))
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{path}: {error}") from error


def read_list(path: Path) -> list[Any]:
    """Return the list in a JSON file; anything else in it is an `InvalidInput`."""
    value = read_json(path)
    if not isinstance(value, list):
        raise InvalidInput(f"{path}: expected a list, got {type(value).__name__}")
    return value

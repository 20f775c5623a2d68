"""The corpus and the questions of the demo; ATTRIBUTION.md has their sources."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphret.corpus import Corpus, read
from graphret.nodes import NodeTable

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question of OTT-QA about one of the tables.

    Its `rows`, from 0, and `passages` hold the answer; there are no passages where the
    table alone has it.
    """

    id: str
    question: str
    answer: str
    table: str
    rows: tuple[int, ...]
    passages: tuple[str, ...]

    def gold(self, nodes: NodeTable) -> frozenset[str]:
        """Return the ids of its passages and of the segments that have its rows."""
        segments = nodes.at(
            [i for i, id_ in enumerate(nodes.ids) if id_.startswith(f"{self.table}#")]
        )
        spans = {
            node.id: (
                node.properties["table_row_start"],
                node.properties["table_row_end"],
            )
            for node in segments
        }
        segment_ids = [
            id_
            for id_, (start, end) in spans.items()
            if any(start <= row < end for row in self.rows)
        ]
        return frozenset([*segment_ids, *self.passages])


def load_corpus() -> Corpus:
    return read(_records("corpus.jsonl.gz"))


def load_questions() -> list[DemoQuestion]:
    records = list(_records("questions.jsonl.gz"))
    for record in records:
        record |= {"rows": tuple(record["rows"]), "passages": tuple(record["passages"])}
    return [DemoQuestion(**record) for record in records]


def _records(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(_HERE / name, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)

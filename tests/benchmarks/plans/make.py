"""Write the graphs and questions of ``graphret bench plans`` to a folder.

python tests/benchmarks/plans/make.py [DIR]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import business
import clinic
import helpdesk
from records import Question, Records

#: How each domain's graph and its questions are made.
DOMAINS: Mapping[
    str, tuple[Callable[[], Records], Callable[[Records], list[Question]]]
] = {
    "business": (business.build, business.questions),
    "clinic": (clinic.build, clinic.questions),
    "helpdesk": (helpdesk.build, helpdesk.questions),
}


def write(folder: Path) -> None:
    """Write a folder for each domain: nodes, edges and questions as JSON Lines."""
    for domain, (build, questions) in DOMAINS.items():
        graph = build()
        (folder / domain).mkdir(parents=True, exist_ok=True)
        nodes = (
            {"id": node_id, "labels": [graph.label[node_id]]} | properties
            for node_id, properties in graph.properties.items()
        )
        edges = (
            {"source": source, "relation": relation, "target": target}
            for source, relation, target in graph.edges
        )
        _lines(folder / domain / "nodes.jsonl", nodes)
        _lines(folder / domain / "edges.jsonl", edges)
        records = (_asked(question) for question in questions(graph))
        _lines(folder / domain / "questions.jsonl", records)


def _asked(question: Question) -> dict[str, Any]:
    written = {"cypher": question.cypher} if question.cypher else {}
    return {
        "question": question.text,
        "kind": question.kind,
        "answers": sorted(question.gold),
        **written,
    }


def _lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)

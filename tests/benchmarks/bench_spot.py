"""How often the entity of a MetaQA question is spotted by its name alone, and how much else is.

``python -m benchmarks.bench_spot --data FOLDER [--split dev] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.linking import NameBook
from graphret.linking.mentions import spot

_ENTITY = re.compile(r"\[(.*?)\]")


def names_of(folder: Path) -> list[str]:
    """Return the names of MetaQA's graph, each once, in order."""
    path = folder / "kb.txt"
    if not path.is_file():
        raise InvalidInput(f"data: {path} is not there; a folder in MetaQA's layout is expected")
    lines = (line.split("|") for line in path.read_text(encoding="utf-8").splitlines() if line)
    return sorted({name for subject, _, target in lines for name in (subject, target)})


def measure(folder: str | Path, split: str = "dev", limit: int | None = None) -> dict[str, Any]:
    """Spot names in the questions with their brackets removed, as they are written and in small letters.

    Returns
    -------
    dict
        A benchmark's result: for each number of hops the share of questions in which the entity is among the nodes
        spotted, of all questions (``recall``) and of those whose entity the graph has (``recall of known``), and the
        mean number of spots a question.
    """
    folder = Path(folder)
    names = names_of(folder)
    start = time.perf_counter()
    book, known = NameBook((name, name, None) for name in names), set(names)
    seconds = {"built": time.perf_counter() - start}
    rows: dict[str, dict[str, float]] = {}
    counts = {"names": len(names)}
    for hops in (1, 2, 3):
        lines = (folder / f"{hops}-hop" / "vanilla" / f"qa_{split}.txt").read_text(encoding="utf-8").splitlines()
        questions = [line.split("\t")[0] for line in lines if "[" in line][:limit]
        entities = [_ENTITY.findall(question)[0] for question in questions]
        there = [entity in known for entity in entities]
        counts |= {f"{hops}-hop questions": len(questions), f"{hops}-hop entities of the graph": sum(there)}
        for style in ("as written", "small letters"):
            asked = [_ENTITY.sub(r"\1", question) for question in questions]
            asked = asked if style == "as written" else [question.lower() for question in asked]
            start = time.perf_counter()
            found = [spot(question, book) for question in asked]
            taken = (time.perf_counter() - start) / len(asked)
            hit = [any(entity in one.ids for one in spots) for entity, spots in zip(entities, found, strict=True)]
            rows[f"{hops}-hop, {style}"] = {
                "recall": 100 * sum(hit) / len(hit),
                "recall of known": 100 * sum(h for h, t in zip(hit, there, strict=True) if t) / max(sum(there), 1),
                "spots": sum(map(len, found)) / len(found),
            }
            seconds[f"{hops}-hop, {style}, a question"] = taken
    return {"name": "spot", "rows": rows, "counts": counts, "seconds": seconds}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_spot", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder in MetaQA's layout")
    parser.add_argument("--split", default="dev", help="train or dev")
    parser.add_argument("--limit", type=int, help="only so many questions of each kind")
    parser.add_argument("--json", type=Path, help="write the result here")
    chosen = parser.parse_args(arguments)
    result = measure(chosen.data, chosen.split, chosen.limit)
    for row, values in result["rows"].items():
        print(row, ", ".join(f"{name} {value:.2f}" for name, value in values.items()))
    print(result["counts"])
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The default against flat search on corpora and questions that it was not made for.

``python tools/generality.py --data DIR [--encoder NAME] [--json FILE]``, with DIR as
for ``graphret bench ottqa``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphret.evaluation.dataset import Dataset
from graphret.evaluation.ottqa import load_ottqa
from graphret.evaluation.runner import OTTQA_K, compare

SHORT, LONG = 10, 100
_ROWS = ("bm25", "bm25f", "flat", "hybrid", "default")

_BEFORE = """
Hello there, I hope you are doing well today. I have been reading a lot of things on the internet lately and my friend
asked me something that I could not answer, so I thought that maybe you would be able to help me out with it. Please
take your time and think it through carefully before you reply, because I would really like to get this one right. Here
is the thing I want to know:
"""
_AFTER = """
Thank you very much in advance for any help that you can give me, I really appreciate it, and please keep the answer
short and simple if possible. Have a nice day and best wishes from all of us here.
"""


def shortened(question: str, words: int = SHORT) -> str:
    """Return the first words of a question."""
    return " ".join(question.split()[:words])


def lengthened(question: str, words: int = LONG) -> str:
    """Return a question padded with polite words to `words` words."""
    question_words = question.split()
    missing = max(0, words - len(question_words))
    before = _BEFORE.split()[-missing:] if missing else []
    return " ".join(
        [*before, *question_words, *_AFTER.split()[: missing - len(before)]]
    )


def worst_loss(rows: Mapping[str, Mapping[str, float]]) -> float:
    """Return the most points by which the default is below the best flat search."""
    default = rows["default"]
    flat = [values for row, values in rows.items() if row != "default"]
    under = [
        values[metric] - default[metric]
        for values in flat
        for metric in default
        if metric.startswith("recall@")
    ]
    return round(max(0.0, *under), 2)


def variants(
    data: str | Path, limit: int | None = None
) -> Iterator[tuple[str, Dataset]]:
    """Yield variants of OTT-QA: whole, in parts, untitled, shorter and longer questions."""
    dataset = load_ottqa(data).limited(limit)
    yield "whole", dataset
    yield "passages", _of_label(dataset, "Document")
    yield "tables", _of_label(dataset, "Table")
    yield "untitled", load_ottqa(data, titled=False).limited(limit)
    for name, change in (("short", shortened), ("long", lengthened)):
        yield (
            name,
            replace(
                dataset,
                questions=[replace(q, text=change(q.text)) for q in dataset.questions],
            ),
        )


def _of_label(dataset: Dataset, label: str) -> Dataset:
    """Return the nodes of a label, and the questions that have gold among them."""
    nodes = [node for node in dataset.nodes if node.label == label]
    ids = {node.id for node in nodes}
    questions = [
        replace(q, gold=q.gold & ids)
        for q in dataset.questions
        if not q.gold.isdisjoint(ids)
    ]
    return replace(dataset, nodes=nodes, questions=questions)


def measure(
    data: str | Path,
    k: Sequence[int] = OTTQA_K,
    limit: int | None = None,
    encoder: Any = None,
) -> dict[str, Any]:
    """Return a benchmark's result with rows ``<variant>/<row>``.

    ``losses`` has by how many points of recall the default is at worst under the best
    flat search, per variant and over all, 0 where it never is.
    """
    parts: dict[str, dict[str, Any]] = {"rows": {}, "counts": {}, "intervals": {}}
    losses: dict[str, float] = {}
    for variant, dataset in variants(data, limit):
        run = compare(dataset, k, encoder=encoder, rows=_ROWS)
        parts_of_run = {
            "rows": run.rows(),
            "counts": run.counts,
            "intervals": run.intervals(),
        }
        for name, values in parts_of_run.items():
            parts[name] |= {f"{variant}/{key}": value for key, value in values.items()}
        losses[variant] = worst_loss(run.rows())
    losses["all"] = max(losses.values())
    parts["counts"] |= {
        name: parts["counts"][f"whole/{name}"] for name in ("nodes", "questions")
    }
    return {"name": "generality", **parts, "losses": losses, "baseline": run.baseline}


def main(argv: Sequence[str] | None = None) -> None:
    """Write the result, for ``tools/pages.py``."""
    parser = argparse.ArgumentParser(
        prog="python tools/generality.py", description=__doc__
    )
    parser.add_argument(
        "--data",
        required=True,
        help="a folder in the layout of the public OTT-QA repository",
    )
    parser.add_argument(
        "--encoder", default=None, help="'default', or a model; none by default"
    )
    parser.add_argument(
        "--limit", type=int, default=None, help="the first questions alone"
    )
    parser.add_argument(
        "--json", type=Path, required=True, help="where the result goes"
    )
    options = parser.parse_args(argv)
    result = measure(options.data, limit=options.limit, encoder=options.encoder)
    options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(
        ", ".join(f"{variant} {loss:g}" for variant, loss in result["losses"].items())
    )


if __name__ == "__main__":
    main()

"""The generality guard: the default against flat search on corpora and questions that it was not made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphret.evaluation.dataset import Dataset
from graphret.evaluation.ottqa import VARIANTS, load_ottqa
from graphret.evaluation.runner import OTTQA_K, Progress, compare

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
    """Return a question among polite words that say nothing, `words` in all where there are that many."""
    own = question.split()
    missing = max(0, words - len(own))
    before = _BEFORE.split()[-missing:] if missing else []
    return " ".join([*before, *own, *_AFTER.split()[: missing - len(before)]])


def worst_loss(rows: Mapping[str, Mapping[str, float]]) -> float:
    """Return by how many points the default is under the best flat search, at the k where that is most."""
    default = rows["default"]
    flat = [values for row, values in rows.items() if row != "default"]
    under = [values[metric] - default[metric] for values in flat for metric in default if metric.startswith("recall@")]
    return round(max(0.0, *under), 2)


def bench_generality(
    data: str | Path,
    split: str = "dev",
    k: Sequence[int] | None = OTTQA_K,
    limit: int | None = None,
    encoder: Any = "default",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare the default with flat search on what OTT-QA becomes without its tables, its passages or its titles.

    And on questions of 10 and of about 100 words. Rows are ``<variant>/flat``, ``<variant>/hybrid`` (over fields) and
    ``<variant>/default``; ``losses`` has by how many points of recall the default is at worst under the better of the
    two flat searches, per variant and over all, 0 where it never is.

    Parameters
    ----------
    data, split, k, limit, encoder, progress
        As for `graphret.evaluation.runner.bench_ottqa`.
    """
    result: dict[str, Any] = {
        "name": "guard",
        "rows": {},
        "counts": {},
        "seconds": {},
        "intervals": {},
        "losses": {},
        "notes": [],
    }
    whole: Dataset | None = None
    for variant in (*VARIANTS, "short", "long"):
        if variant in VARIANTS:
            dataset = load_ottqa(data, split, variant=variant).limited(limit)
            whole = whole or dataset
        else:
            assert whole is not None
            change = shortened if variant == "short" else lengthened
            dataset = replace(whole, questions=[replace(q, text=change(q.text)) for q in whole.questions])
        run = compare(dataset, k or OTTQA_K, encoder=encoder, rows=_ROWS, progress=progress)
        rows, intervals = run.rows(), run.intervals()
        result["rows"] |= {f"{variant}/{row}": values for row, values in rows.items()}
        result["intervals"] |= {f"{variant}/{row}": values for row, values in intervals.items()}
        result["counts"] |= {f"{variant}/{name}": count for name, count in run.counts.items()}
        result["seconds"] |= {f"{variant}/{name}": round(value, 6) for name, value in run.seconds.items()}
        result["losses"][variant] = worst_loss(rows)
        result["notes"] = list(dict.fromkeys([*result["notes"], *run.notes]))
        result["baseline"] = run.baseline
    result["losses"]["all"] = max(result["losses"].values())
    for name in ("nodes", "questions"):
        result["counts"][name] = result["counts"][f"whole/{name}"]
    return result

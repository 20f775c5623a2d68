"""Candidate paths that are ranked for questions, in the layout of GraphRAFT's validation file of STaRK-MAG."""

from __future__ import annotations

import gzip
import json
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphret.errors import InvalidInput
from graphret.evaluation.runner import Progress
from graphret.linking.everyday import FUNCTION_WORDS
from graphret.planning.paths import Hop, PathSpace, PathTable
from graphret.planning.question import readings
from graphret.planning.scorer import Choice, PathScorer, masked
from graphret.planning.words import stem
from graphret.text import tokenize, words

SHOWN = ("top_is_best", "hit@1", "recall@20")
_K = 20
_BEGIN = re.compile(r'MATCH \(\w*:`?(\w+)`? \{name: "(.*)"\}\)(.*?) RETURN', re.DOTALL)
_STEP = re.compile(r"<?-\[\w*:`?(\w+)`?\]->?\(\w*:`?(\w+)`?\)")
_FIELDS = ("question", "answer_ids", "cypher_queries", "hits", "num_results")


def bench_paths(data: str | Path, train: str | Path | None = None, progress: Progress | None = None) -> dict[str, Any]:
    """Rank the candidate queries of each question, and measure the ranking by their hits and results.

    Parameters
    ----------
    data, train
        JSON Lines, gzipped or not: ``question``, ``answer_ids``, ``cypher_queries``, ``hits`` and ``num_results`` of
        each query. `train` is what a `PathScorer` is fitted to.

    Returns
    -------
    dict
        ``rows``: ``untrained``, ``trained`` where there is something to train on, and ``fewest`` results first.
        ``top_is_best`` is the share of questions with the best query first: that of most hits, then of the fewest
        results. ``hit@1`` and ``recall@20`` are what is to be expected when results of a query come in any order.
    """
    start = time.perf_counter()
    records = read_records(data)
    known = [] if train is None else read_records(train)
    space = PathSpace({triple: 1 for record in records + known for triple in _triples(record)})
    asked = [_choice(record, space) for record in records]
    read = time.perf_counter()
    models: dict[str, Callable[[Choice], Any]] = {"untrained": _by(PathScorer())}
    if known:
        models["trained"] = _by(PathScorer.fit([_choice(record, space) for record in known]))
    models["fewest"] = lambda choice: choice.facts[:, 1]
    rows = {}
    for name, costs in models.items():
        measured = []
        for nth, (record, choice) in enumerate(zip(records, asked, strict=True)):
            if progress is not None and nth % 100 == 0:
                progress(name, nth, len(records))
            measured.append(_measured(record, np.argsort(costs(choice), kind="stable").tolist(), choice.best))
        means = map(statistics.mean, zip(*measured, strict=True))
        rows[name] = {metric: round(100 * mean, 2) for metric, mean in zip(SHOWN, means, strict=True)}
    return {
        "name": "paths",
        "rows": rows,
        "counts": {"questions": len(records), "queries": sum(len(c.paths) for c in asked), "trained_on": len(known)},
        "seconds": {"read": round(read - start, 3), "total": round(time.perf_counter() - start, 3)},
        "shown": list(SHOWN),
    }


def read_records(path: str | Path) -> list[dict[str, Any]]:
    """Read questions with their candidate queries; an `InvalidInput` names the line that is malformed."""
    try:
        with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
            records = [json.loads(line) for line in file if line.strip()]
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path}: {error}") from error
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict) or not record.keys() >= {*_FIELDS}:
            raise InvalidInput(f"{path}, line {number}: an object with {', '.join(_FIELDS)} is expected")
        if not len(record["cypher_queries"]) == len(record["hits"]) == len(record["num_results"]) > 0:
            raise InvalidInput(f"{path}, line {number}: hits and num_results of each query are expected")
    return [record | {"paths": [_path(query) for query in record["cypher_queries"]]} for record in records]


def _path(query: str) -> tuple[str, tuple[Hop, ...]]:
    """The name that a query begins with, and its path."""
    begin = _BEGIN.match(query)
    if begin is None or not (steps := _STEP.findall(begin[3])):
        raise InvalidInput(f"a query of a path from a name is expected, not {query!r}")
    label, path = begin[1], []
    for relation, other in steps:
        path.append(Hop(relation, True, label, other))
        label = other
    return begin[2], tuple(path)


def _triples(record: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What queries join, which have no direction: labels in their order stand for both."""
    hops = [hop for _, path in record["paths"] for hop in path]
    return [(min(hop.start, hop.label), hop.relation, max(hop.start, hop.label)) for hop in hops]


def _by(scorer: PathScorer) -> Callable[[Choice], Any]:
    return lambda choice: scorer.costs(choice.words, scorer.parts_of(choice.paths), choice.facts)


def _choice(record: Mapping[str, Any], space: PathSpace) -> Choice:
    question, paths = record["question"], [path for _, path in record["paths"]]
    places = {name: _place(question, name) for name, _ in record["paths"]}
    facts = np.zeros((len(paths), 3))
    facts[:, 1] = np.log10(np.asarray(record["num_results"]) + 1)
    number = {(hop.start, hop.relation, hop.label): i for i, hop in enumerate(space.hops)}
    for name, (start, end, share) in places.items():
        mine = [i for i, (other, _) in enumerate(record["paths"]) if other == name]
        others = frozenset(place[:2] for other, place in places.items() if other != name and place[2])
        hops = np.full((len(mine), 3), -1)
        for row, i in enumerate(mine):
            hops[row, : len(paths[i])] = [number[hop.start, hop.relation, hop.label] for hop in paths[i]]
        table = PathTable(hops, np.zeros(len(mine)), np.zeros(len(mine), dtype=bool))
        read = readings(question, start, end, others, space.lexicon)
        facts[mine, 0] = space.costs(read, [paths[mine[0]][0].start], table)
        facts[mine, 2] = 1 - share
    best = min(range(len(paths)), key=lambda i: (-record["hits"][i], record["num_results"][i]))
    found = [place[:2] for place in places.values() if place[2] == 1]
    return Choice(masked(question, found), paths, facts, best)


def _place(question: str, name: str) -> tuple[int, int, float]:
    """Where a question says a name, or most words of it, and which share of them."""
    tokens, wanted = tokenize(question), {stem(word) for word in words(name) if word not in FUNCTION_WORDS}
    stems, size = [stem(word) for word, _, _ in tokens], len(words(name)) + 2
    windows = [(len(wanted.intersection(stems[i : i + size])), -i) for i in range(len(stems))]
    most, first = max(windows, default=(0, 0))
    if not most:
        return len(question), len(question), 0.0
    found = [tokens[i] for i in range(-first, min(len(stems), size - first)) if stems[i] in wanted]
    return found[0][1], found[-1][2], most / len(wanted)


def _measured(record: Mapping[str, Any], order: Sequence[int], best: int) -> tuple[float, float, float]:
    hits, results = record["hits"], record["num_results"]
    top, left, found = order[0], float(_K), 0.0
    for i in order:
        taken = min(left, results[i])
        found += hits[i] * taken / max(results[i], 1)
        left -= taken
    right = (hits[top], results[top]) == (hits[best], results[best])
    return float(right), hits[top] / max(results[top], 1), min(1.0, found / max(len(record["answer_ids"]), 1))

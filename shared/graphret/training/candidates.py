"""Candidate queries of questions in GraphRAFT's published layout (section 4.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphret.errors import InvalidInput
from graphret.graphraft import Candidate
from graphret.graphraft.path_writer import fits
from graphret.planning.paths import PathSpace
from graphret.planning.patterns import Hop
from graphret.training.paths import PathChoice
from graphret.training.questions import json_objects

_BEGIN = re.compile(r'MATCH \(\w*:`?(\w+)`? \{name: "(.*?)"\}\)(.*?) RETURN', re.DOTALL)
_STEP = re.compile(r"<?-\[\w*:`?(\w+)`?\]->?\(\w*:`?(\w+)`?\)")
_FIELDS = ("question", "answer_ids", "cypher_queries", "hits", "num_results")


def read_records(path: str | Path) -> list[dict[str, Any]]:
    """Read questions with candidate queries and their paths; refuse malformed lines."""
    return [
        record | {"paths": [_path(query) for query in record["cypher_queries"]]}
        for record in read_queries(path)
    ]


def read_queries(path: str | Path) -> list[dict[str, Any]]:
    """Read questions with any candidate queries; refuse malformed lines."""
    records = []
    for where, record in json_objects(path, _FIELDS):
        if record.get("best", "") is None:  # ``train queries`` found no good one
            continue
        if (
            not len(record["cypher_queries"])
            == len(record["hits"])
            == len(record["num_results"])
            > 0
        ):
            raise InvalidInput(f"{where}: expected hits and num_results of each query")
        records.append(record)
    return records


def candidates_of(record: Mapping[str, Any]) -> list[Candidate]:
    """Return a question's queries as writers rank them."""
    return [
        Candidate((), {}, *query_and_size)
        for query_and_size in zip(
            record["cypher_queries"], record["num_results"], strict=True
        )
    ]


def best_of(record: Mapping[str, Any]) -> int:
    """Return the index of the best query: the most hits, then the fewest results."""
    hits, results = record["hits"], record["num_results"]
    return min(range(len(hits)), key=lambda i: (-hits[i], results[i]))


def _path(query: str) -> tuple[str, tuple[Hop, ...]]:
    """Return the name that a query begins with, and the path from there.

    If several paths meet, it is the first. Queries have no direction: the order of
    labels stands for it.
    """
    begin = _BEGIN.match(query)
    if begin is None or not (steps := _STEP.findall(begin[3])):
        raise InvalidInput(f"expected a query of a path from a name, got {query!r}")
    label, path = begin[1], []
    for relation, other in steps:
        path.append(Hop(relation, label <= other, label, other))
        label = other
    return begin[2], tuple(path)


def path_space(records: Sequence[Mapping[str, Any]]) -> PathSpace:
    """Return the kinds of paths of some records."""
    hops = [hop for record in records for _, path in record["paths"] for hop in path]
    return PathSpace(
        {
            (min(hop.start, hop.label), hop.relation, max(hop.start, hop.label)): 1
            for hop in hops
        }
    )


def choice_of(record: Mapping[str, Any], space: PathSpace) -> PathChoice:
    """Return the candidates of a record as a scorer sees them, with the best one."""
    words, _, facts = fits(record["question"], record["paths"], space)
    facts[:, 1] = np.log10(np.asarray(record["num_results"]) + 1)
    return PathChoice(
        words, [path for _, path in record["paths"]], facts, best_of(record)
    )

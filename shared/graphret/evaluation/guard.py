"""The Cypher guard, compared with a real server's verdicts and on seeded mistakes."""

from __future__ import annotations

import ast
import csv
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import numpy as np

from graphret.cypher import check, codes
from graphret.errors import InvalidInput
from graphret.evaluation.dataset import ShareTable
from graphret.evaluation.mutations import MUTATIONS, mutate
from graphret.evaluation.runner import Progress
from graphret.schema import GraphSchema, PropertySchema

SCHEMAS = "text2cypher_schemas.csv"
_QUERIES = "text2cypher_*.csv"
NO_PROCEDURE = "There is no procedure"

#: What the server does not say of the queries that it accepts: how it is counted, the
#: guard's kind of error, in words.
UNSAID = {
    "directions": (codes.WRONG_DIRECTION, "a relation in the wrong direction"),
    "ends": (codes.WRONG_ENDS, "a relation between the wrong labels"),
    "labels": (codes.MISPLACED_PROPERTY, "a property on the wrong label"),
}


@dataclass(frozen=True, slots=True)
class GuardQuery:
    """A query, whether a server accepts it, why not, and the names it does not know."""

    text: str
    schema: GraphSchema
    accepted: bool
    error: str = ""
    unknown: tuple[str, ...] = ()


def _schemas(file: Path) -> dict[str, GraphSchema]:
    """Read the schema of each database; each label and relation counts once."""
    schemas = {}
    for row in _rows(file):
        structured = ast.literal_eval(row["structured_schema"])
        triples = [
            (triple["start"], triple["type"], triple["end"])
            for triple in structured["relationships"]
        ]
        labels = {
            *structured["node_props"],
            *(label for s, _, triple in triples for label in (s, triple)),
        }
        properties, relation_properties = (
            {
                owner: {
                    property_["property"]: PropertySchema(property_.get("type", "ANY"))
                    for property_ in listed_properties
                }
                for owner, listed_properties in structured[kind].items()
            }
            for kind in ("node_props", "rel_props")
        )
        counts = dict.fromkeys(sorted(labels), 1), dict.fromkeys(triples, 1)
        schemas[row["database"]] = GraphSchema(*counts, properties, relation_properties)
    return schemas


def load_queries(folder: str | Path) -> list[GuardQuery]:
    """Read ``text2cypher_*.csv`` with the server's verdicts, in the order of the files.

    Raises
    ------
    InvalidInput
        When there is no file of schemas, a file lacks a column, or a query names a
        database without a schema.
    """
    schemas = _schemas(Path(folder) / SCHEMAS)
    queries = []
    for file in sorted(Path(folder).glob(_QUERIES)):
        for number, row in enumerate(_rows(file) if file.name != SCHEMAS else [], 2):
            try:
                names = [
                    json.loads(row[f"unknown_{kind}"])
                    for kind in ("labels", "relations", "properties")
                ]
                unknown = tuple(
                    name for names_of_kind in names for name in names_of_kind
                )
                accepted = row["accepted"] == "True"
                queries.append(
                    GuardQuery(
                        row["cypher"],
                        schemas[row["database"]],
                        accepted,
                        row["error"],
                        unknown,
                    )
                )
            except (KeyError, ValueError) as error:
                raise InvalidInput(f"{file}: record {number}: {error!r}") from error
    return queries


def _rows(file: Path) -> list[dict[str, str]]:
    csv.field_size_limit(10**9)
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            return list(csv.DictReader(lines))
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}") from error


def bench_guard(
    data: str | Path,
    limit: int | None = None,
    mutants: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare the Cypher guard with a server's verdicts, and on seeded mistakes.

    Row ``guard``: ``false_alarms``, the share of the queries that the server accepts,
    with no unknown name, for which the guard has an error of parsing, meaning or
    unknown names; ``errors_found``, the share of those that the server refuses, missing
    procedures left out, for which it has an error of parsing or meaning;
    ``unknown_found``, the share of those with an unknown name for which it has an error
    of an unknown name.

    Row ``mutations``: for each kind of `graphret.evaluation.mutations.MUTATIONS` the
    share of mistakes, made in queries that the server accepts and in which the guard
    finds nothing, for which it then has an error.

    Parameters
    ----------
    data
        A folder with ``text2cypher_*.csv``, one of them the schemas.
    limit
        Only the first queries.
    mutants, seed
        At most how many mistakes of a kind, and what chooses them.
    progress
        Is told how far it is.

    Returns
    -------
    result
        ``rows``, ``counts`` with the denominators, ``seconds`` with the median of a
        check, and ``missed`` with up to twenty examples of each kind of what went
        wrong.
    """
    queries = load_queries(data)[:limit]
    run = _GuardMeasures(progress or (lambda stage, done, of: None))
    run.verdicts(queries)
    median, p99 = np.percentile(run.seconds or [0.0], (50, 99)).tolist()
    run.mutations(mutants, seed)
    seconds = {
        "check_median": round(median, 6),
        "check_p99": round(p99, 6),
        "checks": round(sum(run.seconds), 3),
    }
    result = run.result("guard", seconds) | {"notes": []}
    for name, (_, what) in UNSAID.items():
        errors, accepted = (
            run.counts.get(of, 0) for of in (f"accepted/{name}", "accepted")
        )
        result["notes"].append(
            f"accepted queries with {what}: {errors:,} of {accepted:,}"
        )
    return result


class _GuardMeasures(ShareTable):
    """What the guard says of queries and of mistakes in them."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress
        self.seconds: list[float] = []
        self.clean: list[GuardQuery] = []

    def check(self, text: str, schema: GraphSchema) -> dict[str, str]:
        """Return the guard's first error of each kind."""
        began = perf_counter()
        errors = check(text, schema, dialect="neo4j").errors
        self.seconds.append(perf_counter() - began)
        return {error.kind: str(error) for error in reversed(errors)}

    def verdicts(self, queries: list[GuardQuery]) -> None:
        """Compare the guard's errors with the server's, and keep the clean queries."""
        counted, of = Counter[str](), Counter[str]()
        for number, query in enumerate(queries, 1):
            self.progress("check", number, len(queries))
            errors = self.check(query.text, query.schema)
            if query.accepted:
                of["accepted"] += 1
                of["accepted/not_allowed"] += codes.NOT_ALLOWED in errors
                for name, (kind, _) in UNSAID.items():
                    of[f"accepted/{name}"] += kind in errors
                self.clean += [] if query.unknown or errors else [query]
            elif NO_PROCEDURE in query.error:
                continue
            metric = (
                "errors_found"
                if not query.accepted
                else "unknown_found"
                if query.unknown
                else "false_alarms"
            )
            about = {
                "errors_found": codes.MEANING,
                "unknown_found": codes.UNKNOWN_NAMES,
            }
            looked_for = about.get(metric, codes.MEANING | codes.UNKNOWN_NAMES)
            messages = [
                message for kind, message in errors.items() if kind in looked_for
            ]
            of[metric] += 1
            counted[metric] += bool(messages)
            if bool(messages) == (metric == "false_alarms"):
                wrong = (*messages, query.error or ", ".join(query.unknown))[0]
                self.missed[metric].append({"query": query.text, "message": wrong})
        for metric in ("false_alarms", "errors_found", "unknown_found"):
            self.share("guard", metric, counted[metric], of[metric], 3)
        self.counts |= {"queries": len(queries)} | {
            name: of[name] for name in of if name.startswith("accepted")
        }

    def mutations(self, mutants: int, seed: int) -> None:
        """Make mistakes in clean queries and count those that the guard sees."""
        order = list(range(len(self.clean)))
        Random(seed).shuffle(order)
        for done, kind in enumerate(MUTATIONS, 1):
            n_made = n_caught = 0
            for i in order:
                if n_made == mutants:
                    break
                query = self.clean[i]
                mistake = mutate(
                    query.text, kind, query.schema, Random(f"{seed}:{kind}:{i}")
                )
                if mistake is None:
                    continue
                n_made += 1
                if self.check(mistake, query.schema):
                    n_caught += 1
                else:
                    self.missed[kind].append(
                        {"query": mistake, "message": f"was: {query.text}"}
                    )
            self.share("mutations", kind, n_caught, n_made, 3)
            self.progress("mutate", done, len(MUTATIONS))

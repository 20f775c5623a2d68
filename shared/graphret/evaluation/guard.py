"""The Cypher guard against what a real server said of the same queries, and against seeded mistakes."""

from __future__ import annotations

import ast
import csv
import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING, Any

from graphret.cypher import check
from graphret.cypher.kinds import (
    MEANING,
    MISPLACED_PROPERTY,
    NOT_ALLOWED,
    UNKNOWN_NAMES,
    WRONG_DIRECTION,
    WRONG_ENDS,
)
from graphret.cypher.report import Report
from graphret.errors import InvalidInput
from graphret.evaluation.mutations import MUTATIONS, mutate
from graphret.evaluation.runner import Progress
from graphret.schema import GraphSchema, PropertySchema

if TYPE_CHECKING:
    from rich.console import Group

SCHEMAS = "text2cypher_schemas.csv"
_QUERIES = "text2cypher_*.csv"
#: At most this many mistakes of a kind.
MUTANTS = 1000
EXAMPLES = 20
NO_PROCEDURE = "There is no procedure"

#: What the server does not say of the queries that it accepts, and where the examples of it go.
UNSAID = {"directions": WRONG_DIRECTION, "ends": WRONG_ENDS, "labels": MISPLACED_PROPERTY}


@dataclass(frozen=True, slots=True)
class Query:
    """A query, and what a real server said of it.

    Parameters
    ----------
    text, schema
        The query, and what its graph has.
    accepted, error
        Whether the server takes it, and why not.
    unknown
        The labels, relations and property keys in it that the server does not know.
    """

    text: str
    schema: GraphSchema
    accepted: bool
    error: str = ""
    unknown: tuple[str, ...] = ()


@dataclass(slots=True)
class _Result:
    rows: dict[str, dict[str, float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    missed: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def check(self, query: str, schema: GraphSchema) -> Report:
        began = perf_counter()
        report = check(query, schema, dialect="neo4j")
        self.seconds.append(perf_counter() - began)
        return report

    def share(self, row: str, metric: str, found: int, of: int) -> None:
        self.counts[f"{row}/{metric}"] = of
        if of:
            self.rows.setdefault(row, {})[metric] = round(100 * found / of, 3)

    def miss(self, what: str, query: str, message: str) -> None:
        known = self.missed.setdefault(what, [])
        if len(known) < EXAMPLES:
            known.append({"query": query, "message": message})


def holds_queries(folder: str | Path) -> bool:
    """Whether a folder holds queries with a server's verdicts."""
    return (Path(folder) / SCHEMAS).is_file()


def load_schemas(file: str | Path) -> dict[str, GraphSchema]:
    """Read the schema of each database; the file has no counts, so that each label and relation counts once."""
    schemas = {}
    for row in _rows(Path(file)):
        try:
            found = ast.literal_eval(row["structured_schema"])
            triples = [(t["start"], t["type"], t["end"]) for t in found["relationships"]]
            labels = {*found["node_props"], *(label for s, _, t in triples for label in (s, t))}
            schemas[row["database"]] = GraphSchema(
                dict.fromkeys(sorted(labels), 1),
                dict.fromkeys(triples, 1),
                {label: _properties(given) for label, given in found["node_props"].items()},
                {relation: _properties(given) for relation, given in found["rel_props"].items()},
            )
        except (KeyError, TypeError, ValueError, SyntaxError) as error:
            raise InvalidInput(f"{file}: the schema of {row.get('database')!r} cannot be read: {error!r}") from error
    return schemas


def _properties(given: list[dict[str, Any]]) -> dict[str, PropertySchema]:
    return {one["property"]: PropertySchema(one.get("type", "ANY")) for one in given}


def load_queries(folder: str | Path) -> list[Query]:
    """Read the queries of ``text2cypher_*.csv`` with the server's verdicts, in the order of the files.

    Raises
    ------
    InvalidInput
        When a file lacks a column, or a query names a database without a schema.
    """
    schemas = load_schemas(Path(folder) / SCHEMAS)
    queries = []
    for file in sorted(Path(folder).glob(_QUERIES)):
        if file.name == SCHEMAS:
            continue
        for number, row in enumerate(_rows(file), 2):
            try:
                unknown = [json.loads(row[f"unknown_{kind}"]) for kind in ("labels", "relations", "properties")]
                queries.append(
                    Query(
                        row["cypher"],
                        schemas[row["database"]],
                        row["accepted"] == "True",
                        row["error"],
                        tuple(name for names in unknown for name in names),
                    )
                )
            except (KeyError, ValueError) as error:
                raise InvalidInput(f"{file}: record {number}: {error!r}") from error
    return queries


def _rows(file: Path) -> list[dict[str, str]]:
    csv.field_size_limit(10**9)
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def bench_guard(
    data: str | Path,
    split: str = "dev",
    k: Sequence[int] | None = None,
    limit: int | None = None,
    encoder: Any = "default",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run the benchmark of the Cypher guard where `data` holds queries for it, that of generality elsewhere.

    `bench_cypher_guard` takes `limit` and `progress`, `graphret.evaluation.generality.bench_generality` all.
    """
    from graphret.evaluation.generality import bench_generality

    if holds_queries(data):
        return bench_cypher_guard(data, limit, progress=progress)
    return bench_generality(data, split, k, limit, encoder, progress)


def bench_cypher_guard(
    data: str | Path, limit: int | None = None, mutants: int = MUTANTS, seed: int = 0, progress: Progress | None = None
) -> dict[str, Any]:
    """Compare the guard with a real server's verdicts, and count how many seeded mistakes it finds.

    Row ``guard``: ``false_alarms``, the share of the queries that the server accepts, with no unknown name, for which
    the guard has an error of parsing, meaning or unknown names; ``errors_found``, the share of those that the server
    refuses, missing procedures left out, for which it has an error of parsing or meaning; ``unknown_found``, the share
    of those with an unknown name for which it has an error of an unknown name.

    Row ``mutations``: for each kind of `graphret.evaluation.mutations.MUTATIONS` the share of mistakes, made
    in queries that the server accepts and in which the guard finds nothing, for which it then has an error.

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
        ``rows``, ``counts`` with the denominators, ``seconds`` with the median of a check, ``missed`` with up to twenty
        examples of each kind of what went wrong, and ``directions``, ``ends`` and ``labels``: twenty accepted queries
        with a relation in the wrong direction, between the wrong labels, and with a property on the wrong label.
    """
    queries = load_queries(data)[:limit]
    result = _Result()
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in UNSAID}
    clean = _verdicts(queries, result, found, progress)
    checks = list(result.seconds)
    _mutations(clean, result, mutants, seed, progress)
    return {
        "name": "guard",
        "rows": result.rows,
        "counts": {"queries": len(queries), **result.counts},
        "seconds": {
            "check_median": round(statistics.median(checks), 6) if checks else 0.0,
            "check_p99": round(sorted(checks)[int(0.99 * (len(checks) - 1))], 6) if checks else 0.0,
            "checks": round(sum(result.seconds), 3),
        },
        **{name: _some(examples, seed) for name, examples in found.items()},
        "missed": result.missed,
    }


def _some(examples: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    chosen = Random(seed).sample(range(len(examples)), min(EXAMPLES, len(examples)))
    return [examples[i] for i in sorted(chosen)]


def _verdicts(
    queries: list[Query], result: _Result, found: dict[str, list[dict[str, Any]]], progress: Progress | None
) -> list[Query]:
    """Hold the guard's errors against the server's; return the accepted queries in which it finds none."""
    right: Counter[str] = Counter()
    of: Counter[str] = Counter()
    clean = []
    for number, query in enumerate(queries):
        if progress is not None:
            progress("check", number + 1, len(queries))
        errors = result.check(query.text, query.schema).errors
        kinds = {error.kind for error in errors}
        if query.accepted:
            of["accepted"] += 1
            of["accepted/not_allowed"] += NOT_ALLOWED in kinds
            for name, kind in UNSAID.items():
                of[f"accepted/{name}"] += kind in kinds
                if kind in kinds:
                    message = next(str(e) for e in errors if e.kind == kind)
                    found[name].append({"query": query.text, "message": message})
        if query.accepted and not query.unknown:
            metric, wrong = "false_alarms", next((str(e) for e in errors if e.kind in MEANING | UNKNOWN_NAMES), "")
            if not errors:
                clean.append(query)
        elif query.accepted:
            metric, wrong = "unknown_found", "" if kinds & UNKNOWN_NAMES else ", ".join(query.unknown)
        elif NO_PROCEDURE not in query.error:
            metric, wrong = "errors_found", "" if kinds & MEANING else query.error
        else:
            continue
        of[metric] += 1
        right[metric] += bool(wrong) == (metric == "false_alarms")
        if wrong:
            result.miss(metric, query.text, wrong)
    for metric in ("false_alarms", "errors_found", "unknown_found"):
        result.share("guard", metric, right[metric], of[metric])
    result.counts |= {name: of[name] for name in of if name.startswith("accepted")}
    return clean


def _mutations(queries: list[Query], result: _Result, mutants: int, seed: int, progress: Progress | None) -> None:
    order = list(range(len(queries)))
    Random(seed).shuffle(order)
    for done, kind in enumerate(MUTATIONS):
        made = caught = 0
        for i in order:
            if made == mutants:
                break
            query = queries[i]
            mistake = mutate(query.text, kind, query.schema, Random(f"{seed}:{kind}:{i}"))
            if mistake is None:
                continue
            made += 1
            if result.check(mistake, query.schema).ok:
                result.miss(kind, mistake, f"was: {query.text}")
            else:
                caught += 1
        result.share("mutations", kind, caught, made)
        if progress is not None:
            progress("mutate", done + 1, len(MUTATIONS))


_TITLES = {"guard": "against a server's verdicts", "mutations": "seeded mistakes found"}
_UNSAID = {
    "directions": "a relation in the wrong direction",
    "ends": "a relation between the wrong labels",
    "labels": "a property on the wrong label",
}


def render_cypher_guard(result: Mapping[str, Any]) -> Group:
    """Return the shares of each row with what they are shares of; the queries to read are in the JSON."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    counts, seconds = result["counts"], result["seconds"]
    parts: list[Any] = []
    for row, metrics in result["rows"].items():
        table = Table(title=_TITLES[row], title_justify="left", header_style="bold", box=box.SIMPLE, pad_edge=False)
        table.add_column("", no_wrap=True)
        table.add_column("%", justify="right")
        table.add_column("of", justify="right")
        for metric, share in metrics.items():
            table.add_row(metric, f"{share:.2f}", f"{counts[f'{row}/{metric}']:,}")
        parts.append(table)
    for name, what in _UNSAID.items():
        some, of = counts.get(f"accepted/{name}", 0), counts.get("accepted", 0)
        parts.append(Text(f"accepted queries with {what}: {some:,} of {of:,}"))
    checked = f"a check takes {seconds['check_median'] * 1000:.2f} ms (median), {seconds['check_p99'] * 1000:.2f} (p99)"
    parts.append(Text(f"{counts['queries']:,} queries, {checked}", style="dim"))
    return Group(*parts)

"""Which parser of Cypher agrees with a real server: the guard's, and those of other packages that are installed.

``python -m graphret.evaluation.bench_parsers --data FOLDER [--runs N] [--limit N] [--json FILE]``, the folder as for
`graphret.evaluation.cypher_guard.bench_cypher_guard`. graphret needs none of these packages but cypherast.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

from graphret.cypher.parsing import parse
from graphret.errors import InvalidInput
from graphret.evaluation.cypher_guard import load_queries

#: Whether a parser takes a query.
Parser = Callable[[str], bool]

#: How the server's error begins where its grammar, not its analysis of meaning, refuses a query.
GRAMMAR = "Invalid input"


def _guard() -> Parser:
    return lambda query: parse(query).error is None


def _cypherast() -> Parser:
    library = import_module("cypherast")

    def takes(query: str) -> bool:
        try:
            library.parse_one(query)
        except library.CypherastError:
            return False
        return True

    return takes


def _antlr4() -> Parser:
    runtime, grammar = import_module("antlr4"), import_module("antlr4_cypher")
    refusal = import_module("antlr4.error.ErrorListener").ErrorListener

    class Errors(refusal):  # type: ignore[misc, valid-type]
        found = 0

        def syntaxError(self, *_: Any) -> None:
            self.found += 1

    def takes(query: str) -> bool:
        errors = Errors()
        lexer = grammar.CypherLexer(runtime.InputStream(query))
        parser = grammar.CypherParser(runtime.CommonTokenStream(lexer))
        for part in (lexer, parser):
            part.removeErrorListeners()
            part.addErrorListener(errors)
        parser.script()
        return not errors.found

    return takes


def _cypher_validator() -> Parser:
    library = import_module("cypher_validator")
    return lambda query: bool(library.parse_query(query).is_valid)


def _cypher_guard() -> Parser:
    library = import_module("cypher_guard")
    return lambda query: not library.has_parser_errors(query)


def _grand_cypher() -> Parser:
    grammar = import_module("grandcypher")._GrandCypherGrammar
    refusal = import_module("lark.exceptions").LarkError

    def takes(query: str) -> bool:
        try:
            grammar.parse(query)
        except refusal:
            return False
        return True

    return takes


#: By distribution.
PARSERS: dict[str, Callable[[], Parser]] = {
    "graphret": _guard,
    "cypherast": _cypherast,
    "antlr4-cypher": _antlr4,
    "cypher-validator": _cypher_validator,
    "cypher-guard": _cypher_guard,
    "grand-cypher": _grand_cypher,
}


def measure(data: str | Path, runs: int = 3, limit: int | None = None) -> dict[str, Any]:
    """Let each parser that is installed read all queries, and hold what it takes against what the server takes.

    Parameters
    ----------
    data
        A folder with ``text2cypher_*.csv``, one of them the schemas.
    runs
        How often all queries are read for their times.
    limit
        Only the first queries.

    Returns
    -------
    result
        A benchmark's result: in ``rows``, by parser, ``refused`` (the share of the queries that the server accepts and
        the parser does not), ``grammar_taken`` and ``meaning_taken`` (the shares of those that the server refuses for
        their grammar and for their meaning, and the parser accepts); in ``seconds`` the median and the 95th percentile
        of the queries' times; ``versions``, and ``notes`` on what is not installed.
    """
    queries = load_queries(data)[:limit]
    if not queries or runs < 1:
        raise InvalidInput("there must be a query and a run at least")
    kinds = ["accepted" if q.accepted else "grammar" if q.error.startswith(GRAMMAR) else "meaning" for q in queries]
    counts = {kind: kinds.count(kind) for kind in ("accepted", "grammar", "meaning")}
    result: dict[str, Any] = {
        "name": "parsers",
        "rows": {},
        "counts": counts,
        "seconds": {},
        "versions": {},
        "notes": [],
    }
    for name, load in PARSERS.items():
        try:
            takes = load()
        except ImportError as error:
            result["notes"].append(f"{name} was left out: {error}")
            continue
        rounds = [_read(takes, [q.text for q in queries]) for _ in range(runs)]
        taken = dict.fromkeys(counts, 0)
        for kind, (yes, _) in zip(kinds, rounds[0], strict=True):
            taken[kind] += yes
        share = {kind: 100 * taken[kind] / counts[kind] if counts[kind] else 0.0 for kind in counts}
        result["rows"][name] = {
            "refused": round(100 - share["accepted"], 3) if counts["accepted"] else 0.0,
            "grammar_taken": round(share["grammar"], 3),
            "meaning_taken": round(share["meaning"], 3),
        }
        # A query's time is the median of its rounds: one that another process broke into does not count.
        times = sorted(statistics.median(seconds for _, seconds in one) for one in zip(*rounds, strict=True))
        result["seconds"] |= {
            f"{name}, median": statistics.median(times),
            f"{name}, 95 %": times[int(0.95 * (len(times) - 1))],
        }
        result["versions"][name] = version(name)
    return result


def _read(takes: Parser, queries: Sequence[str]) -> list[tuple[bool, float]]:
    read = []
    for query in queries:
        began = perf_counter()
        yes = takes(query)
        read.append((yes, perf_counter() - began))
    return read


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m graphret.evaluation.bench_parsers", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder with text2cypher_*.csv")
    parser.add_argument("--runs", type=int, default=3, help="how often the queries are read for their times")
    parser.add_argument("--limit", type=int, help="only so many queries")
    parser.add_argument("--json", type=Path, help="write the result here")
    chosen = parser.parse_args(arguments)
    result = measure(chosen.data, chosen.runs, chosen.limit)
    print(result["counts"])
    for name, values in result["rows"].items():
        shares = ", ".join(f"{what} {value:.2f} %" for what, value in values.items())
        median, most = (1000 * result["seconds"][f"{name}, {what}"] for what in ("median", "95 %"))
        print(f"{name} {result['versions'][name]}: {shares}; {median:.2f} ms, 95 % within {most:.2f} ms")
    print(*result["notes"], sep="\n")
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

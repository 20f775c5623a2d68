"""The guard against a real Neo4j 5.26: queries of many kinds, and what the server said of each.

`guard/neo4j_verdicts.tsv` holds the verdict of ``EXPLAIN``, the query, and what the server complained of; of a form
that the server accepts and the guard leaves out, the verdict is ``left out``.
"""

from __future__ import annotations

from pathlib import Path

from graphret.cypher import check
from graphret.cypher.kinds import MEANING, NOT_ALLOWED, TOO_COSTLY, UNBOUNDED_PATH

LINES = (Path(__file__).parent / "guard" / "neo4j_verdicts.tsv").read_text(encoding="utf-8").splitlines()
VERDICTS = [tuple(line.split("\t")) for line in LINES]


def queries(verdict: str) -> list[str]:
    return [query for said, query, _ in VERDICTS if said == verdict]


def test_what_the_server_accepts_has_no_error_of_form_or_meaning() -> None:
    accepted = queries("accepted")
    no_error = (NOT_ALLOWED, TOO_COSTLY, UNBOUNDED_PATH)  # for a server
    found = {query: [str(f) for f in check(query).errors if f.kind not in no_error] for query in accepted}
    assert len(accepted) > 1300
    assert {query: errors for query, errors in found.items() if errors} == {}


def test_what_the_server_refuses_or_the_guard_leaves_out_is_refused_nearly_always_for_form_or_meaning() -> None:
    assert [query for query in queries("left out") if check(query).ok] == []
    found = []
    for query, why in [(query, why) for said, query, why in VERDICTS if said == "refused"]:
        errors = check(query).errors
        assert errors, query
        if "no procedure" not in why:
            found.append(any(f.kind in MEANING for f in errors))
    assert len(found) > 500
    assert sum(found) / len(found) > 0.985

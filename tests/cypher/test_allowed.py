"""What may run is a list; a word is judged by where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphret.cypher import check
from graphret.cypher.allowed import ALLOWED, disallowed
from graphret.cypher.grammar import Parsed, parse
from graphret.cypher.tokens import tokenise

LINES = (Path(__file__).parent / "guard" / "allowed.tsv").read_text(encoding="utf-8").splitlines()


def test_what_may_run_and_what_may_not() -> None:
    for verdict, dialect, query in (line.split("\t") for line in LINES):
        assert ("refused" if check(query, dialect=dialect).errors else "accepted") == verdict, query


def test_what_may_not_run_is_named_at_its_place() -> None:
    query = "MATCH (n)\n  SET n.x = 1"
    (finding,) = [f for f in check(query).errors if f.kind == "not-allowed"]
    assert (query[finding.start : finding.end], finding.line, finding.column) == ("SET", 2, 3)
    assert "the clauses that may run are CALL" in finding.message


def test_the_tokens_alone_and_the_tree_alone_refuse_it() -> None:
    calls = ["CALL dbms.listConfig() YIELD name RETURN name", "RETURN `file`()", "MATCH (n) WHERE apoc.x(1) RETURN n"]
    for query in (*calls[:2], "CREATE (n)", "LOAD CSV FROM 'x' AS r RETURN r", "RETURN 1; SHOW USERS"):
        assert disallowed(Parsed(query, "neo4j", tokenise(query))), query
    for query in calls:
        assert disallowed(Parsed(query, "neo4j", [], parse(query).tree)), query


def test_every_call_outside_the_lists_is_named_once_and_may_be_added() -> None:
    query = "CALL apoc.meta.stats() YIELD labels RETURN apoc.text.join(labels, ',') AS x LIMIT 1"
    named = [f.message for f in check(query).errors]
    assert len(named) == 2
    assert ("apoc.meta.stats" in named[0], "apoc.text.join" in named[1]) == (True, True)
    assert check(query, functions=["apoc.text.join"], procedures=["apoc.meta.stats"]).ok


@pytest.mark.parametrize("dialect", sorted(ALLOWED))
def test_no_list_has_what_leaves_the_graph(dialect: str) -> None:
    names = ALLOWED[dialect].functions | ALLOWED[dialect].procedures
    suspicious = ("file", "load", "apoc", "dbms", "graph.", "nextval", "setseed", "config", "connection", "show_")
    assert [name for name in names if any(part in name.lower() for part in suspicious)] == []

"""What the guard says, where it says it, and what it proposes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.cypher import check, kinds
from graphret.cypher.report import Finding


def errors(query: str) -> list[Finding]:
    """The errors, what may not run left out: an unknown function is also one that is not allowed."""
    return [f for f in check(query).errors if f.kind != kinds.NOT_ALLOWED]


@pytest.mark.parametrize(
    ("query", "kind", "part"),
    [
        ("MATCH (person) RETURN persn.name", kinds.UNDEFINED_VARIABLE, "persn"),
        ("MATCH (n) WITH n.x AS x RETURN n", kinds.UNDEFINED_VARIABLE, "n"),
        ("MATCH (n) UNWIND [1] AS n RETURN n", kinds.DUPLICATE_VARIABLE, "n"),
        ("MATCH (n) RETURN max(count(n))", kinds.MISPLACED_AGGREGATION, "count(n)"),
        ("MATCH (n) RETURN n.x ORDER BY count(*)", kinds.MISPLACED_AGGREGATION, "count(*)"),
        ("MATCH (n) RETURN n.x + count(*)", kinds.IMPLICIT_GROUPING, "n.x"),
        ("MATCH (n) RETURN DISTINCT n.x ORDER BY n.y", kinds.OUT_OF_SCOPE, "n"),
        ("MATCH (n) RETURN toUper(n.x)", kinds.UNKNOWN_FUNCTION, "toUper"),
        ("MATCH (n) RETURN substring(n.x)", kinds.WRONG_ARGUMENTS, "substring(n.x)"),
        ("MATCH (n) WHERE length(n.x) > 3 RETURN n", kinds.TYPE_MISMATCH, "n.x"),
        ("MATCH (n) RETURN size((n)-->())", kinds.MISPLACED_PATTERN, "(n)-->()"),
        ("MATCH (n) WHERE (n)-->(m) RETURN n", kinds.MISPLACED_PATTERN, "m"),
        ("MATCH (n)-[:A:B]->() RETURN n", kinds.INVALID_PATTERN, "A:B"),
        ("MATCH (n) WITH n.x RETURN 1", kinds.INVALID_PROJECTION, "n.x"),
        ("MATCH (n) RETURN n.x AS a, n.y AS a", kinds.INVALID_PROJECTION, "n.y AS a"),
        ("MATCH (n) WITH n", kinds.INVALID_QUERY, "WITH n"),
        ("RETURN 1 AS a UNION RETURN 2 AS b", kinds.INVALID_QUERY, "RETURN 2 AS b"),
        ("RETURN point({lat: 1, lon: 2})", kinds.INVALID_VALUE, "{lat: 1, lon: 2}"),
    ],
)
def test_kind_and_place(query: str, kind: str, part: str) -> None:
    (finding,) = errors(query)
    assert (finding.kind, query[finding.start : finding.end]) == (kind, part)


@pytest.mark.parametrize(
    ("query", "suggestion"),
    [
        ("MATCH (person) RETURN persn.name", "person"),
        ("MATCH (n) RETURN toUper(n.x)", "toUpper"),
        ("MATCH (n) RETURN distance(n.a, n.b)", "point.distance"),
        ("MATCH (n) RETURN ceiling(n.a)", "ceil"),
        ("MATCH (n) WHERE exists(n.x) RETURN n", "n.x IS NOT NULL"),
        ("MATCH (n) WHERE n.x != 1 RETURN n", "<>"),
    ],
)
def test_suggestions(query: str, suggestion: str) -> None:
    assert suggestion in errors(query)[0].suggestions


@pytest.mark.parametrize(
    ("query", "line", "column"),
    [
        ("MATCH (n) RETURN n GROUP BY n", 1, 20),
        ("MATCH (n)\nWHERE n.x = 'a\nRETURN n", 2, 13),
        ("MATCH (n:Movie RETURN n", 1, 16),
        ("MATCH (n)->(m) RETURN n", 1, 11),
        ("", 1, 1),
        ("// only a comment", 1, 18),
    ],
)
def test_a_query_that_does_not_parse_says_where(query: str, line: int, column: int) -> None:
    finding = next(f for f in errors(query) if f.kind == kinds.SYNTAX)
    assert (finding.line, finding.column) == (line, column)
    assert check(query).tree is None


WORDS = st.sampled_from(
    "MATCH RETURN WITH WHERE UNWIND CALL UNION LIMIT ORDER BY AS AND NOT IN ( ) [ ] { } - -> <- : , . | .. * = 'a' "
    "1 n r m count size exists EXISTS COUNT CASE WHEN THEN END $p n.x (n) -[r]-> (m) :A :R shortestPath reduce any "
    "SHORTEST \\u0027 ` ' \" // /* */ ; + ^ ! & % IS NULL :: STRING [x IN xs | x] {x: 1}".split(" ")
)


@settings(max_examples=40)
@given(st.lists(WORDS, max_size=25), st.sampled_from(["neo4j", "ladybug"]))
def test_any_words_are_checked_without_failing(words: list[str], dialect: str) -> None:
    query = " ".join(words)
    report = check(query, dialect=dialect)
    assert all(0 <= f.start <= f.end <= len(query) for f in report.findings)
    assert report.tree is not None or not report.ok


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("[x IN ", " WHERE x:A|B]"),
        ("[(a)-->(b) WHERE ", " | b]"),
        ("(a {x: ", "})-[1]"),
        ("CASE WHEN ", " THEN 1 END"),
        ("EXISTS { (a WHERE ", ") }"),
        ("list_transform(x, y -> ", ")"),
        ("a[", ":1]"),
    ],
)
def test_nesting_does_not_multiply_the_work(opening: str, closing: str) -> None:
    # Each level read twice would be 2**60 readings: this test would not end.
    for cut in (0, 3):
        closings = closing * 60
        query = f"MATCH (a) RETURN {opening * 60}1{closings[: len(closings) - cut]} AS z"
        assert check(query, dialect="neo4j" if cut else "ladybug").query == query

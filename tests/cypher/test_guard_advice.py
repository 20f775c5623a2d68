from __future__ import annotations

import pytest

from graphret.cypher import check, kinds


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("MATCH (n) RETURN n LIMIT 5", set()),
        ("MATCH (n) RETURN n", {kinds.NO_LIMIT}),
        ("MATCH (n) RETURN count(n)", set()),
        ("MATCH (n) RETURN n.x, count(n)", {kinds.NO_LIMIT}),
        ("MATCH (n) WITH n LIMIT 5 RETURN n", set()),
        ("MATCH (n) RETURN n AS x LIMIT 1 UNION MATCH (n) RETURN n AS x", {kinds.NO_LIMIT}),
        ("MATCH (a), (b) RETURN count(*)", {kinds.CARTESIAN_PRODUCT}),
        ("MATCH (a)-->(b), (c)-->(d), (b)-->(c) RETURN count(*)", set()),
        ("MATCH (a)-->(b) MATCH (c) RETURN count(*)", set()),
        ("MATCH (a), (b) MATCH (a)-->(x), (b)-->(y) RETURN count(*)", {kinds.CARTESIAN_PRODUCT}),
        ("MATCH (a) WHERE EXISTS { MATCH (b), (c) } RETURN count(*)", {kinds.CARTESIAN_PRODUCT}),
        ("MATCH (a)-[*]->(b) RETURN count(*)", {kinds.UNBOUNDED_PATH}),
        ("MATCH (a)-[:R*..3]->(b) RETURN count(*)", set()),
        ("MATCH (a)-[:R]->+(b) RETURN count(*)", {kinds.UNBOUNDED_PATH}),
        ("MATCH (a) (()-[:R]->()){2,} (b) RETURN count(*)", {kinds.UNBOUNDED_PATH}),
        ("MATCH p = ANY SHORTEST (a)-[:R]->+(b) RETURN count(*)", set()),
    ],
)
def test_warnings(query: str, expected: set[str]) -> None:
    report = check(query, unbounded_paths=True)
    assert report.ok, str(report)
    assert {f.kind for f in report.warnings} == expected


def test_a_path_without_a_bound_is_refused_unless_it_is_allowed() -> None:
    query = "MATCH (a)-[:R*]->(b) RETURN count(*)"
    (finding,) = check(query).errors
    assert (finding.kind, query[finding.start : finding.end]) == (kinds.UNBOUNDED_PATH, "-[:R*]->")
    assert check(query, unbounded_paths=True).ok


@pytest.mark.parametrize(
    ("query", "ok"),
    [
        ("RETURN any(x IN range(1, 100000) WHERE all(y IN range(1, 100000) WHERE y <> x))", False),
        ("WITH range(1, 100000) AS r RETURN any(x IN r WHERE none(y IN r WHERE y <> x))", False),
        ("WITH 100000 AS n RETURN any(x IN range(1, n) WHERE all(y IN range(1, n) WHERE y <> x))", False),
        ("UNWIND range(1, 1000) AS a UNWIND range(1, 1001) AS b RETURN count(*)", False),
        ("RETURN size(range(1, 1000000000))", False),
        ("RETURN reduce(s = [1], x IN range(1, 50) | s + s)", False),
        ("MATCH (n) RETURN reduce(s = [1], x IN n.list | [s, s]) LIMIT 1", False),
        ("WITH [1] AS l " + "WITH l + l AS l " * 30 + "RETURN size(l)", False),
        ("UNWIND range(1990, 2020) AS y MATCH (m:Movie {year: y}) RETURN y, count(m)", True),
        ("MATCH p = (a)-[*..3]->(b) WHERE all(i IN range(0, size(nodes(p)) - 2) WHERE i < 9) RETURN count(p)", True),
        ("MATCH (n) RETURN reduce(t = 0, x IN n.list | CASE WHEN x > t THEN x ELSE t END) LIMIT 1", True),
    ],
)
def test_what_a_time_out_does_not_stop_is_refused(query: str, ok: bool) -> None:
    assert {f.kind for f in check(query).errors} == (set() if ok else {kinds.TOO_COSTLY})
    if "s +" not in query and "[s" not in query:
        assert check(query, most_iterations=10**11).ok

from __future__ import annotations

import pytest

from graphret.cypher import check, kinds


def warnings(query: str) -> set[str]:
    report = check(query)
    assert report.ok, str(report)
    return {f.kind for f in report.warnings}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("MATCH (n) RETURN n LIMIT 5", set()),
        ("MATCH (n) RETURN n", {kinds.NO_LIMIT}),
        ("MATCH (n) RETURN count(n)", set()),
        ("MATCH (n) RETURN n.x, count(n)", {kinds.NO_LIMIT}),
        ("MATCH (n) WITH n LIMIT 5 RETURN n", set()),
        ("RETURN 1", set()),
        ("MATCH (n) RETURN n AS x LIMIT 1 UNION MATCH (n) RETURN n AS x", {kinds.NO_LIMIT}),
        ("MATCH (a), (b) RETURN count(*)", {kinds.CARTESIAN_PRODUCT}),
        ("MATCH (a)-->(b), (b)-->(c) RETURN count(*)", set()),
        ("MATCH (a)-->(b), (c)-->(d), (b)-->(c) RETURN count(*)", set()),
        ("MATCH (a)-->(b) MATCH (c) RETURN count(*)", set()),
        ("MATCH (a), (b) MATCH (a)-->(x), (b)-->(y) RETURN count(*)", {kinds.CARTESIAN_PRODUCT}),
        ("MATCH (a) WHERE EXISTS { MATCH (b), (c) } RETURN count(*)", {kinds.CARTESIAN_PRODUCT}),
        ("MATCH (a)-[*]->(b) RETURN count(*)", {kinds.UNBOUNDED_PATH}),
        ("MATCH (a)-[:R*2..]->(b) RETURN count(*)", {kinds.UNBOUNDED_PATH}),
        ("MATCH (a)-[:R*..3]->(b) RETURN count(*)", set()),
        ("MATCH (a)-[:R]->+(b) RETURN count(*)", {kinds.UNBOUNDED_PATH}),
        ("MATCH (a) (()-[:R]->()){2,} (b) RETURN count(*)", {kinds.UNBOUNDED_PATH}),
        ("MATCH p = shortestPath((a)-[*]->(b)) RETURN count(*)", set()),
        ("MATCH p = ANY SHORTEST (a)-[:R]->+(b) RETURN count(*)", set()),
    ],
)
def test_warnings(query: str, expected: set[str]) -> None:
    assert warnings(query) == expected


def test_a_warning_has_its_place() -> None:
    query = "MATCH (a)-[:R*]->(b) RETURN count(*)"
    (finding,) = check(query).warnings
    assert query[finding.start : finding.end] == "-[:R*]->"

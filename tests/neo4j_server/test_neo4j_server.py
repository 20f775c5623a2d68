"""The server of the tests is a real one, and each test begins with an empty database."""

from __future__ import annotations

import neo4j
import pytest


@pytest.mark.parametrize("_again", [1, 2])
def test_each_test_begins_with_an_empty_database(neo4j_empty: neo4j.Driver, _again: int) -> None:
    run = neo4j_empty.execute_query
    assert run("RETURN apoc.version() AS version").records[0]["version"]
    assert run("MATCH (n) RETURN count(n) AS n").records[0]["n"] == 0
    indexes = run("SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name").records
    assert {row["name"] for row in indexes} <= {"graphret_id"}  # what every store makes at first may stay
    run("CREATE CONSTRAINT `a``b` FOR (n:A) REQUIRE n.x IS UNIQUE")
    run("CREATE FULLTEXT INDEX f FOR (n:A) ON EACH [n.x]")
    run("UNWIND range(1, 10) AS i CREATE (:A {x: i})-[:R]->(:B)")

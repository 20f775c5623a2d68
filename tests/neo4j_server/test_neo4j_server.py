"""The server of the tests is a real one, and two processes share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import neo4j


def test_it_is_neo4j_5_with_apoc(neo4j_driver: neo4j.Driver) -> None:
    assert neo4j_driver.get_server_info().agent.startswith("Neo4j/5.")
    assert neo4j_driver.execute_query("RETURN apoc.version() AS version").records[0]["version"]


@pytest.mark.parametrize("_again", [1, 2])
def test_each_test_begins_with_an_empty_database(neo4j_empty: neo4j.Driver, _again: int) -> None:
    left = neo4j_empty.execute_query("MATCH (n) RETURN count(n) AS n").records[0]["n"]
    indexes = neo4j_empty.execute_query("SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name").records
    assert left == 0
    assert {row["name"] for row in indexes} <= {"graphret_id"}  # what every store makes at first may stay
    neo4j_empty.execute_query("CREATE CONSTRAINT `a``b` FOR (n:A) REQUIRE n.x IS UNIQUE")
    neo4j_empty.execute_query("CREATE FULLTEXT INDEX f FOR (n:A) ON EACH [n.x]")
    neo4j_empty.execute_query("UNWIND range(1, 10) AS i CREATE (:A {x: i})-[:R]->(:B)")

"""The guard's second dialect against Ladybug itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphret.cypher import check
from graphret.cypher.kinds import NOT_ALLOWED
from graphret.schema import GraphSchema, PropertySchema

ladybug = pytest.importorskip("ladybug")

QUERIES = (Path(__file__).parent / "guard" / "ladybug_queries.txt").read_text(encoding="utf-8").splitlines()
TABLES = (
    "CREATE NODE TABLE A(id STRING PRIMARY KEY, x INT64, l INT64[])",
    "CREATE NODE TABLE B(id STRING PRIMARY KEY, y INT64)",
    "CREATE REL TABLE R(FROM A TO A, w DOUBLE)",
)
SCHEMA = GraphSchema(
    {"A": 1, "B": 1},
    {("A", "R", "A"): 1},
    {
        "A": {"id": PropertySchema("STRING"), "x": PropertySchema("INTEGER"), "l": PropertySchema("LIST OF INTEGER")},
        "B": {"id": PropertySchema("STRING"), "y": PropertySchema("INTEGER")},
    },
    {"R": {"w": PropertySchema("FLOAT")}},
)


def test_the_guard_agrees_with_ladybug(tmp_path: Path) -> None:
    with ladybug.Database(str(tmp_path / "graph")) as database, ladybug.Connection(database) as connection:
        for table in TABLES:
            connection.execute(table)
        for query in QUERIES:
            report = check(query, SCHEMA, dialect="ladybug")
            try:
                connection.execute(f"EXPLAIN {query}")
            except RuntimeError:
                assert not report.ok, query
            else:
                assert [str(f) for f in report.errors if f.kind != NOT_ALLOWED] == [], query
        query = "MATCH (n:B)-[:R]->(m:A) RETURN m LIMIT 1"  # which joins the wrong tables, though Ladybug runs it
        connection.execute(query)
        assert not check(query, SCHEMA, dialect="ladybug").ok


def test_what_ladybug_lacks_has_a_way_round() -> None:
    (error,) = [f for f in check("MATCH ()-[r]->() RETURN type(r)", dialect="ladybug").errors if f.kind != NOT_ALLOWED]
    assert error.suggestions == ("label",)

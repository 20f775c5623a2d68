"""How databases ran a query, and the queries of a question, in Python and on the
command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import graphret, refused
from spark_parts import EDGES, NODES

from graphret.cypher import profile_checked
from graphret.errors import InvalidInput, QueryRefused
from graphret.stores import MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.ladybug.profile import operators_of
from graphret.stores.neo4j import Neo4jStore
from graphret.stores.neo4j.profile import memory_of
from graphret.stores.neo4j.profile import operators_of as operators_of_neo4j
from graphret.stores.profile import Operator

BY_ADA = "MATCH (a:Author)-[:WROTE]->(p:Paper) WHERE a.name = $name RETURN p.name"
LITERAL = BY_ADA.replace("$name", "'Ada Ames'")

#: A plan that branches, as Ladybug draws it.
DRAWN = """\
┌──────────────────────────────────┐
│┌────────────────────────────────┐│
││         Physical Plan          ││
│└────────────────────────────────┘│
└──────────────────────────────────┘
┌──────────────────────────┐
│        PROFILE[3]        │
│   --------------------   │
│    NumOutputTuples: 0    │
│   --------------------   │
│  WallClockTime: 1.250000 │
└────────────┬─────────────┘
┌────────────┴─────────────┐
│   HASH_JOIN_PROBE[2]     │
│   --------------------   │──────────────┐
│        Keys: f._ID       │              │
│    NumOutputTuples: 14   │              │
│  ExecutionTime: 0.004000 │              │
└────────────┬─────────────┘              │
┌────────────┴─────────────┐ ┌────────────┴─────────────┐
│    SCAN_NODE_TABLE[0]    │ │    HASH_JOIN_BUILD[1]    │
│   --------------------   │ │   --------------------   │
│      Tables: Person      │ │        Keys: f._ID       │
│         Alias: p         │ │    NumOutputTuples: 44   │
│    NumOutputTuples: 1    │ │  ExecutionTime: 0.025000 │
│  ExecutionTime: 0.007000 │ │                          │
└──────────────────────────┘ └──────────────────────────┘
"""
#: One as Neo4j's driver hands it over.
TREE: dict[str, Any] = {
    "operatorType": "ProduceResults@neo4j",
    "args": {"Details": "n", "EstimatedRows": 63.4, "GlobalMemory": 328},
    "rows": 4,
    "dbHits": 0,
    "children": [
        {
            "operatorType": "NodeByLabelScan@neo4j",
            "args": {"Details": "x2:Drug", "EstimatedRows": 7957.0},
            "rows": 7957,
            "dbHits": 7958,
            "children": [],
        }
    ],
}


def test_plans_of_both_databases_become_operators() -> None:
    assert operators_of(DRAWN) == [
        Operator("HASH_JOIN_PROBE", "Keys: f._ID", 14, milliseconds=0.004),
        Operator("HASH_JOIN_BUILD", "Keys: f._ID", 44, milliseconds=0.025),
        Operator("SCAN_NODE_TABLE", "Tables: Person Alias: p", 1, milliseconds=0.007),
    ]
    assert operators_of("") == operators_of("no plan") == []
    assert operators_of_neo4j(TREE) == [
        Operator("ProduceResults", "n", 4, 63.4, 0),
        Operator("NodeByLabelScan", "x2:Drug", 7957, 7957.0, 7958),
    ]
    assert memory_of(TREE) == 328
    assert memory_of({}) is None


@pytest.fixture(
    params=["ladybug", pytest.param("neo4j", marks=pytest.mark.neo4j)],
)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where papers and their authors are, in either database."""
    if request.param == "neo4j":
        store = Neo4jStore.from_driver(request.getfixturevalue("neo4j_empty"))
        store.upsert(NODES, EDGES)
        yield request.getfixturevalue("neo4j_address")
        return
    with LadybugStore(tmp_path / "papers.lbug") as ladybug:
        ladybug.upsert(NODES, EDGES)
    yield str(tmp_path / "papers.lbug")


def test_a_query_is_run_and_its_operators_are_told(where: str) -> None:
    told = graphret("cypher", "profile", LITERAL, "--graph", where, "--json").json
    in_neo4j = "://" in where
    assert told["rows"] == told["operators"][0]["rows"] == 3
    assert told["seconds"] > 0
    assert len(told["operators"]) > 2
    assert (told["db_hits"] is not None) == in_neo4j
    if in_neo4j:
        assert told["db_hits"] == sum(one["db_hits"] for one in told["operators"])
    else:
        assert all(one["milliseconds"] is not None for one in told["operators"])
    shown = graphret("cypher", "profile", LITERAL, "--graph", where)
    assert "3 rows in" in shown.out
    assert ("db hits, " in shown.out) == in_neo4j
    write = LITERAL.replace("RETURN p.name", "DELETE p")
    assert "refused" in refused(6, "cypher", "profile", write, "--graph", where)
    wrong = LITERAL.replace("Author", "Autor")
    assert "Autor" in refused(6, "cypher", "profile", wrong, "--graph", where)


def test_the_queries_of_a_question_are_run_the_likeliest_first(where: str) -> None:
    command = ["cypher", "profile", "Which papers did Ada Ames write?", "--question"]
    told = graphret(*command, "--graph", where, "--queries", 2, "--json").json
    first, second = told["queries"]
    assert first["pattern"] == '(a1:Author {name: "Ada Ames"})-[:WROTE]-(T:Paper)'
    assert first["rows"] == 3
    assert first["probability"] >= second["probability"]
    assert "Ada Ames" not in first["query"]  # names are parameters, not text
    shown = graphret(*command, "--graph", where)
    assert "[:WROTE]-(T:Paper)" in "".join(shown.out.split())
    nothing = graphret("cypher", "profile", "Why?", "--question", "--graph", where)
    assert (nothing.code, nothing.out) == (0, "no query finds anything\n")


def test_what_cannot_be_profiled_is_said(tmp_path: Path) -> None:
    memory = MemoryStore.of(NODES, EDGES)
    memory.save(tmp_path / "papers")
    said = refused(2, "cypher", "profile", LITERAL, "--graph", tmp_path / "papers")
    assert "Neo4jStore, got MemoryStore" in said
    with LadybugStore(tmp_path / "papers.lbug") as store:
        store.upsert(NODES, EDGES)
        assert profile_checked(store, BY_ADA, {"name": "Ada Ames"}).rows == 3
        with pytest.raises(QueryRefused):
            profile_checked(store, "MATCH (n) DETACH DELETE n")
        with pytest.raises(InvalidInput, match="view"):
            profile_checked(store.view({"labels": "Paper"}), LITERAL)

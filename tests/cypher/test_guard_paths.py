"""Paths of several hops, held against the chains of triples that a schema has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphret.cypher import check, kinds
from graphret.cypher.report import Finding
from graphret.schema import GraphSchema

SCHEMA = GraphSchema(
    {"Person": 50, "Movie": 20, "Genre": 5, "Place": 3},
    {
        ("Person", "ACTED_IN", "Movie"): 80,
        ("Movie", "IN_GENRE", "Genre"): 3,
        ("Person", "KNOWS", "Person"): 4,
        ("Place", "WITHIN", "Genre"): 1,
    },
)


def ends(query: str, schema: GraphSchema = SCHEMA, dialect: str = "neo4j") -> list[Finding]:
    return [f for f in check(query, schema, dialect=dialect).findings if f.kind in kinds.MISPLACED_NAMES]


@pytest.mark.parametrize(
    "query",
    [
        "MATCH p = shortestPath((a:Person {x: 1})-[:ACTED_IN*]-(b:Person)) RETURN p LIMIT 1",
        "MATCH (:Person)-[:ACTED_IN*..4]-(b:Person) RETURN b",
        "MATCH (:Movie)-[:IN_GENRE*2]-(b:Movie) RETURN b",
        "MATCH (:Person)-[*2..3]-(b:Genre) RETURN b",
        "MATCH (:Person)-[:ACTED_IN|IN_GENRE*2]->(b:Genre) RETURN b",
        "MATCH (:Person)-[:KNOWS|ACTED_IN*5..9]->(b:Movie) RETURN b",
        "MATCH (:Person)-[:ACTED_IN*0..1]->(b:Person) RETURN b",
        "MATCH (:Person)-[:ACTED_IN]->*(b:Genre) RETURN b",
        "MATCH (:Person)-[:ACTED_IN*2]-()-[:ACTED_IN]->(b:Movie) RETURN b",
        "MATCH (:Person&!Genre)-[*2]->(b:Genre|Place) RETURN b",
    ],
)
def test_a_path_for_which_there_is_a_chain_of_triples_is_none_to_complain_of(query: str) -> None:
    assert ends(query) == []


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("MATCH (:Person)-[:ACTED_IN*2]->(b:Person) RETURN b", kinds.WRONG_ENDS),
        ("MATCH (:Person)-[:ACTED_IN]->{2,}(b:Movie) RETURN b", kinds.WRONG_ENDS),
        ("MATCH (:Person)-[:ACTED_IN*3]-(b:Person) RETURN b", kinds.WRONG_ENDS),
        ("MATCH (:Person)-[:ACTED_IN*2..4]-(b:Genre) RETURN b", kinds.WRONG_ENDS),
        ("MATCH (:Person)-[*]->(b:Place) RETURN b", kinds.WRONG_ENDS),
        ("MATCH (:Movie)-[:ACTED_IN*1..2]->(b:Person) RETURN b", kinds.WRONG_DIRECTION),
        ("MATCH (:Genre)-[:ACTED_IN|IN_GENRE*2]->(b:Person) RETURN b", kinds.WRONG_DIRECTION),
    ],
)
def test_a_path_for_which_there_is_none_is_an_error(query: str, kind: str) -> None:
    (finding,) = ends(query)
    assert (finding.kind, finding.severity) == (kind, "error")
    (sampled,) = ends(query, replace(SCHEMA, sampled=True))
    assert (sampled.kind, sampled.severity) == (kind, "warning")


def test_ladybugs_paths() -> None:
    for bounds in ("* SHORTEST 1..3", "*", "*2..2"):
        assert ends(f"MATCH (a:person)-[r:acted_in{bounds}]-(b:Person) RETURN b", dialect="ladybug") == []
        assert ends(f"MATCH (a:person)-[r:acted_in{bounds}]-(b:Genre) RETURN b", dialect="ladybug") != []

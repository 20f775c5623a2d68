from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from graphret.cypher import check, kinds
from graphret.cypher.report import Finding
from graphret.schema import GraphSchema, PropertySchema

TYPES = {
    "Person": {"name": "STRING", "born": "INTEGER"},
    "Movie": {"title": "STRING", "releaseDate": "DATE", "tags": "LIST"},
    "Genre": {"name": "STRING"},
}
TRIPLES = [
    ("Person", "ACTED_IN", "Movie"),
    ("Person", "DIRECTED", "Movie"),
    ("Movie", "IN_GENRE", "Genre"),
    ("Person", "FOLLOWS", "Person"),
]
SCHEMA = GraphSchema(
    dict.fromkeys(TYPES, 0),
    dict.fromkeys(TRIPLES, 0),
    {label: {name: PropertySchema(kind) for name, kind in known.items()} for label, known in TYPES.items()},
    {"ACTED_IN": {"role": PropertySchema("STRING")}, "FOLLOWS": {}},
)


def findings(query: str, schema: GraphSchema = SCHEMA, dialect: str = "neo4j") -> list[Finding]:
    report = check(query, schema, dialect=dialect)
    return [f for f in report.findings if f.kind in kinds.UNKNOWN_NAMES | kinds.MISPLACED_NAMES]


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (p:Person)-[:ACTED_IN]->(m:Movie) WHERE m.title = 'x' RETURN p.name, p{.born, x: m.title}",
        "MATCH (m:Movie)<-[r:ACTED_IN|DIRECTED]-(p) RETURN r.role, p.born",
        "MATCH (p:Person)-[:FOLLOWS*0..1]->()-[:ACTED_IN]->(m) RETURN m.title",
        "MATCH (n) WHERE n:Movie AND n.title = 'x' RETURN n",
        "MATCH (n:Person|Movie) RETURN n.title, n.name",
        "MATCH (m:Movie) RETURN m.releaseDate.year, m.tags[0]",
        "MATCH (p:Person) WITH p AS q, {titel: 1} AS m RETURN q.name, m.titel",
        "MATCH (p:Person) WITH collect(p) AS ps UNWIND ps AS q RETURN q.born, ps[0].name, head(ps).name",
        "MATCH (m:Movie) RETURN [(m)<-[:DIRECTED]-(p:Person) | p.name]",
        "UNWIND $rows AS row MATCH (p:Person {name: row.anything}) RETURN row.other",
        "MATCH (n) RETURN n.name, n[$key]",
        "MATCH (p:Person) ((a)-[:FOLLOWS]->(b)){1,3} (q:Person) RETURN [x IN a | x.name]",
    ],
)
def test_what_the_schema_has_is_not_complained_of(query: str) -> None:
    assert findings(query) == []


@pytest.mark.parametrize(
    ("query", "kind", "part", "suggestion"),
    [
        ("MATCH (p:person) RETURN p", kinds.UNKNOWN_LABEL, "person", "Person"),
        ("MATCH (p) WHERE p:Movi RETURN p", kinds.UNKNOWN_LABEL, "Movi", "Movie"),
        ("MATCH (p:Person|Gennre) RETURN p", kinds.UNKNOWN_LABEL, "Gennre", "Genre"),
        ("MATCH ()-[:actedIn]->() RETURN 1", kinds.UNKNOWN_RELATION, "actedIn", "ACTED_IN"),
        ("MATCH ()-[r]->() WHERE r:DIRECTS RETURN r", kinds.UNKNOWN_RELATION, "DIRECTS", "DIRECTED"),
        ("MATCH (m:Movie) RETURN m.release_date", kinds.UNKNOWN_PROPERTY, "release_date", "releaseDate"),
        ("MATCH (m:Movie) RETURN m{.titel}", kinds.UNKNOWN_PROPERTY, "titel", "title"),
        ("MATCH ()-[r:ACTED_IN {rol: 1}]->() RETURN r", kinds.UNKNOWN_PROPERTY, "rol", "role"),
    ],
)
def test_unknown_names(query: str, kind: str, part: str, suggestion: str) -> None:
    (finding,) = findings(query)
    assert (finding.kind, query[finding.start : finding.end]) == (kind, part)
    assert finding.suggestions[0] == suggestion
    assert finding.severity == "error"


@pytest.mark.parametrize(
    ("query", "kind", "part"),
    [
        ("MATCH (p:Person) RETURN p.title", kinds.MISPLACED_PROPERTY, "title"),
        ("MATCH (p:Person {title: 1}) RETURN p", kinds.MISPLACED_PROPERTY, "title"),
        ("MATCH (:Person)-[r:ACTED_IN]->() RETURN r.name", kinds.MISPLACED_PROPERTY, "name"),
        ("MATCH (p:Person) WITH collect(p) AS ps UNWIND ps AS q RETURN q.title", kinds.MISPLACED_PROPERTY, "title"),
        ("MATCH (p:Person)<-[:ACTED_IN]-(m:Movie) RETURN p", kinds.WRONG_DIRECTION, "ACTED_IN"),
        ("MATCH (m:Movie)-[r]->(p:Person) RETURN p", kinds.WRONG_DIRECTION, "-[r]->"),
        ("MATCH (p:Person)-[:DIRECTED]->(m)-[:ACTED_IN]->(q) RETURN q", kinds.WRONG_DIRECTION, "ACTED_IN"),
        ("MATCH (p:Person)-[:IN_GENRE]->(g:Genre) RETURN p", kinds.WRONG_ENDS, "IN_GENRE"),
        ("MATCH (m:Movie) WHERE NOT (m)-[:DIRECTED]->(:Person) RETURN m", kinds.WRONG_DIRECTION, "DIRECTED"),
    ],
)
def test_names_in_the_wrong_place(query: str, kind: str, part: str) -> None:
    (finding,) = findings(query)
    assert (finding.kind, query[finding.start : finding.end]) == (kind, part)
    assert finding.severity == "error"
    (sampled,) = findings(query, replace(SCHEMA, sampled=True))
    assert (sampled.kind, sampled.severity) == (kind, "warning")


@pytest.mark.parametrize(
    ("partial", "errors", "warnings"),
    [
        (
            {"sampled_properties": {"Person"}},
            ["(m:Movie {born: 1})"],
            ["(p:Person {title: 1})", "(n:Person|Genre {title: 1})"],
        ),
        (
            {"sampled_relation_properties": {"ACTED_IN"}},
            ["()-[:DIRECTED {name: 1}]->()"],
            ["()-[:ACTED_IN {name: 1}]->()"],
        ),
        (
            {"sampled_relations": {"DIRECTED"}},
            [
                "(:Movie)-[:ACTED_IN]->(:Person)",
                "(p {title: 1})-[:ACTED_IN]->()",
            ],
            [
                "(:Movie)-[:DIRECTED]->(:Person)",
                "(:Movie)-[r]->(:Person)",
                "(:Person)-[:DIRECTED]->(m)-[:ACTED_IN]->()",
                "(p {title: 1})-[:DIRECTED]->()",
            ],
        ),
        ({"sampled_names": True}, ["(p:Person {title: 1})"], ["(:Movie)-[r]->(:Person)"]),
    ],
)
def test_what_was_read_whole_is_an_error_and_what_a_sample_may_have_missed_a_warning(
    partial: dict[str, Any], errors: list[str], warnings: list[str]
) -> None:
    schema = replace(SCHEMA, **partial)
    for severity, patterns in (("error", errors), ("warning", warnings)):
        for pattern in patterns:
            for dialect in ("neo4j", "ladybug"):
                found = findings(f"MATCH {pattern} RETURN 1", schema, dialect)
                assert {finding.severity for finding in found} == {severity}, pattern


def test_the_triple_that_fits_is_proposed() -> None:
    (turned,) = findings("MATCH (m:Movie)-[:DIRECTED]->(p:Person) RETURN p")
    assert turned.suggestions == ("(Person)-[:DIRECTED]->(Movie)",)
    (ends,) = findings("MATCH (p:Person)-[:IN_GENRE]->(m:Movie) RETURN p")
    assert set(ends.suggestions) == {"ACTED_IN", "DIRECTED"}


def test_ladybug_does_not_tell_letters_apart() -> None:
    assert findings("MATCH (P:person)-[:acted_in]->(m:MOVIE) RETURN p.NAME", dialect="ladybug") == []
    (finding,) = findings("MATCH (m:movie)-[:acted_in]->(p:person) RETURN p", dialect="ladybug")
    assert finding.suggestions == ("(Person)-[:ACTED_IN]->(Movie)",)

"""The benchmark of the Cypher guard: its figures on data small enough to know them, and mistakes that are mistakes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from graphret.errors import InvalidInput
from graphret.evaluation import bench_guard, render
from graphret.evaluation.guard import bench_cypher_guard, holds_queries, load_queries
from graphret.evaluation.mutations import MUTATIONS, mutate
from graphret.evaluation.query_places import places_of
from graphret.schema import GraphSchema, PropertySchema

SCHEMA = {
    "node_props": {
        "Person": [{"property": "name", "type": "STRING"}, {"property": "born", "type": "INTEGER"}],
        "Movie": [{"property": "title", "type": "STRING"}, {"property": "year", "type": "INTEGER"}],
    },
    "rel_props": {"ACTED_IN": [{"property": "roles", "type": "LIST"}]},
    "relationships": [
        {"start": "Person", "type": "ACTED_IN", "end": "Movie"},
        {"start": "Person", "type": "KNOWS", "end": "Person"},
    ],
}
RIGHT = [
    "MATCH (p:Person)-[r:ACTED_IN]->(m:Movie) WHERE m.year > 1990 RETURN p.name, r.roles ORDER BY p.born LIMIT 3",
    "MATCH (m:Movie)<-[:ACTED_IN]-(p:Person {name: 'Ann'}) RETURN m.title, count(p) AS actors LIMIT 3",
    "MATCH (a:Person)-[:KNOWS]->(b:Person) WHERE a.name STARTS WITH 'A' AND b.born < 1950 RETURN a, b LIMIT 3",
    'MATCH (p:Person) WHERE EXISTS { (p)-[:ACTED_IN]->(:Movie {title: "Dawn"}) } RETURN p.name LIMIT 3',
]


def schema() -> GraphSchema:
    return GraphSchema(
        {"Person": 1, "Movie": 1},
        {("Person", "ACTED_IN", "Movie"): 1, ("Person", "KNOWS", "Person"): 1},
        {
            label: {p["property"]: PropertySchema(p["type"]) for p in given}
            for label, given in SCHEMA["node_props"].items()
        },
        {"ACTED_IN": {"roles": PropertySchema("LIST")}},
    )


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    with (folder / "text2cypher_schemas.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, ["database", "schema", "structured_schema"])
        out.writeheader()
        out.writerow({"database": "films", "schema": "", "structured_schema": repr(SCHEMA)})
    columns = ["question", "cypher", "database", "accepted", "error", "unknown_labels", "unknown_relations"]
    with (folder / "text2cypher_x.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, [*columns, "unknown_properties"], restval="")
        out.writeheader()
        for row in rows:
            unknown = {
                f"unknown_{kind}": json.dumps(row.get(kind, [])) for kind in ("labels", "relations", "properties")
            }
            out.writerow(
                {
                    "cypher": row["cypher"],
                    "database": row.get("database", "films"),
                    "accepted": str("error" not in row),
                    "error": row.get("error", ""),
                    **unknown,
                }
            )
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows: list[dict[str, Any]] = [{"cypher": query} for query in RIGHT]
    rows += [
        {"cypher": "MATCH (n:Film) RETURN n LIMIT 1", "labels": ["Film"]},
        {"cypher": "MATCH (n:Movie) RETURN m", "error": "Variable `m` not defined"},
        {"cypher": "MATCH (n:Movie RETURN n", "error": "Invalid input 'RETURN'"},
        {
            "cypher": "CALL apoc.x() YIELD y RETURN y",
            "error": "There is no procedure with the name `apoc.x` registered",
        },
        {"cypher": "MATCH (p:Person)<-[:ACTED_IN]-(m:Movie) RETURN p LIMIT 1"},
        {"cypher": "MATCH (m:Movie) RETURN m.born LIMIT 1"},
    ]
    return write(tmp_path / "text2cypher", rows)


def test_the_shares_and_what_they_are_shares_of(data: Path) -> None:
    result = bench_cypher_guard(data, mutants=4)
    assert result["name"] == "guard"
    assert result["rows"]["guard"] == {"false_alarms": 0.0, "errors_found": 100.0, "unknown_found": 100.0}
    counts = result["counts"]
    assert counts["queries"] == 10
    assert [counts[f"guard/{name}"] for name in result["rows"]["guard"]] == [6, 2, 1]
    assert (counts["accepted"], counts["accepted/directions"], counts["accepted/labels"]) == (7, 1, 1)
    assert "<-[:ACTED_IN]-(m:Movie)" in result["directions"][0]["query"]
    assert "m.born" in result["labels"][0]["query"]
    assert result["rows"]["mutations"] == dict.fromkeys(MUTATIONS, 100.0)
    assert 0 < result["seconds"]["check_median"] < 1
    json.dumps(result)


def test_what_the_guard_gets_wrong_lowers_the_share(tmp_path: Path) -> None:
    rows = [
        {"cypher": "MATCH (n:Film) RETURN n LIMIT 1"},
        {"cypher": "MATCH (n:Movie) RETURN n LIMIT 1"},
        {"cypher": "MATCH (n:Movie) RETURN n.title LIMIT 2", "error": "the server refuses it"},
        {"cypher": "MATCH (n:Movie) RETURN n.year LIMIT 2", "properties": ["year"]},
    ]
    result = bench_cypher_guard(write(tmp_path / "data", rows))
    assert result["rows"]["guard"] == {"false_alarms": 50.0, "errors_found": 0.0, "unknown_found": 0.0}
    assert {name: len(missed) for name, missed in result["missed"].items()} == {
        "false_alarms": 1,
        "errors_found": 1,
        "unknown_found": 1,
    }


def test_the_benchmark_of_a_folder_with_queries(data: Path) -> None:
    result = bench_guard(data, limit=4)
    assert result["counts"]["queries"] == 4
    assert result["rows"]["mutations"] == bench_guard(data, limit=4)["rows"]["mutations"]
    from rich.console import Console

    console = Console(width=100, record=True, file=(data / "shown.txt").open("w", encoding="utf-8"))
    console.print(render(result))
    shown = console.export_text()
    assert "false_alarms" in shown
    assert "accepted queries with a relation in the wrong direction: 0 of 4" in shown


def test_a_folder_without_queries_is_not_for_it(tmp_path: Path) -> None:
    assert not holds_queries(tmp_path)


def test_a_malformed_file_is_named(data: Path) -> None:
    write(data, [{"cypher": "RETURN 1", "database": "nowhere"}])
    with pytest.raises(InvalidInput, match=r"text2cypher_x\.csv: record 2: .*nowhere"):
        load_queries(data)
    (data / "text2cypher_schemas.csv").write_text("database,structured_schema\nfilms,{\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="films"):
        load_queries(data)


def mutants(kind: str) -> list[tuple[str, str]]:
    made = [(query, mutate(query, kind, schema(), Random(seed))) for query in RIGHT for seed in range(8)]
    return [(query, mutant) for query, mutant in made if mutant is not None]


@pytest.mark.parametrize("kind", MUTATIONS)
def test_a_mistake_changes_the_query_and_is_the_same_for_a_seed(kind: str) -> None:
    made = mutants(kind)
    assert made
    assert made == mutants(kind)
    assert all(mutant != query for query, mutant in made)


def test_a_direction_is_turned_only_where_the_schema_has_one() -> None:
    turned = {mutate(query, "direction", schema(), Random(0)) for query in RIGHT}
    assert turned == {
        RIGHT[0].replace("(p:Person)-[r:ACTED_IN]->(m", "(p:Person)<-[r:ACTED_IN]-(m"),
        RIGHT[1].replace("<-[:ACTED_IN]-", "-[:ACTED_IN]->"),
        RIGHT[3].replace("-[:ACTED_IN]->", "<-[:ACTED_IN]-"),
        None,
    }


def test_a_property_moves_to_a_label_that_lacks_it() -> None:
    known = schema().properties
    for query, mutant in mutants("property_moved"):
        wrong = [name for label, name in read_from(mutant) if name not in known[label]]
        assert len(wrong) == 1
        assert any(wrong[0] in properties for properties in (*known.values(), ("roles",)))
        assert [name for label, name in read_from(query) if name not in known[label]] == []


def read_from(query: str) -> list[tuple[str, str]]:
    """The label and the name of each property that a query reads from a node."""
    places = places_of(query)
    labels = places.label_of()
    pairs = [(labels[owner.name], name.name) for owner, name in places.properties if owner.name in labels]
    return pairs + [(node.labels[0].name, key.name) for node in places.nodes for key in node.keys]


def test_a_mistake_has_no_place_in_some_queries() -> None:
    assert mutate("RETURN 1", "label", schema(), Random(0)) is None
    assert mutate("MATCH (n) RETURN n", "direction", schema(), Random(0)) is None
    assert mutate("MATCH (n:Person) RETURN 1 AS n", "variable", schema(), Random(0)) is None
    assert mutate("RETURN '", "bracket", schema(), Random(0)) is None


@pytest.mark.parametrize("kind", ["bracket", "variable"])
def test_a_server_refuses_the_mistakes_that_any_server_must(kind: str, neo4j_driver: Any) -> None:
    import neo4j

    with neo4j_driver.session(default_access_mode="READ") as session:
        for query in RIGHT:
            session.run(f"EXPLAIN {query}").consume()
        for _, mutant in mutants(kind):
            with pytest.raises(neo4j.exceptions.ClientError, match=r"(?s).+"):
                session.run(f"EXPLAIN {mutant}").consume()


@pytest.mark.parametrize("kind", ["write", "access"])
def test_no_added_clause_is_one_that_only_reads_the_graph(kind: str) -> None:
    words = ("CREATE", "MERGE", "SET", "REMOVE", "DELETE", "LOAD", "apoc.", "\\u0043", "\\u004c")
    for _, mutant in mutants(kind):
        assert any(word.lower() in mutant.lower() for word in words)

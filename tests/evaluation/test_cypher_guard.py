"""The benchmark of the Cypher guard: its figures on data small enough to know them, and mistakes that are mistakes."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from graphret.evaluation import bench_guard, render
from graphret.evaluation.mutations import MUTATIONS

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


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    with (folder / "text2cypher_schemas.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["database", "structured_schema"], ["films", repr(SCHEMA)]])
    unknown = ("labels", "relations", "properties")
    with (folder / "text2cypher_x.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["cypher", "database", "accepted", "error", *(f"unknown_{kind}" for kind in unknown)])
        for row in rows:
            names = [json.dumps(row.get(kind, [])) for kind in unknown]
            error = row.get("error", "")
            out.writerow([row["cypher"], row.get("database", "films"), str(not error), error, *names])
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows: list[dict[str, Any]] = [{"cypher": query} for query in RIGHT]
    rows += [
        {"cypher": "MATCH (n:Film) RETURN n LIMIT 1", "labels": ["Film"]},
        {"cypher": "MATCH (n:Movie) RETURN m", "error": "Variable `m` not defined"},
        {"cypher": "MATCH (n:Movie RETURN n", "error": "Invalid input 'RETURN'"},
        {"cypher": "CALL apoc.x() YIELD y RETURN y", "error": "There is no procedure `apoc.x` registered"},
        {"cypher": "MATCH (p:Person)<-[:ACTED_IN]-(m:Movie) RETURN p LIMIT 1"},
        {"cypher": "MATCH (m:Movie) RETURN m.born LIMIT 1"},
    ]
    return write(tmp_path / "text2cypher", rows)


def test_the_shares_and_what_they_are_shares_of(data: Path) -> None:
    result = bench_guard(data, mutants=4)
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
    out = StringIO()
    Console(file=out, width=100).print(render(result))
    assert "false_alarms" in out.getvalue()
    assert "accepted queries with a relation in the wrong direction: 1 of 7" in out.getvalue()


def test_what_the_guard_gets_wrong_lowers_the_share_and_a_limit_is_of_queries(tmp_path: Path) -> None:
    rows = [
        {"cypher": "MATCH (n:Film) RETURN n LIMIT 1"},
        {"cypher": "MATCH (n:Movie) RETURN n LIMIT 1"},
        {"cypher": "MATCH (n:Movie) RETURN n.title LIMIT 2", "error": "the server refuses it"},
        {"cypher": "MATCH (n:Movie) RETURN n.year LIMIT 2", "properties": ["year"]},
    ]
    data = write(tmp_path / "data", rows)
    result = bench_guard(data)
    assert result["rows"]["guard"] == {"false_alarms": 50.0, "errors_found": 0.0, "unknown_found": 0.0}
    wrong = {"false_alarms": "Film", "errors_found": "the server refuses it", "unknown_found": "year"}
    assert all(text in result["missed"][name][0]["message"] for name, text in wrong.items())
    assert bench_guard(data, limit=2)["counts"]["queries"] == 2

"""``graphret cypher check``: what is wrong, where, and an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import graphret

from graphret.cli.app import app
from graphret.schema import GraphSchema, PropertySchema

RIGHT = "MATCH (p:Person)-[:ACTED_IN]->(m:Movie) WHERE m.year > 1999 RETURN p.name LIMIT 3"


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    known = GraphSchema(
        {"Person": 2, "Movie": 1},
        {("Person", "ACTED_IN", "Movie"): 2},
        {"Person": {"name": PropertySchema("STRING")}, "Movie": {"year": PropertySchema("INTEGER")}},
    )
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(known.to_dict()), encoding="utf-8")
    return file


def test_an_error_has_its_line_and_carets_under_its_place(schema: Path) -> None:
    ran = graphret("cypher", "check", "MATCH (p:Person)\nWHERE p.nmae = 'x'\nRETURN p LIMIT 1", "--schema", schema)
    assert ran.code == 2
    lines = ran.out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("2:"))
    assert "unknown-property" in lines[at]
    assert lines[at + 1] == "    WHERE p.nmae = 'x'"
    marked = lines[at + 2]
    assert lines[at + 1][marked.index("^") : marked.rindex("^") + 1].endswith("nmae")
    assert lines[at + 3].strip() == "nearest: name"
    assert "may not run: 1 error," in lines[-1]


def test_json_is_the_report(schema: Path) -> None:
    ran = graphret("cypher", "check", "MATCH (p:Persn) RETURN p LIMIT 1", "--schema", schema, "--json")
    assert ran.code == 2
    assert (ran.json["ok"], ran.json["dialect"]) == (False, "neo4j")
    assert [(e["kind"], e["suggestions"][0]) for e in ran.json["errors"]] == [("unknown-label", "Person")]
    assert graphret("cypher", "check", RIGHT, "--schema", schema, "--json").json["ok"] is True


def test_without_a_schema_names_are_not_checked() -> None:
    assert graphret("cypher", "check", "MATCH (p:Anything) RETURN p.whatever LIMIT 1").code == 0
    assert graphret("cypher", "check", "MATCH (p:Anything) SET p.x = 1").code == 2


@pytest.mark.parametrize("kind", ["graph", "graph.lbug"])
def test_a_schema_that_was_written_says_what_its_graph_says(tmp_path: Path, kind: str) -> None:
    """Of a node's own fields and an edge's weight, which are no properties of a folder's, and of the dialect."""
    where = str(tmp_path / kind)
    (tmp_path / "n.csv").write_text("id,label,name,year\na,Person,Ann,\nd,Movie,Dawn,1999\n", encoding="utf-8")
    (tmp_path / "e.csv").write_text("source,relation,target\na,ACTED_IN,d\n", encoding="utf-8")
    assert graphret("import", tmp_path / "n.csv", tmp_path / "e.csv", "--to", where).code == 0
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(graphret("schema", "--graph", where, "--json").json), encoding="utf-8")
    right = [
        "MATCH (p:Person)-[r:ACTED_IN]->(m:Movie) WHERE r.weight > 0.5 RETURN p.id, p.name, p.text, m.year LIMIT 3",
        "MATCH (n) WHERE n.name = 'Ann' RETURN n.id LIMIT 3",
    ]
    wrong = ["MATCH (p:Person) RETURN p.nmae", "MATCH (p:Person) RETURN p.year", "MATCH ()-[r]->() RETURN r.name"]
    for query in [*right, *wrong, "CALL db.labels() YIELD label RETURN label LIMIT 3", "MATCH (p:person) RETURN p"]:
        said, read = (
            graphret("cypher", "check", query, "--json", *given) for given in (["--graph", where], ["--schema", file])
        )
        assert read.json == said.json
        assert said.code == read.code == (2 if query in wrong else 0) or query not in [*right, *wrong]
    dialects = {
        graphret("cypher", "check", "RETURN 1", *given, "--json").json["dialect"]
        for given in (["--schema", file], ["--graph", where])
    }
    assert dialects == {"ladybug" if kind.endswith("lbug") else "neo4j"}
    old = {
        key: value for key, value in json.loads(file.read_text()).items() if "columns" not in key and key != "dialect"
    }
    file.write_text(json.dumps(old), encoding="utf-8")
    assert graphret("cypher", "check", "MATCH (m:Movie) RETURN m.year LIMIT 3", "--schema", file).code == 0
    file.write_text(json.dumps({**old, "dialect": "sql"}), encoding="utf-8")
    assert "dialect" in graphret("cypher", "check", "RETURN 1", "--schema", file).err


def test_a_query_from_stdin() -> None:
    from typer.testing import CliRunner

    ran = CliRunner().invoke(app, ["cypher", "check", "-"], input="MATCH (n) RETURN m", prog_name="graphret")
    assert ran.exit_code == 2
    assert "1:18" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["RETURN 1", "--dialect", "sql"], "--dialect"),
        (["RETURN 1", "--schema", "missing.json"], "missing.json"),
        (["RETURN 1", "--schema", "BAD"], "BAD: "),
        (["RETURN 1", "--schema", "EMPTY"], "schema"),
        (["RETURN 1", "--schema", "EMPTY", "--graph", "x"], "one of them is enough"),
    ],
)
def test_wrong_options_are_2(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "BAD").write_text("{", encoding="utf-8")
    (tmp_path / "EMPTY").write_text("{}", encoding="utf-8")
    ran = graphret("cypher", "check", *(tmp_path / a if a in ("BAD", "EMPTY") else a for a in arguments))
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err

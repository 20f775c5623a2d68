"""``graphret cypher check``: what is wrong, where, and an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import graphret
from typer.testing import CliRunner

from graphret.cli.app import app


@pytest.fixture(scope="module", params=["graph", "graph.lbug"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cypher")
    (folder / "n.csv").write_text("id,label,name,year\na,Person,Ann,\nd,Movie,Dawn,1999\n")
    (folder / "e.csv").write_text("source,relation,target\na,ACTED_IN,d\n")
    assert graphret("import", folder / "n.csv", folder / "e.csv", "--to", folder / request.param).code == 0
    return folder / request.param


def test_an_error_has_its_line_and_the_nearest_names(graph: Path) -> None:
    ran = graphret("cypher", "check", "MATCH (p:Person)\nWHERE p.nmae = 'x'\nRETURN p LIMIT 1", "--graph", graph)
    assert ran.code == 2
    found, verdict = ran.out.splitlines()[0], ran.out.splitlines()[-1]
    assert found.startswith("2:")
    assert "nmae" in found
    assert found.endswith("(nearest: name)")
    assert "may not run; errors: 1," in verdict


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("MATCH (p:Person)-[r:ACTED_IN]->(m:Movie) WHERE r.weight > 0.5 RETURN p.id, p.name, m.year LIMIT 3", []),
        ("MATCH (n) WHERE n.name = 'Ann' RETURN n.id LIMIT 3", []),
        ("MATCH (p:Persn) RETURN p LIMIT 1", [("unknown-label", "Person")]),
        ("MATCH (p:Person) RETURN p.nmae LIMIT 1", [("unknown-property", "name")]),
    ],
)
def test_json_is_the_report(graph: Path, query: str, wrong: list[tuple[str, str]]) -> None:
    ran = graphret("cypher", "check", query, "--graph", graph, "--json")
    assert (ran.code, ran.json["ok"]) == ((2, False) if wrong else (0, True))
    assert ran.json["dialect"] == ("ladybug" if graph.suffix else "neo4j")
    assert [(e["kind"], e["suggestions"][0]) for e in ran.json["errors"]] == wrong
    assert json.loads(ran.out).keys() == {"query", "dialect", "ok", "errors", "warnings"}


def test_without_a_graph_names_are_not_checked_and_a_query_may_come_from_stdin() -> None:
    assert graphret("cypher", "check", "MATCH (p:Anything) RETURN p.whatever LIMIT 1").code == 0
    assert graphret("cypher", "check", "MATCH (p:Anything) SET p.x = 1").code == 2
    ran = CliRunner().invoke(app, ["cypher", "check", "-"], input="MATCH (n) RETURN m", prog_name="graphret")
    assert ran.exit_code == 2
    assert "1:18" in ran.stdout
    assert "--dialect" in graphret("cypher", "check", "RETURN 1", "--dialect", "sql").err

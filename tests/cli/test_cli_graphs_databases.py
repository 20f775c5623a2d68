"""The commands on databases: a Ladybug file, and a real Neo4j."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import graphret
from neo4j_faults import SilentServer

from graphret.graphs import locations
from graphret.graphs.example import KB

COUNTS = ("nodes", "edges", "labels", "relations")


def all_commands_on(where: str, tmp_path: Path) -> None:
    """Import into a database, look at it, and get the same graph out of it again."""
    said = graphret("import", KB, "--to", where, "--json").json
    assert (said["nodes"], said["edges"]) == (398, 549)
    found = graphret("inspect", where, "--json").json
    assert found.keys() == {"where", *COUNTS}
    assert {key: found[key] for key in COUNTS} == {key: said[key] for key in COUNTS}
    assert "directed_by" in graphret("inspect", where).out
    assert "(:Movie)-[:directed_by]->(:Director) 63" in graphret("schema", "--graph", where).out
    ran = graphret("export", "--graph", where, "--format", "graphml", "--out", tmp_path / "g.graphml", "--json")
    assert (ran.json["nodes"], ran.json["edges"]) == (398, 549)
    back = graphret("import", where, "--to", tmp_path / "back", "--json").json
    assert {key: back[key] for key in COUNTS} == {key: said[key] for key in COUNTS}


def test_a_ladybug_file(tmp_path: Path) -> None:
    all_commands_on(str(tmp_path / "movies.lbug"), tmp_path)
    assert graphret("inspect", tmp_path / "movies.lbug", "--plot", tmp_path / "x.png").code == 2


def test_a_neo4j(
    neo4j_empty: object,
    neo4j_uri: str,
    neo4j_auth: tuple[str, str] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in zip(("NEO4J_USERNAME", "NEO4J_PASSWORD"), neo4j_auth or (None, None), strict=True):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    all_commands_on(neo4j_uri, tmp_path)


def test_a_server_that_is_not_there_is_6(tmp_path: Path) -> None:
    where = "bolt://127.0.0.1:9"
    for arguments in (["import", KB, "--to", where], ["import", where, "--to", tmp_path / "out"]):
        ran = graphret(*arguments)
        assert (ran.code, ran.out) == (6, ""), ran
        assert where in ran.err
    assert not (tmp_path / "out").exists()


def test_a_server_that_says_nothing_is_6_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    patience = {"connection_timeout": 0.3, "connection_acquisition_timeout": 0.3, "max_transaction_retry_time": 0.0}
    monkeypatch.setattr(locations, "_PATIENCE", patience)
    with SilentServer() as server:
        for scheme in ("bolt", "neo4j"):
            where = server.uri.replace("bolt", scheme)
            ran = graphret("schema", "--graph", where)
            assert (ran.code, ran.out) == (6, ""), ran
            assert where in ran.err


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.lbug"
    path.write_text("this is no database, and what is in it stays")
    for arguments in (["inspect", path], ["import", KB, "--to", path], ["schema", "--graph", path]):
        ran = graphret(*arguments)
        assert ran.code in (3, 6), ran
        assert ran.out == ""
        assert "text.lbug" in ran.err
    assert path.read_text() == "this is no database, and what is in it stays"

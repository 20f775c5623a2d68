"""The commands on databases: a Ladybug file, and a real Neo4j."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import graphret
from neo4j_faults import SilentServer

from graphret.graphs import locations
from graphret.graphs.example import KB

COUNTS = ("nodes", "edges", "labels", "relations")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    out = tmp_path / "movies"
    assert graphret("import", KB, "--to", out).code == 0
    return out


def all_commands_on(where: str, folder: Path, tmp_path: Path) -> None:
    """Import into a database, look at it, and get the same graph out of it again."""
    said = graphret("import", KB, "--to", where, "--json").json
    assert (said["nodes"], said["edges"]) == (398, 549)
    found = graphret("inspect", where, "--json").json
    assert found.keys() == {"where", *COUNTS}
    assert {key: found[key] for key in COUNTS} == {key: said[key] for key in COUNTS}
    assert "directed_by" in graphret("inspect", where).out
    assert "(:Movie)-[:directed_by]->(:Director) 63" in graphret("schema", "--graph", where).out
    for place, out in ((where, "one.graphml"), (str(folder), "other.graphml")):
        ran = graphret("export", "--graph", place, "--format", "graphml", "--out", tmp_path / out)
        assert ran.code == 0, ran.err
    lines = [sorted((tmp_path / name).read_text().splitlines()) for name in ("one.graphml", "other.graphml")]
    ends = [{line.partition(" source")[2] for line in file if line.startswith("<edge")} for file in lines]
    assert ends[0] == ends[1]
    assert [line for line in lines[0] if line.startswith("<node")] == [
        line for line in lines[1] if line.startswith("<node")
    ]
    back = graphret("import", where, "--to", tmp_path / "back", "--json").json
    assert {key: back[key] for key in COUNTS} == {key: said[key] for key in COUNTS}


def test_a_ladybug_file(folder: Path, tmp_path: Path) -> None:
    all_commands_on(str(tmp_path / "movies.lbug"), folder, tmp_path)
    assert graphret("inspect", tmp_path / "movies.lbug", "--plot", tmp_path / "x.png").code == 2


def test_a_neo4j(
    neo4j_empty: object,
    neo4j_uri: str,
    neo4j_auth: tuple[str, str] | None,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in zip(("NEO4J_USERNAME", "NEO4J_PASSWORD"), neo4j_auth or (None, None), strict=True):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    all_commands_on(neo4j_uri, folder, tmp_path)


def test_a_server_that_is_not_there_is_6(tmp_path: Path) -> None:
    where = "bolt://127.0.0.1:9"
    for arguments in (["import", KB, "--to", where], ["import", where, "--to", tmp_path / "out"], ["inspect", where]):
        ran = graphret(*arguments)
        assert (ran.code, ran.out) == (6, ""), ran
        assert where in ran.err
    assert not (tmp_path / "out").exists()


def test_a_server_that_says_nothing_is_6_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(locations._PATIENCE, "options", {"connection_acquisition_timeout": 0.3})
    with SilentServer() as server:
        for scheme in ("bolt", "neo4j"):
            where = server.uri.replace("bolt", scheme)
            for arguments in (["schema", "--graph", where], ["cypher", "check", "RETURN 1", "--graph", where]):
                ran = graphret(*arguments)
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

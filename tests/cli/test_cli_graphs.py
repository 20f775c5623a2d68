"""``graphret import``, ``export``, ``schema``, ``inspect`` and ``cypher check``, on
graphs of every format.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import networkx as nx
import pytest
from cli_helpers import built, graphret, refused, write_corpus
from neo4j_faults import SilentServer
from typer.testing import CliRunner

from graphret import storage
from graphret.cli.app import app
from graphret.graphs import example, locations
from graphret.stores import MemoryStore

NODES = (
    "id,labels,name,born\nada,Person;Author,Ada Lovelace,1815\neng,Machine,Analytical"
    " Engine,\n"
)
EDGES = "source,relation,target,year\nada,WROTE_ON,eng,1843\n"
KB = (
    "Kismet|directed_by|William Dieterle\nKismet|starred_actors|William"
    " Dieterle\nKismet|release_year|1944\n"
)
COUNTS = ("nodes", "edges", "labels", "relations")


def tables(folder: Path) -> Path:
    source = folder / "tables"
    source.mkdir(exist_ok=True)
    (source / "nodes.csv").write_text(NODES)
    (source / "edges.csv").write_text(EDGES)
    return source


def kb(folder: Path, text: str = KB) -> Path:
    path = folder / "kb.txt"
    path.write_text(text)
    return path


def test_import_says_what_it_read_and_inspect_agrees(tmp_path: Path) -> None:
    out = tmp_path / "graph"
    imported = graphret(
        "import", kb(tmp_path), "--format", "metaqa", "--out", out, "--json"
    ).json
    assert imported.keys() == {"source", "to", "format", *COUNTS, "merged", "seconds"}
    assert (imported["format"], imported["nodes"], imported["edges"]) == (
        "metaqa",
        3,
        3,
    )
    assert imported["labels"] == {"Actor": 1, "Director": 1, "Movie": 1, "Year": 1}
    assert imported["relations"] == {
        "directed_by": 1,
        "release_year": 1,
        "starred_actors": 1,
    }
    inspected = graphret("inspect", "--graph", out, "--json").json
    assert {key: inspected[key] for key in COUNTS} == {
        key: imported[key] for key in COUNTS
    }
    assert {
        "folder",
        "components",
        "degree",
        "files",
        "bytes",
        "version",
        "generation",
    } <= inspected.keys()
    assert inspected["encoder"] is None
    assert "all checksums match" in graphret("inspect", "--graph", out).out
    assert (
        graphret("inspect", "--graph", out, "--plot", tmp_path / "plot.svg").code == 0
    )
    assert (tmp_path / "plot.svg").stat().st_size
    shown = graphret("import", kb(tmp_path), "--out", out, "--replace")
    assert "William" not in shown.out
    assert "Director" in shown.out


def test_columns_types_and_labels_by_option(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "films.tsv", tmp_path / "links.tsv"
    nodes.write_text(
        "key\ttitle\tkind\tyear\nf1\tDawn\tFilm;Classic\t1999\nf2\tDusk\t\t2000\n"
    )
    edges.write_text("a\tb\tmuch\nf1\tf2\t0.5\n")
    options = ["--id-column", "key", "--name-column", "title", "--label-column", "kind"]
    options += [
        "--source-column",
        "a",
        "--target-column",
        "b",
        "--weight-column",
        "much",
        "--relation",
        "BEFORE",
    ]
    options += ["--label", "Thing"]
    ran = graphret(
        "import", nodes, edges, "--out", tmp_path / "graph", *options, "--json"
    )
    assert ran.json["labels"] == {"Classic": 1, "Film": 1, "Thing": 1}
    store = MemoryStore.load(tmp_path / "graph")
    (block,) = store.nodes()
    assert [(n.id, n.name, n.labels, dict(n.properties)) for n in block] == [
        ("f1", "Dawn", ("Film", "Classic"), {"year": 1999}),
        ("f2", "Dusk", ("Thing",), {"year": 2000}),
    ]
    ((edge,),) = store.edges()
    assert (edge.source, edge.relation, edge.target, edge.weight) == (
        "f1",
        "BEFORE",
        "f2",
        0.5,
    )


def test_export_writes_and_schema_prints_text_within_a_budget_or_json(
    tmp_path: Path,
) -> None:
    out = tmp_path / "graph"
    assert graphret("import", tables(tmp_path), "--out", out).code == 0
    export = (
        "export",
        "--graph",
        out,
        "--format",
        "graphml",
        "--out",
        tmp_path / "g.graphml",
    )
    exported = graphret(*export, "--json").json
    assert exported.keys() == {
        "graph",
        "format",
        "out",
        "files",
        "nodes",
        "edges",
        "seconds",
    }
    assert nx.read_graphml(tmp_path / "g.graphml").nodes["ada"]["born"] == 1815
    assert graphret(*export).out.startswith("2 nodes and 1 edges")
    full_text = graphret("schema", "--graph", out)
    assert full_text.code == 0
    assert full_text.out.rstrip("\n") == MemoryStore.load(out).schema().text()
    assert "(:Person)-[:WROTE_ON]->(:Machine)" in full_text.out
    short = graphret("schema", "--graph", out, "--max-tokens", 40)
    assert len(short.out) < len(full_text.out)
    assert "Left out" in short.out
    schema_json = graphret("schema", "--graph", out, "--json").json
    assert schema_json == json.loads(
        json.dumps(MemoryStore.load(out).schema().to_dict() | {"dialect": None})
    )
    assert graphret("schema", "--graph", out, "--max-tokens", 0).code == 2


def test_schema_inspect_and_export_take_a_graph_of_documents(tmp_path: Path) -> None:
    graph = built(tmp_path)
    assert "MENTIONS" in graphret("schema", "--graph", graph).out
    exported = graphret(
        "export",
        "--graph",
        graph,
        "--format",
        "parquet",
        "--out",
        tmp_path / "out",
        "--json",
    ).json
    assert (
        exported["nodes"]
        == graphret("inspect", "--graph", graph, "--json").json["nodes"]
        == 4
    )
    copied = graphret("import", graph, "--out", tmp_path / "plain", "--json").json
    assert (copied["format"], copied["nodes"], copied["edges"]) == (
        "store",
        4,
        exported["edges"],
    )
    assert (
        graphret("inspect", "--graph", tmp_path / "plain", "--json").json["relations"]
        == copied["relations"]
    )


def test_what_is_refused_leaves_everything_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "graph"
    assert graphret("import", tables(tmp_path), "--out", out).code == 0
    before = storage.verify(out)
    bad = tmp_path / "bad" / "kb.txt"
    bad.parent.mkdir()
    bad.write_text(KB + "Kismet|directed_by\n")
    assert "it already contains a graph; --replace replaces it" in refused(
        2, "import", bad, "--out", out
    )
    over = ("--replace", "--out", out)
    assert "bad/kb.txt, line 4: expected subject|relation|object" in refused(
        2, "import", bad, *over
    )
    assert "the format is not clear" in refused(
        2, "import", tmp_path / "thing.xyz", *over
    )
    assert "--replace: expected a folder as --out" in refused(
        2, "import", bad, "--replace", "--out", tmp_path / "g.lbug"
    )
    assert "the source and the target are the same" in refused(
        2, "import", out, "--out", f"{out}/.", "--replace"
    )
    assert "no such file or folder" in refused(
        3, "import", tmp_path / "none", "--format", "store", *over
    )
    assert storage.verify(out) == before
    assert "missing option '--out'" in refused(2, "import", bad).lower()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    for command in (
        ["import", out, "--out", mine],
        ["build", bad, "--out", mine, "--encoder", "none"],
    ):
        assert "holds other files" in refused(3, *command)
    assert os.listdir(mine) == ["notes.txt"]


def test_a_folder_of_documents_is_not_replaced_by_a_plain_graph(tmp_path: Path) -> None:
    graph = built(tmp_path)
    assert "'sage'" in refused(
        3, "import", tables(tmp_path), "--out", graph, "--replace"
    )
    assert graphret("inspect", "--graph", graph, "--json").json["nodes"] == 4


def all_commands_on(where: str, tmp_path: Path) -> None:
    """Import into a database, look at it, and get the same graph out of it again."""
    imported = graphret("import", example.KB, "--out", where, "--json").json
    assert (imported["nodes"], imported["edges"]) == (398, 549)
    inspected = graphret("inspect", "--graph", where, "--json").json
    assert inspected.keys() == {"where", *COUNTS}
    assert {key: inspected[key] for key in COUNTS} == {
        key: imported[key] for key in COUNTS
    }
    assert "directed_by" in graphret("inspect", "--graph", where).out
    assert (
        "(:Movie)-[:directed_by]->(:Director) 63"
        in graphret("schema", "--graph", where).out
    )
    ran = graphret(
        "export",
        "--graph",
        where,
        "--format",
        "graphml",
        "--out",
        tmp_path / "g.graphml",
        "--json",
    )
    assert (ran.json["nodes"], ran.json["edges"]) == (398, 549)
    back = graphret("import", where, "--out", tmp_path / "back", "--json").json
    assert {key: back[key] for key in COUNTS} == {key: imported[key] for key in COUNTS}


def test_a_ladybug_file(tmp_path: Path) -> None:
    all_commands_on(str(tmp_path / "movies.lbug"), tmp_path)
    assert (
        graphret(
            "inspect", "--graph", tmp_path / "movies.lbug", "--plot", tmp_path / "x.png"
        ).code
        == 2
    )


def test_a_neo4j(neo4j_address: str, tmp_path: Path) -> None:
    all_commands_on(neo4j_address, tmp_path)


@pytest.mark.parametrize(
    "place", ["graph.lbug", pytest.param("neo4j", marks=pytest.mark.neo4j)]
)
def test_a_graph_of_documents_is_built_into_a_database(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = str(tmp_path / place)
    if place == "neo4j":
        where = request.getfixturevalue("neo4j_address")
    folder, corpus = built(tmp_path), write_corpus(tmp_path)
    for _ in range(2):  # the same nodes and edges are written over
        ran = graphret("build", corpus, "--out", where, "--encoder", "none", "--json")
        assert ran.code == 0, ran.err
        in_folder, in_database = (
            graphret("inspect", "--graph", graph, "--json").json
            for graph in (folder, where)
        )
        assert {key: in_database[key] for key in COUNTS} == {
            key: in_folder[key] for key in COUNTS
        }


def test_a_server_that_is_not_there_is_6(tmp_path: Path) -> None:
    where = "bolt://127.0.0.1:9"
    for arguments in (
        ["build", write_corpus(tmp_path), "--out", where, "--encoder", "none"],
        ["import", example.KB, "--out", where],
        ["import", where, "--out", tmp_path / "out"],
    ):
        ran = graphret(*arguments)
        assert (ran.code, ran.out) == (6, ""), ran
        assert where in ran.err
    assert not (tmp_path / "out").exists()


def test_a_server_that_says_nothing_is_6_in_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patience = {
        "connection_timeout": 0.3,
        "connection_acquisition_timeout": 0.3,
        "max_transaction_retry_time": 0.0,
    }
    monkeypatch.setattr(locations, "_PATIENCE", patience)
    with SilentServer() as server:
        for scheme in ("bolt", "neo4j"):
            where = server.uri.replace("bolt", scheme)
            ran = graphret("schema", "--graph", where)
            assert (ran.code, ran.out) == (6, ""), ran
            assert where in ran.err


@pytest.fixture(scope="module", params=["graph", "graph.lbug"])
def graph(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("cypher")
    (folder / "n.csv").write_text(
        "id,label,name,year\na,Person,Ann,\nd,Movie,Dawn,1999\n"
    )
    (folder / "e.csv").write_text("source,relation,target\na,ACTED_IN,d\n")
    assert (
        graphret(
            "import",
            folder / "n.csv",
            folder / "e.csv",
            "--out",
            folder / request.param,
        ).code
        == 0
    )
    return folder / request.param


def test_an_error_has_its_line_and_the_nearest_names(graph: Path) -> None:
    ran = graphret(
        "cypher",
        "check",
        "MATCH (p:Person)\nWHERE p.nmae = 'x'\nRETURN p LIMIT 1",
        "--graph",
        graph,
    )
    assert ran.code == 2
    finding, verdict = ran.out.splitlines()[0], ran.out.splitlines()[-1]
    assert finding.startswith("2:")
    assert "nmae" in finding
    assert finding.endswith("(nearest: name)")
    assert "may not run; errors: 1," in verdict


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        (
            (
                "MATCH (p:Person)-[r:ACTED_IN]->(m:Movie) WHERE r.weight > 0.5 RETURN"
                " p.id, p.name, m.year LIMIT 3"
            ),
            [],
        ),
        ("MATCH (p:Persn) RETURN p LIMIT 1", [("unknown-label", "Person")]),
    ],
)
def test_json_is_the_report(
    graph: Path, query: str, wrong: list[tuple[str, str]]
) -> None:
    ran = graphret("cypher", "check", query, "--graph", graph, "--json")
    assert (ran.code, ran.json["ok"]) == ((2, False) if wrong else (0, True))
    assert ran.json["dialect"] == ("ladybug" if graph.suffix else "neo4j")
    assert [(e["kind"], e["suggestions"][0]) for e in ran.json["errors"]] == wrong
    assert json.loads(ran.out).keys() == {
        "query",
        "dialect",
        "ok",
        "errors",
        "warnings",
    }


def test_without_a_graph_names_are_not_checked_and_a_query_may_come_from_stdin() -> (
    None
):
    assert (
        graphret("cypher", "check", "MATCH (p:Anything) RETURN p.whatever LIMIT 1").code
        == 0
    )
    assert graphret("cypher", "check", "MATCH (p:Anything) SET p.x = 1").code == 2
    ran = CliRunner().invoke(
        app, ["cypher", "check", "-"], input="MATCH (n) RETURN m", prog_name="graphret"
    )
    assert ran.exit_code == 2
    assert "1:18" in ran.stdout
    assert (
        "--dialect" in graphret("cypher", "check", "RETURN 1", "--dialect", "sql").err
    )

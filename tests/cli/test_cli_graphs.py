"""``graphret import``, ``export``, ``schema`` and ``inspect`` on graphs of every format."""

from __future__ import annotations

import json
import os
from pathlib import Path

import networkx as nx
from cli_helpers import built, graphret, refused

from graphret import storage
from graphret.stores import MemoryStore

NODES = "id,labels,name,born\nada,Person;Author,Ada Lovelace,1815\neng,Machine,Analytical Engine,\n"
EDGES = "source,relation,target,year\nada,WROTE_ON,eng,1843\n"
KB = "Kismet|directed_by|William Dieterle\nKismet|starred_actors|William Dieterle\nKismet|release_year|1944\n"
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
    said = graphret("import", kb(tmp_path), "--format", "metaqa", "--to", out, "--json").json
    assert said.keys() == {"source", "to", "format", *COUNTS, "merged", "remarks", "seconds"}
    assert (said["format"], said["nodes"], said["edges"]) == ("metaqa", 3, 3)
    assert said["labels"] == {"Actor": 1, "Director": 1, "Movie": 1, "Year": 1}
    assert said["relations"] == {"directed_by": 1, "release_year": 1, "starred_actors": 1}
    found = graphret("inspect", out, "--json").json
    assert {key: found[key] for key in COUNTS} == {key: said[key] for key in COUNTS}
    assert {"folder", "components", "degree", "files", "bytes", "version", "generation"} <= found.keys()
    assert found["encoder"] is None
    assert "every checksum right" in graphret("inspect", out).out
    assert graphret("inspect", out, "--plot", tmp_path / "plot.svg").code == 0
    assert (tmp_path / "plot.svg").stat().st_size
    shown = graphret("import", kb(tmp_path), "--to", out, "--replace")
    assert "William" not in shown.out
    assert "Director" in shown.out


def test_columns_types_and_labels_by_option(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "films.tsv", tmp_path / "links.tsv"
    nodes.write_text("key\ttitle\tkind\tyear\nf1\tDawn\tFilm;Classic\t1999\nf2\tDusk\t\t2000\n")
    edges.write_text("a\tb\tmuch\nf1\tf2\t0.5\n")
    options = ["--id-column", "key", "--name-column", "title", "--label-column", "kind"]
    options += ["--source-column", "a", "--target-column", "b", "--weight-column", "much", "--relation", "BEFORE"]
    options += ["--label", "Thing"]
    ran = graphret("import", nodes, edges, "--to", tmp_path / "graph", *options, "--json")
    assert ran.json["labels"] == {"Classic": 1, "Film": 1, "Thing": 1}
    store = MemoryStore.load(tmp_path / "graph")
    (block,) = store.nodes()
    assert [(n.id, n.name, n.labels, dict(n.properties)) for n in block] == [
        ("f1", "Dawn", ("Film", "Classic"), {"year": 1999}),
        ("f2", "Dusk", ("Thing",), {"year": 2000}),
    ]
    ((edge,),) = store.edges()
    assert (edge.source, edge.relation, edge.target, edge.weight) == ("f1", "BEFORE", "f2", 0.5)


def test_export_writes_and_schema_prints_text_within_a_budget_or_json(tmp_path: Path) -> None:
    out = tmp_path / "graph"
    assert graphret("import", tables(tmp_path), "--to", out).code == 0
    export = ("export", "--graph", out, "--format", "graphml", "--out", tmp_path / "g.graphml")
    said = graphret(*export, "--json").json
    assert said.keys() == {"graph", "format", "out", "files", "nodes", "edges", "seconds"}
    assert nx.read_graphml(tmp_path / "g.graphml").nodes["ada"]["born"] == 1815
    assert graphret(*export).out.startswith("2 nodes and 1 edges")
    whole = graphret("schema", "--graph", out)
    assert whole.code == 0
    assert whole.out.rstrip("\n") == MemoryStore.load(out).schema().text()
    assert "(:Person)-[:WROTE_ON]->(:Machine)" in whole.out
    short = graphret("schema", "--graph", out, "--max-tokens", 40)
    assert len(short.out) < len(whole.out)
    assert "Left out" in short.out
    found = graphret("schema", "--graph", out, "--json").json
    assert found == json.loads(json.dumps(MemoryStore.load(out).schema().to_dict() | {"dialect": None}))
    assert graphret("schema", "--graph", out, "--max-tokens", 0).code == 2


def test_schema_inspect_and_export_take_a_graph_of_documents(tmp_path: Path) -> None:
    graph = built(tmp_path)
    assert "MENTIONS" in graphret("schema", "--graph", graph).out
    said = graphret("export", "--graph", graph, "--format", "parquet", "--out", tmp_path / "out", "--json").json
    assert said["nodes"] == graphret("inspect", graph, "--json").json["nodes"] == 4
    copied = graphret("import", graph, "--to", tmp_path / "plain", "--json").json
    assert (copied["format"], copied["nodes"], copied["edges"]) == ("store", 4, said["edges"])
    assert graphret("inspect", tmp_path / "plain", "--json").json["relations"] == copied["relations"]


def test_what_is_refused_leaves_everything_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "graph"
    assert graphret("import", tables(tmp_path), "--to", out).code == 0
    before = storage.verify(out)
    bad = tmp_path / "bad" / "kb.txt"
    bad.parent.mkdir()
    bad.write_text(KB + "Kismet|directed_by\n")
    assert "there is a graph; --replace replaces it" in refused(2, "import", bad, "--to", out)
    over = ("--replace", "--to", out)
    assert "bad/kb.txt, line 4: subject|relation|object is expected" in refused(2, "import", bad, *over)
    assert "the format is not clear" in refused(2, "import", tmp_path / "thing.xyz", *over)
    assert "--replace: it is for folders" in refused(2, "import", bad, "--replace", "--to", tmp_path / "g.lbug")
    assert "the source and the target are the same" in refused(2, "import", out, "--to", f"{out}/.", "--replace")
    assert "no such file or folder" in refused(3, "import", tmp_path / "none", "--format", "store", *over)
    assert storage.verify(out) == before
    assert "missing option '--to'" in refused(2, "import", bad).lower()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    for command in (["import", out, "--to", mine], ["build", bad, "--out", mine, "--encoder", "none"]):
        assert "holds other files" in refused(3, *command)
    assert os.listdir(mine) == ["notes.txt"]


def test_a_folder_of_documents_is_not_replaced_by_a_plain_graph(tmp_path: Path) -> None:
    graph = built(tmp_path)
    assert "'sage'" in refused(3, "import", tables(tmp_path), "--to", graph, "--replace")
    assert graphret("inspect", graph, "--json").json["nodes"] == 4

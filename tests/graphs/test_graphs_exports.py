"""What is written can be read again: Parquet by graphret, GraphML by networkx, CSV with Cypher by a real Neo4j."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest

from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs import export_graph, import_graph, read_tables, write_cypher_csv, write_graphml
from graphret.stores import MemoryStore, open_store
from graphret.testing.graphs import EDGES, HOSTILE, NODES, VALUES
from graphret.types import Edge, Node

if TYPE_CHECKING:
    import neo4j

ODD = [
    *(Node(f"hostile-{i}", ("Odd", name), name, name, {"value": name, "list": [name, "x"], name[:99]: i})
      for i, name in enumerate(HOSTILE)),
    *(Node(f"value-{i}", ("Value",), name, "", {name: VALUES[name]}) for i, name in enumerate(sorted(VALUES))),
]  # fmt: skip
ODD_EDGES = [
    *(Edge("ada", name, f"hostile-{i}", i / 8, {"value": name}) for i, name in enumerate(HOSTILE)),
    Edge("ada", "WROTE", "notes", 2.0, {"source_row": 1, "target_row": 0}),
]
FORMATS = (("parquet", "p"), ("cypher-csv", "c"), ("graphml", "g.xml"))


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore.of([*NODES, *ODD], [*EDGES, *ODD_EDGES])


def contents(store: Any) -> tuple[list[Node], list[Edge]]:
    return [n for block in store.nodes() for n in block], sorted((e for block in store.edges() for e in block), key=str)


def test_parquet_comes_back(store: MemoryStore, tmp_path: Path) -> None:
    done = export_graph(store, tmp_path / "out", "parquet")
    assert (done.nodes, done.edges) == store.count()
    assert [file.name for file in done.files] == ["nodes.parquet", "edges.parquet"]
    assert contents(read_tables(tmp_path / "out").store()) == contents(store)
    import_graph(tmp_path / "out", tmp_path / "graph")
    assert contents(open_store(tmp_path / "graph")) == contents(store)


def test_nodes_without_a_label_come_back_without_one(tmp_path: Path) -> None:
    nodes = [Node("a", (), "A"), Node("b", ("City",), "B")]
    export_graph(MemoryStore.of(nodes, [Edge("a", "NEAR", "b")]), tmp_path / "out", "parquet")
    assert list(read_tables(tmp_path / "out").store().nodes()) == [nodes]


def test_graphml_is_what_networkx_reads(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    done = write_graphml(store, path)
    assert (done.files, done.nodes, done.edges, done.replaced) == ([path], *store.count(), 0)
    found = nx.read_graphml(path)
    assert found.is_directed()
    nodes, edges = contents(store)
    assert set(found.nodes) == {node.id for node in nodes}
    for node in nodes:
        data = found.nodes[node.id]
        assert (data.get("label", ""), json.loads(data["labels"])) == (node.label, list(node.labels))
        assert (data.get("name", ""), data.get("text", "")) == (node.name, node.text)
        if node.id.startswith("value-") and (value := node.properties[node.name]) not in (None, []):
            written = data.get(f"properties.{node.name}", data.get(node.name))
            assert (json.loads(written) if isinstance(value, list | dict) else written) == value
    ends = sorted((source, target, data["relation"], data["weight"]) for source, target, data in found.edges(data=True))
    assert ends == sorted((edge.source, edge.target, edge.relation, edge.weight) for edge in edges)
    assert {node.id for node in contents(read_tables(path).store())[0]} == {node.id for node in nodes}


def test_characters_that_xml_forbids_are_replaced_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    node = Node("n", name="a\x00b", text="fine\t\n", properties={"p": "\x1b", "q": ["\ufffe"], "name": 1})
    assert write_graphml(MemoryStore.of([node]), path).replaced == 3
    found = nx.read_graphml(path).nodes["n"]
    assert (found["name"], found["properties.name"]) == ("a\ufffdb", 1)
    assert list(tmp_path.iterdir()) == [path]


def run_script(driver: neo4j.Driver, folder: Path) -> None:
    with driver.session() as session:
        for statement in (folder / "load.cypher").read_text(encoding="utf-8").split(";\n"):
            if statement.strip():
                session.run(statement).consume()


def test_the_script_loads_everything_as_our_store_writes_it(
    store: MemoryStore, tmp_path: Path, neo4j_new: neo4j.Driver, neo4j_uri: str, neo4j_auth: Any
) -> None:
    from graphret.stores.neo4j import Neo4jStore

    folder = tmp_path / "csv"
    done = write_cypher_csv(store, folder, base_url=f"{folder.as_uri()}/")
    assert (done.nodes, done.edges) == store.count()
    assert sorted(done.files) == sorted(folder.iterdir())
    run_script(neo4j_new, folder)
    with Neo4jStore(neo4j_uri, auth=neo4j_auth) as there:
        found, expected = contents(there), contents(store)
    assert found[1] == expected[1]
    for node, own in zip(found[0], expected[0], strict=True):
        assert (node.id, set(node.labels), node.name, node.text) == (own.id, set(own.labels), own.name, own.text)
        kept = {name: value for name, value in own.properties.items() if value not in (None, [])}
        texts = {name: value for name, value in kept.items() if isinstance(value, dict) or name not in node.properties}
        assert {**node.properties, **texts} == kept


def test_numbers_and_lists_are_such_and_mixed_values_text(tmp_path: Path, neo4j_new: neo4j.Driver) -> None:
    rows = [{"f": 1, "m": 1, "l": [1, 2], "b": True}, {"f": 0.5, "m": "x", "l": [3], "t": ['a"\\', "b\nc"]}]
    nodes = [Node(f"n\\{i}", ("A",), "", "", row) for i, row in enumerate(rows)]
    write_cypher_csv(MemoryStore.of(nodes), tmp_path / "csv", base_url=f"{(tmp_path / 'csv').as_uri()}/")
    run_script(neo4j_new, tmp_path / "csv")
    found = neo4j_new.execute_query("MATCH (n) RETURN properties(n) AS p ORDER BY n.id").records
    assert [row["p"] for row in found] == [
        {"id": "n\\0", "f": 1.0, "m": "1", "l": [1, 2], "b": True},
        {"id": "n\\1", "f": 0.5, "m": "x", "l": [3], "t": ['a"\\', "b\nc"]},
    ]


def test_a_view_is_written_without_the_rest_and_other_files_stay(tmp_path: Path) -> None:
    view = MemoryStore.of(NODES, EDGES).view({"label": "Person"})
    for format, out in FORMATS:
        export_graph(MemoryStore.of(NODES, EDGES), tmp_path / out, format)  # it is replaced
        done = export_graph(view, tmp_path / out, format)
        assert (done.nodes, done.edges) == (2, 1)
        assert not any(b"Analytical" in file.read_bytes() for file in done.files)
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(InvalidInput, match="cannot be written"):
            export_graph(view, tmp_path / "notes.txt" / out, format)
    assert {path.name for path in tmp_path.iterdir()} == {"p", "c", "g.xml", "notes.txt"}


def test_an_empty_graph_can_be_written(tmp_path: Path) -> None:
    for format, out in FORMATS:
        done = export_graph(MemoryStore(), tmp_path / out, format)
        assert (done.nodes, done.edges) == (0, 0)
    assert len(nx.read_graphml(tmp_path / "g.xml")) == 0


def test_what_cannot_be_written_is_said(store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="no format 'gexf' to write; known are parquet, cypher-csv, graphml"):
        export_graph(store, tmp_path / "x", "gexf")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match=r"pyarrow.*graphret\[import\]"):
        export_graph(store, tmp_path / "out", "parquet")

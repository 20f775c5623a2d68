"""What is written can be read again: Parquet by graphret, GraphML by networkx."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from graphret.errors import InvalidInput
from graphret.graphs import export_graph, import_graph, read_tables
from graphret.stores import MemoryStore, open_store
from graphret.testing.graphs import EDGES, HOSTILE, NODES, VALUES
from graphret.types import Edge, Node

ODD = [
    *(Node(f"hostile-{i}", ("Odd", name), name, name, {"value": name, "list": [name, "x"], name[:99]: i})
      for i, name in enumerate(HOSTILE)),
    *(Node(f"value-{i}", ("Value",), name, "", {name: VALUES[name]}) for i, name in enumerate(sorted(VALUES))),
]  # fmt: skip
ODD_EDGES = [
    *(Edge("ada", name, f"hostile-{i}", i / 8, {"value": name}) for i, name in enumerate(HOSTILE)),
    Edge("ada", "WROTE", "notes", 2.0, {"source_row": 1, "target_row": 0}),
]
FORMATS = (("parquet", "p"), ("graphml", "g.xml"))


XML = Node("xml", name="a\x00b", properties={"p": "\x1b", "name": 1})


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore.of([*NODES, *ODD, XML, Node("no label", ())], [*EDGES, *ODD_EDGES])


def contents(store: Any) -> tuple[list[Node], list[Edge]]:
    return [n for block in store.nodes() for n in block], sorted((e for block in store.edges() for e in block), key=str)


def test_parquet_comes_back(store: MemoryStore, tmp_path: Path) -> None:
    done = export_graph(store, tmp_path / "out", "parquet")
    assert (done.nodes, done.edges) == store.count()
    assert [file.name for file in done.files] == ["nodes.parquet", "edges.parquet"]
    import_graph(tmp_path / "out", tmp_path / "graph")
    assert contents(open_store(tmp_path / "graph")) == contents(store)


def test_graphml_is_what_networkx_reads(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    done = export_graph(store, path, "graphml")
    assert (done.files, done.nodes, done.edges) == ([path], *store.count())
    found = nx.read_graphml(path)
    assert found.is_directed()
    nodes, edges = contents(store)
    assert set(found.nodes) == {node.id for node in nodes}
    for node in nodes:
        data = found.nodes[node.id]
        assert (data.get("label", ""), json.loads(data["labels"])) == (node.label, list(node.labels))
        assert (data.get("name", ""), data.get("text", "")) == (node.name.replace("\x00", "\ufffd"), node.text)
        if node.id.startswith("value-") and (value := node.properties[node.name]) not in (None, []):
            written = data.get(f"properties.{node.name}", data.get(node.name))
            if isinstance(value, str):
                value = value.replace("\r\n", "\n")  # as XML reads line ends
            assert (json.loads(written) if isinstance(value, list | dict) else written) == value
    assert (found.nodes["xml"]["properties.name"], found.nodes["xml"]["p"]) == (1, "\ufffd")
    ends = sorted((source, target, data["relation"], data["weight"]) for source, target, data in found.edges(data=True))
    assert ends == sorted((edge.source, edge.target, edge.relation, edge.weight) for edge in edges)
    assert {node.id for node in contents(read_tables(path).store())[0]} == {node.id for node in nodes}


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
    assert {path.name for path in tmp_path.iterdir()} == {"p", "g.xml", "notes.txt"}

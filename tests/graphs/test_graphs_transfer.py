"""Graphs go from every source into every store, and out again: Parquet for graphret, GraphML for networkx."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from graphret.errors import InvalidInput
from graphret.graphs import Columns, ReadOptions, export_graph, import_graph, read_metaqa, read_tables
from graphret.graphs.example import KB
from graphret.stores import MemoryStore, open_store
from graphret.testing.graphs import EDGES, HOSTILE, NODES, VALUES, all_edges, all_nodes
from graphret.types import Edge, Node


@pytest.mark.parametrize("name", ["folder", "filled.lbug"])  # and Neo4j with the commands
def test_a_graph_goes_everywhere_and_comes_back_and_again(name: str, tmp_path: Path) -> None:
    whole, target = read_metaqa(KB).store(), tmp_path / name
    if name == "filled.lbug":
        MemoryStore.of([Node("c")]).save(tmp_path / "other")
        import_graph(tmp_path / "other", target)
    for _ in range(2):
        done = import_graph(KB, target)
        assert (done.format, done.nodes, done.edges, done.merged) == ("metaqa", 398, 549, 0)
        assert (done.labels["Movie"], done.relations["directed_by"]) == (44, 63)
    back = import_graph(target, tmp_path / "back", format="store")
    assert back.edges == 549
    found = open_store(tmp_path / "back")
    found.delete(["c"])
    assert (all_nodes(found), all_edges(found)) == (all_nodes(whole), all_edges(whole))


def test_what_a_database_refuses_is_named_and_maps_come_back(neo4j_address: str, tmp_path: Path) -> None:
    nodes, back = tmp_path / "n.jsonl", tmp_path / "back"
    for where in (neo4j_address, str(tmp_path / "g.lbug")):
        nodes.write_text('{"id": "a"}\n{"id": "b", "label": "nul\\u0000l"}\n')
        with pytest.raises(InvalidInput, match=r"n.jsonl: node 'b'"):
            import_graph(nodes, where)
        nodes.write_text('{"id": "a"}\n{"id": "b", "deep": {"c": [1]}}\n')
        import_graph(nodes, where)
        assert import_graph(where, back).nodes == 2
        assert all_nodes(open_store(back))[1].properties == {"deep": {"c": [1]}}


def test_a_graph_of_others_is_copied_by_its_own_properties(
    neo4j_address: str, neo4j_empty: Any, tmp_path: Path
) -> None:
    neo4j_empty.execute_query(
        "CREATE (f:Film {key: 'f1', title: 'Dawn', plot: 'A film.', year: 1999})<-[:MADE {role: 'all'}]-"
        "(p:Person:Author {key: 'p1', title: 'Ann'}) CREATE (p)-[:MADE {role: 'some'}]->(f)"
    )
    options = ReadOptions(Columns(id="key", name="title", text="plot"))
    done = import_graph(neo4j_address, tmp_path / "films", options=options)
    assert (done.edges, done.merged) == (1, 1)
    copy = open_store(tmp_path / "films")
    film, person = all_nodes(copy)
    assert (film.id, film.name, film.text, film.properties["year"]) == ("f1", "Dawn", "A film.", 1999)
    assert (person.id, set(person.labels), person.name) == ("p1", {"Person", "Author"}, "Ann")
    assert [edge.identity for edge in all_edges(copy)] == [Edge("p1", "MADE", "f1").identity]


ODD = [
    *(Node(f"hostile-{i}", ("Odd", name), name, name, {"value": name, "list": [name, "x"], name[:99]: i})
      for i, name in enumerate(HOSTILE)),
    *(Node(f"value-{i}", ("Value",), name, "", {name: VALUES[name]}) for i, name in enumerate(sorted(VALUES))),
]  # fmt: skip
ODD_EDGES = [
    *(Edge("ada", name, f"hostile-{i}", i / 8, {"value": name}) for i, name in enumerate(HOSTILE)),
    Edge("ada", "WROTE", "notes", 2.0, {"source_row": 1, "target_row": 0}),
]
XML = Node("xml", name="a\x00b", properties={"p": "\x1b", "name": 1})


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore.of([*NODES, *ODD, XML, Node("no label", ())], [*EDGES, *ODD_EDGES])


def test_parquet_comes_back(store: MemoryStore, tmp_path: Path) -> None:
    done = export_graph(store, tmp_path / "out", "parquet")
    assert (done.nodes, done.edges) == store.count()
    assert [file.name for file in done.files] == ["nodes.parquet", "edges.parquet"]
    import_graph(tmp_path / "out", tmp_path / "graph")
    found = open_store(tmp_path / "graph")
    assert (all_nodes(found), all_edges(found)) == (all_nodes(store), all_edges(store))


def test_graphml_is_what_networkx_reads(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    done = export_graph(store, path, "graphml")
    assert (done.files, done.nodes, done.edges) == ([path], *store.count())
    found = nx.read_graphml(path)
    assert found.is_directed()
    nodes, edges = all_nodes(store), all_edges(store)
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
    assert {node.id for node in all_nodes(read_tables(path).store())} == {node.id for node in nodes}


def test_a_view_is_written_without_the_rest_and_other_files_stay(tmp_path: Path) -> None:
    view = MemoryStore.of(NODES, EDGES).view({"label": "Person"})
    for format, out in (("parquet", "p"), ("graphml", "g.xml")):
        export_graph(MemoryStore.of(NODES, EDGES), tmp_path / out, format)  # it is replaced
        done = export_graph(view, tmp_path / out, format)
        assert (done.nodes, done.edges) == (2, 1)
        assert not any(b"Analytical" in file.read_bytes() for file in done.files)
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(InvalidInput, match="cannot be written"):
            export_graph(view, tmp_path / "notes.txt" / out, format)
    assert {path.name for path in tmp_path.iterdir()} == {"p", "g.xml", "notes.txt"}

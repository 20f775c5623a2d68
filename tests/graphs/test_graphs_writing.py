"""What is written can be read again: Parquet by graphret, GraphML by networkx, CSV with Cypher by a real Neo4j."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import networkx as nx
import pytest

from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs import export_graph, import_graph, read_tables, write_cypher_csv, write_graphml, write_parquet
from graphret.graphs.cypher_csv import SCRIPT
from graphret.graphs.example import KB
from graphret.graphs.kinds import Kinds, kind_of
from graphret.graphs.loading import memory_store
from graphret.stores import MemoryStore
from graphret.stores.parquet import read_parquet
from graphret.testing.graphs import EDGES, HOSTILE, NODES, VALUES, random_graph
from graphret.types import Edge, Node

if TYPE_CHECKING:
    import neo4j

ODD = [
    *(Node(f"hostile-{i}", ("Odd", name), name, name, {"value": name, "list": [name, ""], name[:99]: i})
      for i, name in enumerate(HOSTILE)),
    *(Node(f"value-{i}", ("Value",), name, "", {"value": VALUES[name]}) for i, name in enumerate(sorted(VALUES))),
    Node("deep", ("Value",), "", "", {"map": {"a": [1, None, {"b": "c"}]}, "mixed": [1, "two"], "one": [""]}),
]  # fmt: skip
ODD_EDGES = [
    *(Edge("ada", name, f"hostile-{i}", i / 8, {"value": name}) for i, name in enumerate(HOSTILE)),
    Edge("ada", "WROTE", "notes", 2.0, {"source_row": 1, "target_row": 0}),
    Edge("deep", "SELF", "deep", -1.5, {"list": [1, 2]}),
]


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore.of([*NODES, *ODD], [*EDGES, *ODD_EDGES])


def contents(store: Any) -> tuple[list[Node], list[Edge]]:
    return [n for block in store.nodes() for n in block], sorted((e for block in store.edges() for e in block), key=str)


# Parquet


def test_parquet_comes_back(store: MemoryStore, tmp_path: Path) -> None:
    done = export_graph(store, tmp_path / "out", "parquet")
    assert (done.nodes, done.edges) == store.count()
    assert [file.name for file in done.files] == ["nodes.parquet", "edges.parquet"]
    again = memory_store(read_tables(tmp_path / "out"))
    assert contents(again) == contents(store)


def test_nodes_without_a_label_come_back_without_one(tmp_path: Path) -> None:
    nodes = [Node("a", (), "A"), Node("b", ("City",), "B")]
    write_parquet(MemoryStore.of(nodes, [Edge("a", "NEAR", "b")]), tmp_path / "out")
    assert list(memory_store(read_tables(tmp_path / "out")).nodes()) == [nodes]


def test_without_pyarrow_the_error_names_the_extra(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match=r"pyarrow.*graphret\[import\]"):
        export_graph(store, tmp_path / "out", "parquet")


# GraphML


def graphml_value(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if isinstance(value, list | dict) else value


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
        assert (data["label"], json.loads(data["labels"])) == (node.label, list(node.labels))
        assert (data.get("name", ""), data.get("text", "")) == (node.name, node.text)
        if node.id.startswith("value-"):  # the property `value` holds values of all types: text, and JSON for the rest
            value = node.properties["value"]
            written = value if isinstance(value, str) else graphml_value(value)
            assert data["value"] == (written if isinstance(written, str) else json.dumps(value))
        if node.id == "ada":
            assert data["born"] == 1815
    ends = sorted((source, target, data["relation"], data["weight"]) for source, target, data in found.edges(data=True))
    assert ends == sorted((edge.source, edge.target, edge.relation, edge.weight) for edge in edges)


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_property_of_one_type_keeps_it_in_graphml(tmp_path: Path, name: str) -> None:
    path = tmp_path / "graph.graphml"
    write_graphml(MemoryStore.of([Node("n", properties={"value": VALUES[name]})]), path)
    found = nx.read_graphml(path).nodes["n"]["value"]
    assert found == graphml_value(VALUES[name])
    assert type(found) is type(graphml_value(VALUES[name]))


def test_graphml_declares_its_keys_and_keeps_names_apart(tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    write_graphml(MemoryStore.of([Node("n", ("A",), "own", "", {"name": 1, "big": 2**70})]), path)
    root = ElementTree.parse(path).getroot()
    space = "{http://graphml.graphdrawing.org/xmlns}"
    assert root.tag == f"{space}graphml"
    keys = {key.get("attr.name"): key.get("attr.type") for key in root.findall(f"{space}key[@for='node']")}
    own = dict.fromkeys(("label", "labels", "name", "text"), "string")
    assert keys == {**own, "properties.name": "long", "big": "string"}
    data = nx.read_graphml(path).nodes["n"]
    assert (data["name"], data["properties.name"], data["big"]) == ("own", 1, str(2**70))


def test_characters_that_xml_forbids_are_replaced_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    nodes = [Node("n", name="a\x00b", text="fine\t\n", properties={"p": "\x1b", "q": ["\ufffe"]})]
    assert write_graphml(MemoryStore.of(nodes), path).replaced == 3
    assert nx.read_graphml(path).nodes["n"]["name"] == "a\ufffdb"
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=r"'a\\x00b': the id holds a character"):
        write_graphml(MemoryStore.of([Node("a\x00b")]), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# CSV with Cypher


def run_script(driver: neo4j.Driver, folder: Path) -> None:
    with driver.session() as session:
        for statement in (folder / SCRIPT).read_text(encoding="utf-8").split(";\n"):
            if statement.strip():
                session.run(statement).consume()


def test_the_script_loads_everything_as_our_store_writes_it(
    store: MemoryStore, tmp_path: Path, neo4j_new: neo4j.Driver, neo4j_uri: str, neo4j_auth: Any
) -> None:
    from graphret.stores.neo4j import Neo4jStore

    folder = tmp_path / "csv with 'quote'"
    done = write_cypher_csv(store, folder, base_url=f"{folder.as_uri()}/")
    assert (done.nodes, done.edges) == store.count()
    assert sorted(done.files) == sorted(folder.iterdir())
    run_script(neo4j_new, folder)
    with Neo4jStore(neo4j_uri, auth=neo4j_auth) as there:
        assert contents(there) == contents(store)
        for found, node in zip(*(contents(one)[0] for one in (there, store)), strict=True):
            assert [*map(type, found.properties.values())] == [type(node.properties[name]) for name in found.properties]


def test_a_property_of_several_types_keeps_each_value(tmp_path: Path, neo4j_new: neo4j.Driver) -> None:
    values: list[Any] = [1, 1.5, "one", True, ["a"], [1], [], "", None]
    nodes = [Node(f"n{i}", ("A",), "", "", {"p": value, "p_string": i}) for i, value in enumerate(values)]
    write_cypher_csv(MemoryStore.of(nodes), tmp_path / "csv", base_url=f"{(tmp_path / 'csv').as_uri()}/")
    run_script(neo4j_new, tmp_path / "csv")
    rows = neo4j_new.execute_query("MATCH (n) RETURN n.p AS p, n.p_string AS q ORDER BY n.id").records
    assert [(row["p"], row["q"]) for row in rows] == list(zip(values, range(len(values)), strict=True))
    assert [type(row["p"]) for row in rows] == [type(value) for value in values]


def test_control_characters_of_the_graph_are_not_taken_as_ours(tmp_path: Path, neo4j_new: neo4j.Driver) -> None:
    text = "\x1a\\\x1f\\n"
    node = Node("a\\b", ("A",), text, "", {"list": [text, "\x1e"]})
    store = MemoryStore.of([node], [Edge("a\\b", "R", "a\\b")])
    write_cypher_csv(store, tmp_path / "csv", base_url=f"{(tmp_path / 'csv').as_uri()}/")
    run_script(neo4j_new, tmp_path / "csv")
    (row,) = neo4j_new.execute_query("MATCH (n)-[:R]->(n) RETURN n").records
    assert dict(row["n"]) == {"id": "a\\b", "name": text, "list": [text, "\x1e"]}
    every = MemoryStore.of([Node("a", name="\x1a\x1b\x1c\x1d\x1e")])
    with pytest.raises(InvalidInput, match="control characters"):
        write_cypher_csv(every, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_loading_twice_is_refused_by_the_constraint(tmp_path: Path, neo4j_new: neo4j.Driver) -> None:
    from neo4j.exceptions import Neo4jError

    nodes, edges = random_graph(1)
    folder = tmp_path / "csv"
    write_cypher_csv(MemoryStore.of(nodes, edges), folder, base_url=f"{folder.as_uri()}/")
    run_script(neo4j_new, folder)
    with pytest.raises(Neo4jError):
        run_script(neo4j_new, folder)
    counted = neo4j_new.execute_query(
        "MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN count(DISTINCT n) AS n, count(r) AS m"
    )
    assert tuple(counted.records[0].values()) == (len(nodes), len(edges))


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    store = MemoryStore.of(NODES, EDGES)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="holds other files"):
        write_cypher_csv(store, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    write_cypher_csv(MemoryStore.of([Node("n", ("A",)), Node("m", ("B",))]), tmp_path / "out")
    write_cypher_csv(MemoryStore.of([Node("n", ("A",))]), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["load.cypher", "nodes-001.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "out"]


# All


def test_a_view_is_written_without_the_rest(tmp_path: Path) -> None:
    view = MemoryStore.of(NODES, EDGES).view({"label": "Person"})
    for format, out in (("parquet", "p"), ("cypher-csv", "c"), ("graphml", "g.xml")):
        done = export_graph(view, tmp_path / out, format)
        assert (done.nodes, done.edges) == (2, 1)
        assert not any(b"Analytical" in file.read_bytes() for file in done.files)


def test_an_unknown_format_is_refused(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no format 'gexf' to write; known are parquet, cypher-csv, graphml"):
        export_graph(store, tmp_path / "x", "gexf")


def test_an_empty_graph_can_be_written(tmp_path: Path) -> None:
    for format, out in (("parquet", "p"), ("cypher-csv", "c"), ("graphml", "g.xml")):
        done = export_graph(MemoryStore(), tmp_path / out, format)
        assert (done.nodes, done.edges) == (0, 0)
    assert len(nx.read_graphml(tmp_path / "g.xml")) == 0


def test_kinds_of_values() -> None:
    assert [kind_of(VALUES[name]) for name in ("text", "integer", "float", "true", "texts", "no items")] == [
        *("string", "integer", "float", "boolean", "list of string", "list of string"),
    ]
    assert [kind_of(value) for value in (None, {}, [[1]], [1, "a"], [None], 2**63)] == [None, *["json"] * 5]
    kinds = Kinds()
    kinds.observe([{"a": 1, "b": 1, "c": 1, "d": None}, {"a": 0.5, "b": "x", "c": 2}])
    assert {name: kinds.single(name) for name in kinds} == {"a": "float", "b": "string", "c": "integer"}


def test_a_store_is_no_place_to_import_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"to: .* not a MemoryStore; .*copy"):
        import_graph(KB, MemoryStore())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", ["graphml", "cypher-csv", "parquet"])
def test_what_no_format_can_hold_is_named(tmp_path: Path, format: str) -> None:
    """What something else keeps in memory may hold NaN."""
    from llama_index.core.graph_stores import EntityNode, SimplePropertyGraphStore

    from llama_index_graphret import from_property_graph_store

    others = SimplePropertyGraphStore()
    others.upsert_nodes([EntityNode(name="a", label="P", properties={"v": math.nan})])
    with pytest.raises(InvalidInput, match="node 'a'"):
        export_graph(from_property_graph_store(others), tmp_path / "out", format)
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


@pytest.mark.parametrize("format", ["graphml", "cypher-csv", "parquet"])
def test_a_number_that_is_none_is_not_written(tmp_path: Path, neo4j_empty: neo4j.Driver, format: str) -> None:
    """A database that something else wrote may hold NaN, and infinite numbers."""
    from graphret.stores import Neo4jStore

    neo4j_empty.execute_query("CREATE (:P {id: 'a', v: 0.0 / 0.0, w: 1 / 0.0})")
    done = export_graph(Neo4jStore.from_driver(neo4j_empty, id_property="id"), tmp_path / "out", format)
    assert done.nodes == 1
    if format == "parquet":
        (node,) = read_parquet(tmp_path / "out").get(["a"])
        assert node is not None
        assert node.properties == {"w": "Infinity"}
    else:
        written = "".join(p.read_text() for p in (tmp_path / "out", *tmp_path.rglob("*.csv")) if p.is_file())
        assert "Infinity" in written
        assert "nan" not in written.lower()

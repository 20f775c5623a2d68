"""Node and edge tables: columns by name or by option, types guessed so that nothing is lost, every refusal placed."""

from __future__ import annotations

import datetime
import decimal
import json
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest
from pyarrow import parquet

from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs import Columns, GraphTables, read_tables
from graphret.testing.graphs import all_nodes
from graphret.types import Edge, Node

NODES = """id,labels,name,text,born,zip
ada,Person;Author,Ada Lovelace,"wrote, well
and early",1815,01234
eng,Machine,Analytical Engine,,,
"""
EDGES = """source,relation,target,weight,year
ada,WROTE_ON,eng,0.5,1843
eng,IS_OF,ada,,
"""
EXPECTED = (
    [
        Node("ada", ("Person", "Author"), "Ada Lovelace", "wrote, well\nand early", {"born": 1815, "zip": "01234"}),
        Node("eng", ("Machine",), "Analytical Engine"),
    ],
    [Edge("ada", "WROTE_ON", "eng", 0.5, {"year": 1843}), Edge("eng", "IS_OF", "ada")],
)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def objects(tables: GraphTables) -> tuple[list[Node], list[Edge]]:
    store = tables.store()
    return all_nodes(store), [e for block in store.edges() for e in block]


@pytest.mark.parametrize("form", ["bom and crlf", "tabs", "semicolons"])
def test_delimited_files(tmp_path: Path, form: str) -> None:
    delimiter = {"tabs": "\t", "semicolons": ";"}.get(form, ",")
    suffix = "tsv" if form == "tabs" else "csv"
    for name, content in (("edges", EDGES), ("nodes", NODES)):
        text = content.replace("Person;Author", '"Person;Author"').replace(",", delimiter)
        text = text.replace(f"wrote{delimiter}", "wrote,")
        write(tmp_path, f"{name}.{suffix}", "\ufeff" + text.replace("\n", "\r\n") if "bom" in form else text)
    columns = Columns(delimiter=";" if form == "semicolons" else None)
    nodes, edges = objects(read_tables(tmp_path, columns))
    assert [node.text.replace("\r", "") for node in nodes] == [node.text for node in EXPECTED[0]]
    assert [(node.id, node.labels, node.name, node.properties) for node in nodes] == [
        (node.id, node.labels, node.name, node.properties) for node in EXPECTED[0]
    ]
    assert edges == EXPECTED[1]


def test_json_lines_keep_their_types(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"id": 7, "labels": ["A", "B"], "name": "seven", "properties": {"deep": {"x": [1, None]}}, "tags": ["a"]},
        {"id": "x", "zip": "01234", "gone": None, "score": 0.5, "ok": True, "on": "2001-01-01", "tags": "one"},
    ]
    nodes = write(tmp_path, "nodes.jsonl", "\n\n".join(map(json.dumps, records)))
    edges = write(tmp_path, "edges.jsonl", '{"source": 7, "target": "x", "relation": "R", "properties": {"n": 1}}')
    found = objects(read_tables([nodes, edges]))
    assert found == (
        [
            Node("7", ("A", "B"), "seven", "", {"tags": ["a"], "deep": {"x": [1, None]}}),
            Node("x", ("Node",), "", "", {"zip": "01234", "score": 0.5, "ok": True, "on": "2001-01-01", "tags": "one"}),
        ],
        [Edge("7", "R", "x", 1.0, {"n": 1})],
    )
    assert [type(v) for v in found[0][1].properties.values()] == [str, float, bool, str, str]


def test_parquet_keeps_types_and_the_published_layout_is_read(tmp_path: Path) -> None:
    nodes = pa.table(
        {
            "id": [1, 2],
            "name": ["Ada", None],
            "type": pa.array(["Person", "Place"]).dictionary_encode(),
            "properties": ['{"born": 1815, "deep": {"a": 1}}', None],
            "when": [datetime.datetime(1843, 8, 1), None],
            "price": [decimal.Decimal("1.50"), decimal.Decimal("2")],
            "share": [0.5, float("nan")],
            "tags": [["a", "b"], []],
        }
    )
    edges = pa.table({"from": [1], "to": [2], "type": ["BORN_IN"], "properties": ["{}"], "weight": [2]})
    parquet.write_table(nodes, tmp_path / "nodes.parquet")
    parquet.write_table(edges, tmp_path / "edges.parquet")
    own = {"when": "1843-08-01T00:00:00", "price": 1.5, "share": 0.5, "tags": ["a", "b"]}
    assert objects(read_tables(tmp_path)) == (
        [
            Node("1", ("Person",), "Ada", "", own | {"born": 1815, "deep": {"a": 1}}),
            Node("2", ("Place",), "", "", {"price": 2, "tags": []}),
        ],
        [Edge("1", "BORN_IN", "2", 2.0)],
    )
    parquet.write_table(pa.table({"id": ["a", "b", "a"]}), tmp_path / "nodes.parquet")
    with pytest.raises(InvalidInput, match=r"nodes.parquet, row 3: the id 'a' comes twice"):
        read_tables(tmp_path / "nodes.parquet")


def test_graphml_of_networkx_is_read(tmp_path: Path) -> None:
    graph = nx.MultiDiGraph()
    graph.add_node("a", type="Film", name="Dawn", year=1999)
    graph.add_node("b", name="Ann")
    graph.add_edge("b", "a", relation="MADE", weight=0.5, role="all")
    graph.add_edge("b", "a", relation="LIKED")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    assert objects(read_tables(tmp_path / "g.graphml")) == (
        [Node("a", ("Film",), "Dawn", "", {"year": 1999}), Node("b", ("Node",), "Ann")],
        [Edge("b", "LIKED", "a"), Edge("b", "MADE", "a", 0.5, {"role": "all"})],
    )


def test_one_relation_for_all_and_nodes_made_of_ends(tmp_path: Path) -> None:
    edges = write(tmp_path, "edges.csv", "from,to\na,b\nb,c\n")
    found = objects(read_tables(edges, Columns(default_relation="LINKS"), make_nodes=True))
    assert found == ([Node(i, ("Node",), i) for i in "abc"], [Edge("a", "LINKS", "b"), Edge("b", "LINKS", "c")])
    with pytest.raises(InvalidInput, match="--make-nodes"):
        read_tables(edges, Columns(default_relation="LINKS"))
    with pytest.raises(InvalidInput, match=r"no column holds the relation.*--relation"):
        read_tables(edges, make_nodes=True)


@pytest.mark.parametrize(
    ("name", "content", "place", "said"),
    [
        ("n.csv", "id,name\na,A\na,B\n", "row 3", "the id 'a' comes twice"),
        ("n.csv", "id,name\na,A\nb,B,x\n", "Row #3", "Expected 2 columns, got 3"),
        ("n.csv", "id,id\na,b\n", "line 1", "two have the same: id, id"),
        ("n.csv", None, "", "no such file"),
        ("n.xml", "<a/>", "", "unknown type of table '.xml'"),
        ("n.jsonl", '{"id": "a"}\n{"id": "b", "x": NaN}\n', "line 2", "not JSON"),
        ("n.jsonl", '{"id": "a"}\n\n{"id": 1.5}\n', "line 3", "the id must be a string or a whole number, not 1.5"),
        ("n.parquet", b"PAR1 nonsense", "", "cannot be read"),
        ("n.graphml", "<graphml>", "", "is no GraphML"),
        ("e.csv", "source,relation,target\na,R,b\na,R,nobody\n", "row 3", "dangles: there is no node 'nobody'"),
        ("e.csv", "source,relation,target\n,R,b\n", "row 2", "the source is empty"),
        ("e.csv", "source,relation,target,weight\na,R,b,heavy\n", "row 2", "the weight must be a number, not 'heavy'"),
    ],
)
def test_what_is_malformed_is_named_by_its_line(
    tmp_path: Path, name: str, content: str | bytes | None, place: str, said: str
) -> None:
    path = tmp_path / name if content is None else write(tmp_path, name, content)
    others = [write(tmp_path, "others.csv", "id\na\nb\n")] if name.startswith("e.") else []
    with pytest.raises(InvalidInput) as caught:
        read_tables([*others, path])
    message = str(caught.value)
    assert message.startswith(str(path))
    assert place in message
    assert said in message


def test_a_column_that_is_not_there_and_a_missing_package_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="--id-column: the source has no column 'key'; it has: id, name"):
        read_tables(write(tmp_path, "n.csv", "id,name\na,A\n"), Columns(id="key"))
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingDependency, match=r"networkx.*graphret\[import\]"):
        read_tables(write(tmp_path, "nodes.graphml", "<graphml/>"))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2", "", "0"], int),
        (["9" * 16], str),
        (["1", "2.5"], float),
        (["1.0", "-0.25", "1.5e-7"], float),
        (["true", "False", "TRUE"], bool),
        *((wrong, str) for wrong in (["true", "1"], ["007"], ["+1"], ["1e5"], ["nan"], ["1,000"])),
    ],
)
def test_types_are_guessed_so_that_nothing_is_lost(tmp_path: Path, values: list[str], kind: type) -> None:
    rows = "".join(f'n{i},"{value}"\n' for i, value in enumerate(values))
    nodes, _ = objects(read_tables(write(tmp_path, "n.csv", f"id,v\n{rows}")))
    assert [type(node.properties["v"]) for node in nodes if node.properties] == [kind] * len([v for v in values if v])
    if kind in (int, str):
        assert [str(node.properties.get("v", "")) for node in nodes] == values

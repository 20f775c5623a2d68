"""Node and edge tables: columns by name or by option, types guessed so that nothing is lost, every refusal placed."""

from __future__ import annotations

import datetime
import decimal
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs import import_graph
from graphret.graphs.columns import Columns
from graphret.graphs.guessing import READERS, guess, read_value
from graphret.graphs.opening import opened
from graphret.graphs.tables import GraphTables
from graphret.graphs.tabular import read_tables
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


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def objects(tables: GraphTables) -> tuple[list[Node], list[Edge]]:
    return (
        [node for block in tables.nodes(3) for node in block],
        [edge for block in tables.edges(3) for edge in block],
    )


EXPECTED = (
    [
        Node("ada", ("Person", "Author"), "Ada Lovelace", "wrote, well\nand early", {"born": 1815, "zip": "01234"}),
        Node("eng", ("Machine",), "Analytical Engine"),
    ],
    [Edge("ada", "WROTE_ON", "eng", 0.5, {"year": 1843}), Edge("eng", "IS_OF", "ada")],
)


def test_csv_with_the_usual_columns(tmp_path: Path) -> None:
    write(tmp_path, "nodes.csv", NODES)
    write(tmp_path, "edges.csv", "\ufeff" + EDGES.replace("\n", "\r\n"))
    found = objects(read_tables(tmp_path))
    assert found == EXPECTED
    assert [node.properties for node in found[0]] == [node.properties for node in EXPECTED[0]]
    assert [edge.properties for edge in found[1]] == [edge.properties for edge in EXPECTED[1]]


def test_the_order_of_the_files_does_not_matter(tmp_path: Path) -> None:
    nodes, edges = write(tmp_path, "n.csv", NODES), write(tmp_path, "e.csv", EDGES)
    assert objects(read_tables([edges, nodes])) == EXPECTED


@pytest.mark.parametrize("to", ["folder", "file.lbug"])
def test_a_table_without_rows_is_an_empty_graph(tmp_path: Path, to: str) -> None:
    (tmp_path / "n.csv").write_text("id,name\n")
    (tmp_path / "e.csv").write_text("source,relation,target\n")
    done = import_graph([tmp_path / "n.csv", tmp_path / "e.csv"], tmp_path / to)
    assert (done.nodes, done.edges) == (0, 0)
    with opened(str(tmp_path / to)) as store:
        assert store.count() == (0, 0)
    with pytest.raises(InvalidInput, match="no table of nodes"):
        import_graph(tmp_path / "e.csv", tmp_path / to)


def test_tabs_and_other_delimiters(tmp_path: Path) -> None:
    nodes = write(tmp_path, "n.tsv", "id\tname\n1\tAda, Countess\n")
    assert objects(read_tables(nodes))[0] == [Node("1", ("Node",), "Ada, Countess")]
    semicolons = write(tmp_path, "n.csv", "id;name\n1;Ada, Countess\n")
    assert objects(read_tables(semicolons, Columns(delimiter=";")))[0] == [Node("1", ("Node",), "Ada, Countess")]


def test_json_lines_keep_their_types(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"id": 7, "labels": ["A", "B"], "name": "seven", "properties": {"deep": {"x": [1, None]}}, "tags": ["a"]},
        {"id": "x", "zip": "01234", "gone": None, "score": 0.5, "ok": True},
    ]
    nodes = write(tmp_path, "nodes.jsonl", "\n\n".join(map(json.dumps, records)))
    edges = write(tmp_path, "edges.jsonl", '{"source": 7, "target": "x", "relation": "R", "properties": {"n": 1}}')
    found = objects(read_tables([nodes, edges]))
    assert found[0] == [
        Node("7", ("A", "B"), "seven", "", {"tags": ["a"], "deep": {"x": [1, None]}}),
        Node("x", ("Node",), "", "", {"zip": "01234", "score": 0.5, "ok": True}),
    ]
    assert [type(v) for v in found[0][1].properties.values()] == [str, float, bool]
    assert found[1] == [Edge("7", "R", "x", 1.0, {"n": 1})]


def test_parquet_keeps_types_and_the_published_layout_is_read(tmp_path: Path) -> None:
    nodes = pa.table(
        {
            "id": [1, 2],
            "name": ["Ada", None],
            "type": ["Person", "Place"],
            "properties": ['{"born": 1815, "deep": {"a": 1}}', None],
            "when": [datetime.datetime(1843, 8, 1), None],
            "price": [decimal.Decimal("1.50"), decimal.Decimal("2")],
            "share": [0.5, float("nan")],
            "tags": [["a", "b"], []],
            "about": [{"x": 1}, None],
        }
    )
    edges = pa.table({"from": [1], "to": [2], "type": ["BORN_IN"], "properties": ["{}"]})
    parquet.write_table(nodes, tmp_path / "nodes.parquet")
    parquet.write_table(edges, tmp_path / "edges.parquet")
    found = objects(read_tables(tmp_path))
    assert found[1] == [Edge("1", "BORN_IN", "2")]
    ada, place = found[0]
    assert (ada.labels, ada.name, place.labels, place.name) == (("Person",), "Ada", ("Place",), "")
    assert ada.properties == {
        "when": "1843-08-01T00:00:00",
        "price": 1.5,
        "share": 0.5,
        "tags": ["a", "b"],
        "about": {"x": 1},
        "born": 1815,
        "deep": {"a": 1},
    }
    assert place.properties == {"price": 2, "tags": []}


def test_columns_are_mapped_by_option(tmp_path: Path) -> None:
    films = write(tmp_path, "films.csv", "key,kind,title,plot,id\nf1,Film,Dawn,A film.,9\n")
    people = write(tmp_path, "people.csv", "key,title\np1,Ann\n")
    acted = write(tmp_path, "acted.csv", "person,film,how,much,source\np1,f1,DIRECTED,2.5,imdb\n")
    columns = Columns(
        id="key",
        label="kind",
        name="title",
        text="plot",
        source="person",
        target="film",
        relation="how",
        weight="much",
        default_label="Person",
    )
    assert objects(read_tables([films, people, acted], columns)) == (
        [Node("f1", ("Film",), "Dawn", "A film.", {"id": 9}), Node("p1", ("Person",), "Ann")],
        [Edge("p1", "DIRECTED", "f1", 2.5, {"source": "imdb"})],
    )


def test_one_relation_for_all_and_nodes_made_of_ends(tmp_path: Path) -> None:
    edges = write(tmp_path, "edges.csv", "from,to\na,b\nb,c\n")
    found = objects(read_tables(edges, Columns(default_relation="LINKS"), make_nodes=True))
    assert found == ([Node(i, ("Node",), i) for i in "abc"], [Edge("a", "LINKS", "b"), Edge("b", "LINKS", "c")])
    with pytest.raises(InvalidInput, match="--make-nodes"):
        read_tables(edges, Columns(default_relation="LINKS"))
    with pytest.raises(InvalidInput, match=r"no column holds the relation.*--relation"):
        read_tables(edges, make_nodes=True)


def test_edges_of_one_identity_are_one_and_counted(tmp_path: Path) -> None:
    nodes = write(tmp_path, "n.csv", "id\na\nb\n")
    lines = "source,relation,target,source_row,year\na,R,b,,1\na,R,b,,2\na,R,b,1,3\na,S,b,,4\nb,R,a,,5\n"
    tables = read_tables([nodes, write(tmp_path, "e.csv", lines)])
    assert tables.merged == 1
    assert objects(tables)[1] == [
        Edge("a", "R", "b", 1.0, {"year": 2}),
        Edge("a", "R", "b", 1.0, {"source_row": 1, "year": 3}),
        Edge("a", "S", "b", 1.0, {"year": 4}),
        Edge("b", "R", "a", 1.0, {"year": 5}),
    ]


@pytest.mark.parametrize(
    ("name", "content", "line", "said"),
    [
        ("n.csv", "id,name\na,A\na,B\n", 3, "the id 'a' comes twice, first in FOLDER/n.csv, line 2"),
        ("n.csv", 'id,name\na,"two\nlines"\nb,B\na,C\n', 5, "the id 'a' comes twice"),
        ("n.csv", "id,name\na,A\n,B\n", 3, "the id is empty"),
        ("n.csv", "id,name\na,A,x\n", 2, "3 columns, and 2 in the header"),
        ("n.csv", "id,name\n\na\n", 3, "1 columns, and 2 in the header"),
        ("n.csv", 'id,name\na,"A\n', 2, "not CSV"),
        ("n.csv", b"id,name\na,A\nb,\xe9\n", 3, "not UTF-8"),
        ("n.csv", "id,id\na,b\n", 1, "a column comes twice in the header: 'id'"),
        ("n.csv", "id,,x\na,b,c\n", 1, "a column has no name: number 2"),
        ("n.csv", "id,labels\na,A;;B\n", 2, "empty label"),
        ("n.csv", "id,properties\na,[1]\n", 2, "a JSON object is expected, not list"),
        ("n.csv", "id,properties\na,{\n", 2, "not JSON"),
        ("n.csv", 'id,x,properties\na,1,"{""x"": 2}"\n', 2, "the property 'x' is also a column"),
        ("n.jsonl", '{"id": "a"}\n[1]\n', 2, "a JSON object is expected, not list"),
        ("n.jsonl", '{"id": "a"}\n{"id": "b", "x": NaN}\n', 2, "NaN is not JSON"),
        ("n.jsonl", '{"id": "a"}\n{"id": "b", "id": "c"}\n', 2, "the name 'id' comes twice in one object"),
        ("n.jsonl", '{"id": "a", "x": [{"y": 1, "y": 1}]}\n', 1, "the name 'y' comes twice"),
        ("n.csv", 'id,properties\na,"{""x"": 1, ""x"": 2}"\n', 2, "the name 'x' comes twice"),
        ("n.jsonl", '{"id": "a"}\n\n{"id": 1.5}\n', 3, "the id must be a string or a whole number, not 1.5"),
        ("n.jsonl", '{"id": "a"}\n{"name": "b"}\n', 2, "the id is empty"),
        ("n.jsonl", '{"id": "a", "labels": [1]}\n', 1, "labels are a string or a list of strings"),
        ("n.jsonl", '{"id": "a", "name": ["b"]}\n', 1, "the name must be a string"),
        ("e.csv", "source,relation,target\na,R,b\na,R,nobody\n", 3, "dangles: there is no node 'nobody'"),
        ("e.csv", "source,relation,target\nnobody,R,b\n", 2, "dangles: there is no node 'nobody'"),
        ("e.csv", "source,relation,target\na,,b\n", 2, "has no relation"),
        ("e.csv", "source,relation,target\n,R,b\n", 2, "the source is empty"),
        (
            "e.jsonl",
            '{"source": "a", "relation": "R", "target": "b"}\n\n{"id": "c", "name": "C", "text": ""}\n',
            3,
            "an edge is expected, with 'source' and 'target', as elsewhere in this file, but there are only 'id', "
            "'name', 'text'; nodes and edges go in files of their own (`graphret build` reads them from one)",
        ),
        ("e.csv", "source,relation,target,x\n,,,1\n", 2, "an edge is expected, with 'source' and 'target'"),
        ("e.csv", "source,relation,target\n,,\n", 2, "but there is nothing"),
        ("e.csv", "source,relation,target,weight\na,R,b,heavy\n", 2, "'heavy' is not of the type float"),
        ("e.csv", "source,relation,target,weight\na,R,b,inf\n", 2, "infinite"),
        ("e.jsonl", '{"source": "a", "target": "b", "type": "R", "weight": "1"}', 1, "the weight must be a number"),
        ("e.jsonl", '{"source": "a", "target": "b", "type": "R", "source_row": "1"}', 1, "'source_row' is the number"),
    ],
)
def test_what_is_malformed_is_named_by_its_line(
    tmp_path: Path, name: str, content: str | bytes, line: int, said: str
) -> None:
    path = write(tmp_path, name, content)
    others = [write(tmp_path, "others.csv", "id\na\nb\n")] if name.startswith("e.") else []
    with pytest.raises(InvalidInput) as caught:
        read_tables([*others, path])
    assert str(caught.value).startswith(f"{path}, line {line}")
    assert said.replace("FOLDER", str(tmp_path)) in str(caught.value)


def test_a_row_of_parquet_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    parquet.write_table(pa.table({"id": ["a", "b", "a"]}), path)
    with pytest.raises(InvalidInput, match=r"nodes.parquet, row 3: the id 'a' comes twice, first in .*row 1"):
        read_tables(path)
    parquet.write_table(pa.table({"id": ["a", "b"], "raw": [None, b"x"]}), path)
    with pytest.raises(InvalidInput, match=r"nodes.parquet, row 2, column 'raw'.*bytes"):
        read_tables(path)
    path.write_bytes(b"PAR1 nonsense")
    with pytest.raises(InvalidInput, match=r"nodes.parquet: is no Parquet file"):
        read_tables(path)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (Columns(id="key"), "--id-column: no table has a column 'key'; the columns are 'id', 'name'"),
        (Columns(text="plot"), "--text-column: no table has a column 'plot'"),
        (
            Columns(types={"id": "string", "nope": "integer"}),
            "--type: no table has a column 'nope'; the columns are 'id'",
        ),
        (Columns(label="name", name="name"), "the column 'name' cannot be two things"),
    ],
)
def test_columns_that_are_not_there_are_refused(tmp_path: Path, columns: Columns, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_tables(write(tmp_path, "n.csv", "id,name\na,A\n"), columns)


def test_an_empty_name_is_refused_where_the_column_was_named(tmp_path: Path) -> None:
    path = write(tmp_path, "n.csv", "id,name\na,A\nb,\n")
    assert [node.name for node in objects(read_tables(path))[0]] == ["A", ""]
    with pytest.raises(InvalidInput, match=r"n.csv, line 3: the name of 'b' is empty"):
        read_tables(path, Columns(name="name"))


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    for name, content, said in (
        ("a.csv", "", "is empty"),
        ("a.jsonl", "\n", "is empty"),
        ("a.xml", "<a/>", "unknown type of table '.xml'"),
        ("b.csv", "name\nx\n", "no column holds the id.*--id-column"),
    ):
        with pytest.raises(InvalidInput, match=said):
            read_tables(write(tmp_path, name, content))
    with pytest.raises(InvalidInput, match="no such file"):
        read_tables(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="no such file"):
        read_tables(tmp_path / "none.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="holds no table"):
        read_tables(tmp_path / "empty")


def test_without_pyarrow_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match=r"pyarrow.*graphret\[import\]"):
        read_tables(tmp_path / "nodes.parquet")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2", "", "0"], "integer"),
        ([str(2**63 - 1), str(-(2**63))], "integer"),
        ([str(2**63)], "string"),
        (["1", "2.5"], "float"),
        (["1.0", "-0.25", "1.5e-7"], "float"),
        ([str(2**53 + 1), "0.5"], "string"),
        (["true", "False", "TRUE"], "boolean"),
        (["true", "1"], "string"),
        (["007"], "string"),
        (["+1"], "string"),
        (["-0"], "string"),
        (["1e5"], "string"),
        (["nan", "inf"], "string"),
        ([" 1"], "string"),
        (["1,000"], "string"),
        (["1_000"], "string"),
        (["١"], "string"),
        (["1.", ".5"], "string"),
        (["1", "n/a"], "string"),
        (["", ""], "string"),
    ],
)
def test_types_are_guessed_so_that_nothing_is_lost(values: list[str], kind: str) -> None:
    assert guess(values) == kind


@given(st.lists(st.text(max_size=8) | st.integers().map(str) | st.floats(allow_nan=False).map(repr), max_size=6))
def test_what_is_guessed_can_be_read_and_integers_written_again(values: list[str]) -> None:
    kind = guess(values)
    read = [read_value(value, kind, "here") for value in values]
    if kind == "integer":
        assert [str(value) for value, text in zip(read, values, strict=True) if text] == [v for v in values if v]
    if kind == "string":
        assert read == [value or None for value in values]


def test_a_type_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path, "n.csv", 'id,zip,tags\na,1234,"[""x"", 1]"\n')
    columns = Columns(types={"zip": "string", "tags": "json"})
    assert objects(read_tables(path, columns))[0][0].properties == {"zip": "1234", "tags": ["x", 1]}
    with pytest.raises(InvalidInput, match=r"line 2, column 'tags': .* is not of the type integer"):
        read_tables(path, Columns(types={"tags": "integer"}))
    twice = write(tmp_path, "twice.csv", 'id,tags\na,"{""x"": 1, ""x"": 2}"\n')
    with pytest.raises(InvalidInput, match=r"line 2, column 'tags': .* type json \(the name 'x' comes twice"):
        read_tables(twice, Columns(types={"tags": "json"}))
    with pytest.raises(InvalidInput, match="type of column 'zip'"):
        Columns(types={"zip": "text"})
    assert set(READERS) == {"string", "integer", "float", "boolean", "json"}

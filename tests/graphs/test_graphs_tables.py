"""Node and edge tables, and graphs that go from every source into every store and out
again.
"""

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
from graphret.graphs import (
    Columns,
    GraphTables,
    ReadOptions,
    export_graph,
    import_graph,
    read_metaqa,
    read_tables,
)
from graphret.graphs.example import KB
from graphret.stores import MemoryStore, open_store
from graphret.testing.graphs import EDGES, HOSTILE, NODES, VALUES, all_edges, all_nodes
from graphret.types import Edge, Node

NODE_ROWS = """id,labels,name,text,born,zip
ada,Person;Author,Ada Lovelace,"wrote, well
and early",1815,01234
eng,Machine,Analytical Engine,,,
"""
EDGE_ROWS = """source,relation,target,weight,year
ada,WROTE_ON,eng,0.5,1843
eng,IS_OF,ada,,
"""
EXPECTED = (
    [
        Node(
            "ada",
            ("Person", "Author"),
            "Ada Lovelace",
            "wrote, well\nand early",
            {"born": 1815, "zip": "01234"},
        ),
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
    for name, content in (("edges", EDGE_ROWS), ("nodes", NODE_ROWS)):
        text = content.replace("Person;Author", '"Person;Author"').replace(
            ",", delimiter
        )
        text = text.replace(f"wrote{delimiter}", "wrote,")
        write(
            tmp_path,
            f"{name}.{suffix}",
            "\ufeff" + text.replace("\n", "\r\n") if "bom" in form else text,
        )
    columns = Columns(delimiter=";" if form == "semicolons" else None)
    nodes, edges = objects(read_tables(tmp_path, columns))
    assert [node.text.replace("\r", "") for node in nodes] == [
        node.text for node in EXPECTED[0]
    ]
    assert [(node.id, node.labels, node.name, node.properties) for node in nodes] == [
        (node.id, node.labels, node.name, node.properties) for node in EXPECTED[0]
    ]
    assert edges == EXPECTED[1]


def test_json_lines_keep_their_types(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {
            "id": 7,
            "labels": ["A", "B"],
            "name": "seven",
            "properties": {"deep": {"x": [1, None]}},
            "tags": ["a"],
        },
        {
            "id": "x",
            "zip": "01234",
            "gone": None,
            "score": 0.5,
            "ok": True,
            "on": "2001-01-01",
            "tags": "one",
        },
    ]
    nodes = write(tmp_path, "nodes.jsonl", "\n\n".join(map(json.dumps, records)))
    edges = write(
        tmp_path,
        "edges.jsonl",
        '{"source": 7, "target": "x", "relation": "R", "properties": {"n": 1}}',
    )
    read = objects(read_tables([nodes, edges]))
    assert read == (
        [
            Node(
                "7", ("A", "B"), "seven", "", {"tags": ["a"], "deep": {"x": [1, None]}}
            ),
            Node(
                "x",
                ("Node",),
                "",
                "",
                {
                    "zip": "01234",
                    "score": 0.5,
                    "ok": True,
                    "on": "2001-01-01",
                    "tags": "one",
                },
            ),
        ],
        [Edge("7", "R", "x", 1.0, {"n": 1})],
    )
    assert [type(v) for v in read[0][1].properties.values()] == [
        str,
        float,
        bool,
        str,
        str,
    ]


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
    edges = pa.table(
        {
            "from": [1],
            "to": [2],
            "type": ["BORN_IN"],
            "properties": ["{}"],
            "weight": [2],
        }
    )
    parquet.write_table(nodes, tmp_path / "nodes.parquet")
    parquet.write_table(edges, tmp_path / "edges.parquet")
    values = {
        "when": "1843-08-01T00:00:00",
        "price": 1.5,
        "share": 0.5,
        "tags": ["a", "b"],
    }
    assert objects(read_tables(tmp_path)) == (
        [
            Node(
                "1", ("Person",), "Ada", "", values | {"born": 1815, "deep": {"a": 1}}
            ),
            Node("2", ("Place",), "", "", {"price": 2, "tags": []}),
        ],
        [Edge("1", "BORN_IN", "2", 2.0)],
    )
    parquet.write_table(pa.table({"id": ["a", "b", "a"]}), tmp_path / "nodes.parquet")
    with pytest.raises(
        InvalidInput, match=r"nodes.parquet, row 3: the id 'a' comes twice"
    ):
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


APOC = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="name" for="node" attr.name="name"/><key id="labels" for="node" attr.name="labels"/>
<key id="label" for="edge" attr.name="label"/><key id="since" for="edge" attr.name="since"/>
<graph id="G" edgedefault="directed">
<node id="n0" labels=":Person:Actor"><data key="labels">:Person:Actor</data><data key="name">Ada</data></node>
<node id="n1" labels=":Film"><data key="labels">:Film</data><data key="name">Engine</data></node>
<edge id="e0" source="n0" target="n1" label="ACTED_IN"><data key="label">ACTED_IN</data><data key="since">1843</data></edge>
</graph></graphml>
"""
GEPHI = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key attr.name="label" attr.type="string" for="node" id="label"/>
<key attr.name="Edge Label" attr.type="string" for="edge" id="edgelabel"/>
<key attr.name="weight" attr.type="double" for="edge" id="weight"/>
<key attr.name="r" attr.type="int" for="node" id="r"/><key attr.name="g" attr.type="int" for="node" id="g"/>
<key attr.name="b" attr.type="int" for="node" id="b"/>
<graph edgedefault="directed">
<node id="0"><data key="label">Ada</data><data key="r">1</data><data key="g">2</data><data key="b">3</data></node>
<node id="1"><data key="label">Engine</data><data key="r">1</data><data key="g">2</data><data key="b">3</data></node>
<edge id="0" source="0" target="1"><data key="edgelabel">WROTE_ON</data><data key="weight">2.0</data></edge>
</graph></graphml>
"""


@pytest.mark.parametrize(
    ("content", "labels", "edge"),
    [
        (APOC, ("Person", "Actor"), ("ACTED_IN", 1.0)),
        (GEPHI, ("Node",), ("WROTE_ON", 2.0)),
    ],
    ids=["apoc", "gephi"],
)
def test_labels_in_the_graphml_of_others(
    tmp_path: Path, content: str, labels: tuple[str, ...], edge: tuple[str, float]
) -> None:
    nodes, edges = objects(read_tables(write(tmp_path, "g.graphml", content)))
    assert (nodes[0].name, nodes[0].labels) == ("Ada", labels)
    assert [(link.relation, link.weight) for link in edges] == [edge]


def test_microsoft_graphrag_names_the_ends_of_relations_by_title(
    tmp_path: Path,
) -> None:
    entities = [
        {
            "id": f"e{i}",
            "human_readable_id": i,
            "title": title,
            "type": kind,
            "description": f"{title} is known.",
            "text_unit_ids": ["t1"],
        }
        for i, (title, kind) in enumerate([("ADA", "PERSON"), ("ENGINE", "")])
    ]
    relation = {
        "id": "r0",
        "human_readable_id": 0,
        "source": "ADA",
        "target": "ENGINE",
        "description": "Ada wrote on the engine.",
        "weight": 9.0,
    }
    parquet.write_table(pa.Table.from_pylist(entities), tmp_path / "entities.parquet")
    parquet.write_table(pa.Table.from_pylist([relation]), tmp_path / "rel.parquet")
    nodes, [edge] = objects(read_tables(tmp_path))
    assert [(node.id, node.name, node.labels, node.text) for node in nodes] == [
        ("e0", "ADA", ("PERSON",), "ADA is known."),
        ("e1", "ENGINE", ("Node",), "ENGINE is known."),
    ]
    assert (edge.source, edge.relation, edge.target, edge.weight) == (
        "e0",
        "RELATED_TO",
        "e1",
        9.0,
    )
    assert edge.properties["description"] == "Ada wrote on the engine."
    columns = Columns(id="title", name="title", default_relation="KNOWS")
    nodes, [edge] = objects(read_tables(tmp_path, columns))
    assert [(node.id, node.name) for node in nodes] == [("ADA", "ADA"), ("ENGINE",) * 2]
    assert (edge.source, edge.relation) == ("ADA", "KNOWS")


def test_one_relation_for_all_and_nodes_made_of_ends(tmp_path: Path) -> None:
    edges = write(tmp_path, "edges.csv", "from,to\na,b\nb,c\n")
    read = objects(
        read_tables(edges, Columns(default_relation="LINKS"), make_nodes=True)
    )
    assert read == (
        [Node(i, ("Node",), i) for i in "abc"],
        [Edge("a", "LINKS", "b"), Edge("b", "LINKS", "c")],
    )
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
        (
            "n.jsonl",
            '{"id": "a"}\n\n{"id": 1.5}\n',
            "line 3",
            "id: expected a string or a whole number, got 1.5",
        ),
        ("n.parquet", b"PAR1 nonsense", "", "cannot be read"),
        ("n.graphml", "<graphml>", "", "expected GraphML"),
        (
            "e.csv",
            "source,relation,target\na,R,b\na,R,nobody\n",
            "row 3",
            "dangles: there is no node 'nobody'",
        ),
        ("e.csv", "source,relation,target\n,R,b\n", "row 2", "the source is empty"),
        (
            "e.csv",
            "source,relation,target,weight\na,R,b,heavy\n",
            "row 2",
            "weight: expected a number, got 'heavy'",
        ),
    ],
)
def test_what_is_malformed_is_named_by_its_line(
    tmp_path: Path, name: str, content: str | bytes | None, place: str, said: str
) -> None:
    path = tmp_path / name if content is None else write(tmp_path, name, content)
    valid_paths = (
        [write(tmp_path, "others.csv", "id\na\nb\n")] if name.startswith("e.") else []
    )
    with pytest.raises(InvalidInput) as caught:
        read_tables([*valid_paths, path])
    message = str(caught.value)
    assert message.startswith(str(path))
    assert place in message
    assert said in message


def test_a_column_that_is_not_there_and_a_missing_package_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        InvalidInput,
        match="--id-column: the source has no column 'key'; it has: id, name",
    ):
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
        *(
            (wrong, str)
            for wrong in (["true", "1"], ["007"], ["+1"], ["1e5"], ["nan"], ["1,000"])
        ),
    ],
)
def test_types_are_guessed_so_that_nothing_is_lost(
    tmp_path: Path, values: list[str], kind: type
) -> None:
    rows = "".join(f'n{i},"{value}"\n' for i, value in enumerate(values))
    nodes, _ = objects(read_tables(write(tmp_path, "n.csv", f"id,v\n{rows}")))
    assert [type(node.properties["v"]) for node in nodes if node.properties] == [
        kind
    ] * len([v for v in values if v])
    if kind in (int, str):
        assert [str(node.properties.get("v", "")) for node in nodes] == values


@pytest.mark.parametrize(
    "name", ["folder", "filled.lbug"]
)  # and Neo4j with the commands
def test_a_graph_goes_everywhere_and_comes_back_and_again(
    name: str, tmp_path: Path
) -> None:
    source, target = read_metaqa(KB).store(), tmp_path / name
    if name == "filled.lbug":
        MemoryStore.of([Node("c")]).save(tmp_path / "other")
        import_graph(tmp_path / "other", target)
    for _ in range(2):
        done = import_graph(KB, target)
        assert (done.format, done.nodes, done.edges, done.merged) == (
            "metaqa",
            398,
            549,
            0,
        )
        assert (done.labels["Movie"], done.relations["directed_by"]) == (44, 63)
    back = import_graph(target, tmp_path / "back", format="store")
    assert back.edges == 549
    copy = open_store(tmp_path / "back")
    copy.delete(["c"])
    assert (all_nodes(copy), all_edges(copy)) == (all_nodes(source), all_edges(source))


def test_what_a_database_refuses_is_named_and_maps_come_back(
    neo4j_address: str, tmp_path: Path
) -> None:
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
        "CREATE (f:Film {key: 'f1', title: 'Dawn', plot: 'A film.', year:"
        " 1999})<-[:MADE {role: 'all'}]-(p:Person:Author {key: 'p1', title: 'Ann'})"
        " CREATE (p)-[:MADE {role: 'some'}]->(f)"
    )
    options = ReadOptions(Columns(id="key", name="title", text="plot"))
    done = import_graph(neo4j_address, tmp_path / "films", options=options)
    assert (done.edges, done.merged) == (1, 1)
    copy = open_store(tmp_path / "films")
    film, person = all_nodes(copy)
    assert (film.id, film.name, film.text, film.properties["year"]) == (
        "f1",
        "Dawn",
        "A film.",
        1999,
    )
    assert (person.id, set(person.labels), person.name) == (
        "p1",
        {"Person", "Author"},
        "Ann",
    )
    assert [edge.identity for edge in all_edges(copy)] == [
        Edge("p1", "MADE", "f1").identity
    ]


ODD = [
    *(Node(f"hostile-{i}", ("Odd", name), name, name, {"value": name, "list": [name, "x"], name[:99]: i})
      for i, name in enumerate(HOSTILE)),
    *(Node(f"value-{i}", ("Value",), name, "", {name: VALUES[name]}) for i, name in enumerate(sorted(VALUES))),
]  # fmt: skip
ODD_EDGES = [
    *(
        Edge("ada", name, f"hostile-{i}", i / 8, {"value": name})
        for i, name in enumerate(HOSTILE)
    ),
    Edge("ada", "WROTE", "notes", 2.0, {"source_row": 1, "target_row": 0}),
]
XML = Node("xml", name="a\x00b", properties={"p": "\x1b", "name": 1})


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore.of(
        [*NODES, *ODD, XML, Node("no label", ())], [*EDGES, *ODD_EDGES]
    )


def test_parquet_comes_back(store: MemoryStore, tmp_path: Path) -> None:
    done = export_graph(store, tmp_path / "out", "parquet")
    assert (done.nodes, done.edges) == store.count()
    assert [file.name for file in done.files] == ["nodes.parquet", "edges.parquet"]
    import_graph(tmp_path / "out", tmp_path / "graph")
    copy = open_store(tmp_path / "graph")
    assert (all_nodes(copy), all_edges(copy)) == (all_nodes(store), all_edges(store))


def test_graphml_is_what_networkx_reads(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    done = export_graph(store, path, "graphml")
    assert (done.files, done.nodes, done.edges) == ([path], *store.count())
    graph = nx.read_graphml(path)
    assert graph.is_directed()
    nodes, edges = all_nodes(store), all_edges(store)
    assert set(graph.nodes) == {node.id for node in nodes}
    for node in nodes:
        data = graph.nodes[node.id]
        assert (data.get("label", ""), json.loads(data["labels"])) == (
            node.label,
            list(node.labels),
        )
        assert (data.get("name", ""), data.get("text", "")) == (
            node.name.replace("\x00", "\ufffd"),
            node.text,
        )
        if node.id.startswith("value-") and (
            value := node.properties[node.name]
        ) not in (None, []):
            written = data.get(f"properties.{node.name}", data.get(node.name))
            if isinstance(value, str):
                value = value.replace("\r\n", "\n")  # as XML reads line ends
            assert (
                json.loads(written) if isinstance(value, list | dict) else written
            ) == value
    assert (graph.nodes["xml"]["properties.name"], graph.nodes["xml"]["p"]) == (
        1,
        "\ufffd",
    )
    triples = sorted(
        (source, target, data["relation"], data["weight"])
        for source, target, data in graph.edges(data=True)
    )
    assert triples == sorted(
        (edge.source, edge.target, edge.relation, edge.weight) for edge in edges
    )
    assert {node.id for node in all_nodes(read_tables(path).store())} == {
        node.id for node in nodes
    }


def test_a_view_is_written_without_the_rest_and_other_files_stay(
    tmp_path: Path,
) -> None:
    view = MemoryStore.of(NODES, EDGES).view({"label": "Person"})
    for format, out in (("parquet", "p"), ("graphml", "g.xml")):
        export_graph(
            MemoryStore.of(NODES, EDGES), tmp_path / out, format
        )  # it is replaced
        done = export_graph(view, tmp_path / out, format)
        assert (done.nodes, done.edges) == (2, 1)
        assert not any(b"Analytical" in file.read_bytes() for file in done.files)
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(InvalidInput, match="cannot be written"):
            export_graph(view, tmp_path / "notes.txt" / out, format)
    assert {path.name for path in tmp_path.iterdir()} == {"p", "g.xml", "notes.txt"}

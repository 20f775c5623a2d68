"""What a Ladybug database holds of names and values, exactly or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphret.cypher import check, codes, run_checked
from graphret.errors import InvalidInput, QueryRefused
from graphret.search import BM25Index
from graphret.stores.ladybug import LadybugStore, loader
from graphret.stores.memory import MemoryStore
from graphret.testing.graphs import all_edges, all_nodes, edge_key, random_graph
from graphret.types import Edge, Node


@pytest.fixture
def store() -> Iterator[LadybugStore]:
    with LadybugStore(":memory:") as store:
        yield store


def test_properties_named_like_columns_are_kept(store: LadybugStore) -> None:
    properties = {
        "id": 7,
        "name": "x",
        "TEXT": "y",
        "labels": "z",
        "properties": 1,
        "properties.id": 2,
        "weight": 3,
    }
    node = Node("a", ("A", "B"), "own", "text", properties)
    edge = Edge(
        "a",
        "R",
        "a",
        2.0,
        {"weight": 5, "id": 6, "source_row": 0, "from": "x", "to": "y"},
    )
    store.upsert([node], [edge])
    assert store.get(["a"]) == [node]
    assert all_edges(store) == [edge]
    assert store.query("MATCH (n)-[r]->(m) RETURN n, r").rows == [(node, edge)]


def test_a_column_has_one_type_and_nodes_keep_their_values(store: LadybugStore) -> None:
    """Floats widen whole numbers; of several types, of maps and of mixed lists the text
    is what queries see.
    """
    first = Node(
        "a",
        properties={
            "x": 1,
            "l": [1],
            "s": 1,
            "m": {"a": {"b": [1]}},
            "t": True,
            "e": [],
        },
    )
    store.upsert([first], [Edge("a", "R", "a", 1.0, {"w": 1})])
    nodes = [
        Node(
            "b",
            properties={
                "x": 0.5,
                "l": [0.5],
                "s": "1",
                "m": [1, "a"],
                "t": 2**64,
                "e": [2],
            },
        ),
        Node(
            "c", properties={"x": 2, "l": [], "s": [1, None], "m": [[1]], "t": [True]}
        ),
    ]
    store.upsert(nodes, [Edge("a", "R", "b", 1.0, {"w": "x"})])
    assert store.get(["a", "b", "c"]) == [first, *nodes]
    assert type(store.get(["c"])[0].properties["x"]) is int  # type: ignore[union-attr]
    assert store.query("MATCH (n) RETURN n.x, n.l, n.s, n.m ORDER BY n.id").rows == [
        (1.0, [1.0], "1", '{"a":{"b":[1]}}'),
        (0.5, [0.5], "1", '[1,"a"]'),
        (2.0, [], "[1,null]", "[[1]]"),
    ]
    assert [e.properties["w"] for e in store.neighbors(["a"])] == [1, "x"]
    for where, ids in (
        ({"s": 1}, "a"),
        ({"s": "1"}, "b"),
        ({"m.a": {"$exists": True}}, "a"),
        ({"t": True}, "a"),
    ):
        assert [n.id for n in all_nodes(store, where=where)] == [*ids], where
    for name in ("X", "", "nul\0l"):
        with pytest.raises(
            InvalidInput, match=re.escape(f"node 'd': the property {name!r}")
        ):
            store.upsert([Node("d", properties={name: 1})])


def test_queries_return_nodes_edges_and_paths(store: LadybugStore) -> None:
    a, b = (
        Node("a", ("A",), properties={"x": 12345}),
        Node("b", ("B",), "bee", properties={"y": [1.5]}),
    )
    edges = [
        Edge("a", "R", "b", 1.0, {"p": 77, "source_row": 1}),
        Edge("b", "S", "a", 2.0, {"q": "seven"}),
    ]
    store.upsert([a, b], edges)
    assert store.query("MATCH (n) RETURN n ORDER BY n.id").rows == [(a,), (b,)]
    assert store.query("MATCH (n:A)-[r]->(m) RETURN r, n, m").rows == [(edges[0], a, b)]
    assert store.query("MATCH ()-[r:S]->() RETURN r").rows == [(edges[1],)]
    assert store.query("MATCH p = (n:A)-[r]->(m) RETURN p").rows == [
        ([a, edges[0], b],)
    ]
    assert store.query("MATCH p = (n:A)-[*2..2]->(m) RETURN p").rows == [
        ([a, edges[0], b, edges[1], a],)
    ]
    found = store.query(
        "MATCH (n)-[r:S]->(m) RETURN collect(r) AS found, {node: n} AS s"
    ).rows
    assert found == [([edges[1]], {"node": b})]
    assert store.query("OPTIONAL MATCH (n:A {id: 'none'}) RETURN n").rows == [(None,)]


def test_one_text_is_one_statement(store: LadybugStore) -> None:
    store.upsert([Node("a")])
    for text in (
        "COMMIT; CREATE (:Node {id: 'eve'})",
        "RETURN 1; MATCH (n) DETACH DELETE n",
        "",
        "ROLLBACK; RETURN 1",
    ):
        with pytest.raises(QueryRefused):
            store.query(text)
        with pytest.raises(QueryRefused):
            store.explain(text)
    assert [node.id for node in all_nodes(store)] == ["a"]
    for _ in range(3):  # planned anew, then from the plan that is kept
        assert store.query("MATCH (n:Node) RETURN n.id").rows == [("a",)]
        assert store.query(
            "MATCH (n:Node {id: $id}) RETURN n.id", {"id": "a"}
        ).rows == [("a",)]
        with pytest.raises(QueryRefused):
            store.query("MATCH (n:Node {id: $id}) SET n.name = 'eve'", {"id": "a"})
    store.upsert([Node("b", properties={"x": 1})])
    assert store.query("MATCH (n:Node) RETURN n.id, n.x ORDER BY n.id").rows == [
        ("a", None),
        ("b", 1),
    ]
    assert store.query("MATCH (n:Node) RETURN n.id").rows == [("a",), ("b",)]


def test_a_memory_store_is_loaded(
    store: LadybugStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "_ROWS", 50)  # in several parts and transactions
    nodes, edges = random_graph(5)
    nodes += [
        Node("none", ()),
        Node(
            "deep", ("Film",), "é", "t", {"a": {"b": [1, None]}, "age": "old", "l": []}
        ),
    ]
    edges += [
        Edge("none", "LIKES", "deep", 0.5, {"since": "ever", "target_row": 4}),
        Edge("deep", "ALONE", "deep"),
    ]
    memory = MemoryStore.of(nodes, edges)
    store.load(memory)
    assert all_nodes(store) == all_nodes(memory)
    assert all_edges(store) == all_edges(memory)
    assert store.schema().relations == memory.schema().relations
    assert store.schema().labels == memory.schema().labels
    with pytest.raises(InvalidInput, match="empty"):
        store.load(memory)
    store.attach(index := BM25Index.of_store(store))
    with pytest.raises(InvalidInput, match="attached"):
        store.load(memory)
    store.detach(index)
    store.delete([node.id for node in nodes])
    store.load(memory)
    assert all_edges(store) == all_edges(memory)


@pytest.mark.parametrize("made", [{}, {"x": 1, "y": [0.5, 2], "z": None}])
def test_a_large_graph_is_loaded_in_columns(
    store: LadybugStore, made: dict[str, Any]
) -> None:
    nodes = [
        Node(f"n{i:05}", ("Item", "Café")[: i % 3], f"name {i}", "é" * (i % 2), made)
        for i in range(6000)
    ]
    rows: list[dict[str, Any]] = [
        {},
        {"target_row": 2, "note": "ü"},
        {"source_row": 1, "target_row": 3},
    ]
    edges = [
        Edge(node.id, "NEXT", nodes[(i * 7) % 6000].id, i / 7, made | rows[i % 3])
        for i, node in enumerate(nodes)
    ]
    memory = MemoryStore.of(nodes, edges)
    store.load(memory)
    assert all_nodes(store) == all_nodes(memory)
    assert all_edges(store) == all_edges(memory)
    if made:
        found = store.query("MATCH (n:Item)-[r]->() RETURN sum(n.x), min(r.y[1])").rows
        assert found == [(4000, 0.5)]
    found = store.query("MATCH ()-[r:NEXT]->() RETURN min(r.source_row)").rows
    assert found == [(1,)]


def test_large_batches_are_copied_and_replaced(store: LadybugStore) -> None:
    nodes = [Node(f"n{i:05}", ("Item",), properties={"x": i}) for i in range(3000)]
    edges = [
        Edge(nodes[i].id, "NEXT", nodes[(i * 7) % 3000].id, 1.0, {"source_row": i % 3})
        for i in range(3000)
    ]
    store.upsert(nodes, edges)
    changed = [Edge(e.source, e.relation, e.target, 2.0, e.properties) for e in edges]
    store.upsert(nodes[:2500], changed)
    assert all_edges(store) == sorted(changed, key=edge_key)
    assert store.neighbors([nodes[7].id], limit=1) == store.neighbors([nodes[7].id])[:1]
    with pytest.raises(InvalidInput, match="nowhere"):
        store.upsert(
            [Node(f"m{i}", ("Item",)) for i in range(3000)],
            [Edge("m1", "NEXT", "nowhere")],
        )
    assert store.count() == (3000, 3000)


#: A relation named like a label but for its case, or exactly; labels and relations that
#: differ by case; dots.
NODES = [
    Node("f", ("Film",), "Alien", "", {"year": 1979}),
    Node("g", ("film", "Film"), "other"),
    Node("p", ("Director", "film.person"), "Scott", "", {"born": 1937}),
    Node("q", ("film.person",), "Someone", "", {"born": 1}),
    Node("u", (), "none"),
    Node("v", ("_unlabelled",), "named like the table of those without"),
]
EDGES = [
    Edge("f", "director", "p", 0.5, {"since": 1977}),
    Edge("f", "DIRECTOR", "q"),
    Edge("p", "Film", "f"),
    Edge("p", "film.film.directed_by", "f", 1.0, {"source_row": 1}),
    Edge("p", "film_film_directed_by", "f"),
    Edge("u", "_unlabelled", "v"),
]


@pytest.fixture
def named(tmp_path: Path) -> Iterator[LadybugStore]:
    with LadybugStore(tmp_path / "g.lbug") as store:
        for item in (*NODES, *EDGES):  # one by one
            store.upsert(*([item], []) if isinstance(item, Node) else ([], [item]))
    with LadybugStore(tmp_path / "g.lbug") as store:  # what tables are of is read again
        yield store


def test_a_graph_is_kept_whatever_its_names(named: LadybugStore) -> None:
    assert all_nodes(named) == NODES
    assert all_edges(named) == sorted(EDGES, key=edge_key)
    for edge in EDGES:
        assert all_edges(named, relations=[edge.relation]) == [edge]
        assert named.neighbors(
            [edge.source], relations=[edge.relation], direction="out", limit=1
        ) == [edge]
    for label, ids in {
        "Film": ["f", "g"],
        "film": ["g"],
        "film.person": ["p", "q"],
        "_unlabelled": ["v"],
    }.items():
        assert [node.id for node in all_nodes(named, labels=[label])] == ids
        assert [node.id for node in all_nodes(named, where={"label": label})] == ids
    view = named.view({"label": {"$in": ["Film", "Director"]}})
    assert view.count() == (3, 4)
    schema = view.schema()
    assert schema.labels == {"Film": 2, "film": 1, "Director": 1, "film.person": 1}
    assert schema.cypher_labels == {
        "film": "film_",
        "film.person": "film_person",
    }  # and nothing of what is hidden
    assert schema.cypher_relations.keys() == {
        "director",
        "Film",
        "film.film.directed_by",
        "film_film_directed_by",
    }


def test_the_schema_says_what_queries_call_otherwise(named: LadybugStore) -> None:
    own = named.schema()
    assert own.cypher_labels == {
        "film": "film_",
        "film.person": "film_person",
        "_unlabelled": "_unlabelled_",
    }
    found = [
        named.query(f"MATCH ()-[r:`{name}`]->() RETURN r").rows[0][0]
        for name in own.in_cypher().relation_names
    ]
    assert sorted(found, key=edge_key) == sorted(EDGES, key=edge_key)
    relation = own.cypher_relations["director"]
    query = f"MATCH (f:Film)-[r:{relation}]->(d:Director) RETURN f, r, d LIMIT 3"
    assert run_checked(named, query, schema=own).rows == [
        (NODES[0], EDGES[0], NODES[2])
    ]
    unknown = "MATCH (f:Film)-[:director]->(d:Director) RETURN f LIMIT 3"
    (error,) = check(unknown, own, dialect="ladybug").errors
    assert (error.kind, relation in error.suggestions) == (codes.UNKNOWN_RELATION, True)
    with pytest.raises(QueryRefused):
        named.query(unknown)

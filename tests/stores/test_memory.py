from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphret.errors import CorruptIndex, InvalidInput, NotAnIndex
from graphret.stores import GraphStore, MemoryStore
from graphret.types import Edge, Node

NODES = [
    Node("ada", ("Person", "Author"), "Ada Lovelace", properties={"born": 1815}),
    Node("babbage", ("Person",), "Charles Babbage", properties={"born": 1791}),
    Node("engine", ("Machine",), "Analytical Engine"),
    Node("notes", ("Text",), "Notes", "on the engine"),
]
EDGES = [
    Edge("ada", "WROTE", "notes", 1.0, {"year": 1843}),
    Edge("babbage", "DESIGNED", "engine", 2.0),
    Edge("notes", "ABOUT", "engine", 0.5, {"source_row": 3}),
    Edge("ada", "KNEW", "babbage"),
]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore.of(NODES, EDGES)


def triples(edges: list[Edge]) -> list[tuple[str, str, str]]:
    return [(e.source, e.relation, e.target) for e in edges]


def test_it_keeps_the_contract(store: MemoryStore) -> None:
    assert isinstance(store, GraphStore)


def test_get_is_by_batch_in_order(store: MemoryStore) -> None:
    assert store.get(["engine", "nobody", "ada"]) == [NODES[2], None, NODES[0]]
    assert store.count() == (4, 4)


def test_schema_counts_labels_and_triples(store: MemoryStore) -> None:
    schema = store.schema()
    assert schema.labels == {"Author": 1, "Machine": 1, "Person": 2, "Text": 1}
    assert schema.relations == {
        ("Author", "KNEW", "Person"): 1,
        ("Author", "WROTE", "Text"): 1,
        ("Person", "DESIGNED", "Machine"): 1,
        ("Person", "KNEW", "Person"): 1,
        ("Person", "WROTE", "Text"): 1,
        ("Text", "ABOUT", "Machine"): 1,
    }


def test_neighbors(store: MemoryStore) -> None:
    assert triples(store.neighbors(["engine"])) == [
        ("babbage", "DESIGNED", "engine"),
        ("notes", "ABOUT", "engine"),
    ]
    assert triples(store.neighbors(["ada"], direction="out", relations=["WROTE"])) == [("ada", "WROTE", "notes")]
    assert store.neighbors(["ada"], direction="in") == []
    assert triples(store.neighbors(["ada"], labels=["Person"])) == [("ada", "KNEW", "babbage")]
    assert triples(store.neighbors(["ada"], where={"born": {"$lt": 1800}})) == [("ada", "KNEW", "babbage")]
    assert triples(store.neighbors(["engine"], limit=1)) == [("babbage", "DESIGNED", "engine")]
    assert store.neighbors(["nobody"]) == []
    assert store.neighbors(["notes"], direction="out")[0].properties == {"source_row": 3}


def test_upsert_replaces_what_is_the_same(store: MemoryStore) -> None:
    store.upsert([Node("ada", ("Person",), "Augusta Ada King")], [Edge("ada", "KNEW", "babbage", 9.0)])
    assert store.count() == (4, 4)
    assert store.get(["ada"])[0].name == "Augusta Ada King"  # type: ignore[union-attr]
    assert store.neighbors(["ada"], relations=["KNEW"])[0].weight == 9.0


def test_delete_takes_the_edges_along(store: MemoryStore) -> None:
    store.delete(["engine", "nobody"])
    assert store.count() == (3, 2)
    assert ("Text", "ABOUT", "Machine") not in store.schema().relations


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ([], [Edge("ada", "WROTE", "nothing")], "no node 'nothing'"),
        ([], [Edge("ada", "WROTE", "notes", float("nan"))], "finite"),
        ([], [Edge("ada", "", "notes")], "relation"),
        ([Node("")], [], "non-empty"),
        ([Node("x", text=3)], [], "'x': the text"),  # type: ignore[arg-type]
        ([Node("x", "Label")], [], "'x': the labels"),  # type: ignore[arg-type]
        ([Node("x", properties={"a": object()})], [], "'x': the property 'a'"),
    ],
)
def test_what_cannot_be_stored_is_named_and_changes_nothing(
    store: MemoryStore, nodes: list[Node], edges: list[Edge], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        store.upsert(nodes, edges)
    assert store.count() == (4, 4)


def test_an_id_that_comes_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'ada'"):
        MemoryStore.of([NODES[0], NODES[0]])


@pytest.mark.parametrize("arguments", [{"direction": "up"}, {"limit": 0}, {"relations": "WROTE"}, {"labels": "Person"}])
def test_bad_arguments_are_refused(store: MemoryStore, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        store.neighbors(["ada"], **arguments)


def test_saved_and_opened_it_is_the_same(store: MemoryStore, tmp_path: Path) -> None:
    store.save(tmp_path / "graph")
    opened = MemoryStore.load(tmp_path / "graph")
    assert list(opened.graph.nodes) == list(store.graph.nodes)
    assert opened.neighbors([n.id for n in NODES]) == store.neighbors([n.id for n in NODES])
    with pytest.raises(NotAnIndex, match="nowhere"):
        MemoryStore.load(tmp_path / "nowhere")
    file = max((tmp_path / "graph").glob("gen-*/*.npy"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CorruptIndex, match=file.name):
        MemoryStore.load(tmp_path / "graph")


IDS = [f"n{i}" for i in range(6)]
GRAPHS = st.tuples(
    st.lists(st.sampled_from("ab"), min_size=6, max_size=6),
    st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from("RS"), st.sampled_from(IDS)), max_size=15),
)


@given(GRAPHS)
def test_a_view_is_the_induced_graph(graph: tuple[list[str], list[tuple[str, str, str]]]) -> None:
    tenants, edges = graph
    nodes = [Node(i, (t.upper(),), properties={"tenant": t}) for i, t in zip(IDS, tenants, strict=True)]
    view = MemoryStore.of(nodes, [Edge(*e) for e in edges]).view({"tenant": "a"})
    mine = {n.id for n in nodes if n.properties["tenant"] == "a"}
    alone = MemoryStore.of(
        [n for n in nodes if n.id in mine], [Edge(*e) for e in edges if e[0] in mine and e[2] in mine]
    )
    assert view.count() == alone.count()
    assert view.schema() == alone.schema()
    assert view.get(IDS) == alone.get(IDS)
    assert view.neighbors(IDS) == alone.neighbors(IDS)


def test_nodes_and_edges_by_batch_are_those_one_by_one(store: MemoryStore) -> None:
    nodes, edges = store.graph.nodes, store.graph.edges
    order = np.arange(len(nodes))[::-1]
    assert nodes.at(order) == [nodes[i] for i in order.tolist()]
    every = np.arange(len(edges))
    assert edges.at(every, nodes.ids) == [edges.edge(i, nodes.ids) for i in every.tolist()]
    assert nodes.at(order[:0]) == []
    assert edges.at(every[:0], nodes.ids) == []

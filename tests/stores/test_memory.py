"""`MemoryStore`: writes step by step give what one build gives, nobody sees a half of
one, and the schema.
"""

from __future__ import annotations

from collections import Counter
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.errors import InvalidInput, StoreError
from graphret.schema import PropertySchema
from graphret.search import BM25Index, NodeText
from graphret.stores import MemoryStore, memory
from graphret.stores.memory import graph_parts
from graphret.testing.stores import GraphStoreSuite
from graphret.types import Edge, Node

IDS = [f"n{i}" for i in range(7)]
NODES = st.builds(
    Node,
    st.sampled_from(IDS),
    st.sampled_from([("A",), ("B",), ("A", "B"), ("B", "A"), ()]),
    st.sampled_from(["", "one", "zwölf"]),
    st.sampled_from(["", "said"]),
    st.sampled_from([{}, {"x": 1}, {"y": ["ü", None]}]),
)
EDGES = st.builds(
    Edge,
    st.sampled_from(IDS),
    st.sampled_from("RST"),
    st.sampled_from(IDS),
    st.sampled_from([1.0, 0.5]),
    st.sampled_from(
        [
            {},
            {"p": 1},
            {"source_row": 1},
            {"source_row": 2, "q": "x"},
            {"target_row": 0},
        ]
    ),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("upsert"),
            st.lists(NODES, max_size=4, unique_by=lambda n: n.id),
            st.lists(EDGES, max_size=5),
        ),
        st.tuples(
            st.just("delete"),
            st.lists(st.sampled_from([*IDS, "nobody"]), max_size=2),
            st.lists(EDGES, max_size=5),
        ),
    ),
    max_size=8,
)


def columns(store: MemoryStore) -> dict[str, Any]:
    """All that a store would save."""
    parts = graph_parts(store.graph)
    out: dict[str, Any] = {
        name: (array.dtype.str, array.tolist()) for name, array in parts.arrays.items()
    }
    return out | {"meta": parts.meta}


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_any_sequence_of_writes_equals_one_build(
    steps: list[tuple[str, list[Any], list[Edge]]],
) -> None:
    store = MemoryStore()
    nodes: dict[str, Node] = {}
    edges: dict[tuple[Any, ...], Edge] = {}
    for what, items, given_edges in steps:
        if what == "delete":
            store.delete(items)
            store.delete_edges(given_edges)
            edges = {
                key: edge
                for key, edge in edges.items()
                if key not in {edge.identity for edge in given_edges}
            }
            nodes = {i: node for i, node in nodes.items() if i not in items}
            edges = {
                key: edge
                for key, edge in edges.items()
                if not {edge.source, edge.target} & set(items)
            }
        else:
            there = {*nodes, *(node.id for node in items)}
            fitting = [
                edge for edge in given_edges if {edge.source, edge.target} <= there
            ]
            if len(fitting) < len(given_edges):
                before = columns(store)
                with pytest.raises(InvalidInput, match="there is no node"):
                    store.upsert(items, given_edges)
                assert columns(store) == before
            store.upsert(items, fitting)
            nodes |= {node.id: node for node in items}
            edges |= {edge.identity: edge for edge in fitting}
    assert columns(store) == columns(MemoryStore.of(nodes.values(), edges.values()))


def test_who_reads_sees_one_state() -> None:
    store = MemoryStore.of(
        [Node("a", name="0"), Node("b", name="0")], [Edge("a", "R", "b", 0.0)]
    )
    nodes, edges, view = store.nodes(), store.edges(), store.view({"name": "0"})
    store.upsert([Node("a", name="1"), Node("b", name="1")], [Edge("a", "R", "b", 1.0)])
    assert (
        [node.name for node in next(nodes)]
        == [node.name for node in view.get(["a", "b"]) if node]
        == ["0", "0"]
    )
    assert next(edges) == view.neighbors(["a"]) == [Edge("a", "R", "b", 0.0)]
    assert store.neighbors(["a"]) == [Edge("a", "R", "b", 1.0)]


def test_what_waits_is_what_was_written_and_read_as_if_it_did_not() -> None:
    nodes = [Node("a"), Node("b", name="B")]
    store = MemoryStore.of(nodes, [Edge("a", "R", "b", 0.5)])
    mine: dict[str, Any] = {"tags": ("x",)}
    store.upsert([Node("c", properties=mine), Node("a", name="A")])
    store.upsert(edges=[Edge("c", "R", "a", properties=mine), Edge("a", "R", "b", 1.0)])
    mine["tags"] = "altered since"
    with pytest.raises(InvalidInput, match="there is no node 'd'"):
        store.upsert([Node("e")], [Edge("c", "R", "d")])
    assert store.get(["e", "c", "b", "a"]) == [
        None,
        Node("c", properties={"tags": ["x"]}),
        Node("b", name="B"),
        Node("a", name="A"),
    ]
    fresh = Edge("c", "R", "a", properties={"tags": ["x"]})
    assert store.neighbors(["a"]) == [Edge("a", "R", "b", 1.0), fresh]
    index = BM25Index.of_store(store, text=NodeText.names())
    store.upsert([Node("b", name="Zebra")])
    store.attach(index)
    index.refresh(store)
    store.upsert([Node("f", name="Zebra")], [Edge("f", "R", "b")])
    assert index.search("zebra", 2).ids == ["b", "f"]
    assert store.count() == (4, 3)


def test_many_single_writes_are_put_in_by_and_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("graphret.stores.waiting._FEW", 8)
    store, waited = MemoryStore(), 0
    for i in range(60):
        store.upsert([Node(f"n{i}")], [Edge(f"n{i}", "R", "n0")])
        waited = max(waited, len(store._waiting.nodes))
    assert 1 < waited < 12
    assert store.count() == (60, 60)


def test_who_reads_while_others_write_sees_whole_writes() -> None:
    store = MemoryStore.of([Node("a", name="0"), Node("b", name="0")])
    seen: list[set[str]] = []

    def write() -> None:
        for i in range(1, 60):
            name = str(i)
            pair = [Node("a", name=name), Node("b", name=name)]
            store.upsert([*pair, Node(f"n{i}")], [Edge(f"n{i}", "R", "a")])

    writer = Thread(target=write)
    writer.start()
    while writer.is_alive():
        seen.append({node.name for node in store.get(["a", "b"]) if node})
        nodes, edges = store.count()
        assert nodes == edges + 2
    writer.join()
    assert all(len(names) == 1 for names in seen)
    assert store.count() == (61, 59)


def test_malformed_edges_and_views_take_no_edges_away() -> None:
    store, edge = (
        MemoryStore.of([Node("a")], [Edge("a", "R", "a")]),
        Edge("a", "R", "a"),
    )
    with pytest.raises(InvalidInput, match="weight"):
        store.delete_edges([edge, Edge("a", "R", "a", float("nan"))])
    for view in (store.view({"id": "a"}), store.view(None).view(None)):
        with pytest.raises(StoreError, match="view"):
            view.delete_edges([edge])
    assert store.count() == (1, 1)


class TestMemoryStore(GraphStoreSuite):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


def test_a_small_graph_is_read_whole() -> None:
    store = MemoryStore.of(
        [
            Node("a", ("P", "Q"), properties={"x": 1}),
            Node("b", ("P",), properties={"x": 2.5}),
            Node("c", ()),
        ],
        [
            Edge("a", "R", "b", 1.0, {"since": "2001"}),
            Edge("b", "R", "c"),
            Edge("c", "S", "a"),
        ],
    )
    schema = store.schema()
    assert not schema.sampled
    assert schema.labels == {"P": 2, "Q": 1}
    assert schema.relations == {
        ("", "S", "P"): 1,
        ("", "S", "Q"): 1,
        ("P", "R", ""): 1,
        ("P", "R", "P"): 1,
        ("Q", "R", "P"): 1,
    }
    assert schema.properties["P"]["x"] == PropertySchema("FLOAT", 1.0, (1, 2.5))
    assert schema.relation_properties == {
        "R": {"since": PropertySchema("STRING", 0.5, ("2001",))}
    }
    assert store.schema() is schema
    store.upsert([Node("d", ("Q",))])
    assert store.schema().labels["Q"] == 2


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """9 of 10 nodes labelled A have no other label, and have `x`; B is rare, with `y`."""
    monkeypatch.setattr(memory, "SAMPLE", 50)
    rng = np.random.default_rng(0)
    sets = [
        ("A", "Z") if i % 10 == 0 else ("B",) if i % 500 == 1 else ("A",)
        for i in range(2000)
    ]
    own: dict[tuple[str, ...], dict[str, Any]] = {
        ("A",): {"x": 1},
        ("B",): {"y": "rare"},
    }
    nodes = [
        Node(f"n{i:04d}", labels, properties=own.get(labels, {}))
        for i, labels in enumerate(sets)
    ]
    ends = rng.integers(2000, size=(9000, 2)).tolist()
    edges = [
        Edge(f"n{a:04d}", "SR"[i % 2], f"n{b:04d}", 1.0, {"w": True} if i % 2 else {})
        for i, (a, b) in enumerate(ends)
    ]
    return MemoryStore.of(nodes, edges)


def test_a_large_graph_is_sampled_with_exact_counts(large: MemoryStore) -> None:
    schema = large.schema()
    assert schema.sampled
    assert schema.labels == {"A": 1996, "B": 4, "Z": 200}
    labels = {node.id: node.labels for block in large.nodes() for node in block}
    counted = Counter(
        (source, edge.relation, target)
        for block in large.edges()
        for edge in block
        for source in labels[edge.source]
        for target in labels[edge.target]
    )
    assert schema.relations == counted
    assert schema.properties["A"]["x"].coverage == pytest.approx(
        0.9, abs=0.01
    )  # though Z is half of the sample
    assert schema.properties["A"]["x"].type == "INTEGER"
    assert schema.properties["B"]["y"] == PropertySchema("STRING", 1.0, ("rare",))
    assert schema.relation_properties == {
        "R": {"w": PropertySchema("BOOLEAN", 1.0, (True,))}
    }
    assert schema.sampled_relations == frozenset()  # all triples are counted
    assert schema.sampled_properties == {"A", "Z"}  # the four of B are all read
    assert schema.sampled_relation_properties == {"R", "S"}

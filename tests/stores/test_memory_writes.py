"""Writes into a `MemoryStore` step by step give what one build gives, and nobody sees a half of one."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.errors import InvalidInput, StoreError
from graphret.stores import MemoryStore
from graphret.stores.memory import graph_parts
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
    st.sampled_from([{}, {"p": 1}, {"source_row": 1}, {"source_row": 2, "q": "x"}, {"target_row": 0}]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("upsert"), st.lists(NODES, max_size=4, unique_by=lambda n: n.id), st.lists(EDGES, max_size=5)
        ),
        st.tuples(
            st.just("delete"), st.lists(st.sampled_from([*IDS, "nobody"]), max_size=2), st.lists(EDGES, max_size=5)
        ),
    ),
    max_size=8,
)


def columns(store: MemoryStore) -> dict[str, Any]:
    """All that a store would save."""
    parts = graph_parts(store.graph)
    out: dict[str, Any] = {name: (array.dtype.str, array.tolist()) for name, array in parts.arrays.items()}
    return out | {name: table.to_pydict() for name, table in parts.tables.items()} | {"meta": parts.meta}


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_any_sequence_of_writes_equals_one_build(steps: list[tuple[str, list[Any], list[Edge]]]) -> None:
    store = MemoryStore()
    nodes: dict[str, Node] = {}
    edges: dict[tuple[Any, ...], Edge] = {}
    for what, items, given_edges in steps:
        if what == "delete":
            store.delete(items)
            store.delete_edges(given_edges)
            edges = {key: edge for key, edge in edges.items() if key not in {edge.identity for edge in given_edges}}
            nodes = {i: node for i, node in nodes.items() if i not in items}
            edges = {key: edge for key, edge in edges.items() if not {edge.source, edge.target} & set(items)}
        else:
            there = {*nodes, *(node.id for node in items)}
            fitting = [edge for edge in given_edges if {edge.source, edge.target} <= there]
            if len(fitting) < len(given_edges):
                before = columns(store)
                with pytest.raises(InvalidInput, match="there is no node"):
                    store.upsert(items, given_edges)
                assert columns(store) == before
            store.upsert(items, fitting)
            nodes |= {node.id: node for node in items}
            edges |= {edge.identity: edge for edge in fitting}
    assert columns(store) == columns(MemoryStore.of(nodes.values(), edges.values()))


@settings(max_examples=25, deadline=None)
@given(st.lists(NODES, unique_by=lambda n: n.id), st.lists(EDGES), st.randoms(use_true_random=False))
def test_columns_equal_objects(nodes: list[Node], edges: list[Edge], random: Any) -> None:
    random.shuffle(nodes)
    place = {node.id: i for i, node in enumerate(nodes)}
    edges = [edge for edge in edges if edge.source in place and edge.target in place]
    sets = list({node.labels for node in nodes})
    store = MemoryStore.from_arrays(
        [node.id for node in nodes],
        names=[node.name for node in nodes],
        texts=[node.text for node in nodes],
        labels=np.asarray([sets.index(node.labels) for node in nodes], dtype=np.int32),
        label_sets=sets,
        properties=[node.properties for node in nodes],
        source=np.asarray([place[edge.source] for edge in edges], dtype=np.int64),
        target=[place[edge.target] for edge in edges],
        relation=["TSR".index(edge.relation) for edge in edges],
        relations=sorted({edge.relation for edge in edges} | set("RST"), reverse=True),
        weight=[edge.weight for edge in edges],
        edge_properties=[edge.properties for edge in edges],
    )
    assert columns(store) == columns(MemoryStore.of(nodes, edges))


def test_columns_with_nothing_but_ids_and_ends() -> None:
    store = MemoryStore.from_arrays(["b", "a", "c"], source=[0, 1], target=[1, 2])
    assert store.get(["a", "b"]) == [Node("a"), Node("b")]
    assert store.neighbors(["a"]) == [Edge("a", "RELATED", "c"), Edge("b", "RELATED", "a")]
    assert MemoryStore.from_arrays([]).count() == (0, 0)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"ids": ["a", ""]}, "row 1"),
        ({"ids": ["a", None]}, "ids, row 1"),
        ({"ids": ["a", "a"]}, "'a': the id comes twice, in the rows 0 and 1"),
        ({"names": ["x"]}, "names: 2 rows"),
        ({"texts": ["x", 3]}, "texts"),
        ({"labels": [0, 7]}, "labels"),
        ({"labels": [0]}, "labels"),
        ({"label_sets": ["Node"]}, "label_sets"),
        ({"properties": [{}, {"a": {1}}]}, "properties"),
        *(
            ({name: column}, "edges: places of both ends")
            for name, column in [
                ("source", [0, 2]),
                ("target", [-1, 0]),
                ("target", [0]),
                ("relation", [0, 1]),
                ("weight", [1.0, float("nan")]),
                ("edge_properties", [{}]),
            ]
        ),
    ],
)
def test_malformed_columns_are_named(change: dict[str, Any], named: str) -> None:
    columns = {"ids": ["a", "b"], "source": [0, 1], "target": [1, 0], "relations": ["R"], **change}
    with pytest.raises(InvalidInput, match=named):
        MemoryStore.from_arrays(columns.pop("ids"), **columns)


def test_a_reader_sees_one_state() -> None:
    """Each write moves an edge's weight and both of its nodes' names together."""
    store = MemoryStore.of([Node("a", name="0"), Node("b", name="0")], [Edge("a", "R", "b", 0.0)])
    done = threading.Event()
    torn: list[Any] = []

    def read() -> None:
        while not done.is_set():
            a, b = store.get(["a", "b"])
            if a is None or b is None or a.name != b.name:
                torn.append((a, b))
            view = store.view({"name": {"$in": [str(i) for i in range(40)]}})
            (edge,) = view.neighbors(["a"])
            if [node.name for node in view.get(["a", "b"]) if node] != [str(int(edge.weight))] * 2:
                torn.append(edge)

    readers = [threading.Thread(target=read) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # more turns, and the writer waits less for each of its own
    for thread in readers:
        thread.start()
    try:
        for i in range(40):
            store.upsert([Node("a", name=str(i)), Node("b", name=str(i))], [Edge("a", "R", "b", float(i))])
    finally:
        done.set()
        for thread in readers:
            thread.join()
        sys.setswitchinterval(interval)
    assert not torn


A = Node("a")


@pytest.mark.parametrize(
    ("nodes", "edges", "named"),
    [
        ([A, Node("deep", properties={"fine": 1, "bad": {1, 2}})], [], "'deep': the property 'bad'"),
        ([Node("odd", name="\ud800")], [], "'odd': the name"),
        ([Node("x", text=3)], [], "'x': the text"),  # type: ignore[arg-type]
        ([A], [Edge("a", "R", "nothing")], "no node 'nothing'"),
        ([A], [Edge("a", "R", "a", 1.0, {"x": object()})], "'a' to 'a': the property 'x'"),
        *(([A], [Edge("a", "R", "a", weight)], "weight") for weight in (float("inf"), "heavy", True)),  # type: ignore[arg-type]
        *(([A], [Edge("a", "R", "a", 1.0, {"target_row": row})], "target_row") for row in (-1, 1.5, True, 2**31)),
    ],
)
def test_what_cannot_be_stored_is_named_and_changes_nothing(nodes: list[Node], edges: list[Edge], named: str) -> None:
    store = MemoryStore.of([Node("b")])
    with pytest.raises(InvalidInput, match=named):
        store.upsert(nodes, edges)
    assert store.count() == (1, 0)


def test_malformed_edges_and_views_take_no_edges_away() -> None:
    store, edge = MemoryStore.of([A], [Edge("a", "R", "a")]), Edge("a", "R", "a")
    with pytest.raises(InvalidInput, match="weight"):
        store.delete_edges([edge, Edge("a", "R", "a", float("nan"))])
    for view in (store.view({"id": "a"}), store.view(None).view(None)):
        with pytest.raises(StoreError, match="view"):
            view.delete_edges([edge])
    assert store.count() == (1, 1)

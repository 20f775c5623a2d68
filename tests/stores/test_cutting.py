from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from graphret.errors import InvalidInput, StoreError
from graphret.search import BM25Index, NodeText
from graphret.stores import MemoryStore
from graphret.stores.cutting import delete_edges
from graphret.testing.reading import all_edges, all_nodes
from graphret.types import Edge, Node

NODES = [Node("a", properties={"x": [1, 2]}), Node("b"), Node("c")]
EDGES = [
    Edge("a", "R", "a"),
    Edge("a", "R", "b", 2.0, {"source_row": 1}),
    Edge("a", "R", "b", 0.5, {"source_row": 2}),
    Edge("b", "S", "a", 1.0, {"p": "q"}),
    Edge("b", "S", "c"),
]


class Unable(MemoryStore):
    """Takes no edges away by itself."""

    delete_edges = None  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [MemoryStore, Unable])
def test_only_those_edges_go(kind: type[MemoryStore]) -> None:
    store = kind.of(NODES, EDGES)
    absent = [Edge("a", "NO", "b"), Edge("z", "R", "a")]
    delete_edges(store, [EDGES[0], Edge("a", "R", "b", 9.0, {"source_row": 1}), *absent])
    assert all_edges(store) == EDGES[2:]
    assert all_nodes(store) == NODES
    delete_edges(store, [])
    delete_edges(store, [Edge("b", "R", "a")])
    assert all_edges(store) == EDGES[2:]


def test_what_is_left_is_the_graph_of_the_other_edges() -> None:
    store = MemoryStore.of(NODES, EDGES)
    store.delete_edges([EDGES[3], EDGES[4], Edge("a", "R", "b")])
    table, built = store.graph.edges, MemoryStore.of(NODES, EDGES[:3]).graph.edges
    assert table.relations == ["R"]
    for name in ("source", "target", "relation", "weight", "source_part", "target_part", "out_indptr", "in_order"):
        np.testing.assert_array_equal(getattr(table, name), getattr(built, name))
    assert table.properties.tolist() == built.properties.tolist()


def test_malformed_edges_and_views_are_refused() -> None:
    store = MemoryStore.of(NODES, EDGES)
    with pytest.raises(InvalidInput, match="weight"):
        store.delete_edges([EDGES[0], Edge("a", "R", "a", float("nan"))])
    with pytest.raises(StoreError, match="view"):
        store.view({"id": "a"}).delete_edges(EDGES[:1])
    assert store.count() == (3, 5)


def test_a_reader_sees_all_of_it_or_nothing() -> None:
    nodes = [Node(f"n{i:03d}") for i in range(200)]
    staying = [Edge(a.id, "NEXT", b.id) for a, b in pairwise(nodes)]
    going = [Edge(a.id, "TWO_ON", b.id) for a, b in zip(nodes, nodes[2:], strict=False)]
    store = MemoryStore.of(nodes, [*staying, *going])
    seen: set[tuple[int, ...]] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            found = store.neighbors(["n050", "n100", "n150"], direction="out")
            seen.add((*store.count(), len(found), sum(node is not None for node in store.get(["n050", "n150"]))))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(100):
            delete_edges(store, going)
            store.upsert(edges=going)
    finally:
        done.set()
        reader.join()
    counts = {count[1] for count in seen}
    assert counts <= {len(staying), len(staying) + len(going)}
    assert {(count[0], count[3]) for count in seen} == {(200, 2)}
    assert {count[2] for count in seen} <= {3, 6}


def test_an_attached_index_forgets_the_neighbour() -> None:
    store = MemoryStore.of(
        [Node("film", name="Metropolis"), Node("maker", name="Lang")], [Edge("maker", "MADE", "film")]
    )
    index = BM25Index.of_store(store, text=NodeText.documents())
    store.attach(index)
    assert index.score("Lang", ["film"])[0] > 0
    store.delete_edges([Edge("maker", "MADE", "film")])
    assert index.score("Lang", ["film"])[0] == 0


class Able(MemoryStore):
    """Takes edges away itself."""

    told: list[Edge]

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        self.told = list(edges)


def test_a_store_that_can_does_it_itself() -> None:
    store = Able()
    store.upsert(NODES, EDGES)
    delete_edges(store, EDGES[:1])
    assert store.told == EDGES[:1]
    assert store.count() == (3, 5)


class Failing(Unable):
    """Fails to write a number of times."""

    failures = 0

    def upsert(self, nodes: Any = (), edges: Any = ()) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("lost")
        super().upsert(nodes, edges)


def test_a_failing_second_write_is_tried_again_and_said() -> None:
    store = Failing()
    store.upsert(NODES, EDGES)
    store.failures = 1
    delete_edges(store, EDGES[:1])
    assert store.count() == (3, 4)
    store.failures = 2
    with pytest.raises(StoreError, match="'a'"):
        delete_edges(store, EDGES[1:2])

from __future__ import annotations

from typing import Any

import pytest

from graphret.errors import StoreError
from graphret.stores import MemoryStore
from graphret.stores.cutting import delete_edges
from graphret.testing.stores import all_edges, all_nodes
from graphret.types import Edge, Node

NODES = [Node("a", properties={"x": [1, 2]}), Node("b"), Node("c")]
EDGES = [
    Edge("a", "R", "a"),
    Edge("a", "R", "b", 2.0, {"source_row": 1}),
    Edge("a", "R", "b", 0.5, {"source_row": 2}),
    Edge("b", "S", "a", 1.0, {"p": "q"}),
    Edge("b", "S", "c"),
]


def test_only_those_edges_go() -> None:
    store = MemoryStore.of(NODES, EDGES)
    absent = [Edge("a", "NO", "b"), Edge("z", "R", "a")]
    delete_edges(store, [EDGES[0], Edge("a", "R", "b", 9.0, {"source_row": 1}), *absent])
    assert all_edges(store) == EDGES[2:]
    assert all_nodes(store) == NODES
    delete_edges(store, [])
    delete_edges(store, [Edge("b", "R", "a")])
    assert all_edges(store) == EDGES[2:]


class Able(MemoryStore):
    """Takes edges away itself."""

    told: list[Edge]

    def delete_edges(self, edges: list[Edge]) -> None:
        self.told = edges


def test_a_store_that_can_does_it_itself() -> None:
    store = Able()
    store.upsert(NODES, EDGES)
    delete_edges(store, EDGES[:1])
    assert store.told == EDGES[:1]
    assert store.count() == (3, 5)


class Failing(MemoryStore):
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

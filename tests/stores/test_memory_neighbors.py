"""Neighbours as a large store finds them: ids searched for where they lie, and decoded many at a time."""

from __future__ import annotations

import pickle
import random
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from graphret import columns, strings
from graphret.stores import MemoryStore
from graphret.testing.graphs import CONDITIONS, random_graph
from graphret.testing.reading import expected_neighbors
from graphret.types import Edge, Node


@pytest.mark.parametrize("seed", range(3))
def test_neighbors_in_a_large_store_are_those_of_the_contract(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(columns, "_SMALL", -1)
    monkeypatch.setattr(columns, "_SHARE", 0)
    monkeypatch.setattr(columns, "_MANY", 1)
    monkeypatch.setattr(strings, "_MANY", 1)
    nodes, edges = random_graph(seed)
    store, rng = MemoryStore.of(nodes, edges), random.Random(seed)
    ids = [node.id for node in nodes] + ["nobody"]
    for _ in range(100):
        options: dict[str, Any] = {
            "relations": rng.choice([None, ["LIKES"], ["KNOWS", "LIKES"], ["NOTHING"]]),
            "labels": rng.choice([None, ["Person"], ["Person", "Film"], ["Nothing"]]),
            "where": rng.choice([None, None, *CONDITIONS]),
            "direction": rng.choice(["both", "out", "in"]),
            "limit": rng.choice([None, 1, 2]),
        }
        anchors = rng.choices(ids, k=rng.randint(0, len(ids)))
        assert store.neighbors(anchors, **options) == expected_neighbors(nodes, edges, anchors, **options), options
    assert store.graph.nodes._sorted._hashed is None


def test_an_edge_that_is_found_is_like_any_other() -> None:
    written = Edge("a", "R", "b", 0.5, {"source_row": 1})
    (found,) = MemoryStore.of([Node("a"), Node("b")], [written]).neighbors(["a"])
    assert type(found) is Edge
    assert found == written
    assert repr(found) == repr(written)
    assert pickle.loads(pickle.dumps(found)) == written
    with pytest.raises(FrozenInstanceError):
        found.weight = 1.0  # type: ignore[misc]

"""The schema of a `MemoryStore`: exact counts, and properties from a sample where the graph is large."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from graphret.schema import PropertySchema
from graphret.stores import MemoryStore, memory
from graphret.types import Edge, Node


def test_a_small_graph_is_read_whole() -> None:
    store = MemoryStore.of(
        [Node("a", ("P", "Q"), properties={"x": 1}), Node("b", ("P",), properties={"x": 2.5}), Node("c", ())],
        [Edge("a", "R", "b", 1.0, {"since": "2001"}), Edge("b", "R", "c"), Edge("c", "S", "a")],
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
    assert schema.relation_properties == {"R": {"since": PropertySchema("STRING", 0.5, ("2001",))}}
    assert store.schema() is schema
    store.upsert([Node("d", ("Q",))])
    assert store.schema().labels["Q"] == 2


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """Of the nodes labelled A, 9 of 10 bear it alone and have `x`; B is rare and has `y`."""
    monkeypatch.setattr(memory, "SAMPLE", 50)
    rng = np.random.default_rng(0)
    sets = [("A", "Z") if i % 10 == 0 else ("B",) if i % 500 == 1 else ("A",) for i in range(2000)]
    own: dict[tuple[str, ...], dict[str, Any]] = {("A",): {"x": 1}, ("B",): {"y": "rare"}}
    nodes = [Node(f"n{i:04d}", labels, properties=own.get(labels, {})) for i, labels in enumerate(sets)]
    ends = rng.integers(2000, size=(9000, 2)).tolist()
    edges = [
        Edge(f"n{a:04d}", "SR"[i % 2], f"n{b:04d}", 1.0, {"w": True} if i % 2 else {}) for i, (a, b) in enumerate(ends)
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
    assert schema.properties["A"]["x"].coverage == pytest.approx(0.9, abs=0.01)  # though Z is half of the sample
    assert schema.properties["A"]["x"].type == "INTEGER"
    assert schema.properties["B"]["y"] == PropertySchema("STRING", 1.0, ("rare",))
    assert schema.relation_properties == {"R": {"w": PropertySchema("BOOLEAN", 1.0, (True,))}}
    assert (schema.sampled_names, schema.sampled_relations) == (False, frozenset())  # all triples are counted
    assert schema.sampled_properties == {"A", "Z"}  # the four of B are all read
    assert schema.sampled_relation_properties == {"R", "S"}

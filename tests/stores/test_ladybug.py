"""`LadybugStore` keeps the contract of stores, and a limit on hubs is pushed down."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from graphret.stores.ladybug import LadybugStore
from graphret.testing.graphs import expected_neighbors
from graphret.testing.stores import CypherStoreSuite
from graphret.types import Edge, Node


class TestLadybugStore(CypherStoreSuite):
    @pytest.fixture
    def store(self) -> Iterator[LadybugStore]:
        with LadybugStore(":memory:") as store:
            yield store


def test_of_hubs_no_more_is_read_than_the_limit(rows_read: list[int]) -> None:
    """Hubs of thousands of edges, of one weight and of many, beside a node with few."""
    rng = random.Random(2)
    kinds = [("Node",), ("Node", "Odd"), ("Odd",)]
    nodes = [Node(f"n{i:04}", kinds[i % 3], properties={"x": i}) for i in range(3_000)]
    hubs = [node.id for node in nodes[:3]]
    edges = [
        Edge(hub, "TO", node.id, rng.choice(weights))
        for hub, weights in zip(hubs, ([1.0], [1.0, 2.0], [i / 1_000 for i in range(1_000)]), strict=True)
        for node in nodes[10:2_000]
    ]
    edges += [Edge("n0005", "TO", node.id) for node in nodes[20:30]] + [Edge("n0001", "TO", "n0001")]
    with LadybugStore(":memory:") as store:
        store.upsert(nodes, edges)
        for ids in (hubs[:1], hubs, [*hubs, "n0005"]):
            for limit in (3, 40):
                rows_read.clear()
                found = store.neighbors(ids, direction="out", limit=limit)
                assert found == expected_neighbors(nodes, edges, ids, direction="out", limit=limit)
                assert max(rows_read) <= max(limit, 10)
        for options in ({"labels": ["Odd"]}, {"where": {"x": {"$lt": 900}}}, {"direction": "in"}):
            given: dict[str, Any] = {"limit": 7, **options}
            assert store.neighbors([*hubs, "n0005"], **given) == expected_neighbors(
                nodes, edges, [*hubs, "n0005"], **given
            )

"""Neighbours of hubs in a Ladybug database: a limit is pushed down, and gives what the contract says."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from graphret.stores.ladybug import LadybugStore
from graphret.testing.graphs import expected_neighbors
from graphret.types import Edge, Node


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


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that something else wrote: parallel edges, numbers as keys, weights of which some are none."""
    import ladybug

    odd = "WHEN b.code % 3 = 0 THEN CAST('nan' AS DOUBLE) WHEN b.code % 7 = 0 THEN CAST('inf' AS DOUBLE)"
    weight = f"CASE WHEN b.code % 5 = 0 THEN 3.0 {odd} END"
    path = tmp_path_factory.mktemp("foreign") / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        for statement in (
            "CREATE NODE TABLE City(code INT64 PRIMARY KEY, title STRING)",
            "CREATE REL TABLE ROAD(FROM City TO City, weight DOUBLE, lanes INT64)",
            "CREATE REL TABLE RAIL(FROM City TO City, tracks INT64)",
            "UNWIND range(1, 500) AS i CREATE (:City {code: i})",
            "MATCH (a:City), (b:City) WHERE a.code <= 2 AND b.code % 2 = 0 "
            f"CREATE (a)-[:ROAD {{weight: {weight}, lanes: b.code}}]->(b)",
            "MATCH (a:City), (b:City) WHERE a.code <= 2 CREATE (b)-[:RAIL {tracks: 1}]->(a)",
            "MATCH (a:City), (b:City) WHERE a.code = 1 AND b.code < 30 CREATE (b)-[:RAIL {tracks: 2}]->(a)",
            "MATCH (a:City), (b:City) WHERE a.code = 1 AND b.code < 30 CREATE (b)-[:RAIL {tracks: 2}]->(a)",
        ):
            connection.execute(statement)
    return path


@pytest.mark.parametrize("layout", [{}, {"id_property": "code"}], ids=repr)
def test_a_limit_cuts_the_edges_of_a_foreign_graph_as_it_would_all(foreign: Path, layout: dict[str, Any]) -> None:
    with LadybugStore(foreign, read_only=True, **layout) as store:
        ids = [node.id for block in store.nodes() for node in block]
        named = {node.id: node for node in store.get(ids) if node is not None}
        hubs = [i for i, node in named.items() if (node.properties.get("code") or int(node.id)) <= 2]
        assert len(hubs) == 2
        everything = {hub: store.neighbors([hub]) for hub in hubs}
        assert sorted(map(len, everything.values())) == [754, 809]
        for limit in (1, 10, 400):
            expected = {}
            for hub, edges in everything.items():
                first = sorted(enumerate(edges), key=lambda item: (-item[1].weight, item[0]))[:limit]
                expected[hub] = [edge for _, edge in sorted(first)]
                assert store.neighbors([hub], limit=limit) == expected[hub]
            both = store.neighbors(hubs, limit=limit)
            assert all(edge in both for edges in expected.values() for edge in edges)
            assert len(both) <= 2 * limit

"""Neighbours of hubs in a Ladybug database: a limit is pushed down, and gives what the contract says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphret.stores.ladybug import LadybugStore
from graphret.stores.ladybug.engine import Session
from graphret.testing.stores import expected_neighbors
from graphret.types import Edge, Node

HUBS = ["n000", "n001", "n002"]


@pytest.fixture(scope="module")
def graph() -> tuple[list[Node], list[Edge]]:
    """Three hubs of hundreds of edges among nodes of few; many edges weigh the same, some differ only by rows."""
    rng = random.Random(1)
    kinds = [("Person",), ("Film",), ("Film", "Old")]
    nodes = [Node(f"n{i:03}", kinds[i % 3], properties={"x": i} if i % 2 else {"x": str(i)}) for i in range(700)]
    edges: dict[tuple[Any, ...], Edge] = {}
    for i in range(3_000):
        source = rng.choice(HUBS) if rng.random() < 0.7 else rng.choice(nodes).id
        target = rng.choice(HUBS) if rng.random() < 0.2 else rng.choice(nodes).id
        relation, row = rng.choice(["LIKES", "SAW"]), rng.choice([None, 0, 1])
        rows = {} if row is None else {"source_row": row}
        weight = rng.choice([1.0, 1.0, 0.5, -0.0, 0.0])
        edges[source, relation, target, row] = Edge(source, relation, target, weight, {"i": i, **rows})
    return nodes, [*edges.values()]


@pytest.fixture(scope="module")
def store(graph: tuple[list[Node], list[Edge]]) -> Iterator[LadybugStore]:
    with LadybugStore(":memory:", nested="json") as store:
        store.upsert(*graph)
        yield store


@pytest.mark.parametrize("limit", [1, 7, 100])
@pytest.mark.parametrize("direction", ["both", "out", "in"])
def test_a_limit_is_one_for_each_anchor_whatever_its_degree(
    store: LadybugStore, graph: tuple[list[Node], list[Edge]], limit: int, direction: str
) -> None:
    anchors = [*HUBS, "n005", "n006", "n007", "nobody"]
    for options in (
        {},
        {"relations": ["SAW"]},
        {"labels": ["Old", "Person"]},
        {"where": {"x": {"$gt": 300}}},
        {"where": {"x": {"$gt": "3"}}},
    ):
        for ids in (anchors, HUBS, ["n001"], ["n005", "n006"]):
            given: dict[str, Any] = {**options, "limit": limit, "direction": direction}
            assert store.neighbors(ids, **given) == expected_neighbors(*graph, ids, **given), (ids, given)


def test_a_hub_among_others_is_not_read_whole(
    store: LadybugStore, graph: tuple[list[Node], list[Edge]], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, rows = 0, Session.rows

    def counting(self: Session, *arguments: Any) -> list[list[Any]]:
        nonlocal read
        found = rows(self, *arguments)
        read += len(found)
        return found

    monkeypatch.setattr(Session, "rows", counting)
    touching = sum(HUBS[0] in (e.source, e.target) or HUBS[1] in (e.source, e.target) for e in graph[1])
    assert touching > 1_000
    assert len(store.neighbors([*HUBS[:2], "n005"], limit=5)) <= 15
    assert read < touching / 4


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that something else wrote: parallel edges, weights of which some are null, numbers as keys."""
    import ladybug

    path = tmp_path_factory.mktemp("foreign") / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        for statement in (
            "CREATE NODE TABLE City(code INT64 PRIMARY KEY, title STRING)",
            "CREATE REL TABLE ROAD(FROM City TO City, weight DOUBLE, lanes INT64)",
            "CREATE REL TABLE RAIL(FROM City TO City, tracks INT64)",
            "UNWIND range(1, 500) AS i CREATE (:City {code: i})",
            "MATCH (a:City), (b:City) WHERE a.code <= 2 AND b.code % 2 = 0 "
            "CREATE (a)-[:ROAD {weight: CASE WHEN b.code % 5 = 0 THEN 3.0 END, lanes: b.code}]->(b)",
            "MATCH (a:City), (b:City) WHERE a.code <= 2 CREATE (b)-[:RAIL {tracks: 1}]->(a)",
            "MATCH (a:City), (b:City) WHERE a.code = 1 AND b.code < 30 CREATE (b)-[:RAIL {tracks: 2}]->(a)",
            "MATCH (a:City), (b:City) WHERE a.code = 1 AND b.code < 30 CREATE (b)-[:RAIL {tracks: 2}]->(a)",
        ):
            connection.execute(statement)
    return path


@pytest.mark.parametrize("layout", [{}, {"id_property": "code"}], ids=repr)
def test_a_limit_cuts_the_edges_of_a_foreign_graph_as_it_would_all(foreign: Path, layout: dict[str, str]) -> None:
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

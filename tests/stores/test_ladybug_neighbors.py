"""Neighbours of hubs in a Ladybug database: a limit is pushed down, and gives what the contract says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphret.stores.ladybug import LadybugStore
from graphret.stores.ladybug.engine import Session
from graphret.testing.reading import expected_neighbors
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


@pytest.fixture(scope="module")
def large() -> Iterator[tuple[LadybugStore, list[Node], list[Edge]]]:
    """Hubs of thousands of edges: of one weight, of many, of two; one of hundreds of edges to each of three nodes."""
    rng = random.Random(2)
    nodes = [Node(f"n{i:04}", ("Node",)) for i in range(2_500)]
    kinds = [[1.0], [i / 1_000 for i in range(1_000)], [2.0, *[1.0] * 800]]
    weights = {f"n{i:04}": kinds[i % 3] for i in range(9)}
    edges = [
        Edge(hub, "TO", node.id, rng.choice(own))
        for hub, own in weights.items()
        for node in rng.sample(nodes[10:], 1_000)
    ]
    edges += [Edge("n0009", "TO", f"n00{i % 3 + 10}", 1.0, {"source_row": i}) for i in range(900)]
    with LadybugStore(":memory:") as store:
        store.upsert(nodes, edges)
        yield store, nodes, edges


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows that each statement returned."""
    counts: list[int] = []
    rows = Session.rows

    def counting(self: Session, *arguments: Any) -> list[list[Any]]:
        found = rows(self, *arguments)
        counts.append(len(found))
        return found

    monkeypatch.setattr(Session, "rows", counting)
    return counts


@pytest.mark.parametrize("limit", [3, 40])
@pytest.mark.parametrize(
    ("hubs", "most"),
    [
        (["n0000"], 5),
        ([f"n{i:04}" for i in range(9)], 5),
        ([f"n{i:04}" for i in range(9)] + ["n1000"], 6),
        (["n0009"], 6),
        ([f"n{i:04}" for i in range(10)], 7),
    ],
    ids=repr,
)
def test_hubs_are_not_read_whole_and_not_one_by_one(
    large: tuple[LadybugStore, list[Node], list[Edge]], statements: list[int], hubs: list[str], most: int, limit: int
) -> None:
    store, nodes, edges = large
    statements.clear()
    found = store.neighbors(hubs, direction="out", limit=limit)
    assert len(statements) <= most
    assert "n0009" in hubs or sum(statements) < 500 * len(hubs)
    assert found == expected_neighbors(nodes, edges, hubs, direction="out", limit=limit)


@pytest.fixture(scope="module", params=["DOUBLE", "FLOAT", "INT128", "STRING"])
def foreign(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A database that something else wrote: parallel edges, numbers as keys, weights of which some are none."""
    import ladybug

    kind = request.param
    odd = f"WHEN b.code % 3 = 0 THEN CAST('nan' AS {kind}) WHEN b.code % 7 = 0 THEN CAST('inf' AS {kind}) "
    weight = f"CASE WHEN b.code % 5 = 0 THEN CAST(3 AS {kind}) {odd if kind in ('DOUBLE', 'FLOAT') else ''}END"
    path = tmp_path_factory.mktemp("foreign") / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        for statement in (
            "CREATE NODE TABLE City(code INT64 PRIMARY KEY, title STRING)",
            f"CREATE REL TABLE ROAD(FROM City TO City, weight {kind}, lanes INT64)",
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

"""`LadybugStore` keeps the contract of stores; its conditions, limits and schema."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from graphret.cypher import check, codes, run_checked
from graphret.errors import InvalidInput
from graphret.stores.ladybug import LadybugStore
from graphret.stores.ladybug import store as module
from graphret.stores.ladybug.database import Session
from graphret.stores.memory import MemoryStore
from graphret.testing.graphs import (
    all_nodes,
    check_schema,
    expected_neighbors,
    random_graph,
)
from graphret.testing.stores import CypherStoreSuite
from graphret.types import Edge, Node
from graphret.where import Where


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows that each statement of a Ladybug returned."""
    counts: list[int] = []
    rows = Session.rows

    def counting(self: Session, *arguments: Any) -> list[list[Any]]:
        result_rows = rows(self, *arguments)
        counts.append(len(result_rows))
        return result_rows

    monkeypatch.setattr(Session, "rows", counting)
    return counts


def test_plans_of_earlier_queries_leave_memory_for_the_next() -> None:
    query = (
        "MATCH (p:Paper) WHERE p.id <> 'x{}' WITH DISTINCT p ORDER BY p.id SKIP 0"
        " RETURN p.name, count(*)"
    )
    with LadybugStore(":memory:", buffer_pool_size=64 << 20) as store:
        store.upsert([Node(f"p{i}", ("Paper",), f"paper {i}") for i in range(9)], [])
        for i in range(100):
            assert len(store.query(query.format(i), {}, timeout=5.0)) == 9


def test_of_a_hub_no_more_is_read_than_a_limit_needs(
    monkeypatch: pytest.MonkeyPatch, rows_read: list[int]
) -> None:
    """A condition on a map is decided here, of the heaviest edges block by block."""
    nodes = [Node(f"n{i:04}", ("A",), properties={"at": {"x": i}}) for i in range(300)]
    edges = [Edge("hub", "R", node.id, 1 / (i + 1)) for i, node in enumerate(nodes)]
    monkeypatch.setattr("graphret.stores.database.FIRST_READ", 20, raising=False)
    with LadybugStore(":memory:") as store:
        store.upsert([Node("hub", ("A",)), *nodes], edges)
        for least, most_read in ((5, 21), (30, 81), (297, 301)):
            rows_read.clear()
            where = {"at.x": {"$gte": least}}
            neighbors = store.neighbors(["hub"], where=where, limit=2)
            assert neighbors == edges[least : least + 2]
            assert max(rows_read) <= most_read
        assert store.neighbors(["hub"], where={"at.x": -1}, limit=2) == []
        assert len(store.neighbors(["hub"], where={"at.x": {"$lt": 50}})) == 50


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
        for hub, weights in zip(
            hubs, ([1.0], [1.0, 2.0], [i / 1_000 for i in range(1_000)]), strict=True
        )
        for node in nodes[10:2_000]
    ]
    edges += [Edge("n0005", "TO", node.id) for node in nodes[20:30]] + [
        Edge("n0001", "TO", "n0001")
    ]
    with LadybugStore(":memory:") as store:
        store.upsert(nodes, edges)
        for ids in (hubs[:1], hubs, [*hubs, "n0005"]):
            for limit in (3, 40):
                rows_read.clear()
                neighbors = store.neighbors(ids, direction="out", limit=limit)
                assert neighbors == expected_neighbors(
                    nodes, edges, ids, direction="out", limit=limit
                )
                assert max(rows_read) <= max(limit, 10)
        for options in (
            {"labels": ["Odd"]},
            {"where": {"x": {"$lt": 900}}},
            {"direction": "in"},
        ):
            limited: dict[str, Any] = {"limit": 7, **options}
            assert store.neighbors([*hubs, "n0005"], **limited) == expected_neighbors(
                nodes, edges, [*hubs, "n0005"], **limited
            )


#: By property, values that one column holds together, and some that it does not.
KINDS: dict[str, list[Any]] = {
    "whole": [0, 1, -1, 2**53],
    "real": [0.0, 1.0, 0.5, -2.5],
    "text": ["", "a", "A", "ab", "é", "'\"`\\"],
    "flag": [True, False],
    "texts": [[], ["a"], ["a", "b"], [""]],
    "mixed": [1, "one", [1, "one"], {"a": {"b": 1}}, {"a": "x"}, 2**70, True, None],
    "name": ["inner", "outer"],
    "a.b": [1, 2],
}
FIELDS = [
    *KINDS,
    "absent",
    "id",
    "mixed.a.b",
    "mixed.a",
    "properties.whole",
    "properties.mixed",
    "properties.name",
]
OPERANDS: list[Any] = [
    1,
    1.5,
    True,
    "",
    "a",
    "one",
    "n1",
    2**70,
    "a\0",
    ["a"],
    [1, "one"],
    None,
]


def test_conditions_mean_what_they_say() -> None:
    nodes = [
        Node(
            f"n{i}",
            [("Odd",), ("Even", "Odd"), ()][i % 3],
            ["", "a"][i % 2],
            "",
            {k: v[i % len(v)] for k, v in own},
        )
        for i in range(18)
        for own in [[*KINDS.items()][i % 4 :]]
    ]
    edges = [Edge("n0", "TO", node.id) for node in nodes]
    conditions = [
        {field: {op: one}}
        for field in FIELDS
        for op in ("$eq", "$gt", "$contains")
        for one in OPERANDS
    ]
    conditions += [
        {field: {op: OPERANDS[k::2]}}
        for field in FIELDS
        for op in ("$in", "$nin")
        for k in range(2)
    ]
    with LadybugStore(":memory:") as store:
        store.upsert(nodes, edges)
        memory, ids = (
            MemoryStore.of(all_nodes(store), edges),
            [node.id for node in nodes],
        )
        for condition in conditions[::3]:
            where = Where.parse(condition)
            assert where is not None
            expected = {node.id for node in nodes if where.matches(node)}
            assert {
                node.id for node in all_nodes(store, where=condition)
            } == expected, condition
        views = 0
        for condition in (
            {"$or": [one, {"$not": other}]}
            for one, other in zip(conditions[::50], conditions[7::50], strict=False)
        ):
            with suppress(
                InvalidInput
            ):  # where the database does not decide the condition by itself
                view, shown = store.view(condition), memory.view(condition)
                assert view.count() == shown.count(), condition
                assert view.get(ids) == shown.get(ids), condition
                assert view.neighbors(ids) == shown.neighbors(ids), condition
                assert [
                    edge for block in view.edges() for edge in block
                ] == view.neighbors(ids, direction="out")
                views += 1
            for limit in (None, 1):
                options: dict[str, Any] = {
                    "where": condition,
                    "labels": ["Odd"],
                    "limit": limit,
                }
                assert store.neighbors(ids[:2], **options) == memory.neighbors(
                    ids[:2], **options
                ), options
        assert views >= 3
        with pytest.raises(InvalidInput, match="the database itself decides"):
            store.view({"mixed.a": "x"})


def test_the_database_decides_what_it_can(rows_read: list[int]) -> None:
    nodes = [
        Node(f"i{i}", ("Item",), f"name {i}", properties={"rank": i, "tags": [f"t{i}"]})
        for i in range(500)
    ]
    conditions: list[tuple[dict[str, Any], int]] = [
        ({"$or": [{"rank": 7}, {"name": "name 8"}]}, 2),
        ({"tags": {"$contains": "t5"}}, 1),
        (
            {"$and": [{"rank": {"$lt": 5}}, {"tags": ["t4"]}]},
            1,
        ),  # the second of the five that the first leaves
    ]
    with LadybugStore(":memory:") as store:
        store.upsert(nodes)
        for condition, n in conditions:
            rows_read.clear()
            assert len(all_nodes(store, where=condition)) == n
            assert max(rows_read) <= 8


NODES, EDGES = random_graph(8, 300, 900)
NODES += [Node("a", ("Odd",), properties={"age": 10}), Node("b", ("Odd", "Actor"))]
EDGES.append(Edge("a", "ONCE", "b"))


@pytest.fixture(scope="module")
def store() -> Iterator[LadybugStore]:
    with LadybugStore(":memory:") as store:
        store.upsert(NODES, EDGES)
        yield store


def test_counts_are_exact_and_properties_are_sampled(
    store: LadybugStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_schema = store.schema()
    assert not full_schema.sampled
    monkeypatch.setattr(module, "SAMPLE", 20)
    schema = store.schema()
    assert schema == store.schema()
    check_schema(schema, NODES, EDGES)
    assert (schema.labels, schema.relations) == (
        full_schema.labels,
        full_schema.relations,
    )
    assert schema.sampled_properties == {"Person", "Film", "Actor", "Tag"}
    assert schema.sampled_relation_properties == {"KNOWS", "LIKES", "MADE"}
    age = schema.properties["Person"]["age"]
    assert (age.type, age.coverage) == (
        "INTEGER",
        pytest.approx(full_schema.properties["Person"]["age"].coverage, abs=0.3),
    )
    (error,) = check(
        "MATCH (f:Tag)-[:ONCE]->(p:Odd) RETURN p LIMIT 1", schema, dialect="ladybug"
    ).errors
    assert error.kind == codes.WRONG_ENDS


def test_the_schema_of_a_view_shows_nothing_else(store: LadybugStore) -> None:
    label = {
        n.id: n.label
        for n in NODES
        if n.properties.get("age") in (10, 20) and "Actor" not in n.labels
    }
    schema = store.view({"age": {"$lt": 25}, "label": {"$ne": "Actor"}}).schema()
    assert schema.labels == Counter(label.values())
    visible_edges = (
        edge for edge in EDGES if {edge.source, edge.target} <= label.keys()
    )
    assert schema.relations == Counter(
        (label[edge.source], edge.relation, label[edge.target])
        for edge in visible_edges
    )
    assert "ONCE" not in schema.relation_names


def test_columns_that_every_table_has_are_known_though_nothing_is_in_them() -> None:
    with LadybugStore(":memory:") as store:
        store.upsert([Node("a", ("A",)), Node("b", ("B b",))], [Edge("a", "R r", "b")])
        schema = store.schema()
        query = (
            "MATCH (a:A)-[r:`R r`]->(b:`B b`) RETURN r.weight, r.source_row, a.name,"
            " B.TEXT, a.labels"
        )
        assert run_checked(store, query, schema=schema).rows == [
            (1.0, None, "", "", ["A"])
        ]
        for wrong in ("r.name", "a.weight", "r.weigth", "b.brand"):
            findings = check(
                f"MATCH (a:A)-[r:`R r`]->(b:`B b`) RETURN {wrong}",
                schema,
                dialect="ladybug",
            ).errors
            assert [finding.kind for finding in findings] in (
                [codes.UNKNOWN_PROPERTY],
                [codes.MISPLACED_PROPERTY],
            ), wrong
        assert store.view({"id": "a"}).schema().columns.keys() == {"A"}

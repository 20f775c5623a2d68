"""The schema of a Ladybug database: labels and triples are counted, properties of what is large are sampled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from graphret.cypher import check, kinds, run_checked
from graphret.stores.ladybug import LadybugStore
from graphret.stores.ladybug import store as module
from graphret.types import Edge, Node

N = 2_000


@pytest.fixture(scope="module")
def graph() -> tuple[list[Node], list[Edge]]:
    rng = random.Random(0)
    kinds = [("Person", "Author"), ("Person",), ("Film",), ("Film",)]
    nodes = [
        Node(f"n{i:05}", kinds[i % 4], f"name {i}", "", {"period": i % 100} | ({"half": True} if i % 8 < 4 else {}))
        for i in range(N)
    ]
    edges = [
        Edge(f"n{i:05}", "SAW" if k else "KNOWS", f"n{rng.randrange(N):05}", 1.0, {"stars": (i + k) % 5})
        for i in range(N)
        for k in range(3)
    ]
    return nodes, [*edges, Edge("n00000", "MADE", "n00002")]


@pytest.fixture(scope="module")
def store(graph: tuple[list[Node], list[Edge]]) -> Iterator[LadybugStore]:
    with LadybugStore(":memory:") as store:
        store.upsert(*graph)
        yield store


def triples(nodes: list[Node], edges: list[Edge]) -> Counter[tuple[str, str, str]]:
    label = {node.id: node.label for node in nodes}
    return Counter(
        (label[e.source], e.relation, label[e.target]) for e in edges if {e.source, e.target} <= label.keys()
    )


@pytest.mark.parametrize("sample", [N * 3, 100])
def test_counts_are_exact_and_properties_are_sampled(
    store: LadybugStore, graph: tuple[list[Node], list[Edge]], sample: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SAMPLE", sample)
    schema, whole = store.schema(), sample > N
    assert schema == store.schema()
    assert schema.labels == {"Author": N // 4, "Film": N // 2, "Person": N // 2}
    assert schema.relations == triples(*graph)
    assert schema.sampled is not whole
    assert not schema.sampled_names
    assert schema.sampled_properties == (set() if whole else {"Author", "Film", "Person"})
    assert schema.sampled_relation_properties == (set() if whole else {"KNOWS", "SAW"})
    half = schema.properties["Film"]["half"]
    assert half.type == "BOOLEAN"
    assert half.coverage == pytest.approx(0.5, abs=0.0 if whole else 0.2)
    assert schema.relation_properties["SAW"]["stars"].type == "INTEGER"
    (error,) = check("MATCH (f:Film)-[:MADE]->(p:Person) RETURN p LIMIT 1", schema, dialect="ladybug").errors
    assert error.kind == kinds.WRONG_DIRECTION
    (found,) = check("MATCH (f:Film) RETURN f.stars LIMIT 1", schema, dialect="ladybug").findings
    assert found.severity == ("error" if whole else "warning")


@pytest.mark.parametrize("condition", [{"period": {"$lt": 50}}, {"period": {"$in": [[1], *range(50)]}}], ids=str)
def test_the_schema_of_a_view_shows_nothing_else(
    store: LadybugStore, graph: tuple[list[Node], list[Edge]], condition: dict[str, object]
) -> None:
    """Of a condition that the database decides, and of one that it cannot."""
    kept = [node for node in graph[0] if node.properties["period"] < 50 and "Author" not in node.labels]
    schema = store.view({**condition, "label": {"$ne": "Author"}}).schema()
    assert schema.labels == Counter(node.label for node in kept)
    assert schema.relations == triples(kept, graph[1])
    assert "MADE" not in schema.relation_names


def test_columns_that_every_table_has_are_known_though_nothing_is_in_them() -> None:
    with LadybugStore(":memory:") as store:
        store.upsert([Node("a", ("A",)), Node("b", ("B b",))], [Edge("a", "R r", "b")])
        schema = store.schema()
        query = "MATCH (a:A)-[r:`R r`]->(b:`B b`) RETURN r.weight, r.source_row, a.name, B.TEXT, a.labels"
        assert run_checked(store, query, schema=schema).rows == [(1.0, None, "", "", ["A"])]
        for wrong in ("r.name", "a.weight", "r.weigth", "b.brand"):
            found = check(f"MATCH (a:A)-[r:`R r`]->(b:`B b`) RETURN {wrong}", schema, dialect="ladybug").errors
            assert [one.kind for one in found] in ([kinds.UNKNOWN_PROPERTY], [kinds.MISPLACED_PROPERTY]), wrong
        assert "source_row" not in schema.text()
        assert store.view({"id": "a"}).schema().columns.keys() == {"A"}

"""The schema of a Ladybug database: exact where it is small, and estimated, the same each time, where it is large."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from graphret.cypher import check, kinds, run_checked
from graphret.errors import QueryRefused
from graphret.stores.ladybug import LadybugStore, sampling
from graphret.types import Edge, Node

N = 4_000


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


def exact(nodes: list[Node], edges: list[Edge]) -> Counter[tuple[str, str, str]]:
    label = {node.id: node.label for node in nodes}
    return Counter((label[e.source], e.relation, label[e.target]) for e in edges)


def test_a_graph_that_is_not_large_is_read_whole(store: LadybugStore, graph: tuple[list[Node], list[Edge]]) -> None:
    schema = store.schema(sample=N * 3)
    assert not schema.sampled
    assert schema.labels == {"Author": N // 4, "Film": N // 2, "Person": N // 2}
    assert schema.relations == exact(*graph)
    assert schema.properties["Film"]["half"].coverage == 0.5
    assert schema.relation_properties["SAW"]["stars"].coverage == 1.0


def test_a_large_graph_is_sampled_and_says_so(store: LadybugStore, graph: tuple[list[Node], list[Edge]]) -> None:
    schema = store.schema(sample=200)
    assert schema.sampled
    assert schema.relations == exact(*graph)  # counted: the nodes are no more than may be
    assert schema.labels == {"Author": N // 4, "Film": N // 2, "Person": N // 2}  # counted too
    film = schema.properties["Film"]
    assert film["half"].coverage == pytest.approx(0.5, abs=0.1)
    assert film["period"].type == "INTEGER"
    assert schema.relation_properties["SAW"]["stars"].type == "INTEGER"


def test_the_guard_refuses_what_a_large_database_cannot_hold(store: LadybugStore) -> None:
    schema = store.schema(sample=200)
    assert (schema.sampled_relations, schema.sampled_relation_properties) == (frozenset(), {"KNOWS", "SAW"})
    assert not schema.sampled_names
    assert schema.sampled_properties == {"Author", "Film", "Person"}
    (error,) = check("MATCH (f:Film)-[:MADE]->(p:Person) RETURN p LIMIT 1", schema, dialect="ladybug").errors
    assert error.kind == kinds.WRONG_DIRECTION
    with pytest.raises(QueryRefused, match="MADE"):
        run_checked(store, "MATCH (f:Film)-[:MADE]->(p:Person) RETURN p LIMIT 1", schema=schema)
    report = check("MATCH (f:Film) RETURN f.stars LIMIT 1", schema, dialect="ladybug")
    assert [finding.severity for finding in report.findings] == ["warning"]


def test_second_labels_are_counted_where_the_nodes_are_not_too_many(
    store: LadybugStore, graph: tuple[list[Node], list[Edge]]
) -> None:
    for counted, exactly in ((N, True), (N - 1, False)):
        schema = store.schema(sample=200, counted=counted)
        assert schema.labels["Author"] == (N // 4 if exactly else pytest.approx(N // 4, rel=0.2))
        assert (schema.labels["Film"], schema.labels["Person"]) == (N // 2, N // 2)
        assert schema.sampled_names != exactly  # of a sample, a rare second label may be missing
        (found,) = check("MATCH (n:Rare) RETURN n LIMIT 1", schema, dialect="ladybug").findings
        assert found.severity == "error"
    view = store.view({"period": {"$lt": 50}, "label": {"$ne": "Film"}})
    schema = view.schema(sample=100)
    kept = [node for node in graph[0] if node.properties["period"] < 50 and "Film" not in node.labels]
    assert schema.labels == Counter(label for node in kept for label in node.labels)
    assert (schema.sampled, schema.sampled_names) == (True, False)


def test_what_a_small_table_lacks_is_known_beside_a_large_one() -> None:
    nodes = [Node("hub", ("Hub",), properties={"x": 1}), *(Node(f"n{i}", ("Leaf",), "leaf") for i in range(300))]
    with LadybugStore(":memory:") as store:
        store.upsert(nodes, [Edge("hub", "HAS", "n1", 1.0, {"since": 1})])
        schema = store.schema(sample=50)
    assert (schema.sampled_names, schema.sampled_relations, schema.sampled_relation_properties) == (False, set(), set())
    assert schema.sampled_properties == {"Leaf"}
    known = {
        "MATCH (l:Leaf)-[:HAS]->(h:Hub) RETURN h LIMIT 1": "error",
        "MATCH (h:Hub) RETURN h.since LIMIT 1": "error",
        "MATCH (l:Leaf) RETURN l.x LIMIT 1": "warning",
    }
    for query, severity in known.items():
        assert [found.severity for found in check(query, schema, dialect="ladybug").findings] == [severity]


def test_edges_of_a_large_graph_are_estimated(store: LadybugStore, graph: tuple[list[Node], list[Edge]]) -> None:
    schema = store.schema(sample=400, counted=0)
    assert schema.sampled
    counts = exact(*graph)
    assert schema.relations.keys() == counts.keys()
    assert schema.relations["Person", "MADE", "Film"] == 1  # too rare to be drawn, and so looked up
    assert schema.sampled_relations == frozenset()  # so that none is missing
    for triple, n in counts.items():
        if n > 100:
            assert schema.relations[triple] == pytest.approx(n, rel=0.25)


def test_triples_beyond_those_looked_up_may_be_missing(store: LadybugStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_LOOKED_UP", 0)
    schema = store.schema(sample=400, counted=0)
    assert "MADE" not in schema.relation_names
    assert (schema.sampled_names, schema.sampled_relations) == (True, frozenset())
    monkeypatch.setattr(sampling, "_LOOKED_UP", 1)
    assert "MADE" in store.schema(sample=400, counted=0).relation_names


def test_a_relation_with_a_pair_that_was_not_looked_up_is_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_LOOKED_UP", 0)
    nodes = [Node(f"a{i}", ("A",)) for i in range(400)]
    edges = [Edge(f"a{i}", relation, f"a{(i + 1) % 400}") for i in range(400) for relation in ("R", "S")]
    with LadybugStore(":memory:") as store:
        store.upsert([*nodes, Node("b", ("B",))], [*edges, Edge("a0", "R", "b")])
        schema = store.schema(sample=20, counted=0)
        assert set(schema.relations) == {("A", "R", "A"), ("A", "S", "A")}
        assert schema.sampled_relations == {"R"}
        for relation, severity in (("R", "warning"), ("S", "error")):
            query = f"MATCH (a:A)-[:{relation}]->(b:B) RETURN b LIMIT 1"
            assert {found.severity for found in check(query, schema, dialect="ladybug").findings} == {severity}
        assert store.schema(sample=20).relations["A", "R", "B"] == 1
        assert store.schema(sample=20).sampled_relations == frozenset()


def test_rows_with_a_period_are_drawn_from_all_of_it(store: LadybugStore) -> None:
    """Every second person is an author: every fortieth row would show none of them or nothing else."""
    drawn = [store.schema(sample=sample, counted=0).labels["Author"] for sample in (25, 50, 100, 250, 500)]
    assert drawn == pytest.approx([N // 4] * len(drawn), rel=0.3)


def test_the_same_graph_has_the_same_schema(store: LadybugStore) -> None:
    for options in ({}, {"sample": 100}, {"sample": 100, "counted": 0}):
        assert store.schema(**options) == store.schema(**options)


def test_the_sampled_schema_of_a_view_shows_nothing_else(
    store: LadybugStore, graph: tuple[list[Node], list[Edge]]
) -> None:
    nodes, edges = graph
    kept = [node for node in nodes if node.properties["period"] < 50 and "Author" not in node.labels]
    ids = {node.id for node in kept}
    view = store.view({"period": {"$lt": 50}, "label": {"$ne": "Author"}})
    counts = exact(nodes, [e for e in edges if e.source in ids and e.target in ids])
    for counted in (0, 10**9):
        schema = view.schema(sample=100, counted=counted)
        assert schema.sampled
        assert schema.labels == Counter(node.label for node in kept)
        assert schema.relations.keys() == counts.keys()
        assert "MADE" not in schema.relation_names
        for triple, n in counts.items():
            assert schema.relations[triple] == (pytest.approx(n, rel=0.5) if not counted else n)


def test_few_sources_of_many_edges_show_their_properties() -> None:
    nodes = [Node("hub", ("Hub",)), *(Node(f"n{i}", ("Leaf",)) for i in range(2_500))]
    edges = [Edge("hub", "HAS", node.id, 1.0, {"since": i}) for i, node in enumerate(nodes[1:])]
    with LadybugStore(":memory:") as store:
        store.upsert(nodes, edges)
        schema = store.schema(sample=50)
        assert schema.sampled
        assert schema.relations == {("Hub", "HAS", "Leaf"): 2_500}
        assert schema.relation_properties["HAS"]["since"].coverage == 1.0


@pytest.mark.parametrize("weight", [1.0, 2.5])
def test_columns_that_every_table_has_are_known_though_nothing_is_in_them(weight: float) -> None:
    with LadybugStore(":memory:") as store:
        store.upsert([Node("a", ("A",)), Node("b", ("B b",))], [Edge("a", "R r", "b", weight)])
        schema = store.schema()
        query = "MATCH (a:A)-[r:`R r`]->(b:`B b`) RETURN r.weight, r.source_row, a.name, B.TEXT, a.labels"
        assert run_checked(store, query, schema=schema).rows == [(weight, None, "", "", ["A"])]
        for wrong in ("r.name", "a.weight", "r.weigth", "b.brand"):
            found = check(f"MATCH (a:A)-[r:`R r`]->(b:`B b`) RETURN {wrong}", schema, dialect="ladybug").errors
            assert [one.kind for one in found] in ([kinds.UNKNOWN_PROPERTY], [kinds.MISPLACED_PROPERTY]), wrong
        assert "source_row" not in schema.text()
        assert not check(query, type(schema).from_dict(schema.to_dict()), dialect="ladybug").errors
        assert store.view({"id": "a"}).schema().columns.keys() == {"A"}

"""The schema of a Ladybug database: labels and triples are counted, properties of what is large are sampled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from graphret.cypher import check, kinds, run_checked
from graphret.stores.ladybug import LadybugStore
from graphret.stores.ladybug import store as module
from graphret.testing.graphs import check_schema, random_graph
from graphret.types import Edge, Node

NODES, EDGES = random_graph(8, 300, 900)
NODES += [Node("a", ("Odd",), properties={"age": 10}), Node("b", ("Odd", "Actor"))]
EDGES.append(Edge("a", "ONCE", "b"))


@pytest.fixture(scope="module")
def store() -> Iterator[LadybugStore]:
    with LadybugStore(":memory:") as store:
        store.upsert(NODES, EDGES)
        yield store


def test_counts_are_exact_and_properties_are_sampled(store: LadybugStore, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = store.schema()
    assert not whole.sampled
    monkeypatch.setattr(module, "SAMPLE", 20)
    schema = store.schema()
    assert schema == store.schema()
    check_schema(schema, NODES, EDGES, primary=True)
    assert (schema.labels, schema.relations) == (whole.labels, whole.relations)
    assert schema.sampled_properties == {"Person", "Film", "Actor", "Tag"}
    assert schema.sampled_relation_properties == {"KNOWS", "LIKES", "MADE"}
    age = schema.properties["Person"]["age"]
    assert (age.type, age.coverage) == ("INTEGER", pytest.approx(whole.properties["Person"]["age"].coverage, abs=0.3))
    (error,) = check("MATCH (f:Tag)-[:ONCE]->(p:Odd) RETURN p LIMIT 1", schema, dialect="ladybug").errors
    assert error.kind == kinds.WRONG_ENDS


def test_the_schema_of_a_view_shows_nothing_else(store: LadybugStore) -> None:
    label = {n.id: n.label for n in NODES if n.properties.get("age") in (10, 20) and "Actor" not in n.labels}
    schema = store.view({"age": {"$lt": 25}, "label": {"$ne": "Actor"}}).schema()
    assert schema.labels == Counter(label.values())
    there = (edge for edge in EDGES if {edge.source, edge.target} <= label.keys())
    assert schema.relations == Counter((label[edge.source], edge.relation, label[edge.target]) for edge in there)
    assert "ONCE" not in schema.relation_names


def test_columns_that_every_table_has_are_known_though_nothing_is_in_them() -> None:
    with LadybugStore(":memory:") as store:
        store.upsert([Node("a", ("A",)), Node("b", ("B b",))], [Edge("a", "R r", "b")])
        schema = store.schema()
        query = "MATCH (a:A)-[r:`R r`]->(b:`B b`) RETURN r.weight, r.source_row, a.name, B.TEXT, a.labels"
        assert run_checked(store, query, schema=schema).rows == [(1.0, None, "", "", ["A"])]
        for wrong in ("r.name", "a.weight", "r.weigth", "b.brand"):
            found = check(f"MATCH (a:A)-[r:`R r`]->(b:`B b`) RETURN {wrong}", schema, dialect="ladybug").errors
            assert [one.kind for one in found] in ([kinds.UNKNOWN_PROPERTY], [kinds.MISPLACED_PROPERTY]), wrong
        assert store.view({"id": "a"}).schema().columns.keys() == {"A"}

"""Properties of nodes that have no label."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphret import Edge, Node
from graphret.cypher import check
from graphret.schema import GraphSchema, SchemaBuilder
from graphret.stores import MemoryStore

NODES = [
    Node("a", ("Person",), "Ann", properties={"born": 1970}),
    Node("b", (), "Bob", properties={"note": "x"}),
    Node("c", (), "Cid", properties={"note": "y", "grade": 3}),
]
EDGES = [Edge("a", "SAW", "b"), Edge("b", "SAW", "a")]


@pytest.fixture(scope="module")
def schema() -> GraphSchema:
    store = MemoryStore()
    store.upsert(NODES, EDGES)
    return store.schema()


def kinds_of(query: str, schema: GraphSchema) -> list[str]:
    return [f"{f.severity} {f.kind}" for f in check(f"MATCH {query} LIMIT 1", schema).findings]


def test_the_schema_has_them_under_the_empty_label(schema: GraphSchema) -> None:
    builder = SchemaBuilder()
    builder.observe_nodes(NODES)
    built = builder.build({"Person": 1}, {})
    for found in (schema, built):
        assert found.labels == {"Person": 1}
        assert set(found.properties[""]) == {"note", "grade"}
        assert found.properties[""]["grade"].coverage == 0.5
        assert GraphSchema.from_dict(found.to_dict()) == found
    assert "() {grade: INTEGER" in schema.text()
    assert "Left out" not in schema.text()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("(n) RETURN n.note", []),
        ("(n {note: 'x'}) RETURN n", []),
        ("(n)-[:SAW]->(m) RETURN n.note, m.grade", []),
        ("(n) RETURN n.nothing", ["error unknown-property"]),
        ("(n:Person) RETURN n.note", ["error misplaced-property"]),
        ("(n:Person) RETURN n.nothing", ["error unknown-property"]),
    ],
)
def test_they_are_known_of_a_node_without_a_label(query: str, found: list[str], schema: GraphSchema) -> None:
    assert kinds_of(query, schema) == found


def test_a_node_without_a_label_may_have_any_property_where_the_schema_has_none_of_them(schema: GraphSchema) -> None:
    counted = GraphSchema({"Person": 1}, schema.relations, {"Person": schema.properties["Person"]})
    partly = replace(schema, sampled_properties={""})
    for lacking in (counted, partly):
        assert kinds_of("(n) RETURN n.nothing", lacking) == ["warning unknown-property"]
        assert kinds_of("(:Person)-->(n) RETURN n.nothing", lacking) == ["warning unknown-property"]
        assert kinds_of("(n:Person) RETURN n.nothing", lacking) == ["error unknown-property"]
        assert kinds_of("()-[r]->() RETURN r.nothing", lacking) == ["error unknown-property"]


def test_messages_name_nodes_without_a_label() -> None:
    schema = GraphSchema({"Person": 1}, {("Person", "SAW", ""): 1, ("Person", "KNOWS", "Person"): 1}, {"": {}})
    (error,) = check("MATCH (:Person)-[:SAW]->(:Person) RETURN 1", schema).errors
    assert error.message == "SAW does not join Person and Person; it joins (Person)-[:SAW]->()"

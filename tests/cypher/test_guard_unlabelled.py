"""Properties of nodes that have no label."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphret import Edge, Node
from graphret.cypher import check
from graphret.schema import GraphSchema
from graphret.stores import MemoryStore

WHOLE = MemoryStore.of(
    [
        Node("a", ("Person",), "Ann", properties={"born": 1970}),
        Node("b", (), "Bob", properties={"note": "x"}),
        Node("c", (), "Cid", properties={"note": "y", "grade": 3}),
    ],
    [Edge("a", "SAW", "b"), Edge("b", "SAW", "a")],
).schema()
PARTLY = replace(WHOLE, sampled_properties={""})


@pytest.mark.parametrize(
    ("schema", "query", "found"),
    [
        (WHOLE, "(n) RETURN n.note", []),
        (WHOLE, "(n)-[:SAW]->(m) RETURN n.note, m.grade", []),
        (WHOLE, "(n) RETURN n.nothing", ["error unknown-property"]),
        (WHOLE, "(n:Person) RETURN n.note", ["error misplaced-property"]),
        (WHOLE, "(n:Person) RETURN n.nothing", ["error unknown-property"]),
        (PARTLY, "(n) RETURN n.nothing", ["warning unknown-property"]),
        (PARTLY, "(:Person)-->(n) RETURN n.nothing", ["warning unknown-property"]),
        (PARTLY, "(n:Person) RETURN n.nothing", ["error unknown-property"]),
    ],
)
def test_they_are_known_of_a_node_without_a_label(schema: GraphSchema, query: str, found: list[str]) -> None:
    findings = check(f"MATCH {query} LIMIT 1", schema).findings
    assert [f"{finding.severity} {finding.kind}" for finding in findings] == found

"""Conditions in Neo4j, on values that the contract does not have, mean what they mean for the node as it is read."""

from __future__ import annotations

from typing import Any

import neo4j
import pytest

from graphret.errors import InvalidInput
from graphret.stores.neo4j import Neo4jStore
from graphret.testing.graphs import all_nodes
from graphret.types import Node
from graphret.where import Where

#: What the database decides by itself, and what it leaves to `Where.matches`.
DECIDED: list[dict[str, Any]] = [
    *({"v": value} for value in ("2020-01-02", "2020-01-02T10:00:00Z", "P1D", "10:00:00", 1.5, True, ["a"])),
    *({"v": {"$gte": value}} for value in ("2020", "x", 1)),
    {"v": {"$lt": "2020-01-02T10:00:00.5Z"}},
    *({"v": {"$in": value}} for value in (["2020-01-02", 1], [["a"], "x"], [None, True])),
    {"v": {"$nin": ["2020-01-02", 1]}},
    *({"v": {"$contains": value}} for value in ("a", "0", 1, True)),
    {"v": {"$exists": False}},
    *({"v": {"$ne": value}} for value in (None, "x", ["a"])),
    {"properties.name": "inner"},
    {"name": {"$contains": "1"}},
]
LEFT: list[dict[str, Any]] = [
    *({"v": {operator: 2**60}} for operator in ("$eq", "$ne", "$gte", "$lt")),
    *({"v": {"$in": value}} for value in ([2**60], [[1, "a"]])),
    {"v": {"$contains": [1]}},
    {"$not": {"w.a": 1}},
    {"$or": [{"v": 1}, {"w.a": {"$exists": True}}]},
    {"$and": [{"w.a": {"$exists": True}}, {"v": {"$exists": True}}, {"id": {"$gt": "0"}}]},
]
OWN: list[Any] = ["x", "abc", 1, 2**60, 1.5, True, ["a"], ["a", "b"], [1], None, []]
FOREIGN = (
    "'x', 'abc', 1, 1152921504606846976, 1.5, true, ['a'], [1], date('2020-01-02'), datetime('2020-01-02T10:00Z'), "
)
FOREIGN += "localdatetime('2020-01-02T10:00:00.5'), localtime('10:00'), duration('P1D'), '2020-01-02', null"


@pytest.fixture(scope="module")
def everyone(neo4j_module: neo4j.Driver) -> dict[str, tuple[Neo4jStore, list[Node]]]:
    """Nodes with a value of every kind, of graphret's and of something else."""
    own = Neo4jStore.from_driver(neo4j_module)
    own.upsert(
        Node(f"{i}", (), f"n{i}", "", {"v": value, "name": "inner", "w": {"a": i}}) for i, value in enumerate(OWN)
    )
    for i, value in enumerate(FOREIGN.split(", ")):
        neo4j_module.execute_query(f"CREATE (:Theirs {{sku: {i}, title: 'n{i}', v: {value}}})")
    theirs = Neo4jStore.from_driver(neo4j_module, id_property="sku", label="Theirs", name_property="title")
    return {"own": (own, all_nodes(own)), "theirs": (theirs, all_nodes(theirs))}


@pytest.mark.parametrize("whose", ["own", "theirs"])
def test_a_condition_means_what_it_means_for_the_node_as_it_is_read(everyone: dict[str, Any], whose: str) -> None:
    store, nodes = everyone[whose]
    assert len(nodes) == (len(OWN) if whose == "own" else FOREIGN.count(", ") + 1)
    for asked in (*DECIDED, *LEFT):
        where = Where.parse(asked)
        assert where is not None
        expected = [node.id for node in nodes if where.matches(node)]
        assert [node.id for node in all_nodes(store, where=asked)] == expected, asked
        if asked in LEFT:
            with pytest.raises(InvalidInput, match="the database itself decides"):
                store.view(asked)
        else:
            assert store.view(asked).restriction == where

"""`Neo4jStore`, on a real server, keeps the contract of stores."""

from __future__ import annotations

from collections.abc import Iterator

import neo4j
import pytest

from graphret.stores.neo4j import Neo4jStore
from graphret.testing.stores import CypherStoreSuite
from graphret.types import Edge, Node

Auth = tuple[str, str] | None


class TestNeo4jStore(CypherStoreSuite):
    @pytest.fixture
    def store(self, neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth) -> Iterator[Neo4jStore]:
        with Neo4jStore(neo4j_uri, auth=neo4j_auth) as store:
            yield store


def test_what_is_internal_is_hidden(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    odd = Node("x", ("B", "A"), "n", "t", {"id": 1, "name": "own", "graphret_text": "mine", "deep": {"a": [1]}})
    edge = Edge("x", "R", "y", 2.0, {"weight": "own", "deep": [[1], None], "large": 2**63})
    store.upsert([odd, Node("y", ())], [edge])
    again = Neo4jStore.from_driver(neo4j_empty)
    assert again.get(["x", "y"]) == [odd, Node("y", ())]
    assert again.neighbors(["y"]) == [edge]
    assert again.query("MATCH (n:A)-[r]->(m) RETURN r, [m], {n: n}").rows == [(edge, [Node("y", ())], {"n": odd})]
    assert again.query("MATCH p = (:A)-->() RETURN p").rows == [([odd, edge, Node("y", ())],)]
    schema = again.schema()
    assert set(schema.labels) == {"A", "B"}
    assert set(schema.properties[""]) == {"id"}  # of y, which shows no label
    assert not any(name.startswith("graphret_") for name in schema.properties["A"])


def test_values_of_a_query_are_json(neo4j_driver: neo4j.Driver) -> None:
    text = (
        "date('2020-01-02') AS d, duration('P1Y2M3DT4.5S') AS p, [point({x: 1, y: 2})] AS q, {a: time('10:00Z')} AS t"
    )
    assert Neo4jStore.from_driver(neo4j_driver).query(f"RETURN {text}").rows == [
        ("2020-01-02", "P1Y2M3DT4.5S", ["POINT(1.0 2.0)"], {"a": "10:00:00Z"})
    ]


def test_neighbours_are_the_heaviest_of_those_that_qualify(neo4j_empty: neo4j.Driver) -> None:
    """Also where the database cannot say which do."""
    store = Neo4jStore.from_driver(neo4j_empty)
    near = [Node(f"n{i}", properties={"deep": {"part": i % 2}, "part": i % 2}) for i in range(9)]
    store.upsert([Node("hub"), *near], [Edge("hub", "R", node.id, float(i)) for i, node in enumerate(near)])
    store.upsert(edges=[Edge("hub", "R", "hub", 100.0)])
    for where in ({"part": 1}, {"deep.part": 1}):
        assert [e.target for e in store.neighbors(["hub", "n1"], where=where, limit=2)] == ["n5", "n7"]
    assert [e.target for e in store.neighbors(["hub"], limit=2)] == ["hub", "n8"]

"""An id that several nodes of a Neo4j bear, which something else filled: no call takes them for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from graphret.errors import InvalidInput
from graphret.search import Neo4jTextIndex
from graphret.stores.neo4j import AsyncNeo4jStore, Neo4jStore
from graphret.types import Edge, Node

if TYPE_CHECKING:
    import neo4j

Auth = tuple[str, str] | None
OPTIONS: dict[str, Any] = {"id_property": "sku", "label": "P"}
SHARED = "node '5': 2 nodes have this id: sku is '5' and 5"


@pytest.fixture
def store(neo4j_empty: neo4j.Driver) -> Neo4jStore:
    """A hub with two nodes of one id around it, and further nodes that have nothing to do with them."""
    neo4j_empty.execute_query(
        """CREATE (hub:P {sku: 'hub'})-[:R]->(a:P:A {sku: 5, name: 'Ann'}), (hub)-[:R]->(:P:A {sku: '5', name: 'Bob'}),
        (b:P {sku: 'b', name: 'Cy'})-[:S]->(c:P {sku: 6, x: 1}), (b)-[:S]->(c), (:P {sku: 7}), (:P {sku: '7', x: 1}),
        (other {sku: 'b', name: 'no P'})"""
    )
    return Neo4jStore.from_driver(neo4j_empty, **OPTIONS)


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.get(["b", "5"]),
        lambda store: store.neighbors(["b", "5"]),
        lambda store: store.neighbors(["5"], limit=1),
        lambda store: store.neighbors(["hub"]),
        lambda store: store.neighbors(["hub"], relations=["R"], labels=["A"], direction="out", limit=2),
        lambda store: store.degree("5"),
        lambda store: store.incidence("5"),
        lambda store: store.incidence("hub"),
        lambda store: store.hubs(0),
        lambda store: list(store.nodes()),
        lambda store: store.query("MATCH (n:A) RETURN n"),
        lambda store: store.query("MATCH ({sku: 'hub'})-[r]->() RETURN collect(r)"),
    ],
)
def test_an_id_of_two_nodes_is_refused_by_whatever_would_return_it(
    store: Neo4jStore, ask: Callable[[Neo4jStore], Any]
) -> None:
    with pytest.raises(InvalidInput, match=SHARED):
        ask(store)


def test_ids_of_one_node_are_answered(store: Neo4jStore) -> None:
    assert store.neighbors(["b", "absent"]) == [Edge("b", "S", "6"), Edge("b", "S", "6")]
    assert store.neighbors(["hub"], labels=["Q"]) == []
    assert (store.degree("b"), store.degree("absent")) == (2, 0)
    found = store.incidence("b")
    assert found is not None
    assert [node.id for node in found.nodes] == ["6"]
    for call in (store.neighbors, store.get):
        with pytest.raises(InvalidInput, match="node '7': 2 nodes have this id"):  # neither has an edge
            call(["7"])
    for one in (store.degree, store.incidence):
        with pytest.raises(InvalidInput, match="node '7': 2 nodes have this id"):
            one("7")
    view = store.view({"x": 1})  # where one of them is seen
    assert [node.id for block in view.nodes() for node in block] == ["6", "7"]
    assert (view.neighbors(["7"]), view.degree("7")) == ([], 0)
    rows = store.query("MATCH (n {sku: 'b'}) RETURN n ORDER BY n.name").rows
    assert [node.name for (node,) in rows] == ["Cy", "no P"]  # of which the graph has one


async def test_an_asynchronous_store_refuses_alike(store: Neo4jStore, neo4j_uri: str, neo4j_auth: Auth) -> None:
    async with AsyncNeo4jStore(neo4j_uri, auth=neo4j_auth, **OPTIONS) as other:
        with pytest.raises(InvalidInput, match=SHARED):
            await other.neighbors(["hub"])
        with pytest.raises(InvalidInput, match=SHARED):
            [block async for block in other.nodes()]


def test_an_index_of_a_database_refuses_alike(store: Neo4jStore, neo4j_empty: neo4j.Driver) -> None:
    with pytest.raises(InvalidInput, match=SHARED):
        Neo4jTextIndex.create(store)
    neo4j_empty.execute_query("MATCH (n) WHERE n.sku IN ['5', '7'] SET n.twin = n.sku, n.sku = 'x' + n.sku")
    index = Neo4jTextIndex.create(store)
    assert [index.search(word, 1).ids for word in ("Ann", "Bob")] == [["5"], ["x5"]]
    neo4j_empty.execute_query("MATCH (n) WHERE n.twin IS NOT NULL SET n.sku = n.twin")
    neo4j_empty.execute_query("CALL db.awaitIndexes(60)")
    for ask in (
        lambda: index.search("Ann Bob", 2),
        lambda: index.hits("Ann Bob", 2),
        lambda: index.score("Ann", ["5"]),
        lambda: index.search("Ann", 9),
        lambda: index.view({"name": {"$in": ["Ann", "Bob"]}}).search("Ann Bob", 2),
        index.refresh,
    ):
        with pytest.raises(InvalidInput, match=SHARED):
            ask()
    assert index.search("Cy", 1).ids == ["b"]


def test_of_equal_numbers_none_is_written_to(store: Neo4jStore, neo4j_empty: neo4j.Driver) -> None:
    """1 is 1.0 to the database, where it looks for a node, and another id."""
    neo4j_empty.execute_query("CREATE (:P {sku: 1, x: 1}), (:P {sku: 1.0, x: 2})")
    for nodes, edges in (([Node("1")], []), ([Node("1.0")], []), ([], [Edge("1", "R", "b")])):
        with pytest.raises(InvalidInput, match=r"node '1': another has the id '1\.0', an equal number"):
            store.upsert(nodes, edges)
    assert [node and node.properties["x"] for node in store.get(["1", "1.0"])] == [1, 2]


@pytest.mark.parametrize(
    ("value", "writes"),
    [
        ("datetime('2020-01-01T00:00Z')", True),
        ("time('10:00Z')", True),
        ("localdatetime('0000-12-31T10:00')", False),
        ("0.0 / 0.0", False),
    ],
)
def test_an_id_that_is_no_string_or_number_is_written_to_or_refused(
    neo4j_empty: neo4j.Driver, value: str, writes: bool
) -> None:
    neo4j_empty.execute_query(f"CREATE (:P {{sku: {value}}})")
    store = Neo4jStore.from_driver(neo4j_empty, **OPTIONS)
    ((node,),) = store.nodes()
    if writes:
        store.upsert([node], [Edge(node.id, "R", node.id)])
    else:
        with pytest.raises(InvalidInput, match=f"node '{node.id}': its property 'sku'"):
            store.upsert([node])
    assert (list(store.nodes()), store.count()[1]) == ([[node]], int(writes))

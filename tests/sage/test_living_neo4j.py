"""A `SageGraph` lives in a real Neo4j."""

from __future__ import annotations

from collections import Counter
from typing import Any

import neo4j
import pytest
from corpora import BALLPARKS
from living_suite import LivingSuite, again, answers, hits
from tests_support import HashingEncoder

from graphret.corpus import Record
from graphret.sage import SageGraph
from graphret.sage.living import Written
from graphret.search import Neo4jTextIndex
from graphret.stores.neo4j import Neo4jStore
from graphret.types import Node


@pytest.mark.timeout(300)
class TestInNeo4j(LivingSuite):
    @pytest.fixture
    def store(self, neo4j_empty: neo4j.Driver) -> Neo4jStore:
        return Neo4jStore.from_driver(neo4j_empty)


def test_a_graph_with_embeddings_lives_where_something_else_says_how_nodes_lie(neo4j_empty: neo4j.Driver) -> None:
    """Embeddings of others are left alone and not read; those of the graph are stored beside them."""
    neo4j_empty.execute_query("CREATE (:Product {sku: 'mine', embedding: [0.5]})")
    store = Neo4jStore.from_driver(
        neo4j_empty, id_property="sku", label="Product", name_property="title", text_property="body"
    )
    graph = SageGraph.build(BALLPARKS, encoder=HashingEncoder())
    graph.write_to(store)
    encoder = HashingEncoder()
    read = SageGraph.from_store(store, encoder=encoder)
    assert encoder.encoded == []
    assert read.nodes.ids.tolist() == graph.nodes.ids.tolist()
    assert (read.index.dense.vectors == graph.index.dense.vectors).all()  # type: ignore[union-attr]
    assert [hit.node.id for hit in answers(read)[0]] == [hit.node.id for hit in answers(graph)[0]]
    assert store.get(["mine"]) == [Node("mine", ("Product",), properties={"sku": "mine"})]
    found = neo4j_empty.execute_query("MATCH (n:Product) WHERE n.embedding IS NOT NULL RETURN n.sku, n.embedding")
    assert [record.values() for record in found.records] == [["mine", [0.5]]]
    (first, *_) = graph.nodes
    store.upsert([Node(first.id, properties={"embedding": [2.0], "properties.embedding": 1, "graphret_x": 2})])
    (again,) = store.get([first.id])
    assert again is not None
    assert again.properties == {"sku": first.id, "embedding": [2.0], "properties.embedding": 1, "graphret_x": 2}
    assert [n.id for block in store.nodes(where={"embedding": {"$contains": 2.0}}) for n in block] == [first.id]


class Counted:
    """What the server says it wrote, in all sessions of the driver."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        consume = neo4j.Result.consume

        def counting(result: neo4j.Result) -> neo4j.ResultSummary:
            first = not getattr(result, "_graphret_counted", False)
            summary = consume(result)
            if first:
                result._graphret_counted = True  # type: ignore[attr-defined]
                self.counts.update({k: v for k, v in vars(summary.counters).items() if isinstance(v, int) and v})
            return summary

        monkeypatch.setattr(neo4j.Result, "consume", counting)

    def taken(self) -> dict[str, int]:
        """What was written since this was last asked."""
        found, self.counts = dict(self.counts), Counter()
        return {name: n for name, n in found.items() if not name.startswith("_")}


def others(driver: neo4j.Driver) -> list[Any]:
    """What another writer has on the nodes of the graph."""
    found = driver.execute_query(
        "MATCH (n:Featured) RETURN n.sku, n.price, n.seen, n.at, n.embedding, labels(n) ORDER BY n.sku"
    )
    return [[*values, sorted(labels)] for *values, labels in (record.values() for record in found.records)]


@pytest.mark.parametrize("embedded", [True, False], ids=["embeddings", "words"])
def test_a_second_write_among_the_properties_of_others(
    neo4j_empty: neo4j.Driver, monkeypatch: pytest.MonkeyPatch, embedded: bool
) -> None:
    """Only what differs is written, and what others have on the same nodes stays."""
    neo4j_empty.execute_query("CREATE CONSTRAINT FOR (p:Product) REQUIRE p.sku IS UNIQUE")
    neo4j_empty.execute_query("CREATE (:Product {sku: 'mine', price: 1})")
    store = Neo4jStore.from_driver(
        neo4j_empty, id_property="sku", label="Product", name_property="title", text_property="body"
    )
    graph = SageGraph.build(BALLPARKS, encoder=HashingEncoder() if embedded else None)
    assert graph.write_to(store) == Written(len(graph.nodes), len(graph.edges))
    neo4j_empty.execute_query(
        "MATCH (n:Product) WHERE n.sage_graph IS NOT NULL SET n:Featured, n.price = 5, n.seen = date('2020-02-02'), "
        "n.at = point({x: 1.0, y: 2.0}), n.embedding = [0.25]"
    )
    neo4j_empty.execute_query(
        "MATCH (a:Featured), (b:Featured) WHERE a.sku < b.sku WITH a, b LIMIT 3 CREATE (a)-[:BOUGHT_WITH {n: 1}]->(b)"
    )
    theirs = others(neo4j_empty)
    assert len(theirs) == len(graph.nodes)
    counted = Counted(monkeypatch)
    assert graph.write_to(store) == Written()
    assert counted.taken() == {}
    read = again(store, graph)
    assert list(read.nodes) == list(graph.nodes)
    assert list(read.edges.edges(read.nodes.ids)) == list(graph.edges.edges(graph.nodes.ids))
    assert hits(read) == hits(graph)

    neo4j_empty.execute_query("MATCH (n:Product) WHERE n.sku STARTS WITH 'pilots' SET n.body = 'altered'")
    neo4j_empty.execute_query("MATCH (:Product)-[r:MENTIONS]->() DELETE r")
    counted.taken()
    done = graph.write_to(store)
    assert (done.nodes, done.nodes_removed, done.edges_removed) == (1, 0, 0)
    written = counted.taken()
    assert written["relationships_created"] == done.edges > 0
    assert not {"nodes_created", "nodes_deleted", "labels_added", "labels_removed", "relationships_deleted"} & set(
        written
    )
    kept = [[*row[:4], None if row[0].startswith("pilots") else row[4], row[5]] for row in theirs]
    assert others(neo4j_empty) == kept  # an embedding is of the text that was
    assert graph.write_to(store) == Written()
    neo4j_empty.execute_query("MATCH (n:Product) REMOVE n.sage_own")  # as an earlier graphret wrote them
    assert graph.write_to(store) == Written(len(graph.nodes))
    assert others(neo4j_empty) == kept
    assert store.count() == (len(graph.nodes) + 1, len(graph.edges) + 3)
    assert store.get(["mine"]) == [Node("mine", ("Product",), properties={"sku": "mine", "price": 1})]


def test_what_a_graph_no_longer_says_goes_and_what_others_say_stays(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty, id_property="sku", label="Product")

    def built(name: str, **properties: Any) -> SageGraph:
        return SageGraph.build([Record("r", ("Part", name or "Nameless"), name, properties)], encoder=None)

    index = Neo4jTextIndex.create(store)
    first, second = built("Bolt", size=3, rows=[[1], [2]]), built("", colour="red")
    for graph in (first, second, first):
        graph.write_to(store)
        neo4j_empty.execute_query("MATCH (n {sku: 'r'}) SET n.price = 5, n:Featured")
        assert list(SageGraph.from_store(store, encoder=None).nodes) == list(graph.nodes)
        (found,) = store.get(["r"])
        assert found is not None
        assert set(found.labels) == {*graph.nodes[0].labels, "Product", "Featured"}
        assert found.properties["price"] == 5
        said = {"size", "topic", "sage_json"} if graph is first else {"colour"}
        assert set(found.properties) & {"size", "topic", "sage_json", "colour"} == said
        assert (index.score("Bolt", ["r"]) > 0) == (graph is first)
        assert graph.write_to(store) == Written()

"""A `SageGraph` lives in a real Neo4j."""

from __future__ import annotations

import neo4j
import pytest
from corpora import BALLPARKS
from living_suite import LivingSuite, answers
from tests_support import HashingEncoder

from graphret.sage import SageGraph
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

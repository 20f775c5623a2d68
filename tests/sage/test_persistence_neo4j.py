"""A `SageGraph` lives in a real Neo4j, among the nodes of others too."""

from __future__ import annotations

import neo4j
import pytest
from corpora import BALLPARKS
from persistence_suite import PersistenceSuite, answers, hits
from tests_support import HashingEncoder

from graphret.sage import SageGraph
from graphret.sage.persistence import Written
from graphret.stores.neo4j import Neo4jStore


@pytest.mark.timeout(300)
class TestInNeo4j(PersistenceSuite):
    @pytest.fixture
    def store(self, neo4j_empty: neo4j.Driver) -> Neo4jStore:
        return Neo4jStore.from_driver(neo4j_empty)


def test_a_graph_lives_beside_what_something_else_wrote(neo4j_empty: neo4j.Driver) -> None:
    """Its embeddings too; nodes of others stay as they are, and only what differs is written."""
    neo4j_empty.execute_query("CREATE (:Product {sku: 'mine', price: 1, embedding: [0.5]})")
    theirs = "MATCH (n:Product) RETURN labels(n), properties(n)"
    before = [record.values() for record in neo4j_empty.execute_query(theirs).records]
    store = Neo4jStore.from_driver(
        neo4j_empty, id_property="sku", label="Product", name_property="title", text_property="body"
    )
    graph = SageGraph.build(BALLPARKS, encoder=HashingEncoder())
    assert graph.write_to(store) == Written(len(graph.nodes), len(graph.edges))
    assert graph.write_to(store) == Written()
    assert store.count() == (len(graph.nodes) + 1, len(graph.edges))
    encoder = HashingEncoder()
    read = SageGraph.from_store(store, encoder=encoder)
    assert encoder.encoded == []
    assert list(read.nodes) == list(graph.nodes)
    assert (read.index.dense.vectors == graph.index.dense.vectors).all()  # type: ignore[union-attr]
    assert [hit.node.id for hit in answers(read)[0]] == [hit.node.id for hit in answers(graph)[0]]
    assert hits(read) == hits(graph)
    graph.remove(["pilots"])
    assert graph.write_to(store).nodes_removed > 0
    assert [record.values() for record in neo4j_empty.execute_query(theirs).records] == before

"""Expansion over graphs in databases."""

from __future__ import annotations

from collections.abc import Iterator

import neo4j
import pytest
from corpora import BALLPARKS, QUESTION

from graphret.expansion import RANKINGS, Expand
from graphret.sage import SageGraph
from graphret.search import BM25Index, Neo4jTextIndex, NodeText
from graphret.stores import GraphStore, MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore
from graphret.testing.graphs import random_graph

pytestmark = pytest.mark.neo4j


@pytest.fixture(scope="module")
def graph() -> SageGraph:
    return SageGraph.build(BALLPARKS, encoder=None)


@pytest.fixture(params=["ladybug", "neo4j"])
def store(request: pytest.FixtureRequest) -> Iterator[GraphStore]:
    if request.param == "neo4j":
        yield Neo4jStore.from_driver(request.getfixturevalue("neo4j_empty"))
        return
    with LadybugStore(":memory:") as store:
        yield store


def test_the_same_hits_over_a_copy_in_a_database(store: GraphStore, graph: SageGraph) -> None:
    nodes, edges = random_graph(5, n_nodes=30, n_edges=60)
    memory = MemoryStore()
    for one in (memory, store):
        one.upsert([*graph.nodes, *nodes], [*graph.edges.edges(graph.nodes.ids), *edges])
    index = BM25Index.of_store(memory)
    for make in RANKINGS.values():
        near, far = (Expand(None, one, index, ranking=make()).retrieve(QUESTION, 6) for one in (memory, store))
        assert [hit.to_dict() for hit in far] == [hit.to_dict() for hit in near]


def test_neo4j_finds_the_seeds_too(neo4j_empty: neo4j.Driver, graph: SageGraph) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    store.upsert(graph.nodes, graph.edges.edges(graph.nodes.ids))
    index = Neo4jTextIndex.create(store, text=NodeText(neighbors=3))
    for name, make in RANKINGS.items():
        found = Expand(None, store, index, ranking=make()).retrieve(QUESTION, 3)
        assert len(found) == 3
        assert {"pilots#0", "teams#0"} <= set(found.ids)
        assert "sicks#0" in found.ids or name != "coverage"
        assert all(hit.evidence for hit in found)
        assert [hit.node for hit in found] == store.get(found.ids)
    where = {"tenant": "a"}
    seen = Expand(None, store.view(where), index.view(where)).retrieve(QUESTION, 5)
    assert {hit.node.properties["tenant"] for hit in seen} == {"a"}
    only = Expand(None, store, index).retrieve(QUESTION, 2, {"tenant": "b"})
    assert [hit.node.properties["tenant"] for hit in only] == ["b"] * 2

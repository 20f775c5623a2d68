"""Expansion over graphs in databases."""

from __future__ import annotations

from collections.abc import Iterator

import neo4j
import pytest

from graphret.expansion import Coverage, Expand, Paper, Propagate, Ranking
from graphret.search import BM25Index, Neo4jTextIndex, NodeText
from graphret.stores import GraphStore, MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore
from graphret.testing.graphs import random_graph
from graphret.types import Edge, Node

RANKINGS: list[Ranking] = [Paper(), Propagate(), Coverage()]
QUESTION = "How long is the river in the city where the three sisters formed their band?"
PLACES = [
    Node("band", ("Band",), "The Quiet Band", "The band was formed in Leeds by three sisters.", {"tenant": "a"}),
    Node("leeds", ("City",), "Leeds", "Leeds is a city on the river Aire.", {"tenant": "a"}),
    Node("aire", ("River",), "River Aire", "It rises at Malham and is 148 kilometres long.", {"tenant": "b"}),
    Node("malham", ("City",), "Malham", "A village known for its limestone cove.", {"tenant": "b"}),
]
LINKS = [
    Edge("band", "MENTIONS", "leeds", 0.8, {"name": "Leeds"}),
    Edge("leeds", "MENTIONS", "aire", 0.8, {"name": "river Aire"}),
    Edge("aire", "MENTIONS", "malham", 0.8, {"name": "Malham"}),
]


@pytest.fixture(params=["ladybug", "neo4j"])
def store(request: pytest.FixtureRequest) -> Iterator[GraphStore]:
    if request.param == "neo4j":
        yield Neo4jStore.from_driver(request.getfixturevalue("neo4j_empty"))
        return
    with LadybugStore(":memory:") as store:
        yield store


@pytest.mark.neo4j
def test_the_same_hits_over_a_database(store: GraphStore) -> None:
    nodes, edges = random_graph(5, n_nodes=40, n_edges=100)
    memory = MemoryStore()
    for one in (memory, store):
        one.upsert([*PLACES, *nodes], [*LINKS, *edges])
    index = BM25Index.of_store(memory)
    for ranking in RANKINGS:
        for question in (QUESTION, "text of 7"):
            near = Expand(None, memory, index, ranking=ranking).retrieve(question, 6)
            far = Expand(None, store, index, ranking=ranking).retrieve(question, 6)
            assert [hit.to_dict() for hit in far] == [hit.to_dict() for hit in near]


def test_neo4j_finds_the_seeds_too(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    noise = [Node(f"noise{i}", ("City",), f"Noise {i}", "city river " * (i % 3), {"tenant": "b"}) for i in range(9)]
    store.upsert([*PLACES, *noise], LINKS)
    index = Neo4jTextIndex.create(store, text=NodeText(neighbors=3))
    for ranking in RANKINGS:
        found = Expand(None, store, index, ranking=ranking).retrieve(QUESTION, 6)
        assert len(found) == 6
        assert {"band", "leeds"} <= set(found.ids)
        assert "aire" in found.ids or ranking.name != "coverage"
        assert all(hit.evidence for hit in found)
        assert [hit.node for hit in found] == store.get(found.ids)
        assert {e.relation for hit in found for e in hit.evidence if e.kind == "neighbor"} == {"MENTIONS"}
    where = {"tenant": "a"}
    seen = Expand(None, store.view(where), index.view(where)).retrieve(QUESTION, 5)
    assert set(seen.ids) == {"band", "leeds"}
    only = Expand(None, store, index).retrieve(QUESTION, 3, {"tenant": "b"})
    assert [hit.node.properties["tenant"] for hit in only] == ["b"] * 3

"""Expansion over graphs in databases."""

from __future__ import annotations

from collections.abc import Iterator

import neo4j
import pytest

from graphret.expansion import Coverage, Expand, Paper, Propagate, Ranking
from graphret.search import BM25Index
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


def filled(store: GraphStore) -> GraphStore:
    nodes, edges = random_graph(5, n_nodes=40, n_edges=100)
    store.upsert([*PLACES, *nodes], [*LINKS, *edges])
    return store


def require_same_hits(store: GraphStore) -> None:
    memory = filled(MemoryStore())
    index = BM25Index.of_store(memory)
    for ranking in RANKINGS:
        for question in (QUESTION, "text of 7"):
            near = Expand(None, memory, index, ranking=ranking).retrieve(question, 6)
            far = Expand(None, store, index, ranking=ranking).retrieve(question, 6)
            assert [hit.to_dict() for hit in far] == [hit.to_dict() for hit in near]


@pytest.fixture
def ladybug() -> Iterator[GraphStore]:
    with LadybugStore(":memory:") as store:
        yield filled(store)


@pytest.fixture
def graph(neo4j_empty: neo4j.Driver) -> GraphStore:
    return filled(Neo4jStore.from_driver(neo4j_empty))


def test_the_same_hits_over_ladybug(ladybug: GraphStore) -> None:
    require_same_hits(ladybug)


def test_the_same_hits_over_neo4j(graph: GraphStore) -> None:
    require_same_hits(graph)

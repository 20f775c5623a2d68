"""The tools over graphs in databases say what they say over memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import neo4j
import pytest
from ark_graphs import lines_of

from graphret.ark import Toolbox
from graphret.search import BM25Index, Neo4jTextIndex
from graphret.stores import GraphStore, MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore
from graphret.testing.graphs import random_graph
from graphret.types import Edge, Node

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("global_search", {"query": "text of 7"}),
    ("explore_neighborhood", {"node": "hub", "k": 40}),
    ("explore_neighborhood", {"node": "hub", "query": "text of 7", "k": 3}),
    ("explore_neighborhood", {"node": "hub", "node_types": ["Person"]}),
    ("explore_neighborhood", {"node": "hub", "relation_types": ["<-[LEADS TO]-"]}),
    ("explore_neighborhood", {"node": "hub", "query": "text of 7", "relation_types": ["-[LEADS TO]->"], "k": 9}),
    ("explore_neighborhood", {"node": "hub", "query": "zeppelin"}),
    ("explore_neighborhood", {"node": "Hub"}),
    ("explore_neighborhood", {"node": "\x00"}),
    ("explore_neighborhood", {"node": "no such node"}),
    ("explore_neighborhood", {"node": "hub", "node_types": ["Persons"]}),
    ("explore_neighborhood", {"node": "hub", "relation_types": ["LEADS"]}),
]


def filled(store: GraphStore) -> GraphStore:
    nodes, edges = random_graph(3, n_nodes=30, n_edges=60)
    links = [Edge("hub", "LEADS TO", node.id, 1.0 + i % 4) for i, node in enumerate(nodes)]
    links += [Edge(node.id, "LEADS TO", "hub", 2.0) for node in nodes[::3]]
    store.upsert([Node("hub", ("Place",), "The Hub"), *nodes], [*edges, *links, Edge("hub", "LEADS TO", "hub", 9.0)])
    return store


def require_same_observations(store: GraphStore) -> None:
    memory = filled(MemoryStore())
    assert isinstance(memory, MemoryStore)
    index = BM25Index.of_store(memory)
    near, far = Toolbox(memory, index), Toolbox(store, index)
    for name, arguments in CALLS:
        expected, found = near.run(name, arguments), far.run(name, arguments)
        assert lines_of(found) == lines_of(expected), arguments
        assert found == expected
    assert near.run(*CALLS[1]).total > 20
    assert json.loads(near.run(*CALLS[-1]).text)["error"].startswith("There is no relation")


@pytest.fixture
def ladybug() -> Iterator[GraphStore]:
    with LadybugStore(":memory:") as store:
        yield filled(store)


@pytest.fixture
def graph(neo4j_empty: neo4j.Driver) -> Neo4jStore:
    store = Neo4jStore.from_driver(neo4j_empty)
    filled(store)
    return store


def test_ladybug_says_what_memory_says(ladybug: GraphStore) -> None:
    require_same_observations(ladybug)


def test_neo4j_says_what_memory_says(graph: Neo4jStore) -> None:
    require_same_observations(graph)


def test_a_view_of_a_database_hides_the_rest(ladybug: GraphStore) -> None:
    memory = filled(MemoryStore())
    assert isinstance(memory, MemoryStore)
    where = {"$or": [{"label": "Place"}, {"label": "Person"}]}
    index = BM25Index.of_store(memory)
    view = Toolbox(ladybug, index).view(where)
    assert [view.run(*call) for call in CALLS] == [Toolbox(memory, index).view(where).run(*call) for call in CALLS]


def test_the_indexes_of_neo4j_rank_and_a_view_of_them_hides_the_rest(graph: Neo4jStore) -> None:
    index = Neo4jTextIndex.create(graph)
    tools = Toolbox(graph, index)
    texts = {node.id: node.text for block in graph.nodes() for node in block}
    said = next(one for one, text in sorted(texts.items()) if text)
    found = tools.global_search(texts[said])
    assert found.nodes[0] == said
    assert tools.global_search("zeppelin").nodes == ()
    lines_of(found)
    ranked = tools.explore_neighborhood("hub", texts[said], k=1)
    assert ranked.nodes == (said,)
    assert tools.explore_neighborhood("hub", "zeppelin").nodes == tools.explore_neighborhood("hub").nodes
    hidden = tools.view({"id": {"$ne": said}})
    assert said not in hidden.global_search(texts[said], 40).nodes
    assert hidden.explore_neighborhood(said).failed
    assert said not in hidden.explore_neighborhood("hub", texts[said], k=40).nodes

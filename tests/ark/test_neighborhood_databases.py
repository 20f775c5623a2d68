"""The tools over graphs in databases say what they say over memory."""

from __future__ import annotations

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
    ("explore_neighborhood", {"node": "hub", "node_types": ["Persons"]}),
    ("explore_neighborhood", {"node": "hub", "relation_types": ["LEADS"]}),
]


def filled(store: GraphStore) -> GraphStore:
    nodes, edges = random_graph(3, n_nodes=30, n_edges=60)
    links = [Edge("hub", "LEADS TO", node.id, 1.0 + i % 4) for i, node in enumerate(nodes)]
    links += [Edge(node.id, "LEADS TO", "hub", 2.0) for node in nodes[::3]]
    store.upsert([Node("hub", ("Place",), "The Hub"), *nodes], [*edges, *links, Edge("hub", "LEADS TO", "hub", 9.0)])
    return store


@pytest.fixture(params=["ladybug", "neo4j"])
def store(request: pytest.FixtureRequest) -> Iterator[GraphStore]:
    if request.param == "neo4j":
        yield filled(Neo4jStore.from_driver(request.getfixturevalue("neo4j_empty")))
    else:
        with LadybugStore(":memory:") as ladybug:
            yield filled(ladybug)


def test_a_database_says_what_memory_says_and_a_view_of_it_hides_the_rest(store: GraphStore) -> None:
    memory = filled(MemoryStore())
    assert isinstance(memory, MemoryStore)
    near, far = (Toolbox(one, BM25Index.of_store(memory)) for one in (memory, store))
    where = {"$or": [{"label": "Place"}, {"label": "Person"}]}
    for name, arguments in CALLS:
        assert far.run(name, arguments) == near.run(name, arguments), arguments
        assert far.view(where).run(name, arguments) == near.view(where).run(name, arguments), arguments
    assert near.run(*CALLS[1]).total > 20
    assert "There is no relation" in near.run(*CALLS[-1]).text


def test_the_indexes_of_neo4j_rank_and_a_view_of_them_hides_the_rest(neo4j_empty: neo4j.Driver) -> None:
    graph = Neo4jStore.from_driver(neo4j_empty)
    filled(graph)
    tools = Toolbox(graph, Neo4jTextIndex.create(graph))
    texts = {node.id: node.text for block in graph.nodes() for node in block}
    said = next(one for one, text in sorted(texts.items()) if text)

    def nodes(tools: Toolbox, **arguments: Any) -> tuple[str, ...]:
        found = tools.run("explore_neighborhood" if "node" in arguments else "global_search", arguments)
        lines_of(found)
        return found.nodes

    assert nodes(tools, query=texts[said])[0] == said
    assert nodes(tools, query="zeppelin") == ()
    assert nodes(tools, node="hub", query=texts[said], k=1) == (said,)
    assert nodes(tools, node="hub", query="zeppelin") == nodes(tools, node="hub")
    hidden = tools.view({"id": {"$ne": said}})
    assert said not in nodes(hidden, query=texts[said], k=40)
    assert said not in nodes(hidden, node="hub", query=texts[said], k=40)
    assert hidden.run("explore_neighborhood", {"node": said}).failed

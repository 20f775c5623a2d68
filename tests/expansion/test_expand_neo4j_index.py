"""Expansion where Neo4j finds the seeds and scores what they lead to."""

from __future__ import annotations

import neo4j

from graphret.expansion import Coverage, Expand, Paper, Propagate, Ranking
from graphret.search import NodeText
from graphret.search.neo4j_index import Neo4jTextIndex
from graphret.stores.neo4j import Neo4jStore
from graphret.types import Edge, Node

RANKINGS: list[Ranking] = [Paper(), Propagate(), Coverage()]
QUESTION = "How long is the river in the city where the three sisters formed their band?"
NODES = [
    Node("band", ("Band",), "The Quiet Band", "The band was formed in Leeds by three sisters.", {"tenant": "a"}),
    Node("leeds", ("City",), "Leeds", "Leeds is a city on the river Aire.", {"tenant": "a"}),
    Node("aire", ("River",), "River Aire", "It rises at Malham and is 148 kilometres long.", {"tenant": "b"}),
    Node("malham", ("City",), "Malham", "A village known for its limestone cove.", {"tenant": "b"}),
    *(Node(f"noise{i}", ("City",), f"Noise {i}", "band city river long " * (i % 3), {"tenant": "b"}) for i in range(9)),
]
EDGES = [
    Edge("band", "MENTIONS", "leeds", 0.8, {"name": "Leeds"}),
    Edge("leeds", "MENTIONS", "aire", 0.8, {"name": "river Aire"}),
    Edge("aire", "MENTIONS", "malham", 0.8, {"name": "Malham"}),
]


def test_neo4j_finds_the_seeds_too(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    store.upsert(NODES, EDGES)
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
    assert {hit.node.properties["tenant"] for hit in only} == {"b"}
    assert len(only) == 3

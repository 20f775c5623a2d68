"""LlamaIndex's property graphs on a real Neo4j: its store as ours, and ours as its."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import neo4j
import pytest
from llama_index.core import PropertyGraphIndex
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, Relation
from llama_index.core.indices.property_graph import ImplicitPathExtractor
from llama_index.graph_stores.neo4j import Neo4jPropertyGraphStore
from llama_support import HashEmbedding, parts

from graphret import Expand
from graphret.errors import QueryRefused
from graphret.search import Neo4jTextIndex
from graphret.stores.neo4j import Neo4jStore
from graphret.testing.graphs import EDGES, NODES, all_edges, all_nodes
from graphret.types import Edge, Node
from llama_index_graphret import (
    GraphretPropertyGraphStore,
    as_llama_index_retriever,
    evidence_of,
    from_property_graph_store,
)

pytestmark = pytest.mark.timeout(300)

NODES_THERE = [
    Node(
        "Ada Lovelace",
        ("Person",),
        "Ada Lovelace",
        "",
        {"born": 1815, "triplet_source_id": "c1"},
    ),
    Node("Analytical Engine", ("Machine",), "Analytical Engine"),
    Node("c1", ("Chunk",), "", "Ada wrote notes on the engine.", {"page": 3}),
]
EDGES_THERE = [
    Edge("Ada Lovelace", "WROTE_ON", "Analytical Engine", 1.0, {"year": 1843}),
    Edge("c1", "MENTIONS", "Ada Lovelace"),
]


@pytest.fixture(scope="module")
def connected(
    neo4j_module: neo4j.Driver, neo4j_uri: str, neo4j_auth: Any
) -> Iterator[Neo4jPropertyGraphStore]:
    """LlamaIndex's own store, with its constraints and indexes."""
    user, password = neo4j_auth or ("neo4j", "none")
    store = Neo4jPropertyGraphStore(user, password, neo4j_uri, refresh_schema=False)
    yield store
    store.close()


@pytest.fixture
def bare(connected: Neo4jPropertyGraphStore) -> Neo4jPropertyGraphStore:
    """LlamaIndex's own store, with nothing in it."""
    connected.structured_query("MATCH (n) DETACH DELETE n")
    return connected


@pytest.fixture
def theirs(bare: Neo4jPropertyGraphStore) -> Neo4jPropertyGraphStore:
    """LlamaIndex's own store with a small graph."""
    about = {"born": 1815, "triplet_source_id": "c1"}
    bare.upsert_nodes(
        [
            EntityNode(name="Ada Lovelace", label="Person", properties=about),
            EntityNode(name="Analytical Engine", label="Machine", embedding=[0.5, 1.0]),
            ChunkNode(
                text="Ada wrote notes on the engine.",
                id_="c1",
                properties={"page": 3},
                embedding=[1.0, 0.5],
            ),
        ]
    )
    ends = {"source_id": "Ada Lovelace", "target_id": "Analytical Engine"}
    bare.upsert_relations(
        [Relation(label="WROTE_ON", properties={"year": 1843}, **ends)]
    )
    return bare


def test_their_graph_is_read_by_their_ids_without_internals(
    theirs: Neo4jPropertyGraphStore,
) -> None:
    store = from_property_graph_store(theirs)
    assert isinstance(store, Neo4jStore)
    assert (all_nodes(store), all_edges(store), store.count()) == (
        NODES_THERE,
        EDGES_THERE,
        (3, 2),
    )
    assert {label for label, n in store.schema().labels.items() if n} == {
        "Person",
        "Machine",
        "Chunk",
    }
    assert store.neighbors(["c1"]) == EDGES_THERE[1:]
    assert store.query("MATCH (p:Person) RETURN p").rows == [(NODES_THERE[0],)]


def index_over(store: Any, *texts: str) -> tuple[PropertyGraphIndex, dict[str, str]]:
    """An index of texts of which each is followed by the next, and their hashes."""
    nodes = parts(*texts)
    hashes = {node.node_id: node.hash for node in nodes}
    options: dict[str, Any] = {
        "kg_extractors": [ImplicitPathExtractor()],
        "embed_model": HashEmbedding(),
    }
    return (
        PropertyGraphIndex(
            nodes=nodes, property_graph_store=store, use_async=False, **options
        ),
        hashes,
    )


def test_their_index_is_pointed_at_in_three_lines(
    bare: Neo4jPropertyGraphStore,
) -> None:
    texts = [
        "Ada wrote notes on the engine.",
        "Charles Babbage designed it.",
        "He died in Marylebone in 1871.",
    ]
    index, hashes = index_over(bare, *texts)

    store = from_property_graph_store(index.property_graph_store)
    search = Neo4jTextIndex.create(store)
    retriever = as_llama_index_retriever(
        Expand(None, store, search), similarity_top_k=3
    )

    found = retriever.retrieve("Where did the one who designed it die?")
    assert {one.node_id: one.node.hash for one in found} == hashes
    assert {
        e.relation for one in found for e in evidence_of(one) if e.kind == "neighbor"
    } == {"NEXT"}
    among = index.as_retriever(sub_retrievers=[retriever], use_async=False).retrieve(
        "Where did he die?"
    )
    assert {one.node.hash for one in among} == set(hashes.values())


# -- the other way round


async def test_structured_queries_read_and_nothing_else(
    neo4j_empty: neo4j.Driver, caplog: pytest.LogCaptureFixture
) -> None:
    ours = GraphretPropertyGraphStore(Neo4jStore.from_driver(neo4j_empty))
    ours.store.upsert(NODES, EDGES)
    text = (
        "MATCH (p:Person)-[r:WROTE]->(t) WHERE p.born > $year RETURN p, r, t.name AS t"
    )
    (row,) = ours.structured_query(text, {"year": 1800})
    assert row["p"] == {
        "id": "ada",
        "labels": ["Person", "Author"],
        "name": "Ada Lovelace",
        "born": 1815,
    }
    assert (row["r"]["relation"], row["t"]) == ("WROTE", "Notes")
    assert await ours.astructured_query(text, {"year": 1900}) == []
    for bad in (
        "MATCH (n) DETACH DELETE n",
        "LOAD CSV FROM 'file:///etc/hostname' AS row RETURN row",
    ):
        with pytest.raises(QueryRefused):
            ours.structured_query(bad)
    assert len(ours.structured_query("UNWIND range(1, 1001) AS i RETURN i")) == 1000
    assert "first 1000 rows" in caplog.text

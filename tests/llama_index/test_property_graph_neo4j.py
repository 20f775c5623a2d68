"""LlamaIndex's property graphs on a real Neo4j: its store as ours, and ours as its."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import neo4j
import pytest
from llama_index.core import PropertyGraphIndex
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, Relation
from llama_index.core.indices.property_graph import CypherTemplateRetriever, ImplicitPathExtractor
from llama_index.core.llms.mock import MockLLM
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.graph_stores.neo4j import Neo4jPropertyGraphStore
from llama_support import HashEmbedding

from graphret import Expand
from graphret.errors import GraphretError, InvalidInput, QueryRefused
from graphret.search import BM25Index, Neo4jTextIndex
from graphret.stores.base import GraphStore
from graphret.stores.neo4j import Neo4jStore
from graphret.testing.graphs import EDGES, NODES
from graphret.testing.reading import all_edges, all_nodes, edge_key
from graphret.testing.stores import CypherStoreSuite
from graphret.types import Edge, Node
from llama_index_graphret import (
    GraphretPropertyGraphStore,
    as_llama_index_retriever,
    evidence_of,
    from_property_graph_store,
)
from llama_index_graphret.property_graph_store import to_relation

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def connected(neo4j_module: neo4j.Driver, neo4j_uri: str, neo4j_auth: Any) -> Iterator[Neo4jPropertyGraphStore]:
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


class TestNeo4jPropertyGraphStore(CypherStoreSuite):
    @pytest.fixture
    def store(self, bare: Neo4jPropertyGraphStore) -> GraphStore:
        return from_property_graph_store(bare)


@pytest.fixture
def theirs(bare: Neo4jPropertyGraphStore) -> Neo4jPropertyGraphStore:
    """LlamaIndex's own store with a small graph."""
    store = bare
    store.upsert_nodes(
        [
            EntityNode(name="Ada Lovelace", label="Person", properties={"born": 1815, "triplet_source_id": "c1"}),
            EntityNode(name="Analytical Engine", label="Machine", embedding=[0.5, 1.0]),
            ChunkNode(text="Ada wrote notes on the engine.", id_="c1", properties={"page": 3}, embedding=[1.0, 0.5]),
        ]
    )
    store.upsert_relations(
        [
            Relation(
                label="WROTE_ON",
                source_id="Ada Lovelace",
                target_id="Analytical Engine",
                properties={"year": 1843},
            )
        ]
    )
    return store


LLAMA_NODES = [
    Node("Ada Lovelace", ("Person",), "Ada Lovelace", "", {"born": 1815, "triplet_source_id": "c1"}),
    Node("Analytical Engine", ("Machine",), "Analytical Engine"),
    Node("c1", ("Chunk",), "", "Ada wrote notes on the engine.", {"page": 3}),
]
LLAMA_EDGES = [
    Edge("Ada Lovelace", "WROTE_ON", "Analytical Engine", 1.0, {"year": 1843}),
    Edge("c1", "MENTIONS", "Ada Lovelace"),
]


def test_their_graph_is_read_by_their_ids_without_internals(theirs: Neo4jPropertyGraphStore) -> None:
    store = from_property_graph_store(theirs)
    assert isinstance(store, Neo4jStore)
    assert all_nodes(store) == LLAMA_NODES
    assert all_edges(store) == LLAMA_EDGES
    assert store.count() == (3, 2)
    assert {label for label, n in store.schema().labels.items() if n} == {"Person", "Machine", "Chunk"}
    assert store.neighbors(["c1"]) == LLAMA_EDGES[1:]
    assert store.query("MATCH (p:Person) RETURN p").rows == [(LLAMA_NODES[0],)]
    theirs.structured_query("RETURN 1")  # their driver stays theirs


def test_what_graphret_writes_is_there_for_llama_index(bare: Neo4jPropertyGraphStore) -> None:
    chunk = Node("c1", ("Chunk",), "", "Ada wrote notes.", {"page": 3})
    odd = Node("b" * 5_000, ("Person",), "Babbage", properties={"embedding": "no vector", "name": "Charles"})
    store = from_property_graph_store(bare)
    store.upsert([LLAMA_NODES[0], chunk, odd], [LLAMA_EDGES[1], Edge(LLAMA_NODES[0].id, "KNEW", odd.id, 2.0)])
    ada, said = bare.get(ids=["Ada Lovelace"]) + bare.get(ids=["c1"])
    assert isinstance(ada, EntityNode)
    assert isinstance(said, ChunkNode)
    assert (ada.name, ada.properties["born"], said.text) == ("Ada Lovelace", 1815, "Ada wrote notes.")
    ((left, relation, right),) = bare.get_triplets(entity_names=["Ada Lovelace"])
    assert (left.id, relation.label, right.id) == ("Ada Lovelace", "KNEW", "Babbage")
    again = from_property_graph_store(bare)
    assert again.get([odd.id, "c1"]) == [odd, chunk]
    assert [e.weight for e in again.neighbors([odd.id])] == [2.0]


def test_embeddings_stay_while_name_and_text_do(theirs: Neo4jPropertyGraphStore) -> None:
    def embeddings() -> dict[str, Any]:
        rows = theirs.structured_query("MATCH (n) RETURN n.id AS id, n.embedding AS embedding")
        return {row["id"]: row["embedding"] for row in rows}

    store = from_property_graph_store(theirs)
    _, engine, chunk = LLAMA_NODES
    store.upsert([replace(engine, properties={"built": False}), replace(chunk, properties={}), Node("new")])
    expected = {"Ada Lovelace": None, "Analytical Engine": [0.5, 1.0], "c1": [1.0, 0.5], "new": None}
    assert embeddings() == expected
    store.upsert([replace(engine, name="Another"), replace(chunk, text="Changed.")])
    assert embeddings() == dict.fromkeys(expected)
    assert store.get(["c1"]) == [replace(chunk, text="Changed.")]


def test_what_others_wrote_beside_it_is_read_too(theirs: Neo4jPropertyGraphStore) -> None:
    theirs.structured_query(
        "MATCH (a {id: 'Ada Lovelace'}) "
        "CREATE (:Film {id: 7, title: 'Conceiving Ada', plot: 'She is seen.'})-[:ON]->(a)"
    )
    store = from_property_graph_store(theirs)
    assert store.count() == (4, 3)
    assert [edge.source for edge in store.neighbors(["Ada Lovelace"], relations=["ON"])] == ["7"]
    (film,) = from_property_graph_store(theirs, name_property="title", text_property="plot").get(["7"])
    kept = {"title": "Conceiving Ada", "plot": "She is seen."}
    assert film == Node("7", ("Film",), "Conceiving Ada", "She is seen.", kept)
    alone = from_property_graph_store(theirs, label="__Node__")
    assert all_nodes(alone) == LLAMA_NODES
    assert all_edges(alone) == LLAMA_EDGES


def test_a_database_that_they_did_not_write_is_read_as_it_is(theirs: Neo4jPropertyGraphStore) -> None:
    theirs.structured_query("MATCH (n) DETACH DELETE n")
    theirs.structured_query("CREATE (:Film {slug: 'ada', title: 'Conceiving Ada'})-[:BY]->(:Person {slug: 'lhl'})")
    by_element = from_property_graph_store(theirs)
    assert by_element.count() == (2, 1)
    assert {node.name for node in all_nodes(by_element)} == {"Conceiving Ada", ""}
    by_slug = from_property_graph_store(theirs, id_property="slug")
    assert all_edges(by_slug) == [Edge("ada", "BY", "lhl")]
    kept = {"slug": "ada", "title": "Conceiving Ada"}
    assert all_nodes(by_slug)[0] == Node("ada", ("Film",), "Conceiving Ada", "", kept)


def test_options_that_are_none_are_refused(theirs: Neo4jPropertyGraphStore) -> None:
    with pytest.raises((InvalidInput, TypeError)):
        from_property_graph_store(theirs, nonsense=1)
    with pytest.raises(InvalidInput):
        from_property_graph_store(theirs, nested="maybe")


@pytest.mark.parametrize("search_of", [BM25Index.of_store, Neo4jTextIndex.create], ids=["in process", "in Neo4j"])
def test_their_index_is_pointed_at_in_three_lines(theirs: Neo4jPropertyGraphStore, search_of: Any) -> None:
    theirs.structured_query("MATCH (n) DETACH DELETE n")
    texts = ["Ada wrote notes on the engine.", "Charles Babbage designed it.", "He died in Marylebone in 1871."]
    nodes = [TextNode(text=text, id_=f"n{i}", metadata={"page": i}) for i, text in enumerate(texts)]
    nodes[0].relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="n1")
    nodes[1].relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="n2")
    hashes = {node.node_id: node.hash for node in nodes}
    index = PropertyGraphIndex(
        nodes=nodes,
        property_graph_store=theirs,
        kg_extractors=[ImplicitPathExtractor()],
        embed_model=HashEmbedding(),
        use_async=False,
    )

    store = from_property_graph_store(index.property_graph_store)
    search = search_of(store)
    retriever = as_llama_index_retriever(Expand(None, store, search), similarity_top_k=3)

    found = retriever.retrieve("Where did the one who designed it die?")
    assert {one.node_id: one.node.hash for one in found} == hashes
    assert {one.text for one in found} == set(texts)
    assert {e.relation for one in found for e in evidence_of(one) if e.kind == "neighbor"} == {"NEXT"}
    among = index.as_retriever(sub_retrievers=[retriever], use_async=False).retrieve("Where did he die?")
    assert {one.node.hash for one in among} == set(hashes.values())


# -- the other way round


class Born(BaseModel):
    """What the template asks for."""

    year: int = 1800


class FixedLLM(MockLLM):
    """A model that fills every template with the same values."""

    def structured_predict(self, output_cls: Any, prompt: Any, *args: Any, **kwargs: Any) -> Any:
        return output_cls()

    async def astructured_predict(self, output_cls: Any, prompt: Any, *args: Any, **kwargs: Any) -> Any:
        return output_cls()


@pytest.fixture
def ours(neo4j_empty: neo4j.Driver) -> GraphretPropertyGraphStore:
    store = Neo4jStore.from_driver(neo4j_empty, nested="json")
    store.upsert(NODES, EDGES)
    return GraphretPropertyGraphStore(store)


def test_a_neo4j_store_under_llama_index(ours: GraphretPropertyGraphStore) -> None:
    assert ours.supports_structured_queries
    assert [node.id for node in ours.get(properties={"born": 1815})] == ["ada"]
    found = ours.get_rel_map(ours.get(ids=["engine"]), depth=2)
    assert {(a.id, r.label, b.id) for a, r, b in found} == {(e.source, e.relation, e.target) for e in EDGES}
    ours.upsert_nodes([EntityNode(name="Beagle", label="Ship", embedding=[0.1, 0.2], properties={"a": {"b": 1}})])
    (beagle,) = ours.get(ids=["Beagle"])
    assert (beagle.embedding, beagle.properties) == ([0.1, 0.2], {"a": {"b": 1}})
    assert "Ship" in ours.get_schema_str()
    ours.delete(relation_names=["WROTE"])
    assert ours.store.count() == (len(NODES) + 1, len(EDGES) - 1)
    ours.upsert_relations([to_relation(EDGES[0])])
    ours.delete(ids=["Beagle"])
    assert all_nodes(ours.store) == sorted(NODES, key=lambda node: node.id)
    assert all_edges(ours.store) == sorted(EDGES, key=edge_key)


async def test_structured_queries_read_and_nothing_else(ours: GraphretPropertyGraphStore) -> None:
    text = "MATCH (p:Person)-[r:WROTE]->(t) WHERE p.born > $year RETURN p, r, t.name AS t"
    (row,) = ours.structured_query(text, {"year": 1800})
    assert row["p"] == {"id": "ada", "labels": ["Person", "Author"], "name": "Ada Lovelace", "born": 1815}
    assert (row["r"]["relation"], row["t"]) == ("WROTE", "Notes")
    assert await ours.astructured_query(text, {"year": 1900}) == []
    for bad in (
        "MATCH (n) DETACH DELETE n",
        "LOAD CSV FROM 'file:///etc/hostname' AS row RETURN row",
        "SHOW USERS",
        "CALL db.clearQueryCaches()",
        "MATCH (n RETURN n",
    ):
        with pytest.raises(QueryRefused):
            ours.structured_query(bad)
    unchecked = GraphretPropertyGraphStore(ours.store, checked=False)
    assert unchecked.structured_query("RETURN 1 AS one") == [{"one": 1}]
    with pytest.raises(QueryRefused):
        unchecked.structured_query("MATCH (n) DETACH DELETE n")
    assert ours.store.count() == (len(NODES), len(EDGES))
    with pytest.raises(GraphretError):
        GraphretPropertyGraphStore(ours.store.view({"label": "Person"})).structured_query("MATCH (n) RETURN n")


def test_more_rows_than_the_cap_are_said_to_be_cut(
    ours: GraphretPropertyGraphStore, caplog: pytest.LogCaptureFixture
) -> None:
    few = GraphretPropertyGraphStore(ours.store, max_rows=2)
    assert len(few.structured_query("MATCH (n) RETURN n.id AS id ORDER BY id")) == 2
    assert "first 2 rows" in caplog.text


def test_a_cypher_template_retriever_works(ours: GraphretPropertyGraphStore) -> None:
    index = PropertyGraphIndex.from_existing(ours, llm=FixedLLM(), embed_kg_nodes=False)
    template = CypherTemplateRetriever(
        ours, Born, "MATCH (p:Person) WHERE p.born > $year RETURN p.name AS name", llm=FixedLLM()
    )
    found = index.as_retriever(sub_retrievers=[template]).retrieve("Who was born after 1800?")
    assert [one.text for one in found] == ["[{'name': 'Ada Lovelace'}]"]


def test_an_index_is_built_in_neo4j_through_graphret(neo4j_empty: neo4j.Driver) -> None:
    pg = GraphretPropertyGraphStore(Neo4jStore.from_driver(neo4j_empty))
    nodes = [TextNode(text=f"text {i}", id_=f"n{i}") for i in range(3)]
    nodes[0].relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="n1")
    index = PropertyGraphIndex(
        nodes=nodes,
        property_graph_store=pg,
        kg_extractors=[ImplicitPathExtractor()],
        embed_model=HashEmbedding(),
        use_async=False,
    )
    assert [(e.source, e.relation, e.target) for e in all_edges(pg.store)] == [("n0", "NEXT", "n1")]
    assert {node.hash for node in pg.get_llama_nodes(["n0", "n1", "n2"])} == {node.hash for node in nodes}
    index.delete_nodes(["n0"])
    assert pg.store.count() == (2, 0)

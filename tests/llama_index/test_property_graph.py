"""LlamaIndex's property graphs behind the contract of graphret's stores."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import PropertyGraphIndex
from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, Relation
from llama_index.core.indices.property_graph import ImplicitPathExtractor
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from graphret import Expand
from graphret.errors import InvalidInput
from graphret.search import BM25Index
from graphret.stores import MemoryStore
from graphret.stores.base import GraphStore
from graphret.testing.graphs import random_graph
from graphret.testing.reading import all_edges, all_nodes, edge_key
from graphret.testing.stores import GraphStoreSuite
from graphret.types import Edge, Node
from llama_index_graphret import (
    GraphretPropertyGraphStore,
    as_llama_index_retriever,
    evidence_of,
    from_property_graph_store,
)
from llama_index_graphret.property_graph import PropertyGraphStoreAdapter


class TestSimplePropertyGraphStore(GraphStoreSuite):
    @pytest.fixture
    def store(self) -> GraphStore:
        return from_property_graph_store(SimplePropertyGraphStore())


class TestThroughMethods(GraphStoreSuite):
    """The methods of `PropertyGraphStore` alone, over one that is neither in memory nor Neo4j's."""

    @pytest.fixture
    def store(self) -> GraphStore:
        return PropertyGraphStoreAdapter(GraphretPropertyGraphStore(MemoryStore()))


@pytest.fixture
def simple() -> SimplePropertyGraphStore:
    """A graph that LlamaIndex made."""
    store = SimplePropertyGraphStore()
    store.upsert_nodes(
        [
            EntityNode(name="Ada Lovelace", label="Person", properties={"born": 1815, "bio": "A countess."}),
            EntityNode(name='The "Engine"', label="Machine", embedding=[1.0, 0.0]),
            ChunkNode(text="Ada wrote notes on the engine.", id_="c1", properties={"title": "Notes", "page": 3}),
        ]
    )
    store.upsert_relations(
        [
            Relation(label="WROTE_ON", source_id="Ada Lovelace", target_id="The  Engine ", properties={"year": 1843}),
            Relation(label="MENTIONS", source_id="c1", target_id="Ada Lovelace"),
        ]
    )
    return store


def test_a_graph_of_llama_index_is_read_as_it_stands(simple: SimplePropertyGraphStore) -> None:
    store = from_property_graph_store(simple)
    assert all_nodes(store) == [
        Node("Ada Lovelace", ("Person",), "Ada Lovelace", "", {"born": 1815, "bio": "A countess."}),
        Node("The  Engine ", ("Machine",), 'The "Engine"'),
        Node("c1", ("text_chunk",), "", "Ada wrote notes on the engine.", {"title": "Notes", "page": 3}),
    ]
    assert all_edges(store) == [
        Edge("Ada Lovelace", "WROTE_ON", "The  Engine ", 1.0, {"year": 1843}),
        Edge("c1", "MENTIONS", "Ada Lovelace"),
    ]
    assert store.schema().relations == {("Person", "WROTE_ON", "Machine"): 1, ("text_chunk", "MENTIONS", "Person"): 1}


def test_chunks_lead_to_what_was_extracted_from_them(simple: SimplePropertyGraphStore) -> None:
    simple.upsert_nodes(
        [
            ChunkNode(text="He designed it.", id_="c2"),
            EntityNode(name="Babbage", properties={"triplet_source_id": "c2"}),
            EntityNode(name="Nobody", properties={"triplet_source_id": "gone"}),
        ]
    )
    about = {"triplet_source_id": "c2"}
    simple.upsert_relations([Relation(label="KNEW", source_id="Babbage", target_id="Ada Lovelace", properties=about)])
    store = from_property_graph_store(simple)
    assert [e.target for e in store.neighbors(["c2"], direction="out")] == ["Ada Lovelace", "Babbage"]
    assert [e.source for e in store.neighbors(["Babbage"], direction="in")] == ["c2"]
    assert [e.target for e in all_edges(store, relations=["MENTIONS"])] == ["Ada Lovelace", "Ada Lovelace", "Babbage"]
    assert store.count() == (6, 5)
    store.delete(["c2"])
    assert store.count() == (5, 3)
    assert store.view({"label": {"$ne": "Person"}}).neighbors(["c1"]) == []


def test_properties_can_be_name_and_text(simple: SimplePropertyGraphStore) -> None:
    ada, chunk = from_property_graph_store(simple, name_property="title", text_property="bio").get(
        ["Ada Lovelace", "c1"]
    )
    assert ada is not None
    assert chunk is not None
    assert (ada.name, ada.text, ada.properties["bio"]) == ("Ada Lovelace", "A countess.", "A countess.")
    assert (chunk.name, chunk.text) == ("Notes", "Ada wrote notes on the engine.")


def test_deleting_takes_no_neighbours_as_llama_indexs_own_would(simple: SimplePropertyGraphStore) -> None:
    store = from_property_graph_store(simple)
    store.delete(["Ada Lovelace"])
    assert [node.id for node in all_nodes(store)] == ["The  Engine ", "c1"]
    assert store.count() == (2, 0)
    assert simple.get_triplets(ids=["c1"]) == []


def test_what_is_written_outlives_llama_indexs_own_persistence(tmp_path: Path) -> None:
    simple = SimplePropertyGraphStore()
    nodes, edges = random_graph(1)
    nodes.append(Node("odd", ("A", "B"), "name", "text", {"id": "x"}))
    edges.append(Edge("odd", "R", "odd", 0.5, {"since": 1}))
    from_property_graph_store(simple).upsert(nodes, edges)
    simple.persist(str(tmp_path / "graph.json"))
    again = from_property_graph_store(SimplePropertyGraphStore.from_persist_path(str(tmp_path / "graph.json")))
    assert all_nodes(again) == sorted(nodes, key=lambda node: node.id)
    assert all_edges(again) == sorted(edges, key=edge_key)


def test_a_graphret_store_comes_back_as_it_is() -> None:
    store = MemoryStore()
    assert from_property_graph_store(GraphretPropertyGraphStore(store)) is store
    with pytest.raises(InvalidInput, match="name_property"):
        from_property_graph_store(GraphretPropertyGraphStore(store), name_property="title")
    with pytest.raises(InvalidInput, match="nested"):
        from_property_graph_store(SimplePropertyGraphStore(), nested="json")


def test_a_store_that_is_awaited_is_refused() -> None:
    class Awaited(MemoryStore):
        async def get(self, ids: Any) -> Any: ...

    with pytest.raises(InvalidInput, match="Awaited"):
        GraphretPropertyGraphStore(Awaited())


@pytest.mark.parametrize("other", [None, MemoryStore(), object()], ids=lambda other: type(other).__name__)
def test_what_is_no_property_graph_is_refused(other: Any) -> None:
    with pytest.raises(InvalidInput, match="store"):
        from_property_graph_store(other)
    if not isinstance(other, MemoryStore):
        with pytest.raises(InvalidInput, match="store"):
            GraphretPropertyGraphStore(other)


def test_a_property_graph_index_is_pointed_at_in_three_lines() -> None:
    texts = ["Ada wrote notes on the engine.", "Charles Babbage designed it.", "He died in Marylebone in 1871."]
    nodes = [TextNode(text=text, id_=f"n{i}", metadata={"page": i}) for i, text in enumerate(texts)]
    for one, other in itertools.pairwise(nodes):
        one.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=other.node_id)
    hashes = {node.node_id: node.hash for node in nodes}
    index = PropertyGraphIndex(
        nodes=nodes, kg_extractors=[ImplicitPathExtractor()], embed_kg_nodes=False, use_async=False
    )

    store = from_property_graph_store(index.property_graph_store)
    search = BM25Index.build([node for block in store.nodes() for node in block])
    retriever = as_llama_index_retriever(Expand(None, store, search), similarity_top_k=3)

    found = retriever.retrieve("Where did the one who designed it die?")
    assert [edge.relation for edge in all_edges(store)] == ["NEXT", "NEXT"]
    assert {one.text for one in found} == set(texts)
    assert {one.node_id: one.node.hash for one in found} == hashes
    assert {e.relation for one in found for e in evidence_of(one) if e.kind == "neighbor"} == {"NEXT"}

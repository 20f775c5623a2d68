"""`SageGraph` from LlamaIndex's indexes and nodes."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery, VectorStoreQueryResult
from llama_support import HashEmbedding, World
from tests_support import HashingEncoder, edges_of

from graphret import SageGraph as CoreGraph
from graphret.errors import InvalidInput
from llama_index_graphret import EncoderEmbedding, LlamaIndexEncoder, SageGraph, SageRetriever


def parts(*texts: str) -> list[BaseNode]:
    source = RelatedNodeInfo(node_id="doc")
    return [
        TextNode(id_=f"n{i}", text=text, relationships={NodeRelationship.SOURCE: source})
        for i, text in enumerate(texts)
    ]


def test_nothing_is_embedded_again(world: World) -> None:
    embedding = HashEmbedding()
    index = VectorStoreIndex(list(world.nodes), embed_model=embedding)
    embedding._texts.clear()
    graph = SageGraph.from_index(index)
    assert embedding._texts == []
    assert embedding._queries == []
    assert len(graph) == len(world.nodes)
    given = np.asarray([index.vector_store.get(node_id) for node_id in graph.nodes.ids])  # type: ignore[attr-defined]
    assert graph.index.dense is not None
    assert np.allclose(graph.index.dense.vectors, given / np.linalg.norm(given, axis=1, keepdims=True), atol=1e-6)


def test_questions_are_embedded_by_the_index_s_model(world: World) -> None:
    embedding = HashEmbedding()
    index = VectorStoreIndex(list(world.nodes), embed_model=embedding)
    graph = SageGraph.from_index(index)
    graph.as_retriever().retrieve("a stadium")
    assert embedding._queries == ["a stadium"]
    assert isinstance(graph.encoder, LlamaIndexEncoder)
    other = HashEmbedding()
    SageGraph.from_index(index, embed_model=other).as_retriever().retrieve("a stadium")
    assert other._queries == ["a stadium"]


class TextStore(BasePydanticVectorStore):
    """A vector store that keeps texts, as the databases do: lists its nodes if told to, with their embeddings."""

    stores_text: bool = True
    lists: bool = True
    kept: list[Any] = []  # noqa: RUF012 -- a pydantic field

    @property
    def client(self) -> None:
        return None

    def add(self, nodes: Any, **_: Any) -> list[str]:
        self.kept.extend(nodes)
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        raise NotImplementedError

    def query(self, query: VectorStoreQuery, **_: Any) -> VectorStoreQueryResult:
        raise NotImplementedError

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        if not self.lists:
            raise NotImplementedError
        return [node for node in self.kept if node_ids is None or node.node_id in node_ids]


def test_a_store_that_lists_no_nodes_is_a_clear_error(world: World) -> None:
    store = TextStore(kept=[], lists=False)
    with pytest.raises(InvalidInput, match=r"TextStore.*from_nodes"):
        SageGraph.from_index(VectorStoreIndex.from_vector_store(store, embed_model=HashEmbedding()))
    with pytest.raises(InvalidInput, match="holds no nodes"):
        SageGraph.from_index(VectorStoreIndex([], embed_model=HashEmbedding()))
    with pytest.raises(InvalidInput, match="VectorStoreIndex"):
        SageGraph.from_index(world.graph)  # type: ignore[arg-type]


def test_what_has_no_embedding_is_embedded_as_llama_index_would() -> None:
    embedding = HashEmbedding()
    first, second = parts("one text", "another text")
    second.metadata["title"] = "T"
    first.embedding = embedding._vector("one text")
    graph = SageGraph.from_nodes([first, second], embed_model=embedding, embed_metadata=False)
    assert embedding._texts == [second.get_content(metadata_mode=MetadataMode.EMBED)]
    assert graph.index.dense is not None
    assert graph.index.dense.vectors.shape == (2, 48)


def test_a_saved_graph_opens_with_the_same_model(world: World, tmp_path: Any) -> None:
    world.graph.save(tmp_path / "g")
    model = HashEmbedding()
    loaded = SageGraph.load(tmp_path / "g", embed_model=model)
    question = world.questions[0].question
    expected = SageRetriever(world.graph).retrieve(question)
    found = SageRetriever(loaded).retrieve(question)
    assert [(one.node.node_id, one.node.hash, one.score) for one in found] == [
        (one.node.node_id, one.node.hash, one.score) for one in expected
    ]
    assert model._queries == [question]


def test_adding_nodes_leaves_what_a_rebuild_would(world: World) -> None:
    nodes = [*parts("the first stadium", "the second opera", "the third stadium"), TextNode(id_="x", text="alone")]
    whole = SageGraph.from_nodes(nodes, encoder=None)
    grown = SageGraph.from_nodes(nodes[:1], encoder=None)
    assert grown.add_nodes(nodes[1:]) == ["n1", "n2", "x"]
    assert list(grown.nodes) == list(whole.nodes)
    assert edges_of(grown) == edges_of(whole)
    found = grown.as_retriever(similarity_top_k=1).retrieve("opera")[0]
    assert found.node.hash == nodes[1].hash
    assert found.node.hash == nodes[1].hash


def test_an_encoder_is_a_llama_index_model_and_the_graph_s_own(world: World, tmp_path: Any) -> None:
    encoder = HashingEncoder()
    model = EncoderEmbedding(encoder)
    index = VectorStoreIndex(list(world.nodes), embed_model=model)
    texts = [node.get_content(metadata_mode=MetadataMode.EMBED) for node in world.nodes]
    assert encoder.encoded == texts
    graph = SageGraph.from_index(index)
    assert encoder.encoded == texts
    assert graph.encoder is not None
    assert graph.encoder.name == encoder.name
    assert model.get_query_embedding("x") == asyncio.run(model.aget_query_embedding("x"))
    assert model.get_text_embedding("x") == asyncio.run(model.aget_text_embedding("x"))
    graph.save(tmp_path / "g")
    opened = CoreGraph.load(tmp_path / "g", encoder=encoder)
    assert opened.retriever().retrieve("stadium", 5).ids == graph.retriever().retrieve("stadium", 5).ids
    with pytest.raises(InvalidInput, match="encoder"):
        EncoderEmbedding(None)

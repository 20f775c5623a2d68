"""`SageGraph` from LlamaIndex's indexes and nodes."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import MetadataMode
from llama_support import HashEmbedding, World
from tests_support import HashingEncoder

from graphret import SageGraph as CoreGraph
from graphret.errors import InvalidInput
from llama_index_graphret import EncoderEmbedding, SageGraph


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
    graph.as_retriever().retrieve("a stadium")
    assert embedding._queries == ["a stadium"]
    assert np.allclose(graph.index.dense.vectors, given / np.linalg.norm(given, axis=1, keepdims=True), atol=1e-6)


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


def test_what_gives_no_nodes_out_is_a_clear_error(world: World) -> None:
    with pytest.raises(InvalidInput, match=r"SimpleVectorStore.*from_nodes"):
        SageGraph.from_index(VectorStoreIndex([], embed_model=HashEmbedding()))
    with pytest.raises(InvalidInput, match="VectorStoreIndex"):
        SageGraph.from_index(world.graph)  # type: ignore[arg-type]

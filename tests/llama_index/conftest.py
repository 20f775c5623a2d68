"""A vector index over a small real corpus, and the graph made of it."""

from __future__ import annotations

import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.llms.mock import MockLLM
from llama_support import HashEmbedding, World, small_corpus

from llama_index_graphret import SageGraph, SageNodeParser, to_llama_document


@pytest.fixture(scope="session")
def world() -> World:
    corpus, questions = small_corpus()
    embedding = HashEmbedding()
    nodes = SageNodeParser().get_nodes_from_documents([to_llama_document(item) for item in corpus.items])
    index = VectorStoreIndex(nodes, embed_model=embedding)
    return World(nodes, index, SageGraph.from_index(index), embedding, questions)


@pytest.fixture(autouse=True)
def offline_models() -> None:
    Settings.llm = MockLLM()

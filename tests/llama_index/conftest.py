"""A vector index over a small real corpus, and the graph made of it."""

from __future__ import annotations

import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.llms.mock import MockLLM
from llama_support import HashEmbedding, World, small_corpus

from graphret.corpus import to_nodes
from llama_index_graphret import SageGraph, to_llama_node


@pytest.fixture(scope="session")
def world() -> World:
    corpus, questions = small_corpus()
    embedding = HashEmbedding()
    nodes = [to_llama_node(node) for node in to_nodes(corpus)]
    index = VectorStoreIndex(nodes, embed_model=embedding)
    return World(nodes, index, SageGraph.from_index(index), embedding, questions)


@pytest.fixture(autouse=True)
def offline_models() -> None:
    Settings.llm = MockLLM()


@pytest.fixture
def question(world: World) -> str:
    return world.questions[0].question

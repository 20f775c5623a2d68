"""`SageRetriever`: nodes, evidence, filters, seeds, embeddings and failures."""

from __future__ import annotations

import asyncio

import pytest
from llama_support import FixedRetriever, HashEmbedding, World, ids

from graphret.errors import RetrievalFailed
from llama_index_graphret import (
    SageGraph,
    SageRetriever,
    retrieval_of,
)


def test_a_failing_seed_retriever_is_stood_in_for_and_noted(world: World) -> None:
    question = world.questions[0].question
    broken = FixedRetriever([], error=ConnectionError("the index is away"))
    retriever = SageRetriever(world.graph, seeds=broken)
    found = retriever.retrieve(question)
    assert ids(found) == ids(SageRetriever(world.graph).retrieve(question))
    retrieval = retrieval_of(found)
    assert retrieval is not None
    [note] = retrieval.trace.fallbacks
    assert "the index is away" in note.details["error"]
    strict = SageRetriever(world.graph, seeds=broken, on_failure="raise")
    with pytest.raises(RetrievalFailed, match="the index is away"):
        asyncio.run(strict.aretrieve(question))


def test_a_failing_embedding_model_leaves_the_words_and_is_noted(world: World) -> None:
    model = HashEmbedding()
    graph = SageGraph.from_nodes(list(world.nodes), embed_model=model)
    model.fail = True
    question = world.questions[0].question
    found = asyncio.run(SageRetriever(graph).aretrieve(question))
    assert len(found) == 10
    retrieval = retrieval_of(found)
    assert retrieval is not None
    assert "the embedding service is away" in retrieval.trace.fallbacks[0].details["error"]
    with pytest.raises(RetrievalFailed, match="the embedding service is away"):
        SageRetriever(graph, on_failure="raise").retrieve(question)


def test_async_embeds_in_a_thread_awaits_seeds_and_answers_the_same(world: World) -> None:
    model = HashEmbedding()
    graph = SageGraph.from_nodes(list(world.nodes), embed_model=model)
    seeds = FixedRetriever(world.index.as_retriever(similarity_top_k=5).retrieve(world.questions[0].question))
    retriever = SageRetriever(graph, seeds=seeds)
    question = world.questions[0].question
    found = asyncio.run(retriever.aretrieve(question))
    assert model._queries == [question]
    assert (seeds.awaited, seeds.blocking) == (1, 0)
    assert ids(found) == ids(SageRetriever(graph, seeds=FixedRetriever(seeds.nodes)).retrieve(question))

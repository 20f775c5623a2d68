"""`SageRetriever`: nodes, evidence, filters, seeds, embeddings and failures."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.schema import MetadataMode
from llama_support import FixedRetriever, HashEmbedding, World, ids

from graphret.errors import RetrievalFailed
from llama_index_graphret import (
    SageGraph,
    SageRetriever,
    retrieval_of,
)


def test_nodes_come_out_as_the_index_has_them(world: World) -> None:
    given = {node.node_id: node for node in world.nodes}
    for question in world.questions:
        for one in SageRetriever(world.graph).retrieve(question.question):
            original = given[one.node.node_id]
            assert one.node.hash == original.hash
            related = [{kind: other.node_id for kind, other in n.relationships.items()} for n in (one.node, original)]
            assert related[0] == related[1]
            for mode in MetadataMode:
                assert one.node.get_content(metadata_mode=mode) == original.get_content(metadata_mode=mode)


# -- evidence


# -- filters


# -- seeds


# -- failures


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
        strict.retrieve(question)
    with pytest.raises(RetrievalFailed, match="the index is away"):
        asyncio.run(strict.aretrieve(question))


def test_a_failing_embedding_model_leaves_the_words_and_is_noted(world: World) -> None:
    model = HashEmbedding()
    graph = SageGraph.from_nodes(list(world.nodes), embed_model=model)
    model.fail = True
    question = world.questions[0].question
    for found in (
        SageRetriever(graph).retrieve(question),
        asyncio.run(SageRetriever(graph).aretrieve(question)),
    ):
        assert len(found) == 10
        retrieval = retrieval_of(found)
        assert retrieval is not None
        assert "the embedding service is away" in retrieval.trace.fallbacks[0].details["error"]
    with pytest.raises(RetrievalFailed, match="the embedding service is away"):
        SageRetriever(graph, on_failure="raise").retrieve(question)
    model.fail = False
    assert retrieval_of(SageRetriever(graph).retrieve(question)).trace.fallbacks == []  # type: ignore[union-attr]


# -- embeddings of questions


# -- async


def test_async_awaits_model_and_seeds_and_answers_the_same(world: World) -> None:
    model = HashEmbedding()
    graph = SageGraph.from_nodes(list(world.nodes), embed_model=model)
    seeds = FixedRetriever(world.index.as_retriever(similarity_top_k=5).retrieve(world.questions[0].question))
    retriever = SageRetriever(graph, seeds=seeds)
    question = world.questions[0].question
    found = asyncio.run(retriever.aretrieve(question))
    assert (model._awaited, model._queries) == ([question], [])
    assert len(seeds.awaited) == 1
    assert seeds.blocking == []
    assert ids(found) == ids(SageRetriever(graph, seeds=FixedRetriever(seeds.nodes)).retrieve(question))

"""graphret inside LlamaIndex's own engines: failures, fusion, and what they can observe."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core import Settings
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_support import FixedRetriever, HashEmbedding, Recording, World, ids

from graphret.errors import RetrievalFailed
from llama_index_graphret import (
    GraphReranker,
    SageExpansion,
    SageGraph,
    SageRetrievalEvent,
    SageRetriever,
    evidence_of,
    retrieval_of,
)


@pytest.fixture
def sage(world: World) -> SageRetriever:
    return SageRetriever(world.graph, similarity_top_k=4)


@pytest.mark.parametrize("mode", [FUSION_MODES.RECIPROCAL_RANK, FUSION_MODES.RELATIVE_SCORE])
def test_query_fusion_takes_a_node_with_evidence_for_the_node(
    world: World, sage: SageRetriever, question: str, mode: FUSION_MODES
) -> None:
    pair = [sage, world.index.as_retriever(similarity_top_k=35)]
    options = {"num_queries": 1, "similarity_top_k": 40, "use_async": False, "llm": Settings.llm}
    fused = QueryFusionRetriever(pair, mode=mode, **options).retrieve(question)
    assert len({one.node_id for one in fused}) == len(fused) == 35


# -- instrumentation


@pytest.mark.parametrize("awaited", [False, True])
def test_a_retriever_tells_what_it_did(sage: SageRetriever, question: str, awaited: bool) -> None:
    with Recording() as events:
        found = asyncio.run(sage.aretrieve(question)) if awaited else sage.retrieve(question)
    assert [event.str_or_query_bundle for event in events.of(RetrievalStartEvent)] == [question]
    assert [ids(event.nodes) for event in events.of(RetrievalEndEvent)] == [ids(found)]
    [told] = events.of(SageRetrievalEvent)
    assert {"seeds", "expand"} <= {stage["name"] for stage in told.trace["stages"]}
    assert told.evidence == {one.node.node_id: [e.to_dict() for e in evidence_of(one)] for one in found}
    assert told.span_id is not None


@pytest.mark.parametrize("awaited", [False, True])
def test_postprocessors_tell_what_they_did(world: World, question: str, awaited: bool) -> None:
    class Length:
        def predict(self, pairs: list[tuple[str, str]]) -> list[float]:
            return [float(len(text)) for _, text in pairs]

    engine = world.index.as_query_engine(
        similarity_top_k=3,
        node_postprocessors=[SageExpansion(world.graph, top_n=6), GraphReranker(Length(), top_n=2)],
    )
    with Recording() as events:
        response = asyncio.run(engine.aquery(question)) if awaited else engine.query(question)
    begun = [(e.query.query_str, len(e.nodes), e.top_n, e.model_name) for e in events.of(ReRankStartEvent)]
    assert begun == [(question, 3, 6, "coverage"), (question, 6, 2, "Length")]
    expanded, reranked = events.of(ReRankEndEvent)
    assert (len(expanded.nodes), ids(reranked.nodes)) == (6, ids(response.source_nodes))
    expanding, reranking = ([stage["name"] for stage in one.trace["stages"]] for one in events.of(SageRetrievalEvent))
    assert "expand" in expanding
    assert reranking[-1] == "rerank"


# -- what fails, and what is awaited


def test_what_fails_is_stood_in_for_and_noted_or_raised(world: World, question: str) -> None:
    model = HashEmbedding()
    graph = SageGraph.from_nodes(list(world.nodes), embed_model=model)
    broken = FixedRetriever([], error=ConnectionError("the index is away"))
    for options, said in (({"seeds": broken}, "the index is away"), ({}, "the embedding service is away")):
        model.fail = not options
        found = SageRetriever(graph, **options).retrieve(question + said)  # no vector is remembered
        retrieval = retrieval_of(found)
        assert retrieval is not None
        assert len(found) == 10
        assert said in retrieval.trace.fallbacks[0].details["error"]
        with pytest.raises(RetrievalFailed, match=said):
            asyncio.run(SageRetriever(graph, on_failure="raise", **options).aretrieve(question + said))


def test_async_embeds_in_a_thread_awaits_seeds_and_answers_the_same(world: World, question: str) -> None:
    model = HashEmbedding()
    graph = SageGraph.from_nodes(list(world.nodes), embed_model=model)
    seeds = FixedRetriever(world.index.as_retriever(similarity_top_k=5).retrieve(question))
    retriever = SageRetriever(graph, seeds=seeds)
    found = asyncio.run(retriever.aretrieve(question))
    assert model._queries == [question]
    assert (seeds.awaited, seeds.blocking) == (1, 0)
    assert ids(found) == ids(SageRetriever(graph, seeds=FixedRetriever(seeds.nodes)).retrieve(question))

"""`SageRetriever`: nodes, evidence, filters, seeds, embeddings and failures."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.indices.query.query_transform.base import HyDEQueryTransform
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from llama_support import FixedRetriever, HashEmbedding, World

from graphret import BM25Index, IndexRetriever, Node, Paper
from graphret import SageGraph as CoreGraph
from graphret.errors import InvalidInput, RetrievalFailed
from llama_index_graphret import (
    LlamaIndexSeeds,
    SageGraph,
    SageNodeWithScore,
    SageRetriever,
    as_llama_index_retriever,
    evidence_of,
    retrieval_of,
    to_llama_node,
)


def ids(nodes: list[NodeWithScore]) -> list[str]:
    return [one.node.node_id for one in nodes]


@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize("ranking", ["coverage", "propagate", "paper"])
def test_as_many_nodes_as_asked_for_in_the_core_s_order(world: World, ranking: str, k: int) -> None:
    question = world.questions[0].question
    found = SageRetriever(world.graph, similarity_top_k=k, ranking=ranking).retrieve(question)
    core = world.graph.retriever(ranking).retrieve(question, k)
    assert ids(found) == core.ids
    assert len(found) == k
    assert [one.score for one in found] == [hit.relevance for hit in core.hits]
    assert [one.raw_score for one in found] == [hit.score for hit in core.hits]
    assert [evidence_of(one) for one in found] == [list(hit.evidence) for hit in core.hits]


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


def test_linked_tables_and_passages_are_found_where_flat_search_misses_them(world: World) -> None:
    k = 5
    flat = world.index.as_retriever(similarity_top_k=k)
    sage = SageRetriever(world.graph, similarity_top_k=k)
    recall: dict[str, float] = {"flat": 0.0, "sage": 0.0}
    for question in world.questions:
        gold = question.gold(world.graph.nodes) | {f"{p}#0" for p in question.passages}
        gold = {id_ for id_ in gold if id_ in world.graph.nodes}
        for name, retriever in (("flat", flat), ("sage", sage)):
            recall[name] += len(gold & set(ids(retriever.retrieve(question.question)))) / len(gold)
    assert recall["sage"] > recall["flat"]
    linked = [e for q in world.questions for one in sage.retrieve(q.question) for e in evidence_of(one)]
    assert any(e.kind == "neighbor" and e.relation == "MENTIONS" for e in linked)


# -- evidence


def test_evidence_is_no_part_of_the_node(world: World) -> None:
    question = world.questions[0].question
    for one in SageRetriever(world.graph).retrieve(question):
        assert isinstance(one, SageNodeWithScore)
        plain = to_llama_node(world.graph.nodes[int(world.graph.nodes.find([one.node.node_id])[0])])
        assert evidence_of(one)
        assert not evidence_of(plain)
        assert (one.node.id_, one.node.hash, one.node.metadata) == (plain.id_, plain.hash, plain.metadata)
        for mode in MetadataMode:
            assert one.node.get_content(metadata_mode=mode) == plain.get_content(metadata_mode=mode)


def test_evidence_outlives_copies_pickles_and_whoever_wraps_the_node_anew(world: World) -> None:
    one = SageRetriever(world.graph).retrieve(world.questions[0].question)[0]
    evidence = evidence_of(one)
    for other in (
        one.model_copy(),
        one.model_copy(deep=True),
        copy.copy(one),
        copy.deepcopy(one),
        pickle.loads(pickle.dumps(one)),
        NodeWithScore(node=one.node, score=0.5),
        NodeWithScore(node=one.node.model_copy(), score=0.5),
        NodeWithScore(node=copy.deepcopy(one.node), score=0.5),
    ):
        assert evidence_of(other) == evidence


def test_one_answer_s_evidence_does_not_reach_another_answer(world: World) -> None:
    retriever = SageRetriever(world.graph, similarity_top_k=35)
    first, second = (retriever.retrieve(world.questions[i].question) for i in (0, 1))
    kept = [evidence_of(one) for one in first]
    by_id = {one.node.node_id: one for one in second}
    assert all(by_id[one.node.node_id].node is not one.node for one in first if one.node.node_id in by_id)
    first[0].node.metadata["mine"] = 1
    assert "mine" not in by_id[first[0].node.node_id].node.metadata
    assert [evidence_of(one) for one in first] == kept


def test_a_retrieval_is_remembered_with_its_trace(world: World) -> None:
    retriever = SageRetriever(world.graph)
    question = world.questions[0].question
    found = retriever.retrieve(question)
    retrieval = retriever.retrieval_of(QueryBundle(question))
    assert retrieval is not None
    assert retrieval is retrieval_of(found)
    assert {"seeds", "expand"} <= {stage.name for stage in retrieval.trace.stages}
    bare = NodeWithScore(node=TextNode(id_=found[0].node.node_id, text="another copy"), score=1.0)
    assert evidence_of(bare) == []
    assert evidence_of(bare, within=retrieval) == evidence_of(found[0])
    assert retriever.retrieval_of("never asked") is None


# -- filters


def test_filters_limit_what_is_returned(world: World) -> None:
    title = world.graph.nodes[0].properties["title"]
    filters = MetadataFilters(filters=[MetadataFilter(key="title", value=title, operator=FilterOperator.NE)])
    question = world.questions[0].question
    found = SageRetriever(world.graph, similarity_top_k=30, filters=filters).retrieve(question)
    assert len(found) == 30
    assert title not in {one.node.metadata.get("title") for one in found}
    assert ids(found) == world.graph.retriever().retrieve(question, 30, {"title": {"$ne": title}}).ids


def test_a_view_hides_nodes(world: World) -> None:
    view = world.graph.view({"label": "Document"})
    found = SageRetriever(view, similarity_top_k=50).retrieve(world.questions[0].question)
    assert len(found) == len(view)
    hidden = set(world.graph.nodes.ids) - set(view.nodes.ids)
    assert hidden
    assert not {e.source for one in found for e in evidence_of(one)} & hidden


# -- seeds


def test_a_vector_index_s_retriever_finds_the_seeds(world: World) -> None:
    question = world.questions[0].question
    seeds = world.index.as_retriever(similarity_top_k=3)
    retriever = SageRetriever(world.graph, similarity_top_k=5, seeds=seeds, ranking=Paper(seed_share=0.6))
    found = retriever.retrieve(question)
    assert ids(found)[:3] == ids(seeds.retrieve(question))
    assert {evidence_of(one)[0].kind for one in found[3:]} <= {"neighbor", "fill"}


def test_a_seed_retriever_is_asked_for_as_many_as_are_needed_and_left_as_it_was(world: World) -> None:
    seeds = world.index.as_retriever(similarity_top_k=2)
    deep = LlamaIndexSeeds(seeds).retrieve("anything", 9)
    assert len(deep.hits) == 9
    assert seeds.similarity_top_k == 2
    assert len(LlamaIndexSeeds(seeds, deepen=False).retrieve("anything", 9).hits) == 2


def test_an_adapted_retriever_filters_what_it_found(world: World) -> None:
    found = LlamaIndexSeeds(world.index.as_retriever(similarity_top_k=35)).retrieve("x", 35, {"label": "Table"})
    assert found.hits
    assert {hit.node.label for hit in found.hits} == {"Table"}


def test_seeds_without_scores_count_by_their_order() -> None:
    nodes = [NodeWithScore(node=TextNode(id_=i, text=i)) for i in "abc"]
    found = LlamaIndexSeeds(FixedRetriever(nodes)).retrieve("x", 3)
    assert found.ids == ["a", "b", "c"]
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3


def test_a_retriever_goes_to_llama_index_and_back(world: World) -> None:
    core = world.graph.retriever()
    back = LlamaIndexSeeds(as_llama_index_retriever(core, similarity_top_k=6))
    question = world.questions[0].question
    assert back.retrieve(question, 6).ids == core.retrieve(question, 6).ids
    nodes = [hit.node for hit in back.retrieve(question, 6).hits]
    assert nodes == [_without_extracted(hit.node) for hit in core.retrieve(question, 6).hits]


def _without_extracted(node: Node) -> Node:
    """What graphret found out about a LlamaIndex node stays in the graph."""
    from llama_index_graphret import from_llama_node

    return from_llama_node(to_llama_node(node))


def test_any_graphret_retriever_is_a_llama_index_retriever(world: World) -> None:
    flat = IndexRetriever(BM25Index.build(list(world.graph.nodes)))
    found = SageRetriever(flat, similarity_top_k=4).retrieve("stadium")
    assert ids(found) == flat.retrieve("stadium", 4).ids
    assert [evidence_of(one)[0].kind for one in found] == ["seed" if one.score else "fill" for one in found]
    assert evidence_of(found[0])[0].kind == "seed"


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
    graph = SageGraph.from_nodes(list(world.nodes), embed_model=model, embed_metadata=False)
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


@pytest.mark.parametrize(
    "options",
    [
        {"similarity_top_k": 0},
        {"similarity_top_k": "5"},
        {"ranking": "best"},
        {"on_failure": "ignore"},
        {"seeds": object()},
        {"filters": {"$near": 3}},
    ],
)
def test_malformed_arguments_are_refused(world: World, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        SageRetriever(world.graph, **options)


def test_what_is_no_graph_is_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match="VectorStoreIndex"):
        SageRetriever(world.index)  # type: ignore[arg-type]
    flat = IndexRetriever(BM25Index.build(list(world.graph.nodes)))
    with pytest.raises(InvalidInput, match="ranking and seeds"):
        SageRetriever(flat, ranking="paper")


# -- embeddings of questions


def near(world: World, text: str) -> list[float]:
    return world.embedding._vector(text)


def test_a_question_s_own_embedding_is_used_and_counts_once(world: World) -> None:
    graph = SageGraph.from_nodes(list(world.nodes), embed_model=HashEmbedding(), embed_metadata=False)
    target = world.nodes[-1]
    retriever = SageRetriever(graph, similarity_top_k=1)
    plain = retriever.retrieve("zzz")[0].score
    given = QueryBundle("zzz", embedding=near(world, target.get_content(metadata_mode=MetadataMode.EMBED)))
    assert ids(retriever.retrieve(given)) == [target.node_id]
    assert retriever.retrieve("zzz")[0].score == plain


def test_an_embedding_of_another_model_is_left_alone(world: World) -> None:
    question = world.questions[0].question
    expected = ids(SageRetriever(world.graph).retrieve(question))
    alien = QueryBundle(question, embedding=[1.0] * 7)
    assert ids(SageRetriever(world.graph).retrieve(alien)) == expected
    with pytest.raises(InvalidInput, match="embedding"):
        SageRetriever(world.graph, use_query_embedding=True).retrieve(alien)
    core = CoreGraph.from_nodes(list(world.graph.nodes), encoder=world.embedding._encoder)
    same_width = QueryBundle(question, embedding=[1.0] * 48)
    plain = SageRetriever(core).retrieve(question)
    assert [n.score for n in SageRetriever(core).retrieve(same_width)] == [n.score for n in plain]


def test_the_bundle_is_left_as_it_came(world: World) -> None:
    bundle = QueryBundle(world.questions[0].question)
    SageRetriever(world.graph, seeds=world.index.as_retriever()).retrieve(bundle)
    assert bundle.embedding is None


def test_a_graph_without_an_encoder_needs_the_embedding(world: World) -> None:
    model = HashEmbedding()
    embedded = [n.model_copy(update={"embedding": model._vector(n.get_content())}) for n in world.nodes]
    graph = SageGraph.from_nodes(embedded, encoder=None)
    with pytest.raises(InvalidInput, match="embedding must be given"):
        SageRetriever(graph).retrieve("stadium")
    bundle = QueryBundle("stadium", embedding=model._vector("stadium"))
    assert len(SageRetriever(graph).retrieve(bundle)) == 10


def test_texts_embedded_in_place_of_the_question_count(world: World) -> None:
    target = world.nodes[-1]
    graph = SageGraph.from_nodes(list(world.nodes), embed_model=HashEmbedding(), embed_metadata=False)
    bundle = QueryBundle("zzz", custom_embedding_strs=[target.get_content(metadata_mode=MetadataMode.EMBED)])
    assert ids(SageRetriever(graph, similarity_top_k=1).retrieve(bundle)) == [target.node_id]
    assert ids(asyncio.run(SageRetriever(graph, similarity_top_k=1).aretrieve(bundle))) == [target.node_id]
    core = CoreGraph.from_nodes(list(world.graph.nodes), encoder=world.embedding._encoder)
    assert ids(SageRetriever(core, similarity_top_k=1).retrieve(bundle)) == [target.node_id]


def test_hyde_goes_through(world: World) -> None:
    bundle = HyDEQueryTransform(llm=Settings.llm).run("stadium")
    assert len(SageRetriever(world.graph).retrieve(bundle)) == 10


# -- async


def test_async_awaits_model_and_seeds_and_answers_the_same(world: World) -> None:
    model = HashEmbedding()
    graph = SageGraph.from_nodes(list(world.nodes), embed_model=model, embed_metadata=False)
    seeds = FixedRetriever(world.index.as_retriever(similarity_top_k=5).retrieve(world.questions[0].question))
    retriever = SageRetriever(graph, seeds=seeds)
    question = world.questions[0].question
    found = asyncio.run(retriever.aretrieve(question))
    assert (model._awaited, model._queries) == ([question], [])
    assert len(seeds.awaited) == 1
    assert seeds.blocking == []
    assert ids(found) == ids(SageRetriever(graph, seeds=FixedRetriever(seeds.nodes)).retrieve(question))


def test_the_seed_retriever_gets_the_question_s_embedding(world: World) -> None:
    seeds = FixedRetriever(world.index.as_retriever().retrieve("stadium"))
    embedding = world.embedding._vector("stadium")
    retriever = SageRetriever(world.graph, seeds=seeds)
    retriever.retrieve(QueryBundle("stadium", embedding=embedding))
    asyncio.run(retriever.aretrieve(QueryBundle("stadium", embedding=embedding)))
    assert [one.embedding for one in (*seeds.blocking, *seeds.awaited)] == [embedding, embedding]


def test_cancelling_a_question_cancels_the_seed_retriever(world: World) -> None:
    async def ask() -> FixedRetriever:
        seeds = FixedRetriever([], wait=True)
        task = asyncio.create_task(SageRetriever(world.graph, seeds=seeds).aretrieve("stadium"))
        await seeds.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return seeds

    assert asyncio.run(ask()).cancelled


def test_many_questions_at_once_get_each_their_own_answer(world: World) -> None:
    retriever = SageRetriever(world.graph, seeds=world.index.as_retriever(similarity_top_k=5))
    questions = [question.question for question in world.questions] * 3
    expected = [ids(retriever.retrieve(question)) for question in questions]

    async def ask() -> list[list[NodeWithScore]]:
        return await asyncio.gather(*(retriever.aretrieve(question) for question in questions))

    found = asyncio.run(ask())
    assert [ids(nodes) for nodes in found] == expected
    for question, nodes in zip(questions, found, strict=True):
        retrieval = retrieval_of(nodes)
        assert retrieval is not None
        assert retrieval.query == question

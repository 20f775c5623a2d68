"""graphret inside LlamaIndex's own engines: failures, fusion, reranking, and evidence
in copies of nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llama_index.core import Settings
from llama_index.core.instrumentation.events.rerank import (
    ReRankEndEvent,
    ReRankStartEvent,
)
from llama_index.core.instrumentation.events.retrieval import (
    RetrievalEndEvent,
    RetrievalStartEvent,
)
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_support import FixedRetriever, HashEmbedding, Recording, World, ids
from workflows.context import JsonSerializer

from graphret import SageRanking
from graphret.errors import InvalidInput, ModelError, RetrievalFailed
from graphret.rerank import CrossEncoderReranker
from graphret.types import Evidence, Hit, Node
from llama_index_graphret import (
    GraphReranker,
    LlamaIndexSeeds,
    RRFFusionRetriever,
    SageExpansion,
    SageGraph,
    SageNodeWithScore,
    SageRetrievalEvent,
    SageRetriever,
    evidence_of,
    from_llama_node,
    retrieval_of,
)


@pytest.fixture
def sage(world: World) -> SageRetriever:
    return SageRetriever(world.graph, similarity_top_k=4)


@pytest.mark.parametrize(
    "mode", [FUSION_MODES.RECIPROCAL_RANK, FUSION_MODES.RELATIVE_SCORE]
)
def test_query_fusion_takes_a_node_with_evidence_for_the_node(
    world: World, sage: SageRetriever, question: str, mode: FUSION_MODES
) -> None:
    pair = [sage, world.index.as_retriever(similarity_top_k=35)]
    options = {
        "num_queries": 1,
        "similarity_top_k": 40,
        "use_async": False,
        "llm": Settings.llm,
    }
    fused = QueryFusionRetriever(pair, mode=mode, **options).retrieve(question)
    assert len({node.node_id for node in fused}) == len(fused) == 35


# -- instrumentation


@pytest.mark.parametrize("awaited", [False, True])
def test_a_retriever_tells_what_it_did(
    sage: SageRetriever, question: str, awaited: bool
) -> None:
    with Recording() as events:
        nodes = (
            asyncio.run(sage.aretrieve(question))
            if awaited
            else sage.retrieve(question)
        )
    assert [event.str_or_query_bundle for event in events.of(RetrievalStartEvent)] == [
        question
    ]
    assert [ids(event.nodes) for event in events.of(RetrievalEndEvent)] == [ids(nodes)]
    [told] = events.of(SageRetrievalEvent)
    assert {"seeds", "expand"} <= {stage["name"] for stage in told.trace["stages"]}
    assert told.evidence == {
        node.node.node_id: [e.to_dict() for e in evidence_of(node)] for node in nodes
    }
    assert told.span_id is not None


@pytest.mark.parametrize("awaited", [False, True])
def test_postprocessors_tell_what_they_did(
    world: World, question: str, awaited: bool
) -> None:
    class Length:
        def predict(self, pairs: list[tuple[str, str]]) -> list[float]:
            return [float(len(text)) for _, text in pairs]

    engine = world.index.as_query_engine(
        similarity_top_k=3,
        node_postprocessors=[
            SageExpansion(world.graph, top_n=6),
            GraphReranker(Length(), top_n=2),
        ],
    )
    with Recording() as events:
        response = (
            asyncio.run(engine.aquery(question)) if awaited else engine.query(question)
        )
    begun = [
        (e.query.query_str, len(e.nodes), e.top_n, e.model_name)
        for e in events.of(ReRankStartEvent)
    ]
    assert begun == [(question, 3, 6, "coverage"), (question, 6, 2, "Length")]
    expanded, reranked = events.of(ReRankEndEvent)
    assert (len(expanded.nodes), ids(reranked.nodes)) == (6, ids(response.source_nodes))
    expanding, reranking = (
        [stage["name"] for stage in event.trace["stages"]]
        for event in events.of(SageRetrievalEvent)
    )
    assert "expand" in expanding
    assert reranking[-1] == "rerank"


# -- what fails, and what is awaited


def test_what_fails_is_stood_in_for_and_noted_or_raised(
    world: World, question: str
) -> None:
    model = HashEmbedding()
    graph = SageGraph.from_nodes(list(world.nodes), embed_model=model)
    broken = FixedRetriever([], error=ConnectionError("the index is away"))
    for options, error_text in (
        ({"seeds": broken}, "the index is away"),
        ({}, "the embedding service is away"),
    ):
        model.fail = not options
        nodes = SageRetriever(graph, **options).retrieve(
            question + error_text
        )  # no vector is remembered
        retrieval = retrieval_of(nodes)
        assert retrieval is not None
        assert len(nodes) == 10
        assert error_text in retrieval.trace.fallbacks[0].details["error"]
        with pytest.raises(RetrievalFailed, match=error_text):
            asyncio.run(
                SageRetriever(graph, on_failure="raise", **options).aretrieve(
                    question + error_text
                )
            )


def test_async_embeds_in_a_thread_awaits_seeds_and_answers_the_same(
    world: World, question: str
) -> None:
    model = HashEmbedding()
    graph = SageGraph.from_nodes(list(world.nodes), embed_model=model)
    model._queries.clear()  # what the build asked, of sentences cut out of the nodes
    seeds = FixedRetriever(
        world.index.as_retriever(similarity_top_k=5).retrieve(question)
    )
    retriever = SageRetriever(graph, seeds=seeds)
    nodes = asyncio.run(retriever.aretrieve(question))
    assert model._queries == [question]
    assert (seeds.awaited, seeds.blocking) == (1, 0)
    assert ids(nodes) == ids(
        SageRetriever(graph, seeds=FixedRetriever(seeds.nodes)).retrieve(question)
    )


def serialised(value: Any) -> Any:
    return JsonSerializer().deserialize(JsonSerializer().serialize(value))


@pytest.mark.parametrize(
    "through",
    [
        lambda one: TextNode.model_validate_json(one.node.model_dump_json()),
        lambda one: SageNodeWithScore.model_validate_json(one.model_dump_json()),
        lambda one: serialised({"nodes": [one]})["nodes"][
            0
        ],  # the context of a workflow
    ],
)
@pytest.mark.parametrize("expanded", [False, True])
def test_evidence_outlives_json(
    world: World,
    question: str,
    expanded: bool,
    through: Callable[[SageNodeWithScore], NodeWithScore],
) -> None:
    retrieved = SageRetriever(world.graph, k=6).retrieve(question)
    if expanded:
        retrieved = SageExpansion(world.graph, k=6).postprocess_nodes(
            [NodeWithScore(node=retrieved[0].node)], query_str=question
        )
    assert any(
        evidence.kind == "neighbor"
        for scored in retrieved
        for evidence in evidence_of(scored)
    )
    for scored in retrieved:
        assert isinstance(scored, SageNodeWithScore)
        again = through(scored)
        assert evidence_of(again) == evidence_of(scored)
        node = again.node if isinstance(again, NodeWithScore) else again
        assert (node.node_id, node.hash) == (scored.node.node_id, scored.node.hash)
        if isinstance(again, SageNodeWithScore):
            assert (again.score, again.raw_score) == (scored.score, scored.raw_score)


def test_evidence_outlives_citations(world: World, question: str) -> None:
    retriever = SageRetriever(world.graph, similarity_top_k=6)
    retrieved = retriever.retrieve(question)
    cited = CitationQueryEngine(retriever).query(question).source_nodes
    assert cited[0].text.startswith("Source 1:")
    citations = [
        [str(evidence_of(node)) for node in nodes] for nodes in (retrieved, cited)
    ]  # a node may be cited in pieces
    assert list(dict.fromkeys(citations[1])) == list(dict.fromkeys(citations[0]))


def test_evidence_is_in_no_text_and_in_no_graph_made_of_the_nodes(
    world: World, question: str
) -> None:
    original = TextNode(
        id_="mine", text="Stadion Poljud stands in Split.", metadata={"page": 3}
    )
    copy = original.model_copy(deep=True)
    handed = [NodeWithScore(node=original, score=0.5)]
    [result, *_] = SageExpansion(world.graph).postprocess_nodes(
        handed, query_str=question
    )
    [result, *_] = GraphReranker(Always(), k=1).postprocess_nodes(
        [result], query_str=question
    )
    assert original == copy
    assert evidence_of(result)
    assert result.node.hash == original.hash
    for mode in MetadataMode:
        assert result.node.get_content(metadata_mode=mode) == original.get_content(
            metadata_mode=mode
        )
    [hit] = LlamaIndexSeeds(FixedRetriever([result])).retrieve(question, 1).hits
    assert hit.node == from_llama_node(original)


class Always:
    """Likes every node alike."""

    name = "always"

    def scores(self, query: str, hits: Any) -> list[float]:
        return [1.0] * len(hits)


@pytest.mark.parametrize(
    ("make", "own"),
    [
        (SageRetriever, "similarity_top_k"),
        (SageExpansion, "top_n"),
        (GraphReranker, "top_n"),
    ],
)
def test_k_is_another_name(world: World, make: Callable[..., Any], own: str) -> None:
    first = Always() if make is GraphReranker else world.graph
    assert [
        getattr(make(first, **options), own) for options in ({}, {"k": 3}, {own: 4})
    ] == [10, 3, 4]
    for wrong in ({"k": 3, own: 3}, {"k": 0}):
        with pytest.raises(InvalidInput, match="k"):
            make(first, **wrong)


# -- expansion


@pytest.fixture
def handed(world: World, question: str) -> list[NodeWithScore]:
    return world.index.as_retriever(similarity_top_k=4).retrieve(question)


def test_the_total_is_returned_and_what_was_handed_in_is_the_same(
    world: World, question: str, handed: list[NodeWithScore]
) -> None:
    before = [
        (
            scored.node.hash,
            scored.node.get_content(metadata_mode=MetadataMode.LLM),
            scored.score,
        )
        for scored in handed
    ]
    nodes = SageExpansion(world.graph, top_n=12).postprocess_nodes(
        handed, query_str=question
    )
    assert len(nodes) == 12
    assert set(ids(handed)) <= set(ids(nodes))
    originals = {node.node_id: node for node in world.nodes}
    assert all(
        scored.node.hash == originals[scored.node.node_id].hash for scored in nodes
    )
    assert all(evidence_of(scored) for scored in nodes)
    assert [
        (n.node.hash, n.node.get_content(metadata_mode=MetadataMode.LLM), n.score)
        for n in handed
    ] == before


def test_a_node_that_the_graph_lacks_keeps_its_place(
    world: World, question: str, handed: list[NodeWithScore]
) -> None:
    first, last = (
        NodeWithScore(node=TextNode(id_=i, text=i), score=s)
        for i, s in (("new-1", 9.0), ("new-2", 0.0))
    )
    inputs = [first, *handed, last]
    nodes = SageExpansion(
        world.graph, top_n=30, ranking=SageRanking()
    ).postprocess_nodes(inputs, query_str=question)
    assert ids(nodes)[:6] == ids(inputs)
    assert (nodes[0].node.hash, nodes[0].node.get_content()) == (
        first.node.hash,
        "new-1",
    )
    scores = [node.score for node in nodes]
    assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]


both_ways = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


def fixed(*names: str) -> FixedRetriever:
    return FixedRetriever(
        [
            NodeWithScore(node=TextNode(id_=n, text=f"text {n}"), score=1 / (i + 1))
            for i, n in enumerate(names)
        ]
    )


def run(
    retriever: RRFFusionRetriever, query: str, awaited: bool
) -> list[NodeWithScore]:
    return (
        asyncio.run(retriever.aretrieve(query))
        if awaited
        else retriever.retrieve(query)
    )


# -- fusion


@both_ways
def test_weighted_reciprocal_ranks_add_up_and_are_cut_at_k(awaited: bool) -> None:
    fusion = RRFFusionRetriever(
        [fixed("a", "b", "c"), fixed("c", "d")], weights=[1.0, 2.0], rrf_k=10
    )
    nodes = run(fusion, "x", awaited)
    expected = {"a": 1 / 11, "b": 1 / 12, "c": 1 / 13 + 2 / 11, "d": 2 / 12}
    assert {node.node.node_id: node.score for node in nodes} == pytest.approx(expected)
    assert ids(nodes) == ["c", "d", "a", "b"]
    assert ids(
        run(RRFFusionRetriever([fixed("b"), fixed("a")], k=1), "x", awaited)
    ) == ["a"]  # ties go by id


@both_ways
def test_evidence_of_all_is_kept_whatever_the_order(
    world: World, awaited: bool
) -> None:
    question = world.questions[0].question
    vector, sage = (
        world.index.as_retriever(similarity_top_k=10),
        SageRetriever(world.graph, similarity_top_k=10),
    )
    expected = {
        scored.node.node_id: evidence_of(scored) for scored in sage.retrieve(question)
    }
    raw = {node.node_id: node.hash for node in world.nodes}
    for pair, names in (
        ([vector, sage], ["vector", "sage"]),
        ([sage, vector], ["sage", "vector"]),
    ):
        nodes = run(
            RRFFusionRetriever(pair, names=names, similarity_top_k=40),
            question,
            awaited,
        )
        for scored in nodes:
            evidence = evidence_of(scored)
            assert all(
                expected_evidence in evidence
                for expected_evidence in expected.get(scored.node.node_id, [])
            )
            assert {e.retriever for e in evidence if e.kind == "rank"} <= {
                "vector",
                "sage",
            }
            assert scored.node.hash == raw[scored.node.node_id]
        assert set(expected) <= set(ids(nodes))


# -- reranking


class Model:
    """Scores a pair by how often the question is in the text."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.pairs: list[tuple[str, str]] = []

    def predict(self, pairs: list[tuple[str, str]]) -> Any:
        self.pairs = pairs
        if isinstance(self.answer, Exception):
            raise self.answer
        counts = np.asarray([text.count(query) for query, text in pairs], np.float32)
        return counts if self.answer is None else self.answer


def scored(*texts: str) -> list[NodeWithScore]:
    return [
        NodeWithScore(
            node=TextNode(id_=f"n{i}", text=text, metadata={"title": "T"}), score=1.0
        )
        for i, text in enumerate(texts)
    ]


def post(
    reranker: GraphReranker, nodes: list[NodeWithScore], query: str, awaited: bool
) -> list[NodeWithScore]:
    if awaited:
        return asyncio.run(reranker.apostprocess_nodes(nodes, query_str=query))
    return reranker.postprocess_nodes(nodes, query_str=query)


@both_ways
def test_nodes_are_ordered_by_the_model(awaited: bool) -> None:
    model, nodes = Model(), scored("b", "a", "aa")
    retrieved = post(GraphReranker(model, top_n=2, weight=1), nodes, "a", awaited)
    assert [(node.node.node_id, node.score) for node in retrieved] == [
        ("n2", 1.0),
        ("n1", 0.5),
    ]
    assert retrieved[0].node.hash == nodes[2].node.hash
    assert [node.score for node in nodes] == [1.0, 1.0, 1.0]
    assert model.pairs == [("a", "T\nb"), ("a", "T\na"), ("a", "T\naa")]
    by_model, before = evidence_of(retrieved[0])
    assert by_model == Evidence(
        "rank", rank=1, retriever="Model", properties={"score": 2.0}
    )
    assert before == Evidence("rank", rank=3, retriever="before reranking")
    nodes[0].score = 9.0
    fused = post(GraphReranker(model, top_n=2, weight=0.4), nodes, "a", awaited)
    assert [node.node.node_id for node in fused] == ["n0", "n2"]
    nodes[0].score = 1.0
    assert GraphReranker(model).postprocess_nodes([]) == []
    with pytest.raises(InvalidInput, match="question"):
        GraphReranker(model).postprocess_nodes(nodes)


def test_a_failing_model_keeps_the_order_and_is_noted() -> None:
    nodes = scored("b", "a", "aa")
    retrieved = post(
        GraphReranker(Model(RuntimeError("no")), top_n=2), nodes, "a", awaited=False
    )
    assert [(node.node.node_id, node.score) for node in retrieved] == [
        ("n0", 1.0),
        ("n1", 1.0),
    ]
    assert retrieval_of(retrieved).trace.fallbacks[0].details["failed"] == "Model"  # type: ignore[union-attr]


# -- the reranker of the core


def hits(*texts: str) -> list[Hit]:
    return [
        Hit(Node(f"n{i}", ("Document",), "T", text), 1.0)
        for i, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    "answer", [[1.0], [float("inf"), 1.0], RuntimeError("no"), "no scores"]
)
def test_what_is_no_score_a_pair_is_a_model_error(answer: Any) -> None:
    assert CrossEncoderReranker(Model([[0.5], [0.25]])).scores(
        "a", hits("b", "aa")
    ) == [0.5, 0.25]
    with pytest.raises(ModelError, match="Model"):
        CrossEncoderReranker(Model(answer)).scores("a", hits("b", "c"))


@pytest.mark.xdist_group("torch")  # with the others that import it, which takes seconds
@pytest.mark.timeout(600)
def test_a_real_cross_encoder_is_loaded_from_a_folder(tmp_path: Any) -> None:
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import CrossEncoder
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertTokenizerFast,
    )

    with pytest.raises(ModelError, match=tmp_path.name):
        CrossEncoderReranker(tmp_path).scores("a", hits("b"))
    (tmp_path / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "t"])
    )
    sizes = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 8,
    }
    BertForSequenceClassification(
        BertConfig(vocab_size=8, num_labels=1, **sizes)
    ).save_pretrained(tmp_path)
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    reranker = CrossEncoderReranker(tmp_path, device="cpu")
    expected = CrossEncoder(str(tmp_path), max_length=512, device="cpu").predict(
        [("a", "T\nb"), ("a", "T\na a")]
    )
    assert reranker.scores("a", hits("b", "a a")) == pytest.approx(
        [float(x) for x in expected], abs=1e-6
    )

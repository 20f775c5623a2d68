"""`RRFFusionRetriever` and `GraphReranker`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_support import FixedRetriever, World

from graphret.errors import InvalidInput, ModelError, RetrievalFailed
from graphret.rerank import CrossEncoderReranker
from graphret.types import Evidence, Hit, Node
from llama_index_graphret import (
    GraphReranker,
    RRFFusionRetriever,
    SageRetriever,
    evidence_of,
    retrieval_of,
)


def ids(nodes: Sequence[NodeWithScore]) -> list[str]:
    return [one.node.node_id for one in nodes]


def fixed(*names: str) -> FixedRetriever:
    return FixedRetriever(
        [NodeWithScore(node=TextNode(id_=n, text=f"text {n}"), score=1 / (i + 1)) for i, n in enumerate(names)]
    )


def run(retriever: RRFFusionRetriever, query: str, awaited: bool) -> list[NodeWithScore]:
    return asyncio.run(retriever.aretrieve(query)) if awaited else retriever.retrieve(query)


both_ways = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


# -- fusion


@both_ways
def test_weighted_reciprocal_ranks_add_up(awaited: bool) -> None:
    fusion = RRFFusionRetriever([fixed("a", "b", "c"), fixed("c", "d")], weights=[1.0, 2.0], rrf_k=10)
    found = run(fusion, "x", awaited)
    assert {one.node.node_id: one.score for one in found} == pytest.approx(
        {"a": 1 / 11, "b": 1 / 12, "c": 1 / 13 + 2 / 11, "d": 2 / 12}
    )
    assert ids(found) == ["c", "d", "a", "b"]


@both_ways
def test_the_answer_is_cut_at_k_and_ties_go_by_id(awaited: bool) -> None:
    assert ids(run(RRFFusionRetriever([fixed("b"), fixed("a")], similarity_top_k=1), "x", awaited)) == ["a"]


@both_ways
def test_evidence_of_all_is_kept_whatever_the_order(world: World, awaited: bool) -> None:
    question = world.questions[0].question
    vector, sage = world.index.as_retriever(similarity_top_k=10), SageRetriever(world.graph, similarity_top_k=10)
    expected = {one.node.node_id: evidence_of(one) for one in sage.retrieve(question)}
    for pair, names in (([vector, sage], ["vector", "sage"]), ([sage, vector], ["sage", "vector"])):
        found = run(RRFFusionRetriever(pair, names=names, similarity_top_k=40), question, awaited)
        for one in found:
            evidence = evidence_of(one)
            assert all(known in evidence for known in expected.get(one.node.node_id, []))
            assert {e.retriever for e in evidence if e.kind == "rank"} <= {"vector", "sage"}
        raw = {node.node_id: node.hash for node in world.nodes}
        assert all(one.node.hash == raw[one.node.node_id] for one in found)
        assert sum(bool(expected.get(one.node.node_id)) for one in found) == 10


def test_all_are_asked_at_once_when_awaited() -> None:
    async def ask() -> list[NodeWithScore]:
        first, second = fixed("a"), fixed("b")
        first.gate = asyncio.Event()

        async def open_when_the_second_is_asked() -> None:
            await second.asked.wait()
            assert first.gate is not None
            first.gate.set()

        opener = asyncio.create_task(open_when_the_second_is_asked())
        found = await RRFFusionRetriever([first, second]).aretrieve("x")
        await opener
        assert not first.blocking
        return found

    assert ids(asyncio.run(ask())) == ["a", "b"]


def test_each_retriever_gets_a_bundle_of_its_own(world: World) -> None:
    seen = fixed("a")
    bundle = QueryBundle("x")
    RRFFusionRetriever([world.index.as_retriever(), seen]).retrieve(bundle)
    assert (seen.blocking[0].embedding, bundle.embedding) == (None, None)


@both_ways
def test_one_that_fails_is_noted_and_the_others_answer(awaited: bool) -> None:
    broken = FixedRetriever([], error=ConnectionError("away"))
    found = run(RRFFusionRetriever([broken, fixed("a")], names=["b", "f"]), "x", awaited)
    assert ids(found) == ["a"]
    retrieval = retrieval_of(found)
    assert retrieval is not None
    assert retrieval.trace.fallbacks[0].details == {"failed": "b", "error": "ConnectionError: away"}
    with pytest.raises(RetrievalFailed, match="b failed: away"):
        run(RRFFusionRetriever([broken, fixed("a")], names=["b", "f"], on_failure="raise"), "x", awaited)
    with pytest.raises(RetrievalFailed, match=r"every retriever failed.*away"):
        run(RRFFusionRetriever([broken, broken]), "x", awaited)


@pytest.mark.parametrize(
    ("retrievers", "options"),
    [
        ([], {}),
        ([fixed("a")], {"weights": [1, 2]}),
        ([fixed("a")], {"weights": [-1]}),
        ([fixed("a")], {"weights": [float("nan")]}),
        ([fixed("a")], {"names": ["a", "b"]}),
        ([fixed("a")], {"similarity_top_k": 0}),
        ([fixed("a")], {"rrf_k": -1}),
        ([fixed("a")], {"on_failure": "x"}),
        (["a"], {}),
    ],
)
def test_malformed_fusion_is_refused(retrievers: list[Any], options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        RRFFusionRetriever(retrievers, **options)


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
        return (
            np.asarray([text.count(query) for query, text in pairs], np.float32) if self.answer is None else self.answer
        )


def handed(*texts: str) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(id_=f"n{i}", text=text, metadata={"title": "T"}), score=1.0)
        for i, text in enumerate(texts)
    ]


def post(reranker: GraphReranker, nodes: list[NodeWithScore], query: str, awaited: bool) -> list[NodeWithScore]:
    if awaited:
        return asyncio.run(reranker.apostprocess_nodes(nodes, query_str=query))
    return reranker.postprocess_nodes(nodes, query_str=query)


@both_ways
def test_nodes_are_ordered_by_the_model(awaited: bool) -> None:
    model, nodes = Model(), handed("b", "a", "aa")
    found = post(GraphReranker(model, top_n=2), nodes, "a", awaited)
    assert [(one.node.node_id, one.score) for one in found] == [("n2", 2.0), ("n1", 1.0)]
    assert found[0].node.hash == nodes[2].node.hash
    assert [one.score for one in nodes] == [1.0, 1.0, 1.0]
    assert model.pairs == [("a", "T\nb"), ("a", "T\na"), ("a", "T\naa")]
    assert evidence_of(found[0]) == [Evidence("rank", rank=3, retriever="before reranking")]


def test_evidence_and_trace_are_kept(world: World) -> None:
    question = world.questions[0].question
    found = SageRetriever(world.graph, similarity_top_k=6).retrieve(question)
    ranked = GraphReranker(Model(), top_n=6).postprocess_nodes(found, query_str=question)
    before = {one.node.node_id: evidence_of(one) for one in found}
    assert all(evidence_of(one)[:-1] == before[one.node.node_id] for one in ranked)
    assert retrieval_of(ranked) is retrieval_of(found)


def test_a_graphret_reranker_will_do() -> None:
    class ByName:
        name = "by name"

        def scores(self, query: str, hits: Sequence[Hit]) -> list[float]:
            return [float(hit.id[1:]) for hit in hits]

    assert ids(GraphReranker(ByName()).postprocess_nodes(handed("x", "y"), query_str="q")) == ["n1", "n0"]


@both_ways
@pytest.mark.parametrize(
    "answer", [RuntimeError("out of memory"), [1.0], [[1.0, 2.0], [3.0, 4.0]], [float("nan"), 1.0], ["a", "b"]]
)
def test_a_failing_model_keeps_the_order_and_is_noted(answer: Any, awaited: bool) -> None:
    nodes = handed("a", "aa")
    found = post(GraphReranker(Model(answer)), nodes, "a", awaited)
    assert [one.node for one in found] == [one.node for one in nodes]
    retrieval = retrieval_of(found)
    assert retrieval is not None
    assert retrieval.trace.fallbacks[0].details["failed"] == "Model"
    with pytest.raises(RetrievalFailed, match="Model failed"):
        post(GraphReranker(Model(answer), on_failure="raise"), nodes, "a", awaited)


@pytest.mark.parametrize("options", [{"top_n": 0}, {"on_failure": "x"}])
def test_malformed_rerankers_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        GraphReranker(Model(), **options)
    with pytest.raises(InvalidInput, match="model"):
        GraphReranker(object())


# -- the reranker of the core


def hits(*texts: str) -> list[Hit]:
    return [Hit(Node(f"n{i}", ("Document",), "T", text), 1.0) for i, text in enumerate(texts)]


def test_a_cross_encoder_reads_name_and_text() -> None:
    model = Model()
    assert CrossEncoderReranker(model).scores("a", hits("b", "aa")) == [0.0, 2.0]
    assert model.pairs == [("a", "T\nb"), ("a", "T\naa")]
    assert CrossEncoderReranker(Model([[0.5], [0.25]])).scores("a", hits("b", "aa")) == [0.5, 0.25]
    assert CrossEncoderReranker(Model(RuntimeError())).scores("a", []) == []


@pytest.mark.parametrize("answer", [[1.0], [float("inf"), 1.0], RuntimeError("no"), "no scores"])
def test_what_is_no_score_a_pair_is_a_model_error(answer: Any) -> None:
    with pytest.raises(ModelError, match="Model"):
        CrossEncoderReranker(Model(answer)).scores("a", hits("b", "c"))


def test_a_folder_without_a_model_is_a_clear_error(tmp_path: Any) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"empty cannot be loaded"):
        CrossEncoderReranker(tmp_path / "empty").scores("a", hits("b"))


@pytest.mark.xdist_group("torch")  # with the others that import it, which takes seconds
@pytest.mark.timeout(600)
def test_a_real_cross_encoder_is_loaded_from_a_folder(tmp_path: Any) -> None:
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "t"]))
    config = BertConfig(
        vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, num_labels=1
    )
    BertForSequenceClassification(config).save_pretrained(tmp_path)
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    reranker = CrossEncoderReranker(tmp_path, device="cpu")
    expected = CrossEncoder(str(tmp_path), max_length=512, device="cpu").predict([("a", "T\nb"), ("a", "T\na a")])
    assert reranker.scores("a", hits("b", "a a")) == pytest.approx([float(x) for x in expected], abs=1e-6)
    assert reranker.name == tmp_path.name

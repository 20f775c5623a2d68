"""`RRFFusionRetriever` and `GraphReranker`."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import NodeWithScore, TextNode
from llama_support import FixedRetriever, World, ids

from graphret.errors import InvalidInput, ModelError
from graphret.rerank import CrossEncoderReranker
from graphret.types import Evidence, Hit, Node
from llama_index_graphret import GraphReranker, RRFFusionRetriever, SageRetriever, evidence_of, retrieval_of

both_ways = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


def fixed(*names: str) -> FixedRetriever:
    return FixedRetriever(
        [NodeWithScore(node=TextNode(id_=n, text=f"text {n}"), score=1 / (i + 1)) for i, n in enumerate(names)]
    )


def run(retriever: RRFFusionRetriever, query: str, awaited: bool) -> list[NodeWithScore]:
    return asyncio.run(retriever.aretrieve(query)) if awaited else retriever.retrieve(query)


# -- fusion


@both_ways
def test_weighted_reciprocal_ranks_add_up_and_are_cut_at_k(awaited: bool) -> None:
    fusion = RRFFusionRetriever([fixed("a", "b", "c"), fixed("c", "d")], weights=[1.0, 2.0], rrf_k=10)
    found = run(fusion, "x", awaited)
    expected = {"a": 1 / 11, "b": 1 / 12, "c": 1 / 13 + 2 / 11, "d": 2 / 12}
    assert {one.node.node_id: one.score for one in found} == pytest.approx(expected)
    assert ids(found) == ["c", "d", "a", "b"]
    assert ids(run(RRFFusionRetriever([fixed("b"), fixed("a")], k=1), "x", awaited)) == ["a"]  # ties go by id


@both_ways
def test_evidence_of_all_is_kept_whatever_the_order(world: World, awaited: bool) -> None:
    question = world.questions[0].question
    vector, sage = world.index.as_retriever(similarity_top_k=10), SageRetriever(world.graph, similarity_top_k=10)
    expected = {one.node.node_id: evidence_of(one) for one in sage.retrieve(question)}
    raw = {node.node_id: node.hash for node in world.nodes}
    for pair, names in (([vector, sage], ["vector", "sage"]), ([sage, vector], ["sage", "vector"])):
        found = run(RRFFusionRetriever(pair, names=names, similarity_top_k=40), question, awaited)
        for one in found:
            evidence = evidence_of(one)
            assert all(known in evidence for known in expected.get(one.node.node_id, []))
            assert {e.retriever for e in evidence if e.kind == "rank"} <= {"vector", "sage"}
            assert one.node.hash == raw[one.node.node_id]
        assert set(expected) <= set(ids(found))


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
    found = post(GraphReranker(model, top_n=2, weight=1), nodes, "a", awaited)
    assert [(one.node.node_id, one.score) for one in found] == [("n2", 1.0), ("n1", 0.5)]
    assert found[0].node.hash == nodes[2].node.hash
    assert [one.score for one in nodes] == [1.0, 1.0, 1.0]
    assert model.pairs == [("a", "T\nb"), ("a", "T\na"), ("a", "T\naa")]
    by_model, before = evidence_of(found[0])
    assert by_model == Evidence("rank", rank=1, retriever="Model", properties={"score": 2.0})
    assert before == Evidence("rank", rank=3, retriever="before reranking")
    nodes[0].score = 9.0
    fused = post(GraphReranker(model, top_n=2), nodes, "a", awaited)
    assert [one.node.node_id for one in fused] == ["n0", "n2"]
    nodes[0].score = 1.0
    assert GraphReranker(model).postprocess_nodes([]) == []
    with pytest.raises(InvalidInput, match="question"):
        GraphReranker(model).postprocess_nodes(nodes)


def test_a_failing_model_keeps_the_order_and_is_noted() -> None:
    nodes = handed("b", "a", "aa")
    found = post(GraphReranker(Model(RuntimeError("no")), top_n=2), nodes, "a", awaited=False)
    assert [(one.node.node_id, one.score) for one in found] == [("n0", 1.0), ("n1", 1.0)]
    assert retrieval_of(found).trace.fallbacks[0].details["failed"] == "Model"  # type: ignore[union-attr]


# -- the reranker of the core


def hits(*texts: str) -> list[Hit]:
    return [Hit(Node(f"n{i}", ("Document",), "T", text), 1.0) for i, text in enumerate(texts)]


@pytest.mark.parametrize("answer", [[1.0], [float("inf"), 1.0], RuntimeError("no"), "no scores"])
def test_what_is_no_score_a_pair_is_a_model_error(answer: Any) -> None:
    assert CrossEncoderReranker(Model([[0.5], [0.25]])).scores("a", hits("b", "aa")) == [0.5, 0.25]
    with pytest.raises(ModelError, match="Model"):
        CrossEncoderReranker(Model(answer)).scores("a", hits("b", "c"))


@pytest.mark.xdist_group("torch")  # with the others that import it, which takes seconds
@pytest.mark.timeout(600)
def test_a_real_cross_encoder_is_loaded_from_a_folder(tmp_path: Any) -> None:
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    with pytest.raises(ModelError, match=tmp_path.name):
        CrossEncoderReranker(tmp_path).scores("a", hits("b"))
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "t"]))
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    BertForSequenceClassification(BertConfig(vocab_size=8, num_labels=1, **sizes)).save_pretrained(tmp_path)
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    reranker = CrossEncoderReranker(tmp_path, device="cpu")
    expected = CrossEncoder(str(tmp_path), max_length=512, device="cpu").predict([("a", "T\nb"), ("a", "T\na a")])
    assert reranker.scores("a", hits("b", "a a")) == pytest.approx([float(x) for x in expected], abs=1e-6)

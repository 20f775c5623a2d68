from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret import storage
from graphret.errors import InvalidInput
from graphret.search import BM25Index, DenseIndex, HybridIndex, NodeText
from graphret.search.dense import hnsw_graph
from graphret.search.encoder import CallableEncoder
from graphret.search.index import top_k
from graphret.types import Node

NODES = [
    Node(f"n{i:02d}", text=text, properties={"i": i})
    for i, text in enumerate(
        ["apple pie recipe", "apple tart", "pear cake", "plum cake recipe", "fig and date bread", "lime sorbet"]
    )
]


def test_a_given_query_embedding_is_used_instead_of_the_encoder(encoder: Any) -> None:
    turned = NODES[::-1]  # vectors belong to nodes in the order in which these are given
    built = DenseIndex.build(turned, encoder=None, vectors=encoder.encode_documents([n.text for n in turned]))
    with pytest.raises(InvalidInput, match="encoder"):
        built.search("sweet", 1)
    built.remember("sweet", encoder.encode_queries(["lime sorbet"])[0])
    assert built.search("sweet", 1).ids == ["n05"]
    with pytest.raises(InvalidInput, match="48"):
        built.remember("q", [1.0, 2.0])


def test_approximate_search_finds_nearly_what_exact_search_finds() -> None:
    rng = np.random.default_rng(7)
    vectors = rng.standard_normal((1500, 32)).astype(np.float32)
    nodes = [Node(f"n{i:04d}", properties={"even": i % 2 == 0}) for i in range(1500)]
    exact = DenseIndex.build(nodes, None, vectors=vectors)
    approximate = DenseIndex.build(nodes, None, vectors=vectors, hnsw_above=100)
    assert approximate.approximate
    shared = 0
    for i in range(20):
        query = rng.standard_normal(32)
        for built in (exact, approximate):
            built.remember(f"q{i}", query)
        shared += len(set(exact.search(f"q{i}", 10).ids) & set(approximate.search(f"q{i}", 10).ids))
        filtered = [built.search(f"q{i}", 10, where={"even": True}).ids for built in (exact, approximate)]
        assert filtered[0] == filtered[1]
        assert exact.score(f"q{i}", ["n0000"]) == pytest.approx(approximate.score(f"q{i}", ["n0000"]), abs=1e-6)
    assert shared >= 190


def vectors_index(n: int, above: int) -> tuple[DenseIndex, Any]:
    """Nodes named by number, each with a vector of its own, as are the queries of its number."""
    vectors = np.random.default_rng(5).standard_normal((n + 10, 16))
    encoder = CallableEncoder(lambda texts: [vectors[int(text)] for text in texts], name="given", dimension=16)
    nodes = [Node(f"n{i:03d}", name=str(i)) for i in range(n)]
    return DenseIndex.build(nodes, encoder, text=NodeText.names(), hnsw_above=above), encoder


def test_after_a_write_the_search_is_exact() -> None:
    (near, _), (exact, _) = vectors_index(400, 100), vectors_index(400, 10**6)
    assert near.search("7", 1).ids == ["n007"]
    before = copy(near)
    for index in (near, exact):
        index.upsert([Node("n007", name="405"), Node("new", name="406")])
        index.delete(["n008"])
    assert not near.approximate
    for query in ("7", "8", "405", "406"):
        assert near.search(query, 10).ids == exact.search(query, 10).ids
    assert before.approximate
    assert before.search("8", 1).ids == ["n008"]


@pytest.mark.parametrize("altered", [False, True])
def test_hnsw_is_saved_with_its_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, altered: bool) -> None:
    index, encoder = vectors_index(400, 100)
    assert "graph" not in index.parts().arrays
    expected = [index.search(str(i), 5).ids for i in range(20)]
    storage.save(tmp_path / "index", index.parts(), kind="dense")
    bundle = storage.load(tmp_path / "index", kind="dense")
    if altered:
        bundle.arrays["graph"] = bundle.arrays["graph"][:-1]
    built: list[int] = []

    def graph(*arguments: Any, **options: Any) -> Any:
        built.extend(map(len, arguments[1:]))
        return hnsw_graph(*arguments, **options)

    monkeypatch.setattr("graphret.search.dense.hnsw_graph", graph)
    opened = DenseIndex.from_bundle(bundle, index.table, encoder, NodeText.names())
    found = [opened.search(str(i), 5).ids for i in range(20)]
    assert found == expected
    assert built == ([400] if altered else [])


def test_hybrid_is_the_papers_sum_of_scaled_scores(encoder: Any) -> None:
    lexical = BM25Index.build(NODES)
    dense = DenseIndex.build(lexical.table, encoder)

    def scaled(scores: np.ndarray) -> np.ndarray:
        return (scores - scores.min()) / (scores.max() - scores.min())

    query = "apple recipe"
    cosines = encoder.encode_documents([node.text for node in NODES]) @ encoder.encode_queries([query])[0]
    np.testing.assert_allclose(dense.scores(query), cosines, rtol=1e-5)
    expected = 0.6 * scaled(lexical.scores(query)) + 0.4 * scaled(dense.scores(query))
    np.testing.assert_allclose(HybridIndex(lexical, dense).scores(query), expected, rtol=1e-5)
    np.testing.assert_allclose(HybridIndex(lexical).scores(query), scaled(lexical.scores(query)), rtol=1e-5)


def test_a_hybrid_reads_its_parts_as_they_are(encoder: Any) -> None:
    lexical = BM25Index.build(NODES)
    hybrid = HybridIndex(lexical)
    assert hybrid.search("sorbet", 1).ids == ["n05"]
    lexical.upsert([Node("n06", text="quince sorbet sorbet")])
    lexical.delete(["n05"])
    assert hybrid.search("sorbet", 1).ids == ["n06"]
    assert len(hybrid.scores("sorbet")) == len(hybrid.table) == 6


def test_indexes_over_different_nodes_are_not_mixed(encoder: Any) -> None:
    with pytest.raises(InvalidInput, match="share"):
        HybridIndex(BM25Index.build(NODES), DenseIndex.build(NODES, encoder))
    with pytest.raises(InvalidInput, match="alpha"):
        HybridIndex(BM25Index.build(NODES), alpha=2)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 40), st.sampled_from([2, 30, 10**6]), st.integers(1, 9000))
def test_the_k_best_of_many_are_those_of_a_sort(seed: int, k: int, levels: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(-levels, levels, n).astype(np.float32)
    mask = rng.random(n) < 0.7
    order = np.argsort(-scores, kind="stable")
    assert top_k(scores, k).tolist() == order[:k].tolist()
    assert top_k(scores, k, mask).tolist() == order[mask[order]][:k].tolist()

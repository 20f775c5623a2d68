"""The contract of text indexes, kept by every index that the core has."""

from __future__ import annotations

from typing import Any

import pytest

from graphret.search import BM25Index, DenseIndex, FieldIndex, HybridIndex, NodeText
from graphret.stores import MemoryStore
from graphret.testing.indexes import MakeIndex, TextIndexSuite
from graphret.types import Edge, Node


class TestBM25(TextIndexSuite):
    @pytest.fixture
    def make(self) -> MakeIndex:
        return BM25Index.build


class TestDense(TextIndexSuite):
    @pytest.fixture(params=["exact", "hnsw"])
    def make(self, request: pytest.FixtureRequest, encoder: Any) -> MakeIndex:
        above = 10**6 if request.param == "exact" else 2
        return lambda nodes: DenseIndex.build(nodes, encoder, hnsw_above=above)


class TestHybrid(TextIndexSuite):
    @pytest.fixture
    def make(self, encoder: Any) -> MakeIndex:
        return lambda nodes: HybridIndex.build(nodes, encoder)


class TestFields(TextIndexSuite):
    @pytest.fixture
    def make(self, encoder: Any) -> MakeIndex:
        return lambda nodes: FieldIndex.build(nodes, encoder=encoder)


@pytest.mark.parametrize("text", [NodeText(), NodeText.documents()], ids=["text", "neighbors"])
@pytest.mark.parametrize("labels", [None, ["Thing"]], ids=["all", "things"])
def test_an_index_is_brought_up_to_date_after_writes_by_others(text: NodeText, labels: list[str] | None) -> None:
    store = MemoryStore.of([Node(name, ("Thing",), name) for name in ("red", "green", "blue")])
    index = BM25Index.of_store(store, text=text, labels=labels)
    store.upsert(
        [Node("red", ("Thing",), "scarlet"), Node("new", ("Other",), "scarlet")], [Edge("blue", "NEAR", "red")]
    )
    store.delete(["green"])
    index.refresh(store)
    fresh = BM25Index.of_store(store, text=text, labels=labels)
    for query in ("red scarlet", "green", "blue"):
        found, expected = index.search(query, 5), fresh.search(query, 5)
        assert (found.ids, found.scores.tolist()) == (expected.ids, expected.scores.tolist())

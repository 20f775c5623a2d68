"""Expansion over graphs and indexes elsewhere: only the contract is seen, or a database
holds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import expand_parts
import numpy as np
import pytest
from tests_support import BALLPARKS
from tests_support import QUESTION as ASKED

from graphret import expansion
from graphret.contracts import restriction_of
from graphret.errors import InvalidInput
from graphret.expansion import Coverage, Expand, Propagate, Ranking, SageRanking
from graphret.expansion.subgraph import ONWARD
from graphret.index_retriever import IndexRetriever
from graphret.sage import SageGraph
from graphret.search import BM25Index, DenseIndex, HybridIndex
from graphret.search.index import Matches, TextIndex
from graphret.stores import MemoryStore
from graphret.stores.base import GraphStore
from graphret.testing.graphs import random_graph
from graphret.types import Edge, Node

NODES = [node for node in expand_parts.NODES if node.id != "other"]
EDGES, QUESTION = expand_parts.EDGES[:3], expand_parts.QUESTION
# What is tested is the walk: links count in full, whatever the question.
RANKINGS: list[Ranking] = [SageRanking(), Propagate(), Coverage(trust=1.0)]


class Elsewhere:
    """A store that is not in this process: only the contract, and every call
    counted.
    """

    def __init__(self, store: GraphStore) -> None:
        self.inner = store
        self.restriction = restriction_of(store)
        self.calls: Counter[str] = Counter()
        self.edges_read = 0

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        self.calls["get"] += 1
        return self.inner.get(ids)

    def neighbors(self, ids: Sequence[str], **options: Any) -> list[Edge]:
        self.calls["neighbors"] += 1
        edges = self.inner.neighbors(ids, **options)
        self.edges_read += len(edges)
        return edges

    def local_graph(self) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"expansion called {name}")


class Remote(TextIndex):
    """A text index that is not in this process."""

    def __init__(self, index: BM25Index) -> None:
        self.index = index
        self.restriction = restriction_of(index)

    def search(self, query: Any, k: int, **options: Any) -> Any:
        return self.index.search(query, k, **options)

    def score(self, query: Any, ids: Sequence[str]) -> Any:
        return self.index.score(query, ids)

    def view(self, where: Any) -> Remote:
        return Remote(self.index.view(where))


def values(
    expand: Expand, query: str = QUESTION, k: int = 5, **options: Any
) -> list[dict[str, Any]]:
    return [hit.to_dict() for hit in expand.retrieve(query, k, **options)]


@pytest.mark.parametrize("ranking", RANKINGS, ids=lambda one: one.name)
def test_another_store_gives_the_same_hits_in_a_few_calls(ranking: Ranking) -> None:
    nodes, edges = random_graph(5, n_nodes=60, n_edges=150)
    store = MemoryStore.of([*NODES, *nodes], [*EDGES, *edges])
    lexical = BM25Index.of_store(store)
    rows = (
        np.random.default_rng(0).normal(size=(len(lexical.table), 8)).astype(np.float32)
    )
    dense = DenseIndex.build(lexical.table, None, vectors=rows)
    far, questions = Elsewhere(store), (QUESTION, "text of 7", "nothing known")
    for question, index in zip(
        questions, (lexical, HybridIndex(lexical, dense), lexical), strict=True
    ):
        dense.remember(question, rows[3])
        near = values(Expand(None, store, index, ranking=ranking), question)
        assert values(Expand(None, far, index, ranking=ranking), question) == near
    assert far.calls["neighbors"] <= 6
    assert far.calls["get"] <= 6


@pytest.mark.parametrize("ranking", RANKINGS, ids=lambda one: one.name)
def test_an_index_elsewhere_finds_seeds_and_scores_what_they_lead_to(
    ranking: Ranking,
) -> None:
    store = MemoryStore.of(NODES, EDGES)
    expand = Expand(
        None, Elsewhere(store), Remote(BM25Index.of_store(store)), ranking=ranking
    )
    retrieval = expand.retrieve(QUESTION, 6)
    assert len(retrieval) == 6
    assert {"band", "leeds"} <= set(retrieval.ids)
    assert "aire" in retrieval.ids or ranking.name != "coverage"
    assert {
        e.relation for hit in retrieval for e in hit.evidence if e.kind == "neighbor"
    } == {"MENTIONS"}
    assert all(hit.evidence for hit in retrieval)
    assert [hit.node for hit in retrieval] == store.get(retrieval.ids)
    assert [h.score for h in retrieval] == sorted(
        (h.score for h in retrieval), reverse=True
    )
    everything = expand.retrieve(QUESTION, 50)
    assert len(everything) == len(NODES)
    assert {
        h.node.properties["tenant"]
        for h in expand.retrieve(QUESTION, 3, {"tenant": "b"})
    } == {"b"}


def test_a_hub_is_not_read_whole() -> None:
    many = [Node(f"n{i:04}", text="alpha" if i % 2 else "beta") for i in range(600)]
    edges = [Edge("hub", "R", node.id, 1.0 + (node.id == "n0599")) for node in many]
    store = MemoryStore.of([Node("hub", text="alpha beta gamma"), *many], edges)
    index = BM25Index.of_store(store)
    far = Elsewhere(store)
    retrieval = Expand(None, far, index, links=20).retrieve("gamma", 5)
    assert far.edges_read <= 20 * 3
    assert "n0599" in retrieval.ids  # by the heaviest edge
    with pytest.raises(InvalidInput, match="limit"):
        Expand(None, far, index, links=0)


def test_a_second_hop_goes_from_the_best_of_the_first() -> None:
    middle = [Node(f"m{i:03}", text="filler") for i in range(2 * ONWARD)]
    middle[-1] = Node(middle[-1].id, text="filler beta")
    store = MemoryStore.of(
        [Node("seed", text="alpha"), Node("end", text="gamma"), *middle],
        [
            *(Edge("seed", "R", node.id) for node in middle),
            Edge(middle[-1].id, "R", "end"),
        ],
    )
    index = BM25Index.of_store(store)
    retrieval = Expand(None, Elsewhere(store), index, links=None).retrieve(
        "alpha beta gamma", 3
    )
    assert set(retrieval.ids) == {"seed", middle[-1].id, "end"}


def test_a_view_elsewhere_leaks_nothing_and_an_index_of_some_labels_leads_to_the_others() -> (
    None
):
    store = MemoryStore.of(NODES, EDGES)
    index, some = (
        BM25Index.of_store(store),
        BM25Index.of_store(store, labels=["Band", "City"]),
    )
    where = {"tenant": "a"}
    for text_index in (index, Remote(index)):
        retrieval = Expand(
            IndexRetriever(index), Elsewhere(store.view(where)), text_index.view(where)
        ).retrieve(QUESTION, 20)
        assert {hit.node.properties["tenant"] for hit in retrieval} == {"a"}
        assert {e.source for hit in retrieval for e in hit.evidence} <= {
            None,
            *retrieval.ids,
        }
    for text_index in (some, Remote(some)):
        assert (
            "aire"
            in Expand(None, Elsewhere(store), text_index, ranking=Coverage(trust=1.0))
            .retrieve(QUESTION, 3)
            .ids
        )


def test_a_hit_that_the_store_lost_is_left_out() -> None:
    store = MemoryStore.of(NODES, EDGES)
    remote = Remote(BM25Index.of_store(store))
    store.delete(["leeds"])
    assert isinstance(remote.search("Leeds", 3), Matches)
    assert "leeds" not in IndexRetriever(remote, store).retrieve("Leeds", 3).ids
    assert (
        "leeds" not in Expand(None, Elsewhere(store), remote).retrieve("Leeds", 5).ids
    )
    with pytest.raises(InvalidInput, match="store"):
        IndexRetriever(remote)


@pytest.fixture(scope="module")
def graph() -> SageGraph:
    return SageGraph.build(BALLPARKS, encoder=None)


def test_the_same_hits_over_a_copy_in_a_database(
    database: Any, graph: SageGraph
) -> None:
    nodes, edges = random_graph(5, n_nodes=30, n_edges=60)
    memory = MemoryStore()
    for target_store in (memory, database):
        target_store.upsert(
            [*graph.nodes, *nodes], [*graph.edges.edges(graph.nodes.ids), *edges]
        )
    index = BM25Index.of_store(memory)
    for make in expansion.RANKINGS.values():
        near, far = (
            Expand(None, target_store, index, ranking=make()).retrieve(ASKED, 6)
            for target_store in (memory, database)
        )
        assert [hit.to_dict() for hit in far] == [hit.to_dict() for hit in near]

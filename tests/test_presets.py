"""The papers' algorithms by ``paper()`` and ``--preset paper``: each held against an
example computed by hand, from the formula in the paper's text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from ark_support import Follows, films, index_of, selecting
from spark_parts import EDGES, NODES
from tests_support import BALLPARKS, HashingEncoder

from graphret import (
    Ark,
    ArkSettings,
    Edge,
    Expand,
    GraphRAFT,
    Grasp,
    HybridIndex,
    LadybugStore,
    MemoryStore,
    Node,
    Retrieval,
    SageGraph,
    SageSettings,
)
from graphret.expansion import SageRanking
from graphret.graphraft import GraphRAFTSettings
from graphret.graphraft.entities import mentioned_entities
from graphret.grasp import GraspSettings
from graphret.llm import Reply
from graphret.methods import Method, MethodOptions, OpenGraph
from graphret.planning import PlannerResult
from graphret.retriever import Retriever
from graphret.search import BM25Index
from graphret.types import Hit
from graphret.where import Where

PAPER = MethodOptions(preset="paper")
# Of "red apple": the seeds are first and second, their neighbours third to fifth.
WORDS = {
    "a": "red apple",
    "b": "red apple tree",
    "c": "red pear",
    "d": "apple apple pie",
    "e": "plain stone",
    "far": "red apple far away",
}
LINKS = [
    Edge("a", "SIMILAR", "c"),
    Edge("d", "SIMILAR", "a"),
    Edge("b", "SIMILAR", "e"),
]


def scaled(scores: Sequence[float]) -> list[float]:
    """Min-max scaling."""
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) for score in scores]


def mixed(index: HybridIndex, query: str, ids: Sequence[str]) -> dict[str, float]:
    """``0.6 · BM25 + 0.4 · cosine`` over some nodes (SAGE, appendix E)."""
    assert index.dense is not None
    words = scaled(index.lexical.score(query, ids).tolist())
    cosines = scaled(index.dense.score(query, ids).tolist())
    return {
        node_id: 0.6 * by_words + 0.4 * cosine
        for node_id, by_words, cosine in zip(ids, words, cosines, strict=True)
    }


def best(scores: dict[str, float], k: int) -> list[str]:
    return sorted(scores, key=lambda node_id: (-scores[node_id], node_id))[:k]


def test_sage_returns_k_seeds_and_the_k_best_of_their_neighbours() -> None:
    nodes = [Node(node_id, ("N",), "", text) for node_id, text in WORDS.items()]
    store = MemoryStore.of(nodes, LINKS)
    index = HybridIndex.of_store(store, HashingEncoder())
    query = "red apple"
    for k in (2, 3, 4, 5, 6):
        n_seeds = math.ceil(0.7 * k)
        seeds = best(mixed(index, query, list(WORDS)), n_seeds)
        around = {
            end
            for edge in LINKS
            for end in (edge.source, edge.target)
            if {edge.source, edge.target} & {*seeds}
        } - {*seeds}
        neighbors = (
            best(mixed(index, query, sorted(around)), k - n_seeds)
            if len(around) > 1
            else sorted(around)[: k - n_seeds]
        )
        for retriever in (
            Expand(None, store, index, ranking=SageRanking.paper(), fill=False),
            OpenGraph(store, index).retriever("expand", PAPER),
        ):
            assert retriever.retrieve(query, k).ids == [*seeds, *neighbors]
    # their union and nothing else: the node that no edge reaches fills no place
    assert (
        len(OpenGraph(store, index).retriever("expand", PAPER).retrieve(query, 6)) < 7
    )


def test_sage_is_built_by_similarity_alone() -> None:
    ours = SageGraph.build(BALLPARKS, encoder=HashingEncoder())
    paper = SageGraph.build(
        BALLPARKS, encoder=HashingEncoder(), settings=SageSettings.paper()
    )
    assert {"MENTIONS"} <= set(ours.edges.relations)
    assert {"MENTIONS", "SHARES_NAME", "JOINS"}.isdisjoint(paper.edges.relations)
    assert "IS_SIMILAR" in paper.edges.relations
    assert paper.index.alpha == 0.6
    answer = OpenGraph(paper.store, paper.index, paper).retriever("sage", PAPER)
    assert not any(hit.fill for hit in answer.retrieve("a stadium", 20))


def test_flat_search_has_the_papers_share_of_words() -> None:
    nodes = [Node(node_id, ("N",), "", text) for node_id, text in WORDS.items()]
    store = MemoryStore.of(nodes)
    index = HybridIndex.of_store(store, HashingEncoder())
    hits = OpenGraph(store, index).retriever("hybrid", PAPER).retrieve("red apple", 6)
    expected = mixed(index, "red apple", list(WORDS))
    assert {hit.id: hit.score for hit in hits} == pytest.approx(expected, abs=1e-6)


def test_arks_agents_vote_and_each_goes_to_its_own_end() -> None:
    store = films()
    # f1: three votes; f4 and p1: one each, p1 earlier in its list; nothing else
    agents = [
        Follows(selecting("f4", "f1"), "one"),
        Follows(selecting("f1"), "two"),
        Follows(selecting("p1", "f1"), "three"),
    ]
    ark = Ark(agents, store, index_of(store), settings=ArkSettings.paper(), fill=False)
    assert ark.retrieve("films by Bob Bell", 10).ids == ["f1", "f4", "p1"]
    run = ark.explore("films by Bob Bell")
    assert [session.stop for session in run.sessions] == ["finished"] * 3
    retriever = OpenGraph(store, index_of(store)).retriever(
        "ark", MethodOptions(preset="paper", chat=agents[1])
    )
    assert retriever.retrieve("films by Bob Bell", 10).ids == ["f1"]
    assert agents[1].temperatures[-1] == 0.7


class Lists(Retriever):
    """Returns these nodes, the best first, and scores hits in this order."""

    name = "lists"

    def __init__(self, *ids: str) -> None:
        self.ids = ids

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        hits = [Hit(Node(node_id), 1 / (n + 1)) for n, node_id in enumerate(self.ids)]
        return Retrieval(query, k, hits[:k])

    def scores(self, query: str, hits: Sequence[Hit]) -> list[float]:
        return [-float(self.ids.index(hit.id)) for hit in hits]


class Plans:
    """Plans that ``a`` and ``b`` answer, in this order."""

    name = "plans"

    def plan(self, question: str) -> PlannerResult:
        raise AssertionError("its retriever is replaced")

    async def aplan(self, question: str) -> PlannerResult:
        return self.plan(question)


def test_grasp_fuses_by_static_rrf_and_the_reranker_by_its_own() -> None:
    store = MemoryStore.of([Node(node_id) for node_id in "abc"])
    grasp = Grasp(
        Plans(),
        store,
        Lists("b", "c"),
        reranker=Lists("c", "b", "a"),
        settings=GraspSettings.paper(),
    )
    planned = Lists("a", "b")
    planned.retrieve("?", 2)
    grasp.fused.retrievers[0] = planned
    grasp.fused.weights = [0.5, 0.5]  # of a plan that is valid
    fused = {hit.id: hit.score for hit in grasp.fused.retrieve("?", 3)}
    # section 3.2 with w = 0.5, k = 60
    assert fused == pytest.approx(
        {"a": 0.5 / 61, "b": 0.5 / 62 + 0.5 / 61, "c": 0.5 / 62}
    )
    # section 3.3 with w = 0.5, k = 2: before b, a, c; judged c, b, a
    hits = grasp.retrieve("?", 3)
    assert {hit.id: hit.score for hit in hits} == pytest.approx(
        {"b": 0.5 / 3 + 0.5 / 4, "c": 0.5 / 5 + 0.5 / 3, "a": 0.5 / 4 + 0.5 / 5}
    )
    assert hits.ids == ["b", "c", "a"]
    assert (GraspSettings.paper().depth, GraspSettings.paper().rerank_depth) == (
        100,
        100,
    )


def test_graphraft_looks_one_and_two_hops_and_between_entities_and_fills_nothing() -> (
    None
):
    chain = [Node(one, ("N",), f"Node {one}") for one in "wxyz"]
    edges = [Edge("w", "NEXT", "x"), Edge("x", "NEXT", "y"), Edge("y", "NEXT", "z")]
    store = MemoryStore.of(chain, edges)
    index = BM25Index.of_store(store)

    def reached(settings: GraphRAFTSettings) -> set[int]:
        raft = GraphRAFT(store, index, settings=settings)
        entities = mentioned_entities(raft.planner, "what is next to Node w")
        candidates = raft.finder.find(entities)
        return {len(hops) for one in candidates for _, hops in one.walks}

    assert reached(GraphRAFTSettings()) == {1, 2, 3}
    assert reached(GraphRAFTSettings.paper()) == {1, 2}
    graphraft = OpenGraph(store, index).retriever("graphraft", PAPER)
    assert graphraft.retrieve("what is next to Node w", 4).ids == ["x", "y"]


def test_spark_asks_its_model_once(tmp_path: Path) -> None:
    calls: list[str] = []

    def reply(messages: Sequence[object]) -> Reply:
        calls.append("once")
        return Reply("no plan at all")

    with LadybugStore(tmp_path / "papers.lbug") as store:
        store.upsert(NODES, EDGES)
        index = BM25Index.of_store(store)
        options = MethodOptions(preset="paper", chat=Follows(reply))
        OpenGraph(store, index).retriever("spark", options).retrieve("Ada Ames", 5)
    assert calls == ["once"]


@pytest.mark.parametrize("method", ["bm25", "expand", "ark", "grasp", "graphraft"])
def test_every_method_without_a_model_has_a_preset(method: Method) -> None:
    store = MemoryStore.of(NODES, EDGES)
    graph = OpenGraph(store, BM25Index.of_store(store))
    assert graph.retriever(method, PAPER).retrieve("papers by Ada Ames", 3).hits

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from expand_parts import EDGES, NODES, QUESTION, filler, parts
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.errors import RetrievalFailed
from graphret.expansion import Coverage, Expand, Propagate, Ranking, SageRanking
from graphret.index_retriever import IndexRetriever
from graphret.retriever import Retriever
from graphret.search import DenseIndex, HybridIndex
from graphret.stores import MemoryStore
from graphret.types import Edge, Evidence, Hit, Node, Retrieval
from graphret.where import Where

# What is tested is the walk: links count in full, whatever the question.
RANKINGS: list[Ranking] = [
    SageRanking(),
    Propagate(),
    Coverage(trust=1.0),
    Coverage(beam=0, trust=1.0),
]
each_ranking = pytest.mark.parametrize(
    "ranking", RANKINGS, ids=lambda r: f"{r.name}-{getattr(r, 'beam', '')}"
)


@each_ranking
def test_k_is_the_total_whatever_the_question(ranking: Ranking) -> None:
    assert (
        Expand(None, *parts([], []), ranking=ranking).retrieve("anything", 3).hits == []
    )
    expand = Expand(None, *parts(), ranking=ranking)
    for query in (QUESTION, "", "the of and", "🙂", "x" * 100_000, "غير موجود"):
        for k in (1, 10, 50):
            answer = expand.retrieve(query, k)
            assert len(set(answer.ids)) == len(answer) == min(k, len(NODES))
            scores = [hit.score for hit in answer]
            assert scores == sorted(scores, reverse=True)
            assert all(hit.evidence for hit in answer)


def test_coverage_finds_what_only_a_pair_says() -> None:
    store, index = parts()
    flat = IndexRetriever(index).retrieve(QUESTION, 3).ids
    found = Expand(None, store, index, ranking=Coverage(trust=1.0)).retrieve(
        QUESTION, 3
    )
    assert "aire" not in flat
    assert "aire" in found.ids
    (hit,) = [hit for hit in found if hit.id == "aire"]
    (reason,) = [e for e in hit.evidence if e.kind == "neighbor"]
    assert (reason.source, reason.relation, reason.properties) == (
        "leeds",
        "MENTIONS",
        {"name": "river Aire"},
    )
    assert found.signals.walked_edges is True
    assert [s.name for s in found.trace.stages] == ["seeds", "search/search", "expand"]


def test_a_pair_counts_each_term_once_on_its_better_side() -> None:
    texts = {
        "both": "alpha alpha",
        "same": "alpha alpha alpha",
        "half": "alpha",
        "rest": "beta",
        "none": "gamma",
    }
    edges = [Edge("both", "MENTIONS", "same"), Edge("half", "MENTIONS", "rest")]
    nodes = [Node(id_, text=text) for id_, text in texts.items()]
    expand = Expand(None, *parts(nodes, edges), ranking=Coverage(trust=1.0))
    assert set(expand.retrieve("alpha beta", 2).ids) == {"half", "rest"}


def _order(
    texts: dict[str, str],
    edges: list[tuple[str, str]],
    question: str,
    **settings: float,
) -> list[str]:
    """The order of nodes, named by their ids, under coverage with some settings."""
    nodes = [Node(name, name=name, text=text) for name, text in texts.items()]
    store, index = parts(
        nodes, [Edge(source, "MENTIONS", target) for source, target in edges]
    )
    answer = Expand(None, store, index, ranking=Coverage(**settings)).retrieve(
        question, len(nodes)
    )  # type: ignore
    assert [hit.score for hit in answer] == sorted(
        (hit.score for hit in answer), reverse=True
    )
    return answer.ids


def test_a_phrase_counts_more_than_its_words_apart() -> None:
    said = {
        "apart": "The king saw the lion in a film with Star.",
        "phrase": "The lion king saw a film with Star in it.",
    }
    texts = {"Star": "a film", **said, **{f"d{i}": f"filler{i}" for i in range(4)}}
    orders = [
        _order(texts, [(one, "Star") for one in said], "Lion King star", phrases=p)
        for p in (0.3, 0.0)
    ]
    assert [order.index("phrase") < order.index("apart") for order in orders] == [
        True,
        False,
    ]


def test_what_a_page_names_comes_before_what_names_the_page() -> None:
    songs = {f"Song {i}": "Heard in Killers." for i in range(5)}
    texts = {
        "Killers": "A soundtrack that Trent Reznor produced.",
        "Trent Reznor": "A singer.",
        **songs,
    }
    edges = [("Killers", "Trent Reznor"), *((song, "Killers") for song in songs)]
    places = [
        _order(
            texts, edges, "Who made Killers?", mention_source_weight=n, trust=1.0
        ).index("Trent Reznor")
        for n in (0.9, 1.0)
    ]
    assert places[0] == 1 < places[1]


def test_what_says_something_new_comes_before_what_repeats() -> None:
    texts = {
        "one": "river border east",
        "two": "river border east",
        "new": "tennessee, of which nobody asked this",
    }
    orders = [
        _order(
            texts, [], "river border east tennessee", redundancy_penalty=r, trust=1.0
        )
        for r in (0.0, 4.0)
    ]
    assert orders == [["one", "two", "new"], ["one", "new", "two"]]


def test_a_third_node_joins_a_pair_for_what_the_pair_leaves_out() -> None:
    nodes = [
        Node("a", name="first", text="alpha"),
        Node("b", name="second", text="beta"),
        Node("c", name="third", text="gamma"),
        *(Node(f"d{i}", text=f"alpha filler{i}") for i in range(6)),
    ]
    edges = [Edge("a", "MENTIONS", "b"), Edge("b", "MENTIONS", "c")]
    store, index = parts(nodes, edges)

    def place(beam: int) -> int:
        ranking = Coverage(beam=beam, max_seeds=1, trust=1.0)
        return (
            Expand(None, store, index, ranking=ranking)
            .retrieve("alpha delta gamma", 9)
            .ids.index("c")
        )

    assert place(beam=30) < place(beam=0) or place(beam=0) == 0


def test_propagation_adds_a_share_of_the_best_seed() -> None:
    store, index = parts()
    own = dict(zip(index.table.ids, index.scores(QUESTION).tolist(), strict=True))
    answer = Expand(None, store, index, ranking=Propagate(inherit=0.5)).retrieve(
        QUESTION, 14
    )
    scores = {hit.id: hit.score for hit in answer}
    assert scores["aire"] == pytest.approx(
        own["aire"] + 0.5 * 0.8 * max(own["leeds"], own["malham"]), rel=1e-5
    )
    assert scores["other"] == pytest.approx(own["other"], rel=1e-5)


def test_the_papers_ranking_is_seeds_then_their_best_neighbours() -> None:
    store, index = parts()
    seeds = IndexRetriever(index).retrieve(QUESTION, 2).ids
    ranking = SageRanking(seed_share=0.5)
    reached = {
        end for e in store.neighbors(seeds) for end in (e.source, e.target)
    } - set(seeds)
    best = sorted(reached, key=lambda i: (-index.lexical.score(QUESTION, [i])[0], i))
    assert Expand(None, store, index, ranking=ranking).retrieve(QUESTION, 4).ids == [
        *seeds,
        *best[:2],
    ]


def test_edges_that_agree_with_the_question_come_first_in_the_papers_ranking() -> None:
    nodes = [
        Node("seed", text="question word word"),
        Node("near", text="question"),
        Node("far", text="elsewhere"),
        *filler(),
    ]
    edges = [
        Edge("seed", "IS_SIMILAR", "near", 0.9),
        Edge("seed", "SHARES_ENTITY", "far", 0.5, {"entities": ["Word"]}),
    ]
    store, index = parts(nodes, edges)
    first = (
        Expand(None, store, index, ranking=SageRanking(seed_share=0.3))
        .retrieve("question word", 3)
        .ids
    )
    assert first == ["seed", "far", "near"]


@each_ranking
def test_where_limits_what_is_returned_and_not_the_walk(ranking: Ranking) -> None:
    expand = Expand(None, *parts(), ranking=ranking)
    answer = expand.retrieve(QUESTION, 2, where={"tenant": "b"})
    assert set(answer.ids) == {"aire", "malham"}
    assert asyncio.run(expand.aretrieve(QUESTION, 2, {"tenant": "b"})).ids == answer.ids
    if isinstance(ranking, Coverage):
        assert any(e.source == "leeds" for hit in answer for e in hit.evidence)


class Elsewhere(Retriever):
    """A retriever of somebody else's, with scores of its own."""

    name = "elsewhere"

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        hits = [
            Hit(Node("malham"), 99.0, (Evidence("seed"),)),
            Hit(Node("unknown"), 98.0),
        ]
        return Retrieval(query, k, hits[:k])


def test_seeds_may_come_from_anywhere() -> None:
    answer = Expand(Elsewhere(), *parts(), ranking=Propagate()).retrieve("limestone", 3)
    assert answer.ids[0] == "malham"
    assert "aire" in answer.ids
    assert len(answer) == 3


@pytest.mark.parametrize("shared", [True, False])
def test_a_seed_outside_the_view_is_not_shown(shared: bool) -> None:
    where = {"tenant": "a"}
    store, index = parts()
    view = store.view(where) if shared else MemoryStore.of(NODES, EDGES).view(where)
    answer = Expand(Elsewhere(), view, index.view(where)).retrieve("limestone", 5)
    assert (len(answer), {"malham", "aire", "unknown"} & set(answer.ids)) == (5, set())


class Broken(Retriever):
    name = "broken"

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        raise TimeoutError("too late")


def test_seeds_that_fail_fall_back_to_the_index_or_raise() -> None:
    store, index = parts()
    answer = Expand(Broken(), store, index).retrieve(QUESTION, 3)
    assert answer.ids == Expand(None, store, index).retrieve(QUESTION, 3).ids
    assert answer.trace.fallbacks[0].details["failed"] == "broken"
    with pytest.raises(RetrievalFailed, match="too late"):
        Expand(Broken(), store, index, on_failure="raise").retrieve(QUESTION, 3)


def test_with_vectors_the_nearer_of_two_pairs_that_say_the_same_comes_first() -> None:
    nodes = [
        Node(i, text=t)
        for i, t in [
            ("a1", "alpha"),
            ("a2", "alpha"),
            ("b1", "beta"),
            ("b2", "beta"),
            ("c", "x"),
        ]
    ]
    store, index = parts(
        nodes, [Edge("a1", "MENTIONS", "b1"), Edge("a2", "MENTIONS", "b2")]
    )
    vectors = np.asarray([[1, 0], [1, 0], [1, 0], [0, 1], [1, 0]], dtype=np.float32)
    dense = DenseIndex.build(index.table, None, vectors=vectors)
    dense.remember("alpha beta", [0, 1])
    answer = Expand(None, store, HybridIndex(index.lexical, dense)).retrieve(
        "alpha beta", 4
    )
    assert set(answer.ids[:2]) == {"a2", "b2"}


def test_nodes_that_the_question_names_are_a_pair() -> None:
    nodes = [
        Node("vidor", name="King Vidor", text="He directed The Crowd."),
        Node("cziffra", name="Géza von Cziffra", text="He directed Kriminaltango."),
        Node(
            "film",
            name="Kriminaltango",
            text="Both are American, say all its American directors.",
        ),
        *(Node(f"n{i}", name=f"number {i}", text="of a king") for i in range(9)),
    ]
    store, index = parts(nodes, [Edge("film", "MENTIONS", "cziffra")])
    gaps = []
    for named in (0.9, 0.0):
        expand = Expand(None, store, index, ranking=Coverage(named=named))
        answer = expand.retrieve(
            "Are King Vidor and Géza von Cziffra both American directors?", 3
        )
        scores = {hit.id: hit.score for hit in answer}
        gaps.append(scores["cziffra"] - scores["vidor"])
        assert answer.trace.stages[-1].details.get("named", 0) == (named > 0)
    assert gaps[0] < gaps[1]


# -- views


IDS = [f"n{i}" for i in range(8)]
WORDS = ["apple", "pear", "plum", "fig"]
GRAPHS = st.tuples(
    st.lists(st.sampled_from("ab"), min_size=8, max_size=8),
    st.lists(
        st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join),
        min_size=8,
        max_size=8,
    ),
    st.lists(
        st.tuples(
            st.sampled_from(IDS),
            st.sampled_from(["MENTIONS", "IS_SIMILAR", "NEXT"]),
            st.sampled_from(IDS),
        ),
        max_size=20,
    ),
)


@settings(max_examples=20)
@given(
    GRAPHS,
    st.sampled_from(RANKINGS),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
)
def test_a_view_answers_as_if_the_rest_did_not_exist(
    graph: tuple[list[str], list[str], list[tuple[str, str, str]]],
    ranking: Ranking,
    query: str,
) -> None:
    tenants, texts, triples = graph
    nodes = [
        Node(i, text=t, properties={"tenant": w})
        for i, t, w in zip(IDS, texts, tenants, strict=True)
    ]
    mine = [node for node in nodes if node.properties["tenant"] == "a"]
    allowed = {node.id for node in mine}
    edges = [Edge(*triple) for triple in triples if triple[0] != triple[2]]
    store, index = parts(nodes, edges)
    where = {"tenant": "a"}
    seen = Expand(None, store.view(where), index.view(where), ranking=ranking).retrieve(
        query, 8
    )
    alone = Expand(
        None,
        *parts(mine, [e for e in edges if e.source in allowed and e.target in allowed]),
        ranking=ranking,
    ).retrieve(query, 8)
    assert [h.to_dict() for h in seen] == [h.to_dict() for h in alone]
    assert seen.signals == alone.signals
    assert {e.source for h in seen for e in h.evidence if e.source} <= allowed

    def counted(answer: Retrieval) -> list[dict[str, Any]]:
        return [
            {k: v for k, v in s.items() if k != "seconds"}
            for s in answer.trace.to_dict()["stages"]
        ]

    assert counted(seen) == counted(alone)

"""Combinators of retrievers, fusion and voting, relevance, and filters."""

from __future__ import annotations

import asyncio
import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import HashingEncoder

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.expansion import Expand
from graphret.fusion import settled, vote
from graphret.index_retriever import IndexRetriever
from graphret.rerank import Rerank
from graphret.retriever import Ask, Fallback, Fuse, Retriever, Steps
from graphret.search import BM25Index, DenseIndex, HybridIndex, NodeText
from graphret.stores import MemoryStore
from graphret.types import Edge, Evidence, Hit, Node, Retrieval, Signals
from graphret.where import Where


class Fixed(Retriever):
    """Answers with the same ids, best first."""

    def __init__(self, ids: Sequence[str], name: str = "fixed") -> None:
        self.ids = list(ids)
        self.name = name
        self.signals = Signals()

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        nodes = [Node(i) for i in self.ids]
        nodes = [node for node in nodes if where is None or where.matches(node)]
        hits = [
            Hit(node, 1.0 / rank, (Evidence("seed", rank=rank),))
            for rank, node in enumerate(nodes, start=1)
        ]
        return Retrieval(query, k, hits[:k], self.signals)


class Broken(Retriever):
    name = "broken"

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        raise ConnectionError("the server is away")


class Slow(Retriever):
    """Answers only once the others of its party have been asked too."""

    name = "slow"

    def __init__(self, party: asyncio.Barrier) -> None:
        self.party = party

    async def aretrieve(
        self, query: str, k: int = 10, where: object = None
    ) -> Retrieval:
        await self.party.wait()
        return Retrieval(query, k, [Hit(Node("late"), 1.0)])


class Backwards:
    name = "backwards"

    def scores(self, query: str, hits: Sequence[Hit]) -> list[float]:
        return [float(i) for i in range(len(hits))]


ASKED = [
    pytest.param(lambda r, *a, **kw: r.retrieve(*a, **kw), id="sync"),
    pytest.param(lambda r, *a, **kw: asyncio.run(r.aretrieve(*a, **kw)), id="async"),
]


@pytest.mark.parametrize("ask", ASKED)
def test_fusion_sums_weighted_reciprocal_ranks(ask) -> None:
    fused = ask(
        Fuse([Fixed("abc", "one"), Fixed("cb", "two")], weights=[2, 1], rrf_k=10),
        "q",
        3,
    )
    assert fused.ids == ["b", "c", "a"]
    assert fused.hits[0].score == pytest.approx(2 / 12 + 1 / 12)
    assert fused.hits[1].score == pytest.approx(2 / 13 + 1 / 11)
    ranks = {(e.retriever, e.rank) for e in fused.hits[0].evidence if e.kind == "rank"}
    assert ranks == {("one", 2), ("two", 2)}


@pytest.mark.parametrize("ask", ASKED)
def test_weights_may_depend_on_what_each_retriever_signals(ask) -> None:
    def weights(signals: Sequence[Signals]) -> list[float]:
        return [0.0 if signal.risk == "weak" else 1.0 for signal in signals]

    sure, unsure = Fixed("ab", "sure"), Fixed("cd", "unsure")
    unsure.signals = Signals(risk="weak", plan_valid=True)
    fused = ask(Fuse([unsure, sure], weights=weights), "q", 2)
    assert fused.ids == ["a", "b"]
    assert (fused.signals.risk, fused.signals.plan_valid) == ("weak", True)
    assert fused.trace.stages[-1].details["weights"] == [0.0, 1.0]
    with pytest.raises(InvalidInput, match="weights: expected 2 numbers"):
        ask(Fuse([unsure, sure], weights=lambda signals: [1.0]), "q", 2)


@pytest.mark.parametrize("ask", ASKED)
def test_what_no_word_of_the_question_is_in_does_not_count_in_fusion(ask) -> None:
    nodes = [
        Node("a", name="alpha"),
        Node("b", name="beta"),
        Node("z", name="gamma", text="quark"),
    ]
    names, texts = (
        BM25Index.build(nodes, text=text)
        for text in (NodeText.names(), NodeText.one_field("body"))
    )
    retrieval = ask(
        Fuse([IndexRetriever(names), IndexRetriever(texts)]), "alpha quark", 3
    )
    assert retrieval.ids == ["a", "z", "b"]
    assert [hit.score for hit in retrieval.hits[:2]] == [1 / 61, 1 / 61]
    assert [hit.evidence[-1].kind for hit in retrieval.hits] == ["seed", "seed", "fill"]
    flat = ask(IndexRetriever(texts), "alpha quark", 3)
    assert flat.ids == ["z", "a", "b"]
    assert [[evidence.kind for evidence in hit.evidence] for hit in flat.hits] == [
        ["seed"],
        ["fill"],
        ["fill"],
    ]


@pytest.mark.parametrize("ask", ASKED)
def test_what_a_retriever_is_filled_up_with_does_not_count_in_fusion(ask) -> None:
    """Else the list that fills counts twice, and ranks above what the other has
    found.
    """
    search = Fixed("xyz", "search")
    fused = ask(Fuse([Fallback(Fixed("ab"), search), search]), "q", 5)
    assert fused.ids == ["a", "x", "b", "y", "z"]
    assert not any(e.kind == "fill" for hit in fused for e in hit.evidence)
    below = ask(Fuse([Fallback(Fixed("ab"), search)]), "q", 5)
    assert below.ids == ["a", "b", "x", "y", "z"]
    assert [sum(e.kind == "fill" for e in hit.evidence) for hit in below] == [
        0,
        0,
        1,
        1,
        1,
    ]
    assert [hit.score for hit in below] == sorted(
        (hit.score for hit in below), reverse=True
    )
    ordered = Rerank(
        Fallback(Fixed("ab"), search), Backwards()
    )  # which has an opinion of all
    assert ask(Fuse([ordered]), "q", 5).ids == ask(ordered, "q", 5).ids


@pytest.mark.parametrize("ask", ASKED)
def test_fusion_goes_on_without_a_retriever_that_fails_and_says_so(ask) -> None:
    answer = ask(Fuse([Broken(), Fixed("ab")]), "q", 2)
    assert answer.ids == ["a", "b"]
    (fallback,) = answer.trace.fallbacks
    assert fallback.details == {
        "failed": "broken",
        "error": "ConnectionError: the server is away",
    }
    with pytest.raises(RetrievalFailed, match="broken failed: the server is away"):
        ask(Fuse([Broken(), Fixed("ab")], on_failure="raise"), "q", 2)
    with pytest.raises(RetrievalFailed, match="every retriever failed"):
        ask(Fuse([Broken(), Broken()]), "q", 2)


def test_several_retrievers_are_asked_at_once() -> None:
    async def run() -> Retrieval:
        party = asyncio.Barrier(3)
        return await asyncio.wait_for(
            Fuse([Slow(party), Slow(party), Slow(party)]).aretrieve("q", 1), timeout=20
        )

    assert asyncio.run(run()).ids == ["late"]


@pytest.mark.parametrize("ask", ASKED)
def test_a_fallback_stands_in_and_fills(ask) -> None:
    assert ask(Fallback(Broken(), Fixed("ab")), "q", 2).ids == ["a", "b"]
    filled = ask(Fallback(Fixed("c"), Fixed("abc")), "q", 3)
    assert filled.ids == ["c", "a", "b"]
    assert [h.evidence[-1].kind for h in filled.hits] == ["seed", "fill", "fill"]
    scores = [h.score for h in filled.hits]
    assert scores == sorted(scores, reverse=True)
    assert ask(Fallback(Fixed("c"), Broken()), "q", 3).ids == ["c"]
    with pytest.raises(ConnectionError):
        ask(Fallback(Broken(), Broken()), "q", 3)


def test_combinators_pass_the_filter_on() -> None:
    where = {"id": {"$ne": "a"}}
    inner = Fallback(Fuse([Fixed("ab"), Fixed("ac")]), Fixed("abc"))
    assert set(Rerank(inner, Backwards()).retrieve("q", 3, where).ids) == {"b", "c"}


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("q", 0), "k:"),
        (("q", -3), "k:"),
        ((7, 1), "query:"),
        ((None, 1), "query:"),
        (("q", 1, {"a": {"$like": 1}}), "where: 'a': expected operators"),
        (("q", 1, "a = 1"), "where:"),
    ],
)
def test_bad_arguments_are_named(ask, arguments, message) -> None:
    with pytest.raises(InvalidInput, match=message):
        ask(Fuse([Fixed("a")]), *arguments)


def test_settings_are_checked() -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("none to fuse", {"retrievers": []}),
        ("weights", {"weights": [1, 2]}),
        ("weights", {"weights": [float("inf")]}),
        ("on_failure", {"on_failure": "ignore"}),
    ]
    for message, options in wrong:
        with pytest.raises(InvalidInput, match=message):
            Fuse(**{"retrievers": [Fixed("a")], **options})


def test_the_callers_mistake_is_no_failure_to_fall_back_from() -> None:
    with pytest.raises(InvalidInput, match=r"\$gt does not apply"):
        Fuse([Fixed("a"), Fixed("b")]).retrieve("q", 1, {"label": {"$gt": 1}})


def test_a_users_combinator_is_written_once_for_both_worlds() -> None:
    class Reversed(Retriever):
        def __init__(self, inner: Retriever) -> None:
            self.inner = inner

        def _steps(self, query: str, k: int, where: Where | None) -> Steps:
            answer = yield Ask(self.inner, query, k, where)
            return Retrieval(query, k, answer.hits[::-1])

    combined = Reversed(Fixed("abc"))
    assert (
        combined.retrieve("q", 3).ids
        == asyncio.run(combined.aretrieve("q", 3)).ids
        == ["c", "b", "a"]
    )


def test_expansion_over_an_index_that_follows_its_store_follows_too() -> None:
    store = MemoryStore.of(
        [
            Node(f"n{i}", text=f"{word} fruit")
            for i, word in enumerate(["apple", "pear", "plum"])
        ]
    )
    index = BM25Index.of_store(store)
    expand = Expand(None, store, index)
    store.attach(index)
    store.delete(["n0"])
    store.upsert([Node("n9", text="quince fruit")], [Edge("n9", "NEAR", "n1")])
    assert expand.retrieve("quince", 2).ids == ["n9", "n1"]
    store.delete(["n2"])
    assert expand.retrieve("fruit", 9).ids == ["n1", "n9"]


# -- relevance

PAIR = [
    Node("a", name="alpha", text="quark"),
    Node("b", name="beta"),
    Node("c", name="gamma gamma"),
]


def relevances(
    retriever: Retriever, query: str = "alpha beta", k: int = 3
) -> list[float]:
    retrieval = retriever.retrieve(query, k)
    assert retrieval.hits == asyncio.run(retriever.aretrieve(query, k)).hits
    values = [hit.relevance for hit in retrieval]
    assert all(relevance is not None and 0 <= relevance <= 1 for relevance in values)
    assert values == sorted(values, reverse=True)  # type: ignore[type-var]
    return values  # type: ignore[return-value]


def test_relevance_is_the_share_of_the_question_that_is_said() -> None:
    index = BM25Index.build(PAIR)
    flat = IndexRetriever(index)
    assert relevances(flat, "alpha", 1) == [pytest.approx(1.0)]
    assert relevances(flat, "alpha beta", 1) == [pytest.approx(0.5)]
    assert (
        relevances(flat, "alpha unheard", 1)[0] < 0.5
    )  # a word that no node has is the rarest
    assert relevances(flat, "unheard of") == [0.0, 0.0, 0.0]
    linked = Expand(None, MemoryStore.of(PAIR, [Edge("a", "KNOWS", "b")]), index)
    assert relevances(linked)[:2] == [pytest.approx(1.0), pytest.approx(1.0)]
    index.upsert(
        [Node("d", text="alpha beta")]
    )  # scored by its counts, as long as it has no weights
    assert relevances(IndexRetriever(index), "alpha beta", 1) == [pytest.approx(1.0)]


def test_with_an_encoder_closeness_counts_too() -> None:
    encoder = HashingEncoder()
    dense = DenseIndex.build(PAIR, encoder)
    [cosine] = dense.score("alpha quark", ["a"])
    assert relevances(IndexRetriever(dense), "alpha quark", 1) == [
        pytest.approx(float(cosine), abs=1e-6)
    ]
    hybrid = HybridIndex(BM25Index.build(dense.table), dense)
    assert relevances(IndexRetriever(hybrid), "alpha quark", 1) == [
        pytest.approx(0.6 + 0.4 * cosine, abs=1e-6)
    ]


def test_combinators_keep_relevance_between_0_and_1() -> None:
    flat = IndexRetriever(BM25Index.build(PAIR))
    assert relevances(Fuse([flat, Fixed("ab")])) == [
        1.0,
        *relevances(Fuse([flat, Fixed("ab")]))[1:],
    ]
    assert relevances(Fuse([flat]))[0] == pytest.approx(relevances(flat)[0])
    assert relevances(Rerank(flat, Backwards()))[0] == pytest.approx(
        1 / (1 + math.exp(-2))
    )  # 2 is a log odds
    filled = relevances(Fallback(Fixed("c"), flat))
    assert filled == [1.0, *relevances(flat)[:2]]

    class Distance(Retriever):
        def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
            return Retrieval(
                query, k, [Hit(Node(i), -float(n)) for n, i in enumerate("abc")]
            )

    assert relevances(Distance()) == [1.0, 0.5, 0.0]


# -- filters


def test_a_key_that_no_node_has_is_warned_of() -> None:
    nodes = [
        Node("a", text="alpha", properties={"year": 1999, "at": {"city": "Bath"}}),
        Node("b", text="beta"),
    ]
    store, index = MemoryStore.of(nodes), BM25Index.build(nodes)
    for retriever in (
        IndexRetriever(index),
        Expand(None, store, index),
        Expand(Fixed("ab"), store, index),
    ):
        with pytest.warns(UserWarning, match="no node has 'yaer'"):
            retrieval = retriever.retrieve(
                "alpha", 2, {"$or": [{"yaer": {"$ne": 1999}}, {"year": 1}]}
            )
        assert [
            s.details for s in retrieval.trace.stages if s.name == "unknown_key"
        ] == [{"key": "yaer"}]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for where in (
                {"year": 1},
                {"at.city": "x"},
                {"name": "x", "label": "y"},
                {"maybe": {"$exists": False}},
            ):
                retriever.retrieve("alpha", 2, where)
    with pytest.warns(UserWarning, match="yaer") as warned:
        Expand(None, store, index).retrieve("alpha", 2, {"yaer": 1})
    assert len(warned) == 1  # once, though free places are filled by another search
    store.upsert([Node("c", properties={"yaer": 1})])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Expand(None, store, BM25Index.of_store(store)).retrieve("alpha", 2, {"yaer": 1})


LISTS = st.lists(
    st.lists(st.sampled_from("abcd"), unique=True, max_size=3), min_size=1, max_size=3
)


def ids(lists: list[list[str]]) -> list[str]:
    return [voted.id for voted in vote(lists)]


def test_frequency_comes_first_then_the_earliest_position_then_the_order_of_the_voters() -> (
    None
):
    assert ids([["a", "b", "c"], ["d", "b"], ["c", "e"]]) == ["c", "b", "a", "d", "e"]
    first = vote([["x"], ["y", "x"]])[0]
    assert (first.id, first.votes, first.voters, first.position) == ("x", 2, (0, 1), 1)


@settings(max_examples=25)
@given(LISTS, st.sets(st.integers(0, 2)))
def test_settled_is_exactly_that_no_continuation_changes_the_first(
    lists: list[list[str]], growing: set[int]
) -> None:
    running = growing & set(range(len(lists)))
    alphabet = "abcdef"  # two nodes more than anyone has selected

    def continuations(number: int) -> list[list[str]]:
        own_list = lists[number]
        if number not in running:
            return [own_list]
        remaining = [node for node in alphabet if node not in own_list]
        return [
            [*own_list, *more]
            for size in range(3)
            for more in itertools.permutations(remaining, size)
        ]

    expected = not running or bool(ids(lists))
    expected = expected and all(
        ids(list(after))[:1] == ids(lists)[:1]
        for after in itertools.product(*map(continuations, range(len(lists))))
    )
    assert settled(lists, running) == expected

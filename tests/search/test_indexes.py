"""The indexes of this process: the contract of all, and what each finds."""

from __future__ import annotations

from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from graphret import storage
from graphret.change import Change
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search import (
    AdaptiveFieldIndex,
    Analyzer,
    BM25Index,
    BM25Settings,
    DenseIndex,
    FieldIndex,
    HybridIndex,
    NodeText,
    TrainedFields,
)
from graphret.search.dense import hnsw_graph
from graphret.search.encoder import CallableEncoder
from graphret.search.index import min_max
from graphret.stores import MemoryStore
from graphret.testing.indexes import MakeIndex, TextIndexSuite
from graphret.types import Edge, Node


class TestBM25(TextIndexSuite):
    @pytest.fixture
    def make(self) -> MakeIndex:
        return BM25Index.build


class TestDense(TextIndexSuite):
    @pytest.fixture(params=["exact", "hnsw"])
    def make(
        self,
        request: pytest.FixtureRequest,
        monkeypatch: pytest.MonkeyPatch,
        encoder: Any,
    ) -> MakeIndex:
        if request.param == "hnsw":
            monkeypatch.setattr(DenseIndex, "hnsw_above", 2)
        return lambda nodes: DenseIndex.build(nodes, encoder)


class TestHybrid(TextIndexSuite):
    @pytest.fixture
    def make(self, encoder: Any) -> MakeIndex:
        return lambda nodes: HybridIndex.build(nodes, encoder)


class TestFields(TextIndexSuite):
    @pytest.fixture
    def make(self, encoder: Any) -> MakeIndex:
        return lambda nodes: FieldIndex.build(nodes, encoder=encoder)


class TestAdaptiveFields(TextIndexSuite):
    @pytest.fixture
    def make(self, encoder: Any) -> MakeIndex:
        fields = {"name": NodeText.names(), "text": NodeText.one_field("body")}
        directions = np.ones((4, encoder.dimension), np.float32)
        scales = np.asarray([1, 2, 3, 1], np.float32)
        trained = TrainedFields(fields, directions, scales, encoder.name)
        return lambda nodes: AdaptiveFieldIndex.build(nodes, trained, encoder=encoder)


@pytest.mark.parametrize(
    "text", [NodeText(), NodeText.documents()], ids=["text", "neighbors"]
)
@pytest.mark.parametrize("labels", [None, ["Thing"]], ids=["all", "things"])
def test_an_index_is_brought_up_to_date_after_writes_by_others(
    text: NodeText, labels: list[str] | None
) -> None:
    store = MemoryStore.of(
        [Node(name, ("Thing",), name) for name in ("red", "green", "blue")]
    )
    index = BM25Index.of_store(store, text=text, labels=labels)
    store.upsert(
        [Node("red", ("Thing",), "scarlet"), Node("new", ("Other",), "scarlet")],
        [Edge("blue", "NEAR", "red")],
    )
    store.delete(["green"])
    index.refresh(store)
    fresh = BM25Index.of_store(store, text=text, labels=labels)
    for query in ("red scarlet", "green", "blue"):
        result, expected = index.search(query, 5), fresh.search(query, 5)
        assert (result.ids, result.scores.tolist()) == (
            expected.ids,
            expected.scores.tolist(),
        )


WORDS = ["apple", "pear", "plum", "fig", "kiwi", "lime", "date", "nut"]
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=12
)
PLAIN = NodeText(weights={})


def documents(texts: list[str]) -> list[Node]:
    return [Node(f"n{i:02d}", text=text) for i, text in enumerate(texts)]


def index(texts: list[str]) -> BM25Index:
    return BM25Index.build(documents(texts), text=PLAIN)


class Lucene(BM25Okapi):
    """rank_bm25's Okapi with Lucene's idf, which is never negative."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.idf = {
            term: np.log1p((self.corpus_size - n + 0.5) / (n + 0.5))
            for term, n in nd.items()
        }


@settings(max_examples=25)
@given(TEXTS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
def test_scores_are_those_of_rank_bm25_up_to_its_constant_factor(
    texts: list[str], query: list[str]
) -> None:
    analyzer = Analyzer()
    if not any(texts):
        return
    # Documents without a word do not count towards the mean length here; rank_bm25
    # counts them.
    filled = [text for text in texts if text]
    expected = (
        Lucene([analyzer(text) for text in filled]).get_scores(
            [analyzer(word)[0] for word in query]
        )
        / 2.5
    )
    np.testing.assert_allclose(
        index(filled).scores(" ".join(query)), expected, rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("k", [1, 7, 31, 40, 2_500])
def test_of_many_nodes_the_best_are_found_ties_by_position(k: int) -> None:
    draw = np.random.default_rng(k)
    texts = [" ".join(draw.choice([*WORDS, "none"], 3)) for _ in range(2_000)]
    many, query = index(texts), " ".join(WORDS[:2])
    scores = many.scores(query)
    best = np.argsort(-scores, kind="stable")[:k]
    found = many.search(query, k)
    assert found.ids == many.table.ids.take(best)
    np.testing.assert_array_equal(found.scores, scores[best])
    many.forget()  # a few are scored by themselves
    some = draw.choice(len(texts), 5, replace=False)
    scored = many.score(query, many.table.ids.take(some))
    np.testing.assert_array_equal(scored, scores[some])


ROWS = st.lists(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), max_size=3),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25)
@given(ROWS, ROWS, st.lists(st.sampled_from(WORDS), min_size=2, max_size=4))
def test_phrases_are_terms_that_follow_each_other_in_a_text(
    first: list[list[str]], then: list[list[str]], query: list[str]
) -> None:
    def tables(rows: list[list[str]], start: int) -> list[Node]:
        return [
            Node(f"n{start + i}", (), "fig kiwi", "", {"table_rows": cell_rows})
            for i, cell_rows in enumerate(rows)
        ]

    before, after = tables(first, 0), tables(then, len(first) // 2)
    nodes = list({node.id: node for node in (*before, *after)}.values())
    change = Change.of(NodeTable.of(before), NodeTable.of(after))
    index = BM25Index.build(before, text=PLAIN).changed(change)
    places = [
        (n, part)
        for n, node in enumerate(nodes)
        for part in range(-1, len(node.properties["table_rows"]))
    ]
    at, parts = (
        np.asarray([n for n, _ in places]),
        np.asarray([part for _, part in places], dtype=np.int32),
    )
    spoken = np.ones((len(places), len(set(query))), dtype=np.float32)
    has_phrase = index.phrase_weights(" ".join(query), at, parts, spoken) > 0
    analyzer, positions = Analyzer(), index.terms.positions
    pairs = [
        p
        for p in dict.fromkeys(pairwise(analyzer(" ".join(query))))
        if all(term in positions for term in p)
    ]
    for row, (n, part) in enumerate(places):
        rows = nodes[n].properties["table_rows"]
        texts = ["fig kiwi", *(rows if part < 0 else rows[part : part + 1])]
        pairs_there = {two for text in texts for two in pairwise(analyzer(text))}
        assert has_phrase[row].tolist() == [two in pairs_there for two in pairs]


def test_terms_count_once_and_stop_words_not_at_all() -> None:
    built = index(["apple pear", "plum", "pear"])
    np.testing.assert_array_equal(
        built.scores("apple apple the"), built.scores("apple")
    )
    assert not built.search("the of and", 2).scores.any()
    np.testing.assert_array_equal(
        built.scores("What pears do have?"), built.scores("pears")
    )
    nodes = [
        Node("body", text="apple"),
        Node("title", name="apple"),
        Node("none", text="pear", name="pear"),
    ]
    assert BM25Index.build(nodes).search("apple", 2).ids == [
        "title",
        "body",
    ]  # a title weighs more


def test_the_terms_of_a_first_query_weigh_as_they_do_among_all() -> None:
    rows = [["red barn", "1911"], ["old red mill", "1912"], ["green hill", "1913"]]
    table = {"table_header": ["Place", "Year"], "table_rows": rows}
    nodes = [
        *documents(["the red old mill", "an old red barn", "green green hill", "red"]),
        Node("t", ("Table",), "Old places", "", table),
    ]
    index, query = BM25Index.build(nodes), "old red mill of nowhere"
    places = np.asarray([0, 1, 2, 4, 4, 4]), np.asarray([-1, -1, -1, 0, 1, 2], np.int32)

    def weights() -> list[Any]:
        index.forget()
        first_weights = index.term_weights(query, places[0])
        return [
            index.scores(query),
            first_weights,
            index.row_term_weights(query, places[0][3:], places[1][3:]),
            index.phrase_weights(query, *places, first_weights),
            index.ceiling(query),
            index.confidence(query, places[0]),
        ]

    alone = weights()
    assert not index.weights.made
    assert index.weights.of_nodes.nnz
    for weights_alone, among_all in zip(alone, weights(), strict=True):
        np.testing.assert_array_equal(weights_alone, among_all)

    def scored(index: BM25Index, query: str) -> None:
        index.scores(query)

    def searched(index: BM25Index, query: str) -> None:
        index.search(query, 1)  # in a copy of the index, as it is then

    for ask in (scored, searched):
        fresh = BM25Index.build(nodes)
        for number in range(6):  # once as many weights are made as there are, all are
            ask(fresh, f"old red mill {number}")
            assert fresh.weights.made == (number > 2)


def test_words_are_folded_and_stemmed_in_any_script() -> None:
    analyzer = Analyzer()
    assert analyzer("Café CAFÉS") == ["cafe", "cafe"]
    assert analyzer("東京") == ["東", "京"]
    assert analyzer("שלום 🙂") == ["שלום"]
    assert Analyzer(language="", stopwords="")("the running") == ["the", "running"]


def test_words_that_make_a_question_are_not_asked_for() -> None:
    ask = Analyzer().of_query
    assert ask("Who did sing with The Who?") == [
        "sing",
        "who",
    ]  # a name keeps its words
    assert ask("who was what") == [
        "who",
        "what",
    ]  # and so does a question of nothing else
    assert Analyzer(language="", stopwords="").of_query("do it") == ["do", "it"]


@pytest.mark.parametrize(
    ("question", "text", "others"),
    [
        ("C++", "We moved to C++ long ago.", ["C, C and C again.", "C# and F#."]),
        ("c#", "We moved to C# long ago.", ["C, C and C again.", "C++ code."]),
        (".NET", "It runs on .NET as well.", ["The net, a net, nets.", "Network."]),
        ("user_id", "It reads user_id.", ["The id of a user, user id.", "user-id"]),
        ("getItems", "Call getItems here.", ["getitem getitem", "Get items, items."]),
        ("AT&T", "We called AT&T today.", ["Look at t shirts at T.", "T and T."]),
        ("the IT team", "Ask our IT team.", ["A team, the team it is.", "It rains."]),
        ("architect", "The archi-\ntect came.", ["The arch.", "A tect of archi."]),
        ("archi-\n  tect", "The architect came.", ["The arch.", "It rains."]),
    ],
)
def test_what_is_spelled_in_its_own_way_finds_itself_first(
    question: str, text: str, others: list[str]
) -> None:
    texts = [*others, text]
    table = NodeTable.of(
        Node(str(i), text=node_text) for i, node_text in enumerate(texts)
    )
    result = BM25Index.build(table).search(question, 3)
    assert texts[int(result.ids[0])] == text


def test_no_analyzer_is_made_of_what_nobody_has() -> None:
    for unknown in ({"language": "klingon"}, {"stopwords": "klingon"}):
        with pytest.raises(InvalidInput, match="klingon"):
            Analyzer(**unknown)("word")
    for wrong in ({"k1": 0}, {"b": 1.5}, {"field_b": {"title": -0.1}}):
        with pytest.raises(InvalidInput, match="BM25"):
            BM25Settings(**wrong)  # type: ignore[arg-type]


NODES = [
    Node(f"n{i:02d}", text=text, properties={"i": i})
    for i, text in enumerate(
        [
            "apple pie recipe",
            "apple tart",
            "pear cake",
            "plum cake recipe",
            "fig and date bread",
            "lime sorbet",
        ]
    )
]


def test_a_given_query_embedding_is_used_instead_of_the_encoder(encoder: Any) -> None:
    turned = NODES[
        ::-1
    ]  # vectors belong to nodes in the order in which these are given
    built = DenseIndex.build(
        turned, encoder=None, vectors=encoder.encode_documents([n.text for n in turned])
    )
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
    approximate = DenseIndex.build(nodes, None, vectors=vectors)
    approximate.hnsw_above = 100
    assert approximate.approximate
    shared = 0
    for i in range(20):
        query = rng.standard_normal(32)
        for built in (exact, approximate):
            built.remember(f"q{i}", query)
        shared += len(
            set(exact.search(f"q{i}", 10).ids)
            & set(approximate.search(f"q{i}", 10).ids)
        )
        filtered = [
            built.search(f"q{i}", 10, where={"even": True}).ids
            for built in (exact, approximate)
        ]
        assert filtered[0] == filtered[1]
        assert exact.score(f"q{i}", ["n0000"]) == pytest.approx(
            approximate.score(f"q{i}", ["n0000"]), abs=1e-6
        )
    assert shared >= 190


def vectors_index(n: int, above: int) -> tuple[DenseIndex, Any]:
    """Nodes named by number, each with a vector of its own, as are the queries of its
    number.
    """
    vectors = np.random.default_rng(5).standard_normal((n + 10, 16))
    encoder = CallableEncoder(
        lambda texts: [vectors[int(text)] for text in texts], name="given"
    )
    nodes = [Node(f"n{i:03d}", name=str(i)) for i in range(n)]
    index = DenseIndex.build(nodes, encoder, text=NodeText.names())
    index.hnsw_above = above
    return index, encoder


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
def test_hnsw_is_saved_with_its_index(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, altered: bool
) -> None:
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
    opened.hnsw_above = 100
    ids = [opened.search(str(i), 5).ids for i in range(20)]
    assert ids == expected
    assert built == ([400] if altered else [])


def test_hybrid_is_the_papers_sum_of_scaled_scores(encoder: Any) -> None:
    lexical = BM25Index.build(NODES)
    dense = DenseIndex.build(lexical.table, encoder)

    def scaled(scores: np.ndarray) -> np.ndarray:
        return (scores - scores.min()) / (scores.max() - scores.min())

    query = "apple recipe"
    cosines = (
        encoder.encode_documents([node.text for node in NODES])
        @ encoder.encode_queries([query])[0]
    )
    np.testing.assert_allclose(dense.scores(query), cosines, rtol=1e-5)
    expected = 0.6 * scaled(lexical.scores(query)) + 0.4 * scaled(dense.scores(query))
    np.testing.assert_allclose(
        HybridIndex(lexical, dense, alpha=0.6).scores(query), expected, rtol=1e-5
    )
    np.testing.assert_allclose(
        HybridIndex(lexical).scores(query), scaled(lexical.scores(query)), rtol=1e-5
    )


def test_indexes_over_different_nodes_are_not_mixed(encoder: Any) -> None:
    with pytest.raises(InvalidInput, match="share"):
        HybridIndex(BM25Index.build(NODES), DenseIndex.build(NODES, encoder))
    with pytest.raises(InvalidInput, match="alpha"):
        HybridIndex(BM25Index.build(NODES), alpha=2)


PRODUCTS = [
    Node(
        "shoe", ("Product",), "Sony running shoe", "Light and red.", {"brand": "Acme"}
    ),
    Node("radio", ("Product",), "Pocket radio", "Runs for days.", {"brand": "Sony"}),
    Node("lamp", ("Product",), "Lamp", "Sony made it.", {}),
]
FIELDS = {
    "name": NodeText.names(),
    "text": NodeText.one_field("body"),
    "brand": NodeText.one_field("brand"),
}


def test_the_score_is_the_weighted_mean_of_scaled_scores(encoder: Any) -> None:
    index = FieldIndex.build(
        PRODUCTS, FIELDS, encoder=encoder, weights={"brand": 3, "name/dense": 0}
    )
    weights = {
        "name/bm25": 1,
        "text/bm25": 1,
        "text/dense": 1,
        "brand/bm25": 3,
        "brand/dense": 3,
    }
    expected = np.zeros(3)
    for name, weight in weights.items():
        field, kind = name.split("/")
        part = (
            BM25Index.build(PRODUCTS, text=FIELDS[field])
            if kind == "bm25"
            else DenseIndex.build(PRODUCTS, encoder, text=FIELDS[field])
        )
        expected += weight * min_max(part.scores("Sony radio"))
    np.testing.assert_allclose(
        index.scores("Sony radio"), expected / sum(weights.values()), rtol=1e-5
    )


def test_what_all_nodes_say_is_found_in_each_of_them_and_in_a_view_of_one() -> None:
    for make in (HybridIndex.build, FieldIndex.build):
        index = make(PRODUCTS)
        assert min(index.search("Sony pocket red", 3).scores) > 0
        assert [*index.view({"brand": "Sony"}).search("pocket", 3).scores] == [
            index.score("pocket", ["radio"])[0]
        ]
        assert not any(index.search("nothing", 3).scores)


def test_the_query_may_decide_the_weights() -> None:
    index = FieldIndex.build(
        PRODUCTS,
        FIELDS,
        weights=lambda query: {"brand": 9} if "brand" in query.split() else {"name": 9},
    )
    assert index.search("Sony brand", 1).ids == ["radio"]
    assert index.search("Sony", 1).ids == ["shoe"]
    assert index.score("Sony brand", ["radio"]) > index.score("Sony brand", ["shoe"])


def test_a_node_without_a_field_is_embedded_by_none(encoder: Any) -> None:
    index = FieldIndex.build(PRODUCTS, FIELDS, encoder=encoder)
    assert not index.members["brand/dense"].vectors[0].any()  # type: ignore[attr-defined]  # the lamp
    index.upsert([Node("bulb", name="Bulb")])
    assert encoder.encoded.count("") == 0


@pytest.mark.parametrize(
    "weights",
    [
        {"colour": 1},
        {"name": -1},
        {"name": 0, "text": 0, "brand": 0},
        {"name": float("nan")},
    ],
)
def test_weights_that_are_none_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="weights"):
        FieldIndex.build(PRODUCTS, FIELDS, weights=weights)


def test_fields_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        FieldIndex.build(PRODUCTS, {})
    with pytest.raises(InvalidInput, match="share"):
        FieldIndex(
            {"a/bm25": BM25Index.build(PRODUCTS), "b/bm25": BM25Index.build(PRODUCTS)}
        )

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from graphret.errors import InvalidInput
from graphret.search import Analyzer, BM25Index, BM25Settings, NodeText
from graphret.types import Node

WORDS = ["apple", "pear", "plum", "fig", "kiwi", "lime", "date", "nut"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=12)
PLAIN = NodeText(weights={})


def documents(texts: list[str]) -> list[Node]:
    return [Node(f"n{i:02d}", text=text) for i, text in enumerate(texts)]


def index(texts: list[str]) -> BM25Index:
    return BM25Index.build(documents(texts), text=PLAIN)


class Lucene(BM25Okapi):
    """rank_bm25's Okapi with Lucene's idf, which is never negative."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.idf = {term: np.log1p((self.corpus_size - n + 0.5) / (n + 0.5)) for term, n in nd.items()}


@settings(max_examples=25)
@given(TEXTS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
def test_scores_are_those_of_rank_bm25_up_to_its_constant_factor(texts: list[str], query: list[str]) -> None:
    analyzer = Analyzer()
    if not any(texts):
        return
    # Documents without a word do not count towards the mean length here; rank_bm25 counts them.
    filled = [text for text in texts if text]
    expected = Lucene([analyzer(text) for text in filled]).get_scores([analyzer(word)[0] for word in query]) / 2.5
    np.testing.assert_allclose(index(filled).scores(" ".join(query)), expected, rtol=1e-4, atol=1e-6)


def test_terms_count_once_and_stop_words_not_at_all() -> None:
    built = index(["apple pear", "plum", "pear"])
    np.testing.assert_array_equal(built.scores("apple apple the"), built.scores("apple"))
    assert not built.search("the of and", 2).scores.any()
    nodes = [Node("body", text="apple"), Node("title", name="apple"), Node("none", text="pear", name="pear")]
    assert BM25Index.build(nodes).search("apple", 2).ids == ["title", "body"]  # a title weighs more


TABLE = Node(
    "t",
    ("Table",),
    "Fruit",
    properties={"table_header": ["name", "colour"], "table_rows": [["apple", "red"], ["pear", "green"]]},
)


def test_a_row_is_the_node_with_only_that_row() -> None:
    built = BM25Index.build([TABLE, Node("d", text="apple pie"), Node("e", text="cake")])
    at = built.table.positions(["t", "t"])
    weights = built.part_term_weights("fruit apple green", at, np.asarray([0, 1], dtype=np.int32))
    assert (weights > 0).T.tolist() == [[True, True], [True, False], [False, True]]


def test_words_are_folded_and_stemmed_in_any_script() -> None:
    analyzer = Analyzer()
    assert analyzer("Café CAFÉS") == ["cafe", "cafe"]
    assert analyzer("東京") == ["東", "京"]
    assert analyzer("שלום 🙂") == ["שלום"]
    assert Analyzer(language="", stopwords="")("the running") == ["the", "running"]
    for unknown in ({"language": "klingon"}, {"stopwords": "klingon"}):
        with pytest.raises(InvalidInput, match="klingon"):
            Analyzer(**unknown)("word")
    for wrong in ({"k1": 0}, {"b": 1.5}, {"field_b": {"title": -0.1}}):
        with pytest.raises(InvalidInput, match="BM25"):
            BM25Settings(**wrong)  # type: ignore[arg-type]


@settings(max_examples=25)
@given(TEXTS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join), st.data())
def test_the_weights_of_terms_add_up_to_scores_however_few_nodes_are_asked_for(
    texts: list[str], query: str, data: st.DataObject
) -> None:
    built = index(texts)
    every = np.arange(len(texts))
    np.testing.assert_allclose(built.term_weights(query, every).sum(axis=1), built.scores(query), rtol=1e-5)
    some = np.asarray(data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=20)), dtype=np.int64)
    np.testing.assert_array_equal(built.term_weights(query, some), built.term_weights(query, every)[some])

"""The full text of a view of a `Neo4jTextIndex`: scored in the database, by what may be seen alone."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from graphret.search import BM25Index, Neo4jTextIndex, NodeText
from graphret.stores import Neo4jStore
from graphret.stores.neo4j import store as neo4j_store
from graphret.stores.neo4j.statements import Answer
from graphret.testing.indexes import QUERIES, random_nodes
from graphret.types import Edge, Node

if TYPE_CHECKING:
    import neo4j

MINE = {"tenant": "a"}


@pytest.fixture
def store(neo4j_empty: neo4j.Driver) -> Iterator[Neo4jStore]:
    return Neo4jStore.from_driver(neo4j_empty)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each statement has brought here."""
    counted: list[int] = []

    class Counting(Answer):
        def __init__(self, found: Iterable[Any]) -> None:
            super().__init__(found)
            counted.append(len(self))

    monkeypatch.setattr(neo4j_store, "Answer", Counting)
    return counted


def test_scores_are_those_of_an_index_of_the_view_alone(store: Neo4jStore) -> None:
    nodes = [*random_nodes(3, 80), Node("s", ("Dish",), "", "Die Kirschen, cherries and the Apple's", MINE)]
    nodes.append(Node("t", ("Dish",), "Äpfel \u4e2d\u56fd", "", MINE))
    store.upsert(nodes)
    index = Neo4jTextIndex.create(store)
    for condition in (MINE, {"$not": {"label": "Dish"}}):
        view = index.view(condition)
        seen = [node for block in store.view(condition).nodes() for node in block]
        alone = BM25Index.build(seen)
        for query in (*QUERIES[3:], "cherry cherries the", "\u4e2d apfel", "the"):
            found, expected = view.search(query, 99), alone.search(query, 99)
            scores = dict(zip(expected.ids, expected.scores.tolist(), strict=True))
            np.testing.assert_allclose([scores[i] for i in found.ids], found.scores, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(view.score(query, expected.ids), expected.scores, rtol=1e-5, atol=1e-6)


def test_the_best_alone_come_out_of_the_database(store: Neo4jStore, rows: list[int]) -> None:
    store.upsert(random_nodes(0, 300))
    view = Neo4jTextIndex.create(store).view(MINE)
    view.search("apple", 3)
    del rows[:]
    found = view.search("apple pear plum", 3, labels=["Dish"], where={"rank": {"$gt": 2}})
    assert len(found) == 3
    assert rows == [2, 3], "how often the two new terms occur, and the three best"
    assert (found.scores > 0).all()


def test_counts_are_remembered_until_somebody_writes(
    store: Neo4jStore, rows: list[int], neo4j_uri: str, neo4j_auth: Any
) -> None:
    def alone() -> list[float]:
        seen = [node for block in store.view(MINE).nodes() for node in block]
        return BM25Index.build(seen).search("apple pear", 5).scores.tolist()

    store.upsert(random_nodes(2, 60))
    index = Neo4jTextIndex.create(store)
    assert index.view(MINE).search("apple pear", 5).scores.tolist() == pytest.approx(alone(), rel=1e-5)
    index.view(MINE).search("apple pear", 5)
    del rows[:]
    index.view(MINE).search("pear apple", 5)
    assert rows == [5]
    store.upsert([Node("new", ("Dish",), "fig", "pear " * 9, MINE)])
    assert index.view(MINE).search("apple pear", 5).scores.tolist() == pytest.approx(alone(), rel=1e-5)
    with Neo4jStore(neo4j_uri, auth=neo4j_auth) as other:
        Neo4jTextIndex.open(other)
        other.upsert([Node(f"more{i}", ("Dish",), "kiwi", "apple " * i, MINE) for i in range(1, 9)])
    index.view(MINE).search("fig", 5)  # what somebody else wrote is known of with the next answer
    assert index.view(MINE).search("apple pear", 5).scores.tolist() == pytest.approx(alone(), rel=1e-5)


def test_hidden_neighbours_do_not_decide_what_is_counted(store: Neo4jStore) -> None:
    """A document in the database names hidden neighbours; what matches by these alone does not count in a view."""
    store.upsert(
        [
            Node("a", ("Film",), "the quill of the king"),
            Node("b", ("Film",), "the lake"),
            Node("c", ("Person",), "Zoe Quill"),
        ],
        [Edge("b", "directed_by", "c")],
    )
    view = Neo4jTextIndex.create(store, text=NodeText.documents()).view({"label": "Film"})
    before = view.search("the quill", 2)
    store.delete(["c"])
    after = view.search("the quill", 2)
    assert (before.ids, before.scores.tolist()) == (after.ids, after.scores.tolist())


def test_a_visible_neighbour_is_found_behind_heavier_hidden_ones(store: Neo4jStore) -> None:
    store.upsert(
        [Node("film", ("Film",), "lake"), Node("known", ("Open",), "Quill"), Node("no", ("Secret",), "Hush")],
        [Edge("film", "by", "known", 1.0), Edge("film", "by", "no", 9.0)],
    )
    index = Neo4jTextIndex.create(store, text=NodeText.documents(neighbors=1))
    assert index.score("Quill", ["film"]) == [0.0]
    view = index.view({"label": {"$in": ["Film", "Open"]}})
    with_hidden = view.search("Quill", 2)
    store.delete(["no"])
    assert set(with_hidden.ids) == {"film", "known"}
    assert with_hidden.scores.tolist() == view.search("Quill", 2).scores.tolist()
    assert (with_hidden.scores > 0).all()


@pytest.mark.parametrize("direction", ["both", "in"])
def test_names_of_neighbours_in_view_are_scored_in_the_database(
    store: Neo4jStore, rows: list[int], direction: str
) -> None:
    """As an index of the view alone has them; the conditions too are decided there, and the best alone come out."""
    nodes, chosen = random_nodes(4, 90), random.Random(2)
    edges = {
        (a.id, relation, b.id): Edge(a.id, relation, b.id, chosen.choice([0.5, 1.0, 2.0]))
        for relation in ("with", "of")
        for a, b in (chosen.choices(nodes, k=2) for _ in range(200))
    }
    store.upsert(nodes, [*edges.values(), Edge(nodes[0].id, "with", nodes[0].id, 9.0)])
    text = NodeText.documents(neighbors=2, direction=direction)
    index, view = Neo4jTextIndex.create(store, text=text), store.view(MINE)
    alone, seen = BM25Index.of_store(view, text=text), index.view(MINE)
    for query in ("apple", "pear plum cherry", "quince"):
        found, expected = seen.search(query, 99), alone.search(query, 99)
        scores = dict(zip(expected.ids, expected.scores.tolist(), strict=True))
        assert len(found) == len(expected)
        np.testing.assert_allclose([scores[i] for i in found.ids], found.scores, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(seen.score(query, expected.ids), expected.scores, rtol=1e-5, atol=1e-6)
    del rows[:]
    found = seen.search("pear plum", 3, labels=["Dish"], where={"rank": {"$gt": 2}})
    expected = alone.search("pear plum", 3, labels=["Dish"], where={"rank": {"$gt": 2}})
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)
    assert rows == [3]

"""The contract of text indexes as tests: derive from the suite, say how an index is made, and let pytest run it.

.. code-block:: python

    class TestMyIndex(TextIndexSuite):
        @pytest.fixture
        def make(self) -> MakeIndex:
            return MyIndex.of
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest

from graphret.errors import InvalidInput
from graphret.search.index import Matches, TextIndex
from graphret.testing.graphs import HOSTILE
from graphret.types import Node

#: Makes an index of nodes.
MakeIndex: TypeAlias = Callable[[Sequence[Node]], TextIndex]

WORDS = ("apple", "pear", "plum", "fig", "kiwi", "lime", "date", "nut", "quince", "cherry")
NODES = [
    Node("n1", ("Dish", "Sweet"), "apple pie", "apple cake with cherry", {"tenant": "a", "rank": 1}),
    Node("n2", ("Dish",), "pear tart", "pear and plum", {"tenant": "b", "rank": 2}),
    Node("n3", ("Drink",), "lime soda", "lime and lime again", {"tenant": "a", "rank": 3}),
    Node("n4", ("Drink", "Sweet"), "cherry lime", "cherry syrup", {"tenant": "b", "rank": 4}),
    Node("n5", ("Dish",), "quince jelly", "quince", {"tenant": "a", "rank": 5}),
    Node("n6", ("Dish",), "nut bread", "date and nut bread with fig", {"tenant": "b"}),
]
QUERIES = ["apple", "cherry lime", "quince jelly", "date nut fig", "pear plum apple kiwi"]


def random_nodes(seed: int, n: int = 40) -> list[Node]:
    """Return nodes of a few words each, some without any, some alike."""
    rng = random.Random(seed)
    return [
        Node(
            f"r{i:03d}",
            (rng.choice(("Dish", "Drink")),),
            " ".join(rng.choices(WORDS, k=rng.randint(0, 3))),
            " ".join(rng.choices(WORDS, k=rng.randint(0, 6))),
            {"tenant": rng.choice("ab"), "rank": rng.randint(0, 9)},
        )
        for i in range(n)
    ]


class TextIndexSuite:
    """What every `TextIndex` does. Give the fixture `make`: a function that makes an index of nodes."""

    #: How far scores that should be the same may differ, relative and absolute.
    tolerance = 1e-4, 1e-5

    @pytest.fixture
    def make(self) -> MakeIndex:
        """What makes an index of nodes."""
        raise NotImplementedError("derive from the suite and say how an index is made")

    @pytest.fixture
    def index(self, make: MakeIndex) -> TextIndex:
        """An index of a few nodes."""
        return make(NODES)

    def assert_same(self, one: Matches, other: Matches) -> None:
        """Two searches found the same, but for the order of what scores alike."""
        rtol, atol = self.tolerance
        np.testing.assert_allclose(one.scores, other.scores, rtol=rtol, atol=atol)
        scores = dict(zip(other.ids, other.scores.tolist(), strict=True))
        floor = min(scores.values(), default=0.0)
        for node_id, score in zip(one.ids, one.scores.tolist(), strict=True):
            assert scores.get(node_id, floor) == pytest.approx(score, rel=rtol, abs=atol)

    # -- searching

    def test_it_is_a_text_index(self, index: TextIndex) -> None:
        assert isinstance(index, TextIndex)

    def test_a_node_is_found_by_its_words(self, index: TextIndex) -> None:
        assert index.search("quince jelly", 1).ids == ["n5"]
        assert index.search("apple pie", 1).ids == ["n1"]

    def test_the_best_come_first(self, index: TextIndex) -> None:
        for query in QUERIES:
            scores = index.search(query, len(NODES)).scores
            assert (np.diff(scores) <= 0).all()

    def test_ties_go_by_id(self, make: MakeIndex) -> None:
        alike = [Node(node_id, name="apple pie", text="apple") for node_id in ("b", "d", "a", "c")]
        assert make(alike).search("apple", 3).ids == ["a", "b", "c"]
        assert make([*alike, Node("0", name="pear")]).search("apple", 5).ids == ["a", "b", "c", "d", "0"]

    def test_k_come_back_where_there_are_k(self, make: MakeIndex, index: TextIndex) -> None:
        assert len(index.search("apple", 4)) == 4
        assert sorted(index.search("apple", 100).ids) == [node.id for node in NODES]
        assert len(index.search("words that occur nowhere", 3)) == 3
        assert len(index.search("", 3)) == 3
        assert len(make([]).search("apple", 3)) == 0

    def test_k_come_back_where_k_qualify(self, make: MakeIndex) -> None:
        nodes = random_nodes(1, 300)
        index = make(nodes)
        rare = [node.id for node in nodes if node.properties["rank"] == 7 and "Dish" in node.labels]
        assert 5 < len(rare) < 40
        for query in QUERIES:
            found = index.search(query, 5, labels=["Dish"], where={"rank": 7})
            assert len(found) == 5
            assert set(found.ids) <= set(rare)
            assert sorted(index.search(query, 300, labels=["Dish"], where={"rank": 7}).ids) == rare
            best = [i for i in index.search(query, 300).ids if i in rare][:5]
            assert sorted(index.score(query, best)) == pytest.approx(sorted(found.scores), rel=1e-4, abs=1e-5)

    def test_filters_by_label(self, index: TextIndex) -> None:
        assert sorted(index.search("apple", 9, labels=["Drink"]).ids) == ["n3", "n4"]
        assert sorted(index.search("apple", 9, labels=["Sweet", "Drink"]).ids) == ["n1", "n3", "n4"]
        assert index.search("apple", 9, labels=["Nothing"]).ids == []
        assert index.search("apple", 9, labels=[]).ids == []

    def test_filters_by_property(self, index: TextIndex) -> None:
        assert sorted(index.search("apple", 9, where={"tenant": "b"}).ids) == ["n2", "n4", "n6"]
        assert sorted(index.search("apple", 9, where={"rank": {"$gte": 3, "$lt": 5}}).ids) == ["n3", "n4"]
        assert index.search("apple", 9, where={"rank": {"$exists": False}}).ids == ["n6"]
        assert index.search("apple", 9, labels=["Drink"], where={"tenant": "a"}).ids == ["n3"]

    def test_a_filter_does_not_change_scores(self, index: TextIndex) -> None:
        found = index.search("cherry lime", 3, where={"tenant": "b"})
        np.testing.assert_allclose(found.scores, index.score("cherry lime", found.ids), rtol=1e-4, atol=1e-6)

    # -- scoring, batches

    def test_given_nodes_are_scored_in_their_order(self, index: TextIndex) -> None:
        for query in QUERIES:
            found = index.search(query, len(NODES))
            backwards = found.ids[::-1]
            np.testing.assert_allclose(index.score(query, backwards), found.scores[::-1], rtol=1e-4, atol=1e-6)
        assert index.score("apple", ["n1", "n1"])[0] == index.score("apple", ["n1"])[0]
        assert len(index.score("apple", [])) == 0

    def test_a_batch_is_its_queries_one_by_one(self, index: TextIndex) -> None:
        for one, query in zip(index.search(QUERIES, 4), QUERIES, strict=True):
            alone = index.search(query, 4)
            assert one.ids == alone.ids
            np.testing.assert_array_equal(one.scores, alone.scores)
        ids = [node.id for node in NODES]
        for row, query in zip(index.score(QUERIES, ids), QUERIES, strict=True):
            np.testing.assert_array_equal(row, index.score(query, ids))
        assert index.search([], 3) == []
        assert index.score([], ids) == []

    def test_the_same_question_has_the_same_answer(self, make: MakeIndex) -> None:
        nodes = random_nodes(5)
        one, other = make(nodes), make(nodes[::-1])
        for query in QUERIES:
            assert one.search(query, 10).ids == other.search(query, 10).ids == one.search(query, 10).ids

    # -- changes

    @pytest.mark.parametrize("seed", range(3))
    def test_a_changed_index_is_one_built_of_what_is_left(self, make: MakeIndex, seed: int) -> None:
        rng = random.Random(seed)
        nodes = {node.id: node for node in random_nodes(seed)}
        index = make(list(nodes.values()))
        for step in range(4):
            gone = rng.sample(sorted(nodes), 5)
            index.delete([*gone, "nobody"])
            fresh = [Node(f"s{step}{i}", node.labels, *_said(node)) for i, node in enumerate(random_nodes(step, 6))]
            fresh += [Node(node_id, ("Dish",), *_said(random_nodes(step + 9, 1)[0])) for node_id in sorted(nodes)[:3]]
            index.upsert(fresh)
            for node_id in gone:
                nodes.pop(node_id)
            nodes |= {node.id: node for node in fresh}
        built = make(list(nodes.values()))
        for query in QUERIES:
            self.assert_same(index.search(query, 12), built.search(query, 12))
            self.assert_same(index.search(query, 5, labels=["Dish"]), built.search(query, 5, labels=["Dish"]))

    def test_an_empty_index_can_be_filled(self, make: MakeIndex) -> None:
        index = make([])
        index.delete(["nobody"])
        index.upsert([])
        index.upsert(NODES)
        self.assert_same(index.search("cherry lime", 4), make(NODES).search("cherry lime", 4))
        index.delete([node.id for node in NODES])
        assert index.search("cherry lime", 4).ids == []

    def test_what_is_upserted_again_is_replaced(self, index: TextIndex) -> None:
        index.upsert([Node("n1", ("Drink",), "kiwi water", "kiwi", {"tenant": "b"})])
        assert index.search("kiwi water", 1).ids == ["n1"]
        assert "n1" in index.search("apple", 9, labels=["Drink"], where={"tenant": "b"}).ids
        assert len(index.search("apple", 99)) == len(NODES)

    def test_ids_of_every_kind(self, make: MakeIndex) -> None:
        index = make([Node(name, name=f"apple {i}") for i, name in enumerate(HOSTILE)])
        assert sorted(index.search("apple", 99).ids) == sorted(HOSTILE)
        index.delete(HOSTILE[1:])
        assert index.search("apple", 99).ids == HOSTILE[:1]

    # -- views

    @pytest.mark.parametrize("where", [{"tenant": "a"}, {"rank": {"$gt": 4}}, {"$not": {"label": "Dish"}}])
    def test_a_view_is_an_index_of_its_nodes_alone(self, make: MakeIndex, where: dict[str, object]) -> None:
        nodes = random_nodes(3, 60)
        index = make(nodes)
        index.search(QUERIES, 3)  # what is remembered must not show either
        view = index.view(where)
        seen = set(index.search("apple", 99, where=where).ids)
        alone = make([node for node in nodes if node.id in seen])
        assert 0 < len(seen) < len(nodes)
        for query in QUERIES:
            self.assert_same(view.search(query, 99), alone.search(query, 99))
            ids = sorted(seen)
            np.testing.assert_allclose(view.score(query, ids), alone.score(query, ids), rtol=1e-4, atol=1e-5)

    def test_a_view_knows_nothing_of_the_others(self, index: TextIndex) -> None:
        view = index.view({"tenant": "a"})
        with pytest.raises(InvalidInput, match="'n2'"):
            view.score("pear", ["n2"])
        assert sorted(view.search("pear", 99).ids) == ["n1", "n3", "n5"]
        assert sorted(view.view({"rank": {"$lt": 4}}).search("pear", 99).ids) == ["n1", "n3"]
        assert sorted(view.search("pear", 9, where={"$or": [{"tenant": "b"}, {"rank": 1}]}).ids) == ["n1"]

    def test_a_view_of_nothing_and_of_everything(self, index: TextIndex) -> None:
        assert index.view({"tenant": "nobody"}).search("apple", 3).ids == []
        self.assert_same(index.view(None).search("apple", 6), index.search("apple", 6))
        self.assert_same(index.view({"tenant": {"$exists": True}}).search("apple", 6), index.search("apple", 6))

    # -- errors

    @pytest.mark.parametrize("k", [0, -1, True, 1.5, "3"])
    def test_k_below_one_is_refused(self, index: TextIndex, k: object) -> None:
        with pytest.raises(InvalidInput, match="k:"):
            index.search("apple", k)  # type: ignore[call-overload]

    def test_what_is_no_query_is_refused(self, index: TextIndex) -> None:
        with pytest.raises(InvalidInput, match="query"):
            index.search([7], 3)  # type: ignore[list-item]
        with pytest.raises(InvalidInput, match="query"):
            index.score([None], ["n1"])  # type: ignore[list-item]

    def test_an_unknown_node_is_named(self, index: TextIndex) -> None:
        with pytest.raises(InvalidInput, match="'nobody'"):
            index.score("apple", ["n1", "nobody"])

    def test_a_malformed_filter_is_refused(self, index: TextIndex) -> None:
        wrong: list[Any] = [{"rank": {"$above": 3}}, {"$and": []}, ["rank"]]
        for where in wrong:
            with pytest.raises(InvalidInput, match="where"):
                index.search("apple", 3, where=where)
            with pytest.raises(InvalidInput, match="where"):
                index.view(where)
        with pytest.raises(InvalidInput, match="labels"):
            index.search("apple", 3, labels="Dish")

    def test_a_refused_change_changes_nothing(self, index: TextIndex) -> None:
        before = index.search(QUERIES, 6)
        with pytest.raises(InvalidInput):
            index.upsert([Node("n9", name="apple apple"), Node("n10", name=7)])  # type: ignore[arg-type]
        for one, other in zip(before, index.search(QUERIES, 6), strict=True):
            assert one.ids == other.ids


def _said(node: Node) -> tuple[str, str, dict[str, object]]:
    return node.name, node.text, dict(node.properties)

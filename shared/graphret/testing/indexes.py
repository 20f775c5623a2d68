"""The contract of text indexes as tests: derive from the suite, say how an index is made, and let pytest run it.

.. code-block:: python

    class TestMyIndex(TextIndexSuite):
        @pytest.fixture
        def make(self) -> MakeIndex:
            return MyIndex.of

Where the documentation of an index says that its statistics are not exact, ``exact_statistics = False`` says so here.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
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
    """What every `TextIndex` does. Give the fixture `make`: a function that makes an index of nodes.

    An index of changed nodes is like one built of what is left, and a view like an index of its nodes alone. With
    `exact_statistics` this means that both find the same with the same scores. An index whose scores come of counts
    that are kept otherwise (Lucene counts deleted nodes until it merges its files) declares that they are not exact,
    and then finds the same nodes, has a score above zero for the same ones, and ranks nodes whose scores are `far`
    apart in the same order, in a view `far_in_view`. Either way nothing outside of a view shows in it.
    """

    #: How far scores that should be the same may differ, relative and absolute.
    tolerance = 1e-4, 1e-5
    #: Whether scores are those of an index that is built of just the nodes that are there, or in view.
    exact_statistics = True
    #: Without exact statistics: the share of the best score by which scores differ where their order counts, in an
    #: index that was changed (about as many nodes deleted as are left), and in a view, which may score by itself.
    far = 0.25
    far_in_view = 0.5

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
        scores = _scores_of(other)
        floor = min(scores.values(), default=0.0)
        for node_id, score in _scores_of(one).items():
            assert scores.get(node_id, floor) == pytest.approx(score, rel=rtol, abs=atol)

    def assert_alike(self, one: TextIndex, other: TextIndex, query: str, *, far: float, **filters: Any) -> None:
        """Two indexes of the same nodes find the same, as far as their statistics are exact."""
        found, expected = one.search(query, 999, **filters), other.search(query, 999, **filters)
        assert set(found.ids) == set(expected.ids)
        if self.exact_statistics:
            self.assert_same(found, expected)
            self.assert_same(one.search(query, 5, **filters), other.search(query, 5, **filters))
            return
        there, scores = _scores_of(found), _scores_of(expected)
        assert {i for i, score in there.items() if score > 0} == {i for i, score in scores.items() if score > 0}
        gap = far * max(scores.values(), default=0.0)
        for better, worse in itertools.permutations(scores, 2):
            if scores[better] - scores[worse] > gap:
                assert there[better] > there[worse], (query, better, worse)

    def test_a_node_is_found_by_its_words_and_ties_go_by_id(self, make: MakeIndex, index: TextIndex) -> None:
        assert isinstance(index, TextIndex)
        assert index.search("quince jelly", 1).ids == ["n5"]
        assert index.search("apple pie", 1).ids == ["n1"]
        for query in QUERIES:
            assert (np.diff(index.search(query, len(NODES)).scores) <= 0).all()
        alike = [Node(node_id, name="apple pie", text="apple") for node_id in ("b", "d", "a", "c")]
        assert make(alike).search("apple", 3).ids == ["a", "b", "c"]
        assert make([*alike, Node("0", name="pear")]).search("apple", 5).ids == ["a", "b", "c", "d", "0"]
        nodes = random_nodes(5)
        one, other = make(nodes), make(nodes[::-1])
        assert [found.ids for found in one.search(QUERIES, 10)] == [found.ids for found in other.search(QUERIES, 10)]

    @pytest.mark.parametrize(
        ("query", "k", "n"), [("apple", 4, 4), ("apple", 100, 6), ("words that occur nowhere", 3, 3), ("", 3, 3)]
    )
    def test_k_come_back_where_there_are_k(self, make: MakeIndex, query: str, k: int, n: int) -> None:
        assert len(set(make(NODES).search(query, k).ids)) == n
        assert len(make([]).search(query, k)) == 0

    def test_k_come_back_where_k_qualify(self, make: MakeIndex) -> None:
        nodes = random_nodes(1, 300)
        index = make(nodes)
        rare = [node.id for node in nodes if node.properties["rank"] == 7 and "Dish" in node.labels]
        for query in QUERIES:
            found = index.search(query, 5, labels=["Dish"], where={"rank": 7})
            assert len(found) == 5
            assert set(found.ids) <= set(rare)
            assert sorted(index.search(query, 300, labels=["Dish"], where={"rank": 7}).ids) == rare
            best = [i for i in index.search(query, 300).ids if i in rare][:5]
            assert sorted(index.score(query, best)) == pytest.approx(sorted(found.scores), rel=1e-4, abs=1e-5)

    @pytest.mark.parametrize(
        ("filters", "ids"),
        [
            ({"labels": ["Drink"]}, ["n3", "n4"]),
            ({"labels": ["Sweet", "Drink"]}, ["n1", "n3", "n4"]),
            ({"labels": []}, []),
            ({"where": {"tenant": "b"}}, ["n2", "n4", "n6"]),
            ({"where": {"rank": {"$gte": 3, "$lt": 5}}}, ["n3", "n4"]),
            ({"where": {"rank": {"$exists": False}}}, ["n6"]),
            ({"labels": ["Drink"], "where": {"tenant": "a"}}, ["n3"]),
        ],
        ids=str,
    )
    def test_filters_limit_what_is_found(self, index: TextIndex, filters: dict[str, Any], ids: list[str]) -> None:
        found = index.search("apple", 9, **filters)
        assert sorted(found.ids) == ids
        np.testing.assert_allclose(found.scores, index.score("apple", found.ids), rtol=1e-4, atol=1e-6)

    def test_given_nodes_are_scored_in_their_order_and_a_batch_as_its_queries(self, index: TextIndex) -> None:
        ids = [node.id for node in NODES]
        rows = index.score(QUERIES, ids)
        for one, row, query in zip(index.search(QUERIES, 4), rows, QUERIES, strict=True):
            alone, found = index.search(query, 4), index.search(query, len(NODES))
            assert one.ids == alone.ids
            np.testing.assert_array_equal(one.scores, alone.scores)
            np.testing.assert_array_equal(row, index.score(query, ids))
            np.testing.assert_allclose(index.score(query, found.ids[::-1]), found.scores[::-1], rtol=1e-4, atol=1e-6)
        assert index.score("apple", ["n1", "n1"])[0] == index.score("apple", ["n1"])[0]
        assert len(index.score("apple", [])) == 0
        assert index.search([], 3) == []
        assert index.score([], ids) == []

    @pytest.mark.parametrize("seed", range(2))
    def test_a_changed_index_is_one_built_of_what_is_left(self, make: MakeIndex, seed: int) -> None:
        rng = random.Random(seed)
        nodes = {node.id: node for node in random_nodes(seed)}
        index = make(list(nodes.values()))
        for step in range(4):
            gone = rng.sample(sorted(nodes), 5)
            index.delete([*gone, "nobody"])
            fresh = [replace(node, id=f"s{step}{i}") for i, node in enumerate(random_nodes(step, 6))]
            [other] = random_nodes(step + 9, 1)
            fresh += [replace(other, id=node_id) for node_id in sorted(nodes)[:3]]
            index.upsert(fresh)
            for node_id in gone:
                nodes.pop(node_id)
            nodes |= {node.id: node for node in fresh}
        built = make(list(nodes.values()))
        for query in QUERIES:
            self.assert_alike(index, built, query, far=self.far)
            self.assert_alike(index, built, query, far=self.far, labels=["Dish"])

    def test_an_empty_index_is_filled_and_what_is_there_replaced(self, make: MakeIndex) -> None:
        index = make([])
        index.delete(["nobody"])
        index.upsert([])
        index.upsert(NODES)
        self.assert_same(index.search("cherry lime", 4), make(NODES).search("cherry lime", 4))
        index.upsert([Node("n1", ("Drink",), "kiwi water", "kiwi", {"tenant": "b"})])
        assert index.search("kiwi water", 1).ids == ["n1"]
        assert "n1" in index.search("apple", 9, labels=["Drink"], where={"tenant": "b"}).ids
        assert len(index.search("apple", 99)) == len(NODES)
        index.delete([node.id for node in NODES])
        assert index.search("cherry lime", 4).ids == []

    def test_ids_of_every_kind(self, make: MakeIndex) -> None:
        index = make([Node(name, name=f"apple {i}") for i, name in enumerate(HOSTILE)])
        assert sorted(index.search("apple", 99).ids) == sorted(HOSTILE)
        index.delete(HOSTILE[1:])
        assert index.search("apple", 99).ids == HOSTILE[:1]

    @pytest.mark.parametrize("where", [{"tenant": "a"}, {"$not": {"label": "Dish"}}])
    def test_a_view_is_an_index_of_its_nodes_alone(self, make: MakeIndex, where: dict[str, Any]) -> None:
        nodes = random_nodes(3, 60)
        index = make(nodes)
        index.search(QUERIES, 3)  # what is remembered must not show either
        view = index.view(where)
        seen = sorted(index.search("apple", 99, where=where).ids)
        alone = make([node for node in nodes if node.id in seen])
        for query in QUERIES:
            self.assert_alike(view, alone, query, far=self.far_in_view)
            if self.exact_statistics:
                np.testing.assert_allclose(view.score(query, seen), alone.score(query, seen), rtol=1e-4, atol=1e-5)
        before = view.search(QUERIES, 99), view.score(QUERIES, seen)
        index.delete([node.id for node in nodes if node.id not in seen][::2])
        index.upsert([Node("hidden", ("Dish",), "apple apple cherry", "quince " * 50, {"tenant": "b", "rank": 0})])
        for later in (view, index.view(where)):
            for one, other in zip(later.search(QUERIES, 99), before[0], strict=True):
                assert sorted(one.ids) == seen
                if self.exact_statistics:
                    self.assert_same(one, other)
            if self.exact_statistics:
                np.testing.assert_allclose(later.score(QUERIES, seen), before[1], rtol=1e-4, atol=1e-5)

    def test_a_view_knows_nothing_of_the_others(self, index: TextIndex) -> None:
        view = index.view({"tenant": "a"})
        with pytest.raises(InvalidInput, match="'n2'"):
            view.score("pear", ["n2"])
        assert sorted(view.search("pear", 99).ids) == ["n1", "n3", "n5"]
        assert sorted(view.view({"rank": {"$lt": 4}}).search("pear", 99).ids) == ["n1", "n3"]
        assert sorted(view.search("pear", 9, where={"$or": [{"tenant": "b"}, {"rank": 1}]}).ids) == ["n1"]

    @pytest.mark.parametrize(
        ("act", "named"),
        [
            (lambda index: index.search("apple", 0), "k:"),
            (lambda index: index.search("apple", 1.5), "k:"),
            (lambda index: index.search([7], 3), "query"),
            (lambda index: index.score("apple", ["n1", "nobody"]), "'nobody'"),
            (lambda index: index.search("apple", 3, where={"rank": {"$above": 3}}), "where"),
            (lambda index: index.view(["rank"]), "where"),
            (lambda index: index.search("apple", 3, labels="Dish"), "labels"),
            (lambda index: index.upsert([Node("n9", name="apple apple"), Node("n10", name=7)]), "'n10'"),  # type: ignore[arg-type]
        ],
    )
    def test_what_is_malformed_is_refused_by_name_and_changes_nothing(
        self, index: TextIndex, act: Callable[[Any], object], named: str
    ) -> None:
        before = index.search(QUERIES, 6)
        with pytest.raises(InvalidInput, match=named):
            act(index)
        assert [found.ids for found in index.search(QUERIES, 6)] == [found.ids for found in before]


def _scores_of(found: Matches) -> dict[str, float]:
    return dict(zip(found.ids, found.scores.tolist(), strict=True))

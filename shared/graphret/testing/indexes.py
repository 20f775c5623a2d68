"""The contract of text indexes as tests.

Derive from the suite, say how an index is made, and let pytest run it.

.. code-block:: python

    class TestMyIndex(TextIndexSuite):
        @pytest.fixture
        def make(self) -> MakeIndex:
            return MyIndex.of
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest

from graphret.errors import InvalidInput
from graphret.search.index import TextIndex
from graphret.testing.graphs import HOSTILE
from graphret.types import Node

#: Makes an index of nodes.
MakeIndex: TypeAlias = Callable[[Sequence[Node]], TextIndex]

WORDS = (
    "apple",
    "pear",
    "plum",
    "fig",
    "kiwi",
    "lime",
    "date",
    "nut",
    "quince",
    "cherry",
)
NODES = [
    Node(
        "n1",
        ("Dish", "Sweet"),
        "apple pie",
        "apple cake with cherry",
        {"tenant": "a", "rank": 1},
    ),
    Node("n2", ("Dish",), "pear tart", "pear and plum", {"tenant": "b", "rank": 2}),
    Node(
        "n3", ("Drink",), "lime soda", "lime and lime again", {"tenant": "a", "rank": 3}
    ),
    Node(
        "n4",
        ("Drink", "Sweet"),
        "cherry lime",
        "cherry syrup",
        {"tenant": "b", "rank": 4},
    ),
    Node("n5", ("Dish",), "quince jelly", "quince", {"tenant": "a", "rank": 5}),
    Node("n6", ("Dish",), "nut bread", "date and nut bread with fig", {"tenant": "b"}),
]
QUERIES = [
    "apple",
    "cherry lime",
    "quince jelly",
    "date nut fig",
    "pear plum apple kiwi",
]


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
    """What every `TextIndex` does.

    Give the fixture `make`: a function that makes an index of nodes.

    An index of changed nodes is like one built of what is left, and a view like an
    index of its nodes alone. With `exact_statistics` this means that both find the same
    with the same scores. Otherwise (Lucene counts deleted nodes until it merges its
    files) both find the same nodes, and give the same ones a score above zero.
    """

    exact_statistics = True

    @pytest.fixture
    def make(self) -> MakeIndex:
        raise NotImplementedError("derive from the suite and override the fixture make")

    @pytest.fixture
    def index(self, make: MakeIndex) -> TextIndex:
        return make(NODES)

    def assert_alike(
        self, first: TextIndex, second: TextIndex, query: str, **filters: Any
    ) -> None:
        """Check that two indexes of the same nodes give the same hits.

        Their scores are the same if their statistics are exact.
        """
        results = (index.search(query, 999, **filters) for index in (first, second))
        scores, expected = (
            dict(zip(match.ids, match.scores.tolist(), strict=True))
            for match in results
        )
        if self.exact_statistics:
            assert scores == {
                id_: pytest.approx(score, rel=1e-4, abs=1e-5)
                for id_, score in expected.items()
            }
            best = first.search(query, 5, **filters).scores
            np.testing.assert_allclose(
                best, list(scores.values())[:5], rtol=1e-4, atol=1e-5
            )
        else:
            assert {id_: score > 0 for id_, score in scores.items()} == {
                i: score > 0 for i, score in expected.items()
            }

    def test_a_node_is_found_by_its_words_and_ties_go_by_id(
        self, make: MakeIndex, index: TextIndex
    ) -> None:
        assert isinstance(index, TextIndex)
        assert index.search("quince jelly", 1).ids == ["n5"]
        assert index.search("apple pie", 1).ids == ["n1"]
        for query in QUERIES:
            assert (np.diff(index.search(query, len(NODES)).scores) <= 0).all()
        alike = [
            Node(node_id, name="apple pie", text="apple")
            for node_id in ("b", "d", "a", "c")
        ]
        assert make(alike).search("apple", 3).ids == ["a", "b", "c"]
        assert make([*alike, Node("0", name="pear")]).search("apple", 5).ids == [
            "a",
            "b",
            "c",
            "d",
            "0",
        ]
        nodes = random_nodes(5)
        in_order, reversed_ = make(nodes), make(nodes[::-1])
        assert [match.ids for match in in_order.search(QUERIES, 10)] == [
            match.ids for match in reversed_.search(QUERIES, 10)
        ]

    def test_k_come_back_where_k_qualify(self, make: MakeIndex) -> None:
        assert len(make([]).search("apple", 3)) == 0
        nodes = random_nodes(1, 300)
        index = make(nodes)
        rare = [
            node.id
            for node in nodes
            if node.properties["rank"] == 7 and "Dish" in node.labels
        ]
        for query in (*QUERIES, "words that occur nowhere", ""):
            assert len(set(index.search(query, 999).ids)) == 300
            match = index.search(query, 5, labels=["Dish"], where={"rank": 7})
            assert len(set(match.ids)) == 5
            assert (
                sorted(index.search(query, 300, labels=["Dish"], where={"rank": 7}).ids)
                == rare
            )
            best = [i for i in index.search(query, 300).ids if i in rare][:5]
            assert sorted(index.score(query, best)) == pytest.approx(
                sorted(match.scores), rel=1e-4, abs=1e-5
            )

    def test_filters_limit_what_is_found(self, index: TextIndex) -> None:
        for ids, filters in {
            "n3 n4": {"labels": ["Drink"]},
            "n1 n3 n4": {"labels": ["Sweet", "Drink"]},
            "": {"labels": []},
            "n2 n4 n6": {"where": {"tenant": "b"}},
            "n4 n3": {"where": {"rank": {"$gte": 3, "$lt": 5}}},
            "n6": {"where": {"rank": {"$exists": False}}},
            "n3": {"labels": ["Drink"], "where": {"tenant": "a"}},
        }.items():
            match = index.search("apple", 9, **filters)  # type: ignore[arg-type]
            assert set(match.ids) == set(ids.split())
            np.testing.assert_allclose(
                match.scores, index.score("apple", match.ids), rtol=1e-4, atol=1e-6
            )

    def test_given_nodes_are_scored_in_their_order_and_a_batch_as_its_queries(
        self, index: TextIndex
    ) -> None:
        ids = [node.id for node in NODES]
        rows = index.score(QUERIES, ids)
        for batched, row, query in zip(
            index.search(QUERIES, 4), rows, QUERIES, strict=True
        ):
            alone, match = index.search(query, 4), index.search(query, len(NODES))
            assert batched.ids == alone.ids
            np.testing.assert_array_equal(batched.scores, alone.scores)
            np.testing.assert_array_equal(row, index.score(query, ids))
            np.testing.assert_allclose(
                index.score(query, match.ids[::-1]),
                match.scores[::-1],
                rtol=1e-4,
                atol=1e-6,
            )
        assert index.score("apple", ["n1", "n1"])[0] == index.score("apple", ["n1"])[0]
        assert len(index.score("apple", [])) == 0
        assert index.search([], 3) == []
        assert index.score([], ids) == []

    def test_a_changed_index_is_one_built_of_what_is_left(
        self, make: MakeIndex
    ) -> None:
        rng = random.Random(1)
        nodes: dict[str, Node] = {}
        index = make([])
        for step in range(5):
            gone = rng.sample(sorted(nodes), len(nodes) // 3)
            index.delete([*gone, "nobody"])
            fresh = [
                replace(node, id=f"s{step}{i}")
                for i, node in enumerate(random_nodes(step, 14))
            ]
            fresh += [
                replace(random_nodes(9, 1)[0], id=node_id)
                for node_id in sorted(nodes)[:3]
            ]
            index.upsert(fresh)
            nodes = {i: node for i, node in nodes.items() if i not in gone} | {
                node.id: node for node in fresh
            }
        built = make(list(nodes.values()))
        for query in QUERIES:
            self.assert_alike(index, built, query)
            self.assert_alike(index, built, query, labels=["Dish"])
        index.delete(list(nodes))
        assert index.search("cherry lime", 4).ids == []

    def test_ids_of_every_kind(self, make: MakeIndex) -> None:
        index = make([Node(name, name=f"apple {i}") for i, name in enumerate(HOSTILE)])
        assert sorted(index.search("apple", 99).ids) == sorted(HOSTILE)
        index.delete(HOSTILE[1:])
        assert index.search("apple", 99).ids == HOSTILE[:1]

    @pytest.mark.parametrize("where", [{"tenant": "a"}, {"$not": {"label": "Dish"}}])
    def test_a_view_is_an_index_of_its_nodes_alone(
        self, make: MakeIndex, where: dict[str, Any]
    ) -> None:
        nodes = random_nodes(3, 60)
        index = make(nodes)
        index.search(QUERIES, 3)  # what is remembered must not show either
        view = index.view(where)
        visible = sorted(index.search("apple", 99, where=where).ids)
        alone = make([node for node in nodes if node.id in visible])
        for changed in (False, True):
            if changed:
                index.delete([node.id for node in nodes if node.id not in visible][::2])
                index.upsert(
                    [
                        Node(
                            "hidden",
                            ("Dish",),
                            "apple cherry",
                            "quince " * 50,
                            {"tenant": "b"},
                        )
                    ]
                )
            for query in QUERIES:
                for view_ in (view, index.view(where)):
                    self.assert_alike(view_, alone, query)
                    if self.exact_statistics:
                        np.testing.assert_allclose(
                            view_.score(query, visible),
                            alone.score(query, visible),
                            1e-4,
                            1e-5,
                        )

    def test_a_view_knows_nothing_of_the_others(self, index: TextIndex) -> None:
        view = index.view({"tenant": "a"})
        with pytest.raises(InvalidInput, match="'n2'"):
            view.score("pear", ["n2"])
        assert sorted(view.view({"rank": {"$lt": 4}}).search("pear", 99).ids) == [
            "n1",
            "n3",
        ]
        assert sorted(
            view.search("pear", 9, where={"$or": [{"tenant": "b"}, {"rank": 1}]}).ids
        ) == ["n1"]

    def test_what_is_malformed_is_refused_by_name_and_changes_nothing(
        self, index: TextIndex
    ) -> None:
        before = [match.ids for match in index.search(QUERIES, 6)]
        untyped: Any = index
        anything: Any = Node
        acts: dict[str, Callable[[], object]] = {
            "k:": lambda: untyped.search("apple", 0),
            "k: ": lambda: untyped.search("apple", 1.5),
            "query": lambda: untyped.search([7], 3),
            "'nobody'": lambda: untyped.score("apple", ["n1", "nobody"]),
            "where": lambda: untyped.search("apple", 3, where={"rank": {"$above": 3}}),
            "labels": lambda: untyped.search("apple", 3, labels="Dish"),
            "'n10'": lambda: untyped.upsert(
                [Node("n9", name="apple apple"), anything("n10", name=7)]
            ),
        }
        for name, act in acts.items():
            with pytest.raises(InvalidInput, match=name):
                act()
        assert [match.ids for match in index.search(QUERIES, 6)] == before

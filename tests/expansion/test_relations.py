"""Graphs of knowledge: the name of a relation and the label asked for are part of what
a pair says.
"""

from __future__ import annotations

import pytest
from expand_parts import parts

from graphret.expansion import Expand
from graphret.types import Edge, Node

MATRIX = ["Keanu Reeves", "Carrie-Anne Moss", "Laurence Fishburne", "Hugo Weaving"]
DIRECTORS = ["Lana Wachowski", "Lilly Wachowski"]
PLACES = ["Sydney"]
OTHERS = [
    "Tom Hanks",
    "Ron Howard",
    "Meg Ryan",
    "Nora Ephron",
    "Rob Reiner",
    "Billy Crystal",
]
FILMS = ["The Matrix", "Apollo 13", "Sleepless in Seattle", "When Harry Met Sally"]
NODES = [
    *(Node(name, ("Movie",), name) for name in FILMS),
    *(Node(name, ("Person",), name) for name in (*MATRIX, *DIRECTORS, *OTHERS)),
    *(Node(name, ("City",), name) for name in PLACES),
]
EDGES = [
    *(Edge(name, "ACTED_IN", "The Matrix") for name in MATRIX),
    *(Edge(name, "DIRECTED", "The Matrix") for name in DIRECTORS),
    Edge("The Matrix", "FILMED_IN", "Sydney"),
    Edge("Tom Hanks", "ACTED_IN", "Apollo 13"),
    Edge("Ron Howard", "DIRECTED", "Apollo 13"),
    Edge("Meg Ryan", "ACTED_IN", "Sleepless in Seattle"),
    Edge("Tom Hanks", "ACTED_IN", "Sleepless in Seattle"),
    Edge("Nora Ephron", "DIRECTED", "Sleepless in Seattle"),
    Edge("Rob Reiner", "DIRECTED", "When Harry Met Sally"),
    Edge("Billy Crystal", "ACTED_IN", "When Harry Met Sally"),
]


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("Who directed The Matrix?", DIRECTORS),
        ("Who was the director of The Matrix?", DIRECTORS),
        ("Which actors played in The Matrix?", MATRIX),
        ("In which city was The Matrix made?", PLACES),
        ("Which films did Nora Ephron direct?", ["Sleepless in Seattle"]),
    ],
)
def test_the_relation_that_a_question_asks_for_comes_first(
    question: str, right: list[str]
) -> None:
    store, index = parts(NODES, EDGES)
    found = Expand(None, store, index).retrieve(question, len(right) + 1).ids
    assert set(right) <= set(found)

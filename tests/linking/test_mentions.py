from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.linking import NameBook, Spot
from graphret.linking.mentions import DOUBTFUL, spot

EVERYDAY = ["It", "The", "Up", "She", "You", "War", "Love", "Film", "Director", "Hanks", "Women", "Human", "1984"]
NAMES = [*EVERYDAY, "Tom Hanks", "The Girl", "Killer Joe", "The Killer", "In Darkness", "Darkness", "8 Women", "東京"]
NAMES += ["Raiders of the Lost Ark", "Beyoncé Knowles-Carter", "The 'Human' Factor", "What Women Want", "I.O.U.S.A."]


@pytest.fixture(scope="module")
def book() -> NameBook:
    return NameBook((name, name, None) for name in NAMES)


def ids(found: list[Spot]) -> list[str]:
    return [node_id for one in found for node_id in one.ids]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what movies did Tom Hanks star in", ["Tom Hanks"]),
        ("WHAT MOVIES DID TOM HANKS STAR IN", ["Tom Hanks"]),
        ("was Raiders of the Lost Ark before 1984?", ["Raiders of the Lost Ark", "1984"]),
        ("songs of beyonce knowles carter", ["Beyoncé Knowles-Carter"]),
        ("directed by the Killer Joe director", ["Killer Joe"]),
        ("the director of The 'Human' Factor", ["The 'Human' Factor"]),
        ("is I.O.U.S.A. a film", ["I.O.U.S.A."]),
        ("映画 東京 は", ["東京"]),
        ("nothing known is said", []),
        ("", []),
    ],
)
def test_names_are_spotted(book: NameBook, question: str, expected: list[str]) -> None:
    found = spot(question, book)
    assert ids(found) == expected
    assert all(one.score == 1 for one in found)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("did she give it to Tom Hanks", ["Tom Hanks"]),
        ("who directed It with Tom Hanks", ["It", "Tom Hanks"]),
        ('who directed "it" with Tom Hanks', ["It", "Tom Hanks"]),
        ("who directed [up] with tom hanks", ["Up", "Tom Hanks"]),
        ("It was made with Tom Hanks", ["Tom Hanks"]),
        ("did Tom Hanks make It", ["Tom Hanks", "It"]),
        ("Did She Give It To Tom Hanks", ["Tom Hanks"]),
    ],
)
def test_everyday_words_need_the_support_of_form(book: NameBook, question: str, expected: list[str]) -> None:
    assert ids(spot(question, book)) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [("who directed it", ["It"]), ("is there love", ["Love"]), ("love and war for you", ["Love", "War"])],
)
def test_everyday_words_count_where_nothing_else_is_found(book: NameBook, question: str, expected: list[str]) -> None:
    found = spot(question, book)
    assert ids(found) == expected
    assert {one.score for one in found} == {DOUBTFUL}


def test_what_is_in_quotes_comes_before_what_overlaps_it() -> None:
    book = NameBook((name, name, None) for name in ("The Girl", "Girl in Paris Town"))
    assert ids(spot('who saw "The Girl" in Paris Town', book)) == ["The Girl"]
    assert ids(spot("who saw The Girl in Paris Town", book)) == ["Girl in Paris Town"]


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_the_longest_of_overlapping_names_is_chosen_and_none_inside_of_it(data: st.DataObject) -> None:
    telling, small = ["fig", "kiwi", "lime", "plum"], ["the", "of"]
    some = st.lists(st.sampled_from([*telling, *small]), min_size=1, max_size=4)
    names = data.draw(st.lists(some.filter(lambda run: any(w in telling for w in run)).map(" ".join), max_size=8))
    run = data.draw(st.lists(st.sampled_from([*telling, *small, "eat"]), max_size=10))
    question = " ".join(run)

    def length(name: str) -> tuple[int, int]:
        return sum(word in telling for word in name.split()), len(name.split())

    found = spot(question, NameBook((name, name, None) for name in names))
    for one, other in itertools.pairwise(found):
        assert one.end < other.start
    for name in names:
        for first in range(len(run)):
            if run[first : first + len(name.split())] == name.split():
                start = len(" ".join([*run[:first], ""]))
                beside = [one for one in found if one.start < start + len(name) and start < one.end]
                assert max(length(one.text) for one in beside) >= length(name)


def test_spots_stand_where_the_question_says_them(book: NameBook) -> None:
    question = "Did  Tom-HANKS meet Beyonce\u0301 Knowles-Carter?"
    for one, text in zip(spot(question, book), ["Tom-HANKS", "Beyonce\u0301 Knowles-Carter"], strict=True):
        assert question[one.start : one.end] == one.text == text


def test_one_name_of_several_nodes_and_names_that_do_not_count() -> None:
    book = NameBook([("b", "Kismet", None), ("a", "KISMET", None), ("c", "Kismet Hardy", ["Oliver"])])
    assert spot("who saw Kismet", book)[0].ids == ("a", "b")
    assert spot("who saw Kismet Hardy", book)[0].ids == ("c",)
    kept = spot("who saw Kismet Hardy", book, lambda ids: tuple(i for i in ids if i != "c"))
    assert [(one.text, one.ids) for one in kept] == [("Kismet", ("a", "b"))]

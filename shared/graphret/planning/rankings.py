"""Superlatives in a question as an order: "the cheapest", "latest", "most orders"."""

from __future__ import annotations

from collections.abc import Mapping

from graphret.planning.measures import (
    MEASURES,
    TIMES,
    Degree,
    degree_of,
    is_superlative,
)
from graphret.planning.properties import Property
from graphret.planning.question_words import ENOUGH, Choice, QuestionWords
from graphret.planning.stated import Ranking

#: How many words behind and before a superlative may say of what, and how many may say
#: what it counts.
_BEHIND, _BEFORE, _COUNTED_BEHIND, _COUNTED_BEFORE = 3, 4, 2, 3
#: How much the noun behind a superlative says of which label it is, and an adjective
#: that measures a property.
_OWN_NOUN, _MEASURED = 1.2, 1.0


def read_ranking(words: QuestionWords) -> None:
    """Read the first word that asks for an end of an order."""
    place = next(
        (at for at in words.free(range(len(words.words))) if _asks_for_end(words, at)),
        None,
    )
    if place is None:
        return
    words.stated.ranking = _ranking(words, place)
    if words.stated.ranking is None:
        words.doubt(f"no order is known that “{words.word(place)}” asks for")


def _asks_for_end(words: QuestionWords, place: int) -> bool:
    """Whether a word is a superlative; not so in "at least" and "last month"."""
    word = words.word(place)
    return (
        is_superlative(word)
        and not (word == "last" and words.word(place + 1) in TIMES)
        and words.word(place - 1) != "at"
    )


def _ranking(words: QuestionWords, place: int) -> Ranking | None:
    """The order that a superlative asks for: of a property, or of a number."""
    degree, last = _degree(words, place)
    ranking = _by_property(words, degree, place, last)
    if ranking is None and degree.bare:
        ranking = _by_number(words, degree, place)
    if ranking is not None:
        words.used.update(range(place, last + 1))
    return ranking


def _degree(words: QuestionWords, place: int) -> tuple[Degree, int]:
    """The degree of a superlative of one or two words, and its last word."""
    word = words.word(place)
    adjective = degree_of(word) or Degree(True, {})
    following = degree_of(words.word(place + 1)) if word in ("most", "least") else None
    if following is None or following.bare:
        return adjective, place
    return (following if word == "most" else following.turned()), place + 1


def _by_property(
    words: QuestionWords, degree: Degree, first: int, last: int
) -> Ranking | None:
    """The order of a property that the words around say, or the adjective."""
    highest_first = _orderable(words, degree)
    choice = _chosen(words, degree, highest_first, first, last)
    if choice is None:
        return None
    words.read_names_of(choice)
    label, name = choice.owner.label, choice.owner.name
    return Ranking(label, name, highest_first[choice.owner], _limit(words, label))


def _orderable(words: QuestionWords, degree: Degree) -> dict[Property, bool]:
    """The properties that may be meant, and whether the highest values are.

    The oldest has a high age and an early date of birth.
    """
    owners = words.graph.properties.of_kinds("number", "year", "date")
    if degree.bare:
        return dict.fromkeys(owners, degree.high)
    highest_first: dict[Property, bool] = {}
    for owner in owners:
        for number, high in degree.measures.items():
            if MEASURES[number].names_property(owner.name):
                highest_first[owner] = high
        if degree.late is not None and owner.kind != "number":
            highest_first.setdefault(owner, degree.late)
    return highest_first


def _chosen(
    words: QuestionWords,
    degree: Degree,
    candidates: Mapping[Property, bool],
    first: int,
    last: int,
) -> Choice | None:
    """Which of the properties is meant whose order may be."""
    ahead = words.free(range(last + 1, last + 1 + _BEHIND))
    near = [*ahead, *words.free(range(first - _BEFORE, first))]
    own_noun = next((words.nouns[at] for at in ahead if at in words.nouns), "")
    choices = []
    for owner in candidates:
        judged = words.judged(owner, ahead if degree.bare else near, first, last)
        if degree.bare and words.nouns.keys() >= set(judged.words):
            continue  # "most orders" counts them, unless a property says more
        measured = any(
            MEASURES[number].names_property(owner.name) for number in degree.measures
        )
        more = _OWN_NOUN * (owner.label == own_noun) + _MEASURED * measured
        choices.append(judged._replace(score=judged.score + more))
    best = min(choices, key=lambda choice: (-choice.score, choice.owner), default=None)
    return best if best is not None and best.score >= ENOUGH else None


def _by_number(words: QuestionWords, degree: Degree, place: int) -> Ranking | None:
    """The order by the number of a label's nodes: "the most orders"."""
    asked_label = words.stated.asked_label
    ahead = range(place + 1, place + 1 + _COUNTED_BEHIND)
    before = range(place - 1, place - 1 - _COUNTED_BEFORE, -1)
    for at in [*ahead, *before]:
        counted = (
            words.graph.goes_with(words.word(at), asked_label) if asked_label else ""
        )
        if counted and at >= 0:
            words.used.update(at for at in ahead if words.word(at) == "often")
            return Ranking(counted, "", degree.high, _limit(words, asked_label))
    return None


def _limit(words: QuestionWords, label: str) -> int | None:
    """How many are wanted: a number that was said, one of a singular, else all."""
    if words.stated.limit is not None:
        return words.stated.limit
    several = any(
        noun == label and words.word(place).endswith("s")
        for place, noun in words.nouns.items()
    )
    return None if several else 1

"""Numbers and dates in a question as conditions: "over 500", "since March 2023"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from graphret.planning.measures import (
    MEASURES,
    OF_TIME,
    RANGES,
    Degree,
    degree_of,
    is_superlative,
    operator_before,
    operator_behind,
)
from graphret.planning.properties import Kind, Property
from graphret.planning.quantities import Quantity, quantities
from graphret.planning.question_words import ENOUGH, Choice, QuestionWords
from graphret.planning.stated import Test
from graphret.stopwords import FUNCTION_WORDS

#: How many words before and behind a value may name its property.
_BEFORE, _BEHIND = 5, 3
#: How far from a superlative the number stands that says how many are wanted, and the
#: highest such number.
_BESIDE, _MOST_WANTED = 2, 1_000
#: What the two ends of a range are compared by.
_RANGE = "range"


class _Amount(NamedTuple):
    """A quantity, and the first and the last of its words."""

    first: int
    last: int
    quantity: Quantity


def read_comparisons(words: QuestionWords) -> None:
    """Read the numbers and dates of a question: how many are wanted, and conditions."""
    waiting = _without_limit(words, _amounts(words))
    while waiting:
        first, last, quantity = waiting.pop(0)
        opening, between = words.word(first - 1), words.word(last + 1)
        follows = bool(waiting) and waiting[0].first == last + 2
        if follows and (opening, between) in RANGES:
            until = waiting.pop(0)
            _compare(words, first - 1, until.last, quantity, until.quantity, _RANGE)
            continue
        before, n_before = operator_before(words.words[:first])
        behind, n_behind = operator_behind(words.words[last + 1 :])
        if behind and before != "$eq":
            n_before = 0
        begin, end = first - n_before, last + n_behind
        _compare(words, begin, end, quantity, None, behind or before)


def _amounts(words: QuestionWords) -> list[_Amount]:
    """The quantities outside of names."""
    amounts = []
    for quantity in quantities(words.question):
        inside = [
            place
            for place, (_, start, end) in enumerate(words.tokens)
            if quantity.start <= start and end <= quantity.end
        ]
        if inside:
            amounts.append(_Amount(inside[0], inside[-1], quantity))
    return amounts


def _without_limit(words: QuestionWords, amounts: Sequence[_Amount]) -> list[_Amount]:
    """Read how many results are wanted, "top 5"; return the other quantities."""
    superlatives = [
        place for place, word in enumerate(words.words) if is_superlative(word)
    ]
    remaining = []
    for amount in amounts:
        number = amount.quantity.number
        beside = any(abs(place - amount.first) <= _BESIDE for place in superlatives)
        counts_nouns = amount.last + 1 in words.nouns and bool(superlatives)
        operator, _ = operator_before(words.words[: amount.first])
        if (
            isinstance(number, int)
            and 0 < number <= _MOST_WANTED
            and (beside or counts_nouns)
            and operator in ("", "$eq")
        ):
            words.stated.limit = number
            words.used.update(range(amount.first, amount.last + 1))
        else:
            remaining.append(amount)
    return remaining


def _compare(
    words: QuestionWords,
    first: int,
    last: int,
    low: Quantity,
    high: Quantity | None,
    operator: str,
) -> None:
    """Read a value, or the two ends of a range, as a condition on a property."""
    degree, first = _compared_by(words, first, last)
    if degree is not None:
        operator = "$gt" if degree.high else "$lt"
    owners = _comparable(words, first, low, degree)
    choice = _chosen(words, owners, first, last)
    if choice is None and degree is not None and len(owners) == 1:
        choice = Choice(ENOUGH, owners[0])
    if choice is None:
        words.doubt(f"no property is known that “{words.said(first, last)}” fits")
        return
    test = _test(choice.owner.kind, operator, low, high)
    words.state(choice.owner, test, first, last)
    words.read_names_of(choice)


def _compared_by(
    words: QuestionWords, first: int, last: int
) -> tuple[Degree | None, int]:
    """Return the adjective before "than", and where the comparison begins."""
    places = [at for at in range(first - 1, last + 1) if words.word(at) == "than"]
    if not places or places[0] < 1:
        return None, first
    than = places[0]
    degree = degree_of(words.word(than - 1))
    if degree is None or degree.bare:
        return None, min(first, than - 1)
    before = words.word(than - 2)
    if before in ("more", "less"):  # "less expensive than"
        return degree._replace(high=degree.high == (before == "more")), than - 2
    return degree, than - 1


def _comparable(
    words: QuestionWords, first: int, value: Quantity, degree: Degree | None
) -> list[Property]:
    """The properties that a value may be compared with."""
    kinds: tuple[Kind, ...] = ("number",)
    if value.period is not None:
        kinds = ("date", "year") if value.number is None else ("date", "year", "number")
    owners = words.graph.properties.of_kinds(*kinds)
    if degree is not None and degree.measures:
        measures = [MEASURES[number] for number in degree.measures]
        owners = [
            owner
            for owner in owners
            if any(measure.names_property(owner.name) for measure in measures)
        ]
    if value.number is None or value.period is None:
        return owners
    return _of_year(words, first, owners)


def _of_year(
    words: QuestionWords, first: int, owners: Sequence[Property]
) -> list[Property]:
    """The properties that a number like a year may be compared with.

    Those of time, unless the question speaks of one that is a number and the word
    before the year is not of time.
    """
    kinship = words.graph.properties.kinship
    spoken = [
        owner
        for owner in owners
        if owner.kind == "number" and any(kinship(word, owner) for word in words.words)
    ]
    of_time = [owner for owner in owners if owner.kind != "number"]
    return of_time if words.word(first) in OF_TIME or not spoken else spoken


def _chosen(
    words: QuestionWords, owners: Sequence[Property], first: int, last: int
) -> Choice | None:
    """The property that the words around a value mean; `None` where it is not clear."""
    around = [*range(first - _BEFORE, first), *range(last + 1, last + 1 + _BEHIND)]
    near = words.free(around)
    judged = [words.judged(owner, near, first, last) for owner in owners]
    clear = [
        choice
        for choice in judged
        if choice.words
        or (choice.score >= ENOUGH and _bare(words, choice.owner, first, last))
    ]
    if not clear:
        return None
    best, *runners_up = sorted(clear, key=lambda choice: (-choice.score, choice.owner))
    tied = any(other.score == best.score for other in runners_up)
    return None if tied and not best.words else best


def _bare(words: QuestionWords, owner: Property, first: int, last: int) -> bool:
    """Whether no word beside a number says what it counts or measures.

    A word does in "200 employees" and "cost over 500". A date never needs one.
    """
    return owner.kind != "number" or all(
        not word or word in FUNCTION_WORDS or owner.label in words.graph.labels_of(word)
        for word in (words.word(first - 1), words.word(last + 1))
    )


def _test(kind: Kind, operator: str, low: Quantity, high: Quantity | None) -> Test:
    """The test of a property of a kind, in the form of `Where`.

    A period is tested by its first day and the first day after it.
    """
    if kind == "number":
        if high is not None:
            return {"$gte": low.number, "$lte": high.number}
        return {operator or "$eq": low.number}
    begin, end = low.period or ("", "")
    if high is not None and high.period is not None:
        end = high.period[1]
    first, after = (_value(kind, day) for day in (begin, end))
    tests: dict[str, Test] = {
        "$gt": {"$gte": after},
        "$gte": {"$gte": first},
        "$lt": {"$lt": first},
        "$lte": {"$lt": after},
    }
    return tests.get(operator, {"$gte": first, "$lt": after})


def _value(kind: Kind, day: str) -> Any:
    """A day as properties of a kind have it."""
    return int(day[:4]) if kind == "year" else day

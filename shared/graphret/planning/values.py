"""Words of a question as conditions: "pending", "not insured", "without a supplier"."""

from __future__ import annotations

from graphret.planning.measures import NEGATORS
from graphret.planning.properties import NAMED, Value
from graphret.planning.question_words import QuestionWords
from graphret.planning.stated import Absence
from graphret.stopwords import FUNCTION_WORDS, STOP_WORDS

#: How many words before and behind a value may name its property, and behind a
#: negation the property that is missing.
_BEFORE, _BEHIND, _MISSING = 3, 2, 3
#: What a value of other than everyday words has where nothing else says that it is
#: meant.
_SAID = 0.01


def read_booleans(words: QuestionWords) -> None:
    """Read words that name a property that is true or false."""
    kinship = words.graph.properties.kinship
    owners = sorted(words.graph.properties.of_kinds("boolean"))
    for place in words.free(range(len(words.words))):
        word = words.word(place)
        candidates = [owner for owner in owners if kinship(word, owner) >= NAMED]
        if word in FUNCTION_WORDS or not candidates:
            continue
        ahead = words.nouns.get(place + 1)
        scores = [
            words.hint(owner.label, place) + (owner.label == ahead)
            for owner in candidates
        ]
        words.state(candidates[scores.index(max(scores))], True, place, place)


def read_missing(words: QuestionWords) -> None:
    """Read that the target lacks a property: "not shipped", by a shipping date."""
    negator = _negator(words)
    if negator is None:
        return
    owners = [
        owner
        for owner in words.graph.properties.every
        if owner.label == words.stated.asked_label and not owner.always
    ]
    for place in words.free(range(negator + 1, negator + 1 + _MISSING)):
        for owner in owners:
            if words.graph.properties.kinship(words.word(place), owner) >= NAMED:
                words.state(owner, {"$exists": False}, place, place)
                words.used.add(negator)
                return


def read_values(words: QuestionWords) -> None:
    """Read texts that nodes have as a property, the longest first."""
    values = list(words.graph.properties.values(words.words))
    spans = {(value.first, value.last) for value in values}
    for first, last in sorted(spans, key=lambda span: (span[0] - span[1], span)):
        places = range(first, last)
        if len(words.free(places)) < len(places) or words.nouns.keys() >= {*places}:
            continue
        fits = [
            (_fit(words, value), value)
            for value in values
            if (value.first, value.last) == (first, last)
        ]
        score, best = max(fits)
        if score > 0:
            words.state(best.owner, best.value, first, last - 1)
            beside = words.free((first - 1, last))
            words.read_names_of(words.judged(best.owner, beside, first, last - 1))


def _fit(words: QuestionWords, value: Value) -> float:
    """How well a value's property fits its place in the question; 0 for not.

    An everyday word only counts beside a noun or a word that names the property.
    """
    owner, first, last = value.owner, value.first, value.last
    near = [*range(first - _BEFORE, first), *range(last, last + _BEHIND)]
    kinship = words.graph.properties.kinship
    naming = max(kinship(words.word(place), owner) for place in near)
    beside = {words.nouns.get(first - 1), words.nouns.get(last)}
    score = words.hint(owner.label, first) + naming + (owner.label in beside)
    value_words = words.words[first:last]
    if FUNCTION_WORDS.issuperset(value_words):
        return 0.0
    if STOP_WORDS.issuperset(value_words):
        close = owner.label in {*beside, words.nearest_noun(first)}
        return score if close or naming else 0.0
    return score + _SAID


def read_negation(words: QuestionWords) -> None:
    """Read a negation: of a condition, or of anything of a label or a name."""
    place = _negator(words)
    if place is None:
        return
    turned = _turned(words, place)
    start = words.tokens[place][1]
    absent = _absent(words, place)
    if turned is not None:
        condition = words.stated.conditions[turned]
        words.stated.conditions[turned] = condition.turned()
    elif absent or any(start < begin for begin, _ in words.names):
        words.stated.absence = Absence(absent, start)
    else:
        words.doubt(f"nothing is known that “{words.word(place)}” is said of")
    words.used.add(place)


def _negator(words: QuestionWords) -> int | None:
    """Where the first word stands that turns what follows."""
    places = words.free(range(len(words.words)))
    return next((at for at in places if words.word(at) in NEGATORS), None)


def _turned(words: QuestionWords, negator: int) -> int | None:
    """The number of the condition on the target right behind a negation."""
    for number, condition in enumerate(words.stated.conditions):
        between = range(negator + 1, condition.first)
        near = condition.first > negator and all(
            words.word(place) in FUNCTION_WORDS and place not in words.nouns
            for place in between
        )
        if near and condition.owner.label == words.stated.asked_label:
            return number
    return None


def _absent(words: QuestionWords, negator: int) -> str:
    """The label of what must not be there, by a noun or a verb behind a negation."""
    asked_label = words.stated.asked_label
    labels = (
        words.graph.goes_with(word, asked_label) for word in words.words[negator + 1 :]
    )
    return next(filter(None, labels), "") if asked_label else ""

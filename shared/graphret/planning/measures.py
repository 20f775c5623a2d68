"""Tables of general English for comparing: operators, measures and ends of a scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from graphret.linking.words import root
from graphret.text import name_words

#: Phrases before a value, by the operator of `Where` that they mean; the longest that
#: stands there counts. Of a period ``$eq`` means within it.
BEFORE = {
    "$gt": (
        "more than, greater than, higher than, larger than, bigger than, longer than,"
        " over, above, exceeding, beyond, after, later than"
    ),
    "$gte": "at least, no less than, not less than, since, starting from, minimum",
    "$lt": (
        "less than, fewer than, lower than, smaller than, shorter than, under, below,"
        " before, earlier than, prior to"
    ),
    "$lte": "at most, up to, no more than, not more than, until, till, by, maximum",
    "$eq": "exactly, equal to, in, on, of, during, from, at, is, was, in the",
}
#: Phrases behind a value.
BEHIND = {
    "$gte": (
        "or more, or higher, or above, or later, or better, or over, and above, and"
        " more, and up, onwards"
    ),
    "$lte": "or less, or lower, or below, or earlier, or fewer, or under",
}
#: Words before a year, where it is no number of something.
OF_TIME = frozenset("in during since before after until till from on of by".split())
#: Words before the first of two values and between them.
RANGES = (("between", "and"), ("from", "to"), ("from", "until"), ("from", "till"))

#: What properties measure: words in their names | words of a question that speak of
#: them | adjectives for much of it | adjectives for little.
_MEASURES = """
price cost fee charge amount | cost price pay charge spend worth | expensive | cheap
price cost fee amount | euro dollar pound usd eur | costly pricey | inexpensive
salary wage income pay | earn pay salary wage | rich | poor
age | old year | old | young
birth born birthday | born | young | old
hire hired employed joined employment start | hire employ join start | new | old
publish published publication release released | publish release | new | old
duration length minutes hours runtime | last take run minute hour long | long | short
weight mass | weigh heavy kg kilo | heavy | light
height altitude | tall high metre meter | tall | short
area size surface capacity population | size | large big | small
speed velocity | speed | fast quick | slow
rating score stars grade | rate score star | good | bad
distance | far | far | near close
""".strip().splitlines()
#: Adjectives of time: those for late, and those for early.
_LATE, _EARLY = frozenset({"late", "new", "recent"}), frozenset({"early", "old"})
#: Adjectives that say only which end is asked for, not of what.
_MOST = frozenset("most high large big great max maximum top".split())
_LEAST = frozenset("least few low small min minimum bottom".split())
_IRREGULAR = {
    "best": "good",
    "better": "good",
    "worst": "bad",
    "worse": "bad",
    "last": "late",
    "latest": "late",
    "first": "early",
    "least": "least",
    "fewest": "few",
    "most": "most",
    "highest": "high",
}
_SUFFIXES = ("iest", "est", "ier", "er")

#: Words that ask for a number made of many nodes, which no node is, and for one number
#: for each of several groups.
COUNTS = (
    "how many, number of, count of, count the, average, mean, median, total, sum of,"
    " in total, percentage, proportion, share of, per, for each, for every, grouped by"
)
#: Words that turn what follows.
NEGATORS = frozenset(
    "never not no without lacking lack lacks isn aren don didn".split()
)
#: Words that point at the time of asking, which no graph knows, and words of time
#: before which "last" and "next" do.
NOW = frozenset("today yesterday tomorrow currently recently nowadays upcoming".split())
TIMES = frozenset("day week month quarter year hour days weeks months years".split())


class Measure(NamedTuple):
    """What a property measures, as a line of the table says it, by roots of words."""

    names: frozenset[str]
    spoken: frozenset[str]
    much: frozenset[str]
    little: frozenset[str]

    def names_property(self, name: str) -> bool:
        """Whether a property by its name is of this measure."""
        return any(root(part) in self.names for part in name_words(name))


def _measure(line: str) -> Measure:
    names, spoken, much, little = (part.split() for part in line.split("|"))
    return Measure(
        frozenset(map(root, names)),
        frozenset(map(root, spoken)),
        frozenset(much),
        frozenset(little),
    )


MEASURES = [_measure(line) for line in _MEASURES]


class Degree(NamedTuple):
    """An adjective or adverb of degree: what it says of, and which end.

    `high` is whether it asks for the highest values; `measures` are those that it is
    about, none where the question has to say of what; `late` is whether it may be of
    time, `True` for late, `False` for early, else `None`.
    """

    high: bool
    measures: Mapping[int, bool]
    late: bool | None = None

    @property
    def bare(self) -> bool:
        """Whether it says nothing of what it measures."""
        return not self.measures and self.late is None

    def turned(self) -> Degree:
        """The opposite: "least expensive"."""
        measures = {number: not high for number, high in self.measures.items()}
        late = None if self.late is None else not self.late
        return Degree(not self.high, measures, late)


@lru_cache(maxsize=4096)
def degree_of(word: str) -> Degree | None:
    """Return what an adjective in any degree says; `None` for unknown ones.

    Examples
    --------
    >>> degree_of("cheapest").high, degree_of("latest").late
    (False, True)
    """
    for base in _bases(word):
        if base in _MOST | _LEAST:
            return Degree(base in _MOST, {})
        measures = {
            number: base in measure.much
            for number, measure in enumerate(MEASURES)
            if base in measure.much | measure.little
        }
        late = base in _LATE if base in _LATE | _EARLY else None
        if measures or late is not None:
            high = next(iter(measures.values()), bool(late))
            return Degree(high, measures, late)
    return None


def is_superlative(word: str) -> bool:
    """Whether a word by itself asks for an end: "cheapest", "last", "top"."""
    return (
        word in {"last", "first", "best", "worst", "most", "least", "top", "bottom"}
        or (word.endswith("est") and degree_of(word) is not None)
        or word in {"maximum", "minimum", "max", "min"}
    )


def _bases(word: str) -> Iterator[str]:
    """The word, and what it may be an inflection of."""
    if word in _IRREGULAR:
        yield _IRREGULAR[word]
        return
    yield word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) > len(suffix) + 2:
            base = word.removesuffix(suffix)
            yield from (f"{base}y",) if suffix[0] == "i" else (base, f"{base}e")
            if base[-1] == base[-2:-1]:  # biggest
                yield base[:-1]


def phrases_of(table: Mapping[str, str]) -> list[tuple[tuple[str, ...], str]]:
    """Return the phrases of a table with their operators, the longest first."""
    phrases = [
        (tuple(phrase.split()), operator)
        for operator, listed in table.items()
        for phrase in listed.split(", ")
    ]
    return sorted(phrases, key=lambda pair: -len(pair[0]))


_BEFORE, _BEHIND = phrases_of(BEFORE), phrases_of(BEHIND)
_COUNTS = [phrase for phrase, _ in phrases_of({"": COUNTS})]


def operator_before(words: Sequence[str]) -> tuple[str, int]:
    """Return the operator at the end of some words, and its length; "" for none."""
    for phrase, operator in _BEFORE:
        if tuple(words[-len(phrase) :]) == phrase:
            return operator, len(phrase)
    return "", 0


def operator_behind(words: Sequence[str]) -> tuple[str, int]:
    """Return the operator at the beginning of some words, as `operator_before` does."""
    for phrase, operator in _BEHIND:
        if tuple(words[: len(phrase)]) == phrase:
            return operator, len(phrase)
    return "", 0


def counting_phrase(words: Sequence[str]) -> tuple[int, int] | None:
    """Return where a phrase begins and ends that asks for a number made of many."""
    for phrase in _COUNTS:
        for start in range(len(words) - len(phrase) + 1):
            if tuple(words[start : start + len(phrase)]) == phrase:
                return start, start + len(phrase)
    return None


def speaks_of(word: str, name: str) -> bool:
    """Whether a word of a question speaks of what a property measures."""
    word_root = root(word)
    return any(
        word_root in measure.spoken and measure.names_property(name)
        for measure in MEASURES
    )

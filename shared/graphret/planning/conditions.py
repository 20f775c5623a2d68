"""What a question says of properties: conditions, an order, what must not be there, and
what of that no property of the graph can answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from graphret.linking.stopwords import COMMON_WORDS, FUNCTION_WORDS
from graphret.linking.words import Lexicon, is_person
from graphret.planning.measures import (
    MEASURES,
    NEGATORS,
    NOW,
    OF_TIME,
    RANGES,
    TIMES,
    Degree,
    counting_phrase,
    degree_of,
    is_superlative,
    operator_before,
    operator_behind,
)
from graphret.planning.properties import NAMED, Kind, Properties, Property
from graphret.planning.quantities import Quantity, quantities
from graphret.text import tokenize
from graphret.where import PROPERTIES

#: How many words before and behind a value may name the property.
_BEFORE, _BEHIND = 5, 3
#: How much the nearest noun before a value says that its label is meant; the kind of
#: thing asked for; what the question names; and the least that is enough where no word
#: names the property.
_NEAREST, _ASKED, _MENTIONED, _ENOUGH = 0.6, 0.4, 0.2, 0.4
#: How much the noun behind a superlative says: "the latest order".
_OWN_NOUN = 1.2
#: What a word in between takes away.
_DISTANCE = 0.05
_EVERYDAY = COMMON_WORDS | FUNCTION_WORDS

#: The fields that a node has beside its properties.
_OWN_FIELDS = ("id", "name", "text", "label")
#: A condition on a property, as `Where` has it.
Test: TypeAlias = Any


class Condition(NamedTuple):
    """That nodes of a label satisfy a condition on a property, or do not, and where the
    question says so, in words and in characters.
    """

    owner: Property
    test: Test
    first: int
    start: int
    end: int
    negated: bool = False

    @property
    def where(self) -> dict[str, Any]:
        """The condition as `Where` has it."""
        field = self.owner.name
        if field in _OWN_FIELDS:
            field = PROPERTIES + field
        stated = {field: self.test}
        return {"$not": stated} if self.negated else stated


class Ranking(NamedTuple):
    """That an end of an order is asked for: of a property, or, without one, of how many
    nodes of a label go with a result.
    """

    label: str
    by: str
    descending: bool
    limit: int | None


class Absence(NamedTuple):
    """That nothing of a label, or of what the question names behind a place, may go
    with a result; `label` is "" where only a name says of what.
    """

    label: str
    start: int


@dataclass
class Stated:
    """What a question states beside names and relations.

    Parameters
    ----------
    asked
        The label of what is asked for, "" where no word says it.
    unread
        What it says that no condition, order or node of the graph can answer, in words.
    rest
        The question with the words that were read as spaces, so that what is left has
        its place.
    asks_who
        Whether it asks for people by "who" alone.
    nouns
        Where the question first speaks of each label, in characters.
    """

    asked: str = ""
    conditions: list[Condition] = field(default_factory=list)
    ranking: Ranking | None = None
    absence: Absence | None = None
    unread: list[str] = field(default_factory=list)
    rest: str = ""
    asks_who: bool = False
    nouns: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def anything(self) -> bool:
        """Whether anything was stated that a plan can heed."""
        return bool(self.conditions or self.ranking or self.absence)


class ConditionReader:
    """Reads what questions say of properties.

    Parameters
    ----------
    properties
        Those of the graph.
    labels, relations
        The labels of the graph and the ``(source, relation, target)`` between them.
    lexicon
        Which words name which of them.
    """

    def __init__(
        self,
        properties: Properties,
        labels: Collection[str],
        relations: Collection[tuple[str, str, str]],
        lexicon: Lexicon,
    ) -> None:
        self.properties, self.lexicon = properties, lexicon
        self.labels, self.relations = sorted(labels), sorted(relations)

    def read(
        self,
        question: str,
        names: Collection[tuple[int, int]] = (),
        named: Collection[str] = (),
    ) -> Stated:
        """Return what a question states.

        Parameters
        ----------
        names
            Where it names nodes, which says nothing else.
        named
            The labels of those.
        """
        return _Reading(self, question, names, named).stated()

    def labels_of(self, word: str) -> list[str]:
        """The labels that a word may name, the likeliest first."""
        near = [(-self.lexicon.kinship(word, one), one) for one in self.labels]
        return [label for kinship, label in sorted(near) if kinship < 0]


class _Choice(NamedTuple):
    """A property that may be meant, how much says so, and the words that name it."""

    score: float
    owner: Property
    words: tuple[int, ...] = ()


class _Reading:
    """One question as it is read, word by word; `used` are those that were read."""

    def __init__(
        self,
        reader: ConditionReader,
        question: str,
        names: Collection[tuple[int, int]],
        named: Collection[str],
    ) -> None:
        self.reader, self.question, self.named = reader, question, set(named)
        self.tokens = [
            token
            for token in tokenize(question)
            if not any(first < token[2] and token[1] < last for first, last in names)
        ]
        self.words = [word for word, _, _ in self.tokens]
        self.used: set[int] = set()
        self.found = Stated()

    def stated(self) -> Stated:
        """Read in the order in which one may take the words of another."""
        self.found.asked = self._asked()
        self.found.asks_who = self.words[:1] in (["who"], ["whom"])
        self._read_counts()
        amounts = self._limits([*map(self._placed, self._quantities())])
        self._read_comparisons(amounts)
        self._read_superlatives()
        self._read_booleans()
        self._read_missing()
        self._read_values()
        self._read_negation()
        self._read_now()
        self.found.rest = self._rest()
        for place in sorted(self.nouns, reverse=True):
            self.found.nouns[self.nouns[place]] = self.tokens[place][1:]
        return self.found

    # -- the words

    @cached_property
    def nouns(self) -> dict[int, str]:
        """The words that name a label, by place."""
        found = {}
        for place, word in enumerate(self.words):
            if labels := self.reader.labels_of(word):
                found[place] = labels[0]
        return found

    def _asked(self) -> str:
        """The label of what is asked for: of "who" a noun behind a form of "be", else
        the first noun.
        """
        if self.words[:1] in (["who"], ["whom"]):
            if self.words[1:2] in (["is"], ["are"], ["was"], ["were"]):
                return self._first_noun()
            return ""
        return self._first_noun()

    def _first_noun(self) -> str:
        return next((self.nouns[place] for place in sorted(self.nouns)), "")

    def _nearest_noun(self, place: int) -> str:
        """The label of the last noun before a place."""
        before = [at for at in self.nouns if at < place]
        return self.nouns[max(before)] if before else ""

    def _hint(self, label: str, place: int) -> float:
        """How much a label is meant at a place, by what the question speaks of."""
        asked = self.found.asked
        hint = _NEAREST * (label == self._nearest_noun(place))
        hint += _ASKED * (label == asked) + _MENTIONED * (label in self.named)
        if not asked and self.words[:1] == ["who"]:
            hint += _ASKED * is_person(label)
        return hint

    def _quantities(self) -> list[Quantity]:
        ends = {(start, end) for _, start, end in self.tokens}
        return [
            one
            for one in quantities(self.question)
            if any(one.start <= start and end <= one.end for start, end in ends)
        ]

    def _placed(self, quantity: Quantity) -> tuple[int, int, Quantity]:
        """The first and the last word of a quantity."""
        inside = [
            place
            for place, (_, start, end) in enumerate(self.tokens)
            if quantity.start <= start and end <= quantity.end
        ]
        return inside[0], inside[-1], quantity

    def _rest(self) -> str:
        rest = list(self.question)
        for place in self.used:
            _, start, end = self.tokens[place]
            rest[start:end] = " " * (end - start)
        return "".join(rest)

    # -- what no node answers

    def _read_counts(self) -> None:
        """Note words that ask for a number made of many nodes."""
        place = counting_phrase(self.words)
        if place is not None:
            said = " ".join(self.words[slice(*place)])
            self.found.unread.append(f"“{said}” asks for a number over several nodes")

    def _read_now(self) -> None:
        """Note words that depend on when the question is asked."""
        for place, word in enumerate(self.words):
            ahead = self.words[place + 1 : place + 2]
            relative = word in ("last", "next", "this") and TIMES.intersection(ahead)
            if place not in self.used and (word in NOW or relative):
                said = " ".join([word, *(ahead if relative else [])])
                self.found.unread.append(f"“{said}” depends on the day of asking")

    # -- which property

    def _choose(
        self, owners: Iterable[Property], first: int, last: int
    ) -> _Choice | None:
        """The property that the words around some others mean; `None` where it is not
        clear.
        """
        around = [
            *range(first - 1, max(-1, first - 1 - _BEFORE), -1),
            *range(last + 1, min(len(self.words), last + 1 + _BEHIND)),
        ]
        near = [place for place in around if place not in self.used]
        choices = [self._judged(owner, near, first, last) for owner in owners]
        clear = [one for one in choices if one.words or one.score >= _ENOUGH]
        clear.sort(key=lambda one: (-one.score, one.owner))
        if not clear:
            return None
        tied = [one for one in clear[1:] if one.score == clear[0].score]
        return None if tied and not clear[0].words else clear[0]

    def _judged(
        self, owner: Property, near: Sequence[int], first: int, last: int
    ) -> _Choice:
        """How much says that a property is meant."""
        score, named = self._hint(owner.label, first), list[int]()
        best = 0.0
        for place in near:
            kinship = self.reader.properties.kinship(self.words[place], owner)
            distance = first - place if place < first else place - last
            if kinship:
                named.append(place)
                best = max(best, kinship - _DISTANCE * distance)
        return _Choice(score + 2 * best, owner, tuple(named))

    def _use(self, choice: _Choice, first: int, last: int) -> None:
        """Take the words of a condition, but no noun, as read."""
        self.used.update(range(first, last + 1))
        self.used.update(place for place in choice.words if place not in self.nouns)

    def _add(self, owner: Property, test: Test, first: int, last: int) -> None:
        """Note a condition that some words say."""
        start, end = self.tokens[first][1], self.tokens[last][2]
        condition = Condition(owner, test, first, start, end)
        self.found.conditions.append(condition)

    # -- comparisons

    def _limits(
        self, amounts: Sequence[tuple[int, int, Quantity]]
    ) -> list[tuple[int, int, Quantity]]:
        """Take the number away that says how many are wanted, "the 3 cheapest", "top
        5"; return the others.
        """
        ends = [place for place, word in enumerate(self.words) if is_superlative(word)]
        left = []
        self.limit: int | None = None
        for first, last, quantity in amounts:
            number = quantity.number
            beside = any(-2 <= place - first <= 2 for place in ends)
            counted = last + 1 in self.nouns and bool(ends)
            compared = operator_before(self.words[:first])[0] not in ("", "$eq")
            whole = isinstance(number, int) and 0 < number <= 1000
            if whole and (beside or counted) and not compared:
                self.limit = int(number or 0)
                self.used.update(range(first, last + 1))
            else:
                left.append((first, last, quantity))
        return left

    def _read_comparisons(self, amounts: list[tuple[int, int, Quantity]]) -> None:
        """Read each value with what it is compared by, two of them as a range."""
        waiting = list(amounts)
        while waiting:
            first, last, quantity = waiting.pop(0)
            opening = self.words[first - 1] if first else ""
            closing = self.words[last + 1] if last + 1 < len(self.words) else ""
            follows = waiting and waiting[0][0] == last + 2
            if follows and (opening, closing) in RANGES:
                _, end, until = waiting.pop(0)
                self._read_comparison(first - 1, end, quantity, until, "range")
                continue
            before, n = operator_before(self.words[:first])
            behind, m = operator_behind(self.words[last + 1 :])
            if behind:
                n = n if before == "$eq" else 0
                self._read_comparison(first - n, last + m, quantity, None, behind)
            else:
                self._read_comparison(first - n, last, quantity, None, before)

    def _read_comparison(
        self, first: int, last: int, low: Quantity, high: Quantity | None, sign: str
    ) -> None:
        """Read a value, or the ends of a range, as a condition on the property that it
        fits.
        """
        degree, first = self._compared_by(first, last)
        if degree is not None:
            sign = "$gt" if degree.high else "$lt"
        if low.number is None:
            kinds: tuple[Kind, ...] = ("date", "year")
        elif low.period is not None:
            kinds = ("date", "year", "number")
        else:
            kinds = ("number",)
        owners = self.reader.properties.of_kinds(*kinds)
        if degree is not None and degree.measures:
            owners = [
                owner
                for owner in owners
                if any(MEASURES[one].names_property(owner.name) for one in degree.measures)
            ]
        choice = self._choose(self._timely(owners, first, low), first, last)
        if choice is None and degree is not None and len(owners) == 1:
            choice = _Choice(_ENOUGH, owners[0])
        said = self.question[self.tokens[first][1] : self.tokens[last][2]]
        if choice is None:
            self.found.unread.append(f"no property is known that “{said}” fits")
            return
        test = _test(choice.owner.kind, sign, low, high)
        self._add(choice.owner, test, first, last)
        self._use(choice, first, last)

    def _timely(
        self, owners: list[Property], first: int, value: Quantity
    ) -> list[Property]:
        """Of the properties that a year may be compared with those of time, unless the
        words before it are not of time and the question speaks of another.
        """
        if value.number is None or value.period is None:
            return owners
        kinship, timely = self.reader.properties.kinship, self.words[first] in OF_TIME
        spoken = [
            owner
            for owner in owners
            if owner.kind == "number"
            and any(kinship(word, owner) for word in self.words)
        ]
        of_time = [owner for owner in owners if owner.kind != "number"]
        return of_time if timely or not spoken else spoken

    def _compared_by(self, first: int, last: int) -> tuple[Degree | None, int]:
        """The adjective before "than", as in "cheaper than", and where it begins."""
        place = next(
            (at for at in range(first, last + 1) if self.words[at] == "than"), None
        )
        if place is None and first and self.words[first - 1] == "than":
            place = first - 1
        degree = degree_of(self.words[place - 1]) if place else None
        if degree is None or place is None:
            return None, first
        before = self.words[place - 2] if place > 1 else ""
        if before in ("more", "less"):
            turned = degree._replace(high=degree.high == (before == "more"))
            return turned, place - 2
        comparative = self.words[place - 1] not in ("more", "less", "fewer")
        return (degree if comparative else None), min(first, place - 1)

    # -- orders

    def _read_superlatives(self) -> None:
        """Read the first word that asks for an end of an order."""
        for place, word in enumerate(self.words):
            if place in self.used or not is_superlative(word):
                continue
            if TIMES.intersection(self.words[place + 1 : place + 2]) and word == "last":
                continue
            if word == "least" and self.words[place - 1 : place] == ["at"]:
                continue
            ranking = self._ranking(place)
            if ranking is None:
                self.found.unread.append(f"“{word}” says no order that is known")
            self.found.ranking = ranking
            return

    def _ranking(self, place: int) -> Ranking | None:
        """The order that a superlative asks for: of a property, or of a number."""
        word, last = self.words[place], place
        degree = degree_of(word) or Degree(True, {})
        following = self.words[place + 1] if place + 1 < len(self.words) else ""
        graded = degree_of(following) if word in ("most", "least") else None
        if graded is not None and not graded.bare:  # "most expensive", "least recent"
            high, late = word == "most", graded.late
            if not high:
                late = None if late is None else not late
            turned = {one: much == high for one, much in graded.measures.items()}
            degree, last = Degree(graded.high == high, turned, late), place + 1
        ranking = self._by_property(degree, place, last)
        if ranking is None and degree.bare:
            ranking = self._by_number(degree, place)
        if ranking is not None:
            self.used.update(range(place, last + 1))
        return ranking

    def _by_property(self, degree: Degree, first: int, last: int) -> Ranking | None:
        """The order of a property that the words around say, or the adjective."""
        properties = self.reader.properties
        owners = properties.of_kinds("number", "year", "date")
        meant: dict[Property, bool] = {}
        if degree.bare:
            meant = dict.fromkeys(owners, degree.high)
        for owner in owners:
            for one, much in degree.measures.items():
                if MEASURES[one].names_property(owner.name):
                    # a number of an age is high for the old, a date of birth low
                    meant[owner] = much
            if degree.late is not None and owner.kind != "number":
                meant.setdefault(owner, degree.late)
        choice = self._chosen_order(meant, degree, first, last)
        if choice is None:
            return None
        self._use(choice, first, last)
        return Ranking(
            choice.owner.label,
            choice.owner.name,
            meant[choice.owner],
            self._wanted(choice.owner.label),
        )

    def _chosen_order(
        self, meant: dict[Property, bool], degree: Degree, first: int, last: int
    ) -> _Choice | None:
        """Which of the properties that may order is meant."""
        ahead = [
            place
            for place in range(last + 1, min(len(self.words), last + 4))
            if place not in self.used
        ]
        behind = [place for place in range(first - 1, max(-1, first - 5), -1)]
        noun = next((self.nouns[at] for at in ahead if at in self.nouns), "")
        choices = []
        for owner in meant:
            near = ahead if degree.bare else [*ahead, *behind]
            judged = self._judged(owner, near, first, last)
            measured = any(
                MEASURES[one].names_property(owner.name) for one in degree.measures
            )
            said = judged.words and not (
                degree.bare and set(judged.words) <= self.nouns.keys()
            )
            if said or not degree.bare:
                own = _OWN_NOUN * (owner.label == noun) + 1.0 * measured
                choices.append(judged._replace(score=judged.score + own))
        choices.sort(key=lambda one: (-one.score, one.owner))
        if not choices or choices[0].score < _ENOUGH:
            return None
        return choices[0]

    def _by_number(self, degree: Degree, place: int) -> Ranking | None:
        """The order of how many nodes of a label go with a result: "the most orders",
        "ordered most often".
        """
        asked = self.found.asked
        ahead = range(place + 1, min(len(self.words), place + 3))
        before = range(place - 1, max(-1, place - 4), -1)
        for at in [*ahead, *before]:
            counted = self._counted(self.words[at], asked)
            if counted and counted != asked:
                if self.words[place + 1 : place + 2] == ["often"]:
                    self.used.add(place + 1)
                return Ranking(counted, "", degree.high, self._wanted(asked))
        return None

    def _counted(self, word: str, asked: str) -> str:
        """The label that a word counts: one that it names, or where a relation leads
        that it names.
        """
        for label in self.reader.labels_of(word):
            if label != asked:
                return label
        for source, relation, target in self.reader.relations:
            if asked in (source, target) and self.reader.lexicon.kinship(word, relation):
                return target if asked == source else source
        return ""

    def _wanted(self, label: str) -> int | None:
        """How many are wanted: a number that was said, one of a singular, else all."""
        if self.limit is not None:
            return self.limit
        several = any(
            self.nouns[at] == label and self.words[at].endswith("s")
            for at in self.nouns
        )
        return None if several else 1

    # -- values and what must not be

    def _read_booleans(self) -> None:
        """Read words that name a property that is true or false."""
        owners = self.reader.properties.of_kinds("boolean")
        for place, word in enumerate(self.words):
            if place in self.used or word in FUNCTION_WORDS:
                continue
            named = [
                owner
                for owner in owners
                if self.reader.properties.kinship(word, owner) == 1
            ]
            ahead = self.nouns.get(place + 1, "")
            if not named:
                continue
            owner = max(
                sorted(named),
                key=lambda one: self._hint(one.label, place) + (one.label == ahead),
            )
            self._add(owner, True, place, place)
            self.used.add(place)

    def _read_values(self) -> None:
        """Read texts that nodes have as a property, the longest first; everyday words
        only beside their noun.
        """
        found = [
            value
            for value in self.reader.properties.values(self.words)
            if not set(range(value.first, value.last)) & self.used
        ]
        spans = sorted(
            {(value.first, value.last) for value in found},
            key=lambda span: (span[0] - span[1], span),
        )
        for first, last in spans:
            if set(range(first, last)) & self.used:
                continue
            fitting = [
                (self._fit(value.owner, first, last), value)
                for value in found
                if (value.first, value.last) == (first, last)
            ]
            score, best = max(fitting, key=lambda pair: (pair[0], pair[1]))
            if score > 0:
                self._add(best.owner, best.value, first, last - 1)
                near = [first - 1, last]
                named = [
                    at
                    for at in near
                    if 0 <= at < len(self.words)
                    and at not in self.nouns
                    and self.reader.properties.kinship(self.words[at], best.owner)
                ]
                self.used.update([*range(first, last), *named])

    def _fit(self, owner: Property, first: int, last: int) -> float:
        """How well a property fits a value that the question says; 0 for not."""
        near = [*range(max(0, first - 3), first), *range(last, last + 2)]
        named = max(
            (
                self.reader.properties.kinship(self.words[at], owner)
                for at in near
                if at < len(self.words)
            ),
            default=0.0,
        )
        beside = {self.nouns.get(first - 1), self.nouns.get(last)}
        score = self._hint(owner.label, first) + named + (owner.label in beside)
        said = self.words[first:last]
        if all(word in FUNCTION_WORDS for word in said):
            return 0.0
        if all(word in _EVERYDAY for word in said):
            close = owner.label in (*beside, self._nearest_noun(first))
            return score if close or named else 0.0
        return score + 0.01

    def _negator(self) -> int | None:
        """Where the first word stands that turns what follows."""
        for place, word in enumerate(self.words):
            if word in NEGATORS and place not in self.used:
                return place
        return None

    def _read_missing(self) -> None:
        """Read that what is asked for lacks a property: "not shipped", of a date of
        shipping.
        """
        negator = self._negator()
        if negator is None:
            return
        of_asked = [
            owner
            for owner in self.reader.properties.every
            if owner.label == self.found.asked and not owner.always
        ]
        for place in range(negator + 1, min(len(self.words), negator + 4)):
            for owner in of_asked:
                kinship = self.reader.properties.kinship(self.words[place], owner)
                if kinship >= NAMED and place not in self.used:
                    self._add(owner, {"$exists": False}, place, place)
                    self.used.update((negator, place))
                    return

    def _read_negation(self) -> None:
        """Read what must not be: a condition that is turned, or nothing of a label or a
        name.
        """
        place = self._negator()
        if place is None:
            return
        turned = self._turned(place)
        if turned is not None:
            condition = self.found.conditions[turned]
            self.found.conditions[turned] = _negated(condition)
        else:
            start = self.tokens[place][1]
            self.found.absence = Absence(self._absent(place), start)
        self.used.add(place)

    def _turned(self, place: int) -> int | None:
        """Which condition a negator turns: one that begins right behind it, and says of
        what is asked for.
        """
        for number, condition in enumerate(self.found.conditions):
            between = range(place + 1, condition.first)
            near = all(
                self.words[at] in FUNCTION_WORDS and at not in self.nouns
                for at in between
            )
            of_asked = condition.owner.label == self.found.asked
            if near and condition.first > place and of_asked:
                return number
        return None

    def _absent(self, place: int) -> str:
        """The label of what must not be there, by a noun or a verb behind a negator."""
        for at in range(place + 1, len(self.words)):
            counted = self._counted(self.words[at], self.found.asked)
            if counted:
                return counted
        return ""


def _test(kind: Kind, sign: str, low: Quantity, high: Quantity | None) -> Test:
    """A condition on a value of a kind, as `Where` has it."""
    if kind == "number":
        if high is not None:
            return {"$gte": low.number, "$lte": high.number}
        return {sign or "$eq": low.number}
    begin, end = low.period or ("", "")
    if high is not None:
        end = (high.period or low.period or ("", ""))[1]
    edges: tuple[Any, Any] = (begin, end)
    if kind == "year":
        edges = int(begin[:4]), int(end[:4])
    return {
        "$gt": {"$gte": edges[1]},
        "$gte": {"$gte": edges[0]},
        "$lt": {"$lt": edges[0]},
        "$lte": {"$lt": edges[1]},
    }.get(sign, {"$gte": edges[0], "$lt": edges[1]})


def _negated(condition: Condition) -> Condition:
    """The condition turned round."""
    if isinstance(condition.test, bool):
        return condition._replace(test=not condition.test)
    return condition._replace(negated=True)

"""How well a path fits what a question says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache

from graphret.ark.scripted.question import Cue, Reading
from graphret.ark.scripted.schema import Hop, Known
from graphret.ark.scripted.words import is_person, is_relational, kinship, means_person, names_source

#: Nodes looked at for a relation where a word names one for sure, and where one may be of the text of nodes.
MANY, FEW = 64, 3

# What a path costs. Only their order of size matters: a word that names a relation and goes unread costs most, then an
# end of another kind than asked for, then a hop that no word names.
_HOP, _BACK, _ALONE, _OPEN = 0.1, 0.3, 0.4, 0.05
_UNREAD, _UNREAD_TYPE, _UNREAD_WEAK = 1.0, 0.15, 0.05
_UNREAD_AMONG = 0.4  # in the place of `_UNREAD` where the word may belong to another name: less the farther it is
_UNREAD_TWICE, _UNREAD_TWICE_OPEN = 0.2, 0.5
_UNKNOWN, _UNKNOWN_RELATIONAL = 0.2, 0.8
_TYPE, _TYPE_AT_START = 0.1, 0.6
_WRONG_END = 1.0
_NEVER = math.inf
_UNNAMED, _UNNAMED_BACK, _UNNAMED_SHARED, _UNNAMED_TYPED, _UNNAMED_ASKED = 0.8, 0.3, 0.1, 0.1, 0.2


class Fit:
    """What paths cost under one reading of a question.

    Parameters
    ----------
    reading
        The words, outward from the name.
    types
        The types of the node that the name belongs to.
    known
        What is known of the graph.
    """

    def __init__(self, reading: Reading, types: Sequence[str], known: Known) -> None:
        self.reading = reading
        self.types = types
        self.known = known
        self.words = [cue.word for cue in reading.cues]
        self.reason = lru_cache(maxsize=None)(self._reason)
        self.onward = lru_cache(maxsize=None)(self._onward)
        self._near = lru_cache(maxsize=None)(self._near_to)
        self._at_types = lru_cache(maxsize=None)(self._at_types_of)

    @cached_property
    def lacking(self) -> int:
        """How many nodes are worth a look for a relation that has not been seen yet: none if no word may name one."""
        unknown = [cue.word for cue in self.reading.cues if not cue.weak and not self._named(cue.word)]
        if self._asked_unknown or any(map(is_relational, unknown)):
            return MANY
        return FEW if unknown else 0

    @cached_property
    def _asked(self) -> tuple[str, ...]:
        """The words that say what is asked for: of "who are the directors" the noun, if it is known."""
        nouns = tuple(word for word in self.reading.asked if not means_person(word))
        return tuple(word for word in nouns if self.known.kin(word)) or self.reading.asked

    @cached_property
    def _asked_unknown(self) -> bool:
        nouns = [word for word in self.reading.asked if not means_person(word)]
        return bool(nouns) and self.known.typed and not any(self.known.kin(word) for word in nouns)

    def _named(self, word: str) -> bool:
        """Whether a word names a relation or a type of things; a type of people may well name a relation to come."""
        relations, types = self.known.kin_relations(word), self.known.kin_types(word)
        return bool(relations) or any(not is_person(one) for one in types)

    def _near_to(self, relation: str) -> list[float]:
        """How near each word is to the name of a relation."""
        return [kinship(word, relation) for word in self.words]

    def _reason(self, hop: Hop) -> bool:
        end = self.known.reached(hop).main
        return any(kinship(word, hop.relation) or kinship(word, end) for word in self.words) or self.answers(hop)

    def _onward(self, hop: Hop) -> list[tuple[Hop, bool]]:
        """The hops that may follow one for some reason, and whether it is natural; see `Known.onward`."""
        return [(one, natural) for one, natural in self.known.onward(hop) if self.reason(one) or one == hop.back]

    def answers(self, hop: Hop, *, generally: bool = True) -> bool:
        """Whether what a hop leads to is of the kind asked for; `generally` if any person will do for "who"."""
        end = self.known.reached(hop).main
        for word in self._asked:
            if means_person(word):
                if generally and is_person(end):
                    return True
            elif kinship(word, end) or (
                kinship(word, hop.relation)
                and not self.known.kin_types(word)
                and hop.outgoing != names_source(word, hop.relation)
            ):
                return True
        return False

    def cost(self, path: Sequence[Hop], onward: bool) -> float:
        """Return what a path costs; `onward` if a relation that is not known yet is to follow."""
        reading = self.reading
        turns = [i > 0 and path[i] == path[i - 1].back for i in range(len(path))]
        cost = reading.cost + _HOP * len(path)
        if not reading.together:
            cost += _BACK * sum(turns)
        elif not any(turns) and not onward:
            cost += _ALONE
        if onward:
            cost += _HOP + _OPEN
        elif reading.asked and self.known.typed and not self.answers(path[-1]):
            cost += _WRONG_END
        return cost + self._reading_cost(path, turns, onward)

    def _reading_cost(self, path: Sequence[Hop], turns: Sequence[bool], onward: bool) -> float:
        """The least cost of reading the words along a path: each at a hop or a node, in order, or not at all.

        From the last node back to the first: ``rest[i]`` is what it costs from there on with the words from `i` on
        still to be read, in time linear in words and hops.
        """
        twice = _UNREAD_TWICE_OPEN if onward else _UNREAD_TWICE
        near = [self._near(hop.relation) for hop in path]
        named = list(map(any, zip(*near, strict=True)))
        skip = [twice if also and again else cost for (cost, also), again in zip(self._unread, named, strict=True)]
        again = [_UNREAD_WEAK if cue.weak else twice for cue in self.reading.cues]
        rest = self._ends(skip, onward)
        for place in reversed(range(len(path))):
            waiting = self._unnamed(path, place, turns[place], onward)
            at_type = self._at_types((self.known.reached(path[place]).main,), _TYPE)
            rest = _back(rest, skip, at_type, near[place], again, waiting)
        at_type = self._at_types(tuple(self.types), _TYPE_AT_START)
        best = rest[-1]
        for left, unread, typed in zip(reversed(rest[:-1]), reversed(skip), reversed(at_type), strict=True):
            best = min(left, min(unread, typed) + best)
        return best

    @cached_property
    def _unread(self) -> list[tuple[float, bool]]:
        """What it costs not to read each word, and whether it costs less where a path reads it elsewhere."""
        return [self._unread_alone(i, cue) for i, cue in enumerate(self.reading.cues)]

    def _unread_alone(self, i: int, cue: Cue) -> tuple[float, bool]:
        if cue.title:
            return 0.0, False
        if cue.weak:
            return _UNREAD_WEAK, False
        if not self.known.kin(cue.word):
            return _UNKNOWN_RELATIONAL if is_relational(cue.word) else _UNKNOWN, False
        if not self.known.kin_relations(cue.word):
            return _UNREAD_TYPE if self._named(cue.word) else _UNKNOWN_RELATIONAL, False
        return _UNREAD_AMONG * (1 - i / len(self.words) / 2) if self.reading.among else _UNREAD, True

    @cached_property
    def _open(self) -> list[bool]:
        """Which words a relation may be named by that is not known yet."""
        return [not cue.weak and not self._named(cue.word) for cue in self.reading.cues]

    def _at_types_of(self, names: tuple[str, ...], cost: float) -> list[float]:
        """What it costs to read each word as one of these types, where it may name a relation; infinite if it can't."""
        return [
            _NEVER
            if not any(kinship(cue.word, name) for name in names)
            else 0.0
            if cue.title or not self.known.kin_relations(cue.word)
            else cost
            for cue in self.reading.cues
        ]

    def _unnamed(self, path: Sequence[Hop], place: int, turn: bool, onward: bool) -> float:
        """What it costs that no word names a hop."""
        hop = path[place]
        if place == len(path) - 1 and not onward and self.answers(hop, generally=False):
            return 0.0 if any(kinship(word, hop.relation) for word in self._asked) else _UNNAMED_ASKED
        if turn:
            return _UNNAMED_SHARED if self.reading.together else _UNNAMED_BACK
        return _UNNAMED

    def _ends(self, skip: Sequence[float], onward: bool) -> list[float]:
        """What it costs to end with the words from each on unread.

        Where a relation follows that is not known yet, it reads the first word that it may be named by, and whatever
        follows that.
        """
        unread, until = 0.0, _NEVER
        ends = []
        for i in reversed(range(len(skip) + 1)):
            if i < len(skip):
                unread += skip[i]
                until = 0.0 if self._open[i] else skip[i] + until
            best = min(until, unread if self._asked_unknown else _NEVER) if onward else unread
            ends.append(_UNREAD if best == _NEVER else best)
        return ends[::-1]


def _back(
    rest: Sequence[float],
    skip: Sequence[float],
    at_type: Sequence[float],
    near: Sequence[float],
    again: Sequence[float],
    waiting: float,
) -> list[float]:
    """From what it costs after a node to what it costs before the hop that leads to it; see `Fit._reading_cost`.

    Parameters
    ----------
    rest, skip, at_type, near, again
        For each word: the cost after the node, that of passing over the word, that of reading it as the node's type,
        how near it is to the relation, and what it costs as one more word for the hop.
    waiting
        What it costs if no word names the hop, which is less where one names the node's type.
    """
    typed_waiting = min(waiting, _UNNAMED_TYPED)
    free, owing = rest[-1], waiting + rest[-1]  # at the node, with the hop named or not
    read = free  # at the hop, with a word for it read
    before = [owing]
    for i in reversed(range(len(skip))):
        owing = min(waiting + rest[i], skip[i] + owing, at_type[i] + typed_waiting + free)
        free = min(rest[i], min(skip[i], at_type[i]) + free)
        if near[i]:
            far = (1 - near[i]) / 2
            before.append(min(owing, far + read))
            read = min(free, far + again[i] + read)
        else:
            before.append(owing)
            read = free
    return before[::-1]

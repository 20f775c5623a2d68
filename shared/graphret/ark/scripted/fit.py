"""How well a path fits what a question says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property, lru_cache

from graphret.ark.scripted.question import Reading
from graphret.ark.scripted.schema import Hop, Known
from graphret.ark.scripted.words import is_person, is_relational, kinship, means_person

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

    def _reason(self, hop: Hop) -> bool:
        end = self.known.reached(hop).main
        return any(kinship(word, hop.relation) or kinship(word, end) for word in self.words) or self.answers(hop)

    def answers(self, hop: Hop, *, generally: bool = True) -> bool:
        """Whether what a hop leads to is of the kind asked for; `generally` if any person will do for "who"."""
        end = self.known.reached(hop).main
        for word in self._asked:
            if means_person(word):
                if generally and is_person(end):
                    return True
            elif kinship(word, end) or (
                hop.outgoing and kinship(word, hop.relation) and not self.known.kin_types(word)
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
        """The least cost of reading the words along a path: each at a hop or a node, in order, or not at all."""
        cues, n = self.reading.cues, len(path)
        ends = [self.known.reached(hop).main for hop in path]
        twice = _UNREAD_TWICE_OPEN if onward else _UNREAD_TWICE

        @cache
        def skip(i: int) -> float:
            cue = cues[i]
            if cue.title:
                return 0.0
            if cue.weak:
                return _UNREAD_WEAK
            if not self.known.kin(cue.word):
                return _UNKNOWN_RELATIONAL if is_relational(cue.word) else _UNKNOWN
            if not self.known.kin_relations(cue.word):
                return _UNREAD_TYPE if self._named(cue.word) else _UNKNOWN_RELATIONAL
            if any(kinship(cue.word, hop.relation) for hop in path):
                return twice
            return _UNREAD_AMONG * (1 - i / len(cues) / 2) if self.reading.among else _UNREAD

        def at_type(i: int, node: int) -> float:
            """What it costs to read a word as a type, where it may name a relation."""
            if cues[i].title or not self.known.kin_relations(cues[i].word):
                return 0.0
            return _TYPE_AT_START if node == 0 else _TYPE

        def unnamed(hop: int) -> float:
            if hop == n - 1 and not onward and self.answers(path[hop], generally=False):
                named = any(kinship(word, path[hop].relation) for word in self._asked)
                return 0.0 if named else _UNNAMED_ASKED
            if turns[hop]:
                return _UNNAMED_SHARED if self.reading.together else _UNNAMED_BACK
            return _UNNAMED

        def end(i: int) -> float:
            rest = [skip(j) for j in range(i, len(cues))]
            if not onward:
                return sum(rest)
            # what is not known yet reads the first word that it may be named by, and whatever follows
            places = [j for j in range(i, len(cues)) if not cues[j].weak and not self._named(cues[j].word)]
            options = [sum(rest[: j - i]) for j in places[:1]] + ([sum(rest)] if self._asked_unknown else [])
            return min(options, default=_UNREAD)

        @cache
        def at_node(i: int, node: int, pending: float) -> float:
            """The cost from here on, with words from i to read, `pending` for the hop that led here unnamed."""
            best = pending + (at_hop(i, node, False) if node < n else end(i))
            if i < len(cues):
                best = min(best, skip(i) + at_node(i + 1, node, pending))
                if any(kinship(cues[i].word, name) for name in (self.types if node == 0 else ends[node - 1 : node])):
                    best = min(best, at_type(i, node) + at_node(i + 1, node, min(pending, _UNNAMED_TYPED)))
            return best

        @cache
        def at_hop(i: int, hop: int, read: bool) -> float:
            best = at_node(i, hop + 1, 0.0 if read else unnamed(hop))
            if i < len(cues) and (near := kinship(cues[i].word, path[hop].relation)):
                again = 0.0 if not read else _UNREAD_WEAK if cues[i].weak else twice
                best = min(best, (1 - near) / 2 + again + at_hop(i + 1, hop, True))
            return best

        return at_node(0, 0, 0.0)

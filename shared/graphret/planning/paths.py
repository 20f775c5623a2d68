"""From what a question says to hops to follow: the paths whose relations and types fit its words best, in order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from graphret.planning.question import Cue, Reading
from graphret.planning.words import is_person, is_relational, kinship, means_person, names_source

#: Longest path that is looked for, and paths of one length that are looked at under one reading.
MOST_HOPS, MOST_PATHS = 3, 480
#: Nodes looked at for a relation that is not known yet: where a word names one for sure, and where one may be of texts.
MANY, FEW = 64, 3

# What a path costs. Only their order of size matters: a word that names a relation and goes unread costs most, then an
# end of another kind than asked for, then a hop that no word names.
_HOP, _BACK, _ALONE, _OPEN, _ODD_PART = 0.1, 0.3, 0.4, 0.05, 0.6
_UNREAD, _UNREAD_TYPE, _UNREAD_WEAK, _UNREAD_AMONG = 1.0, 0.15, 0.05, 0.4
_UNREAD_TWICE, _UNREAD_TWICE_OPEN = 0.2, 0.5
_UNKNOWN, _UNKNOWN_RELATIONAL = 0.2, 0.8
_TYPE, _TYPE_AT_START, _WRONG_END = 0.1, 0.6, 1.0
_UNNAMED, _UNNAMED_BACK, _UNNAMED_SHARED, _UNNAMED_TYPED, _UNNAMED_ASKED = 0.8, 0.3, 0.1, 0.1, 0.2


@dataclass(frozen=True, slots=True, order=True)
class Hop:
    """A relation followed in one direction."""

    relation: str
    outgoing: bool

    @property
    def back(self) -> Hop:
        """The same relation the other way."""
        return Hop(self.relation, not self.outgoing)


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A node as it was seen; `via` are the relations to the node explored, and whether they lead here."""

    id: str
    name: str
    types: tuple[str, ...] = ()
    via: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Explored:
    """What was seen around a node.

    Parameters
    ----------
    relations
        ``(relation, outgoing, type of the neighbours, count)`` over the whole neighbourhood.
    neighbors
        Those that were shown.
    asked
        The relations that the exploration was limited to, or `None`.
    """

    node: str
    types: tuple[str, ...]
    relations: tuple[tuple[str, bool, str, int], ...]
    neighbors: tuple[Neighbor, ...]
    asked: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Hops to follow from a name, and how many of their ends to look at for a relation that is to follow, if any."""

    hops: tuple[Hop, ...]
    probes: int
    cost: float


@dataclass(frozen=True)
class Side:
    """The nodes at one end of a relation: how often each type was seen there, and how often as a node's first."""

    relation: str
    types: Counter[str] = field(default_factory=Counter)
    first: Counter[str] = field(default_factory=Counter)

    @cached_property
    def main(self) -> str:
        """The type that stands there most often; of several the one that the relation is named after."""

        def key(one: str) -> tuple[int, float, int, str]:
            return self.types[one], kinship(one.lower(), self.relation), self.first[one], one

        return max(self.types, key=key, default="")


class Known:
    """What is known of a graph from the nodes explored so far: its relations, and the types at both of their ends."""

    def __init__(self, explorations: Iterable[Explored]) -> None:
        self._sides: dict[tuple[str, bool], Side] = {}
        self.kin_relations = lru_cache(maxsize=None)(self._kin_relations)
        self.kin_types = lru_cache(maxsize=None)(self._kin_types)
        explored = list(explorations)
        for one in explored:
            for relation, outgoing, _, _ in one.relations:
                self._add(relation, not outgoing, one.types, 1)
            for neighbor in one.neighbors:
                for relation, outgoing in neighbor.via:
                    self._add(relation, outgoing, neighbor.types, 1)
        shown = set(self._sides)
        for one in explored:  # of what is only counted no more than the first type is said
            for relation, outgoing, other, count in one.relations:
                if (relation, outgoing) not in shown:
                    self._add(relation, outgoing, (other,), count)
        self.relations = tuple(sorted({relation for relation, _ in self._sides}))
        self.types = tuple(sorted({side.main for side in self._sides.values()}))
        # all that its answers depend on
        self._state = frozenset((key, side.main, frozenset(side.types)) for key, side in self._sides.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self._state == other._state

    def __hash__(self) -> int:
        return hash(self._state)

    def _add(self, relation: str, target: bool, types: Sequence[str], count: int) -> None:
        side = self._sides.setdefault((relation, target), Side(relation))
        for place, one in enumerate(types):
            if one:
                side.types[one] += count
                side.first[one] += count * (place == 0)

    def reached(self, hop: Hop) -> Side:
        """The end that a hop leads to."""
        return self._sides.get((hop.relation, hop.outgoing)) or Side(hop.relation)

    def _kin_relations(self, word: str) -> list[str]:
        """The relations that a word may name."""
        return [one for one in self.relations if kinship(word, one)]

    def _kin_types(self, word: str) -> list[str]:
        """The types that a word may name, of those that some relation leads to or from."""
        return [one for one in self.types if kinship(word, one)]

    def named(self, word: str) -> bool:
        """Whether a word may name a relation or a type."""
        return bool(self.kin_relations(word) or self.kin_types(word))

    def onward(self, hop: Hop) -> list[tuple[Hop, bool]]:
        """What may follow a hop, and whether it is natural that nodes reached by the one play the part for the next."""
        here, found = self.reached(hop), []
        for onward in (Hop(name, outgoing) for name in self.relations for outgoing in (True, False)):
            there = self.reached(onward.back)
            if here is there or here.main == there.main:
                found.append((onward, True))
            elif here.types[there.main] or there.types[here.main]:
                found.append((onward, False))
        return found


@lru_cache(maxsize=64)  # from turn to turn, little new is known of a graph's relations
def plans(
    read: tuple[Reading, ...],
    types: tuple[str, ...],
    first: tuple[Hop, ...],
    known: Known,
    *,
    most_paths: int = MOST_PATHS,
    worst: float = math.inf,
) -> tuple[Plan, ...]:
    """Return the paths on which each hop has some reason to be taken, the one that fits the question best first.

    Parameters
    ----------
    read
        The ways to read the question.
    types, first
        The types of the node that the name belongs to, and the hops that lead from it.
    most_paths
        How many paths of one length are looked at under one reading, those first on which each node plays its part.
    worst
        What a plan may cost.
    """
    costs: dict[tuple[tuple[Hop, ...], int], float] = {}
    for reading in read:
        fit = _Fit(reading, types, known)
        level: list[tuple[tuple[Hop, ...], float]] = []
        level += [((hop,), 0.0) for hop in first if fit.reason(hop)][:most_paths]
        for length in range(1, MOST_HOPS + 1):
            for path, odd in level:
                for probes in {0, fit.lacking} if length < MOST_HOPS else {0}:
                    cost = odd + fit.cost(path, probes > 0)
                    costs[path, probes] = min(cost, costs.get((path, probes), cost))
            longer = [
                ((*path, hop), odd + (0.0 if natural else _ODD_PART))
                for path, odd in level
                for hop, natural in fit.onward(path[-1])
            ]
            level = sorted(longer, key=lambda one: one[1])[:most_paths] if len(longer) > most_paths else longer
    made = [Plan(path, probes, cost) for (path, probes), cost in costs.items() if cost <= worst]
    return tuple(sorted(made, key=lambda plan: (plan.cost, len(plan.hops), plan.probes, plan.hops)))


class _Fit:
    """What paths cost under one reading of a question, from a node of some types."""

    def __init__(self, reading: Reading, types: Sequence[str], known: Known) -> None:
        self.reading = reading
        self.types = types
        self.known = known
        self.words = [cue.word for cue in reading.cues]
        self.reason = lru_cache(maxsize=None)(self._reason)
        self.onward = lru_cache(maxsize=None)(self._onward)
        self._near = lru_cache(maxsize=None)(lambda relation: [kinship(word, relation) for word in self.words])
        self._typed = lru_cache(maxsize=None)(self._read_as_type)
        self._skip = [self._unread(i, cue) for i, cue in enumerate(reading.cues)]
        nouns = [word for word in reading.asked if not means_person(word)]
        # of "who are the directors" the noun, if it is known
        self._asked = tuple(word for word in nouns if known.named(word)) or reading.asked
        self._asked_unknown = (
            bool(nouns) and any(known.types) and not any(known.kin_types(w) or known.kin_relations(w) for w in nouns)
        )
        self._open = [not cue.weak and not self._named(cue.word) for cue in reading.cues]
        unknown = [cue.word for cue, is_open in zip(reading.cues, self._open, strict=True) if is_open]
        #: How many nodes are worth a look for a relation that has not been seen yet.
        self.lacking = MANY if self._asked_unknown or any(map(is_relational, unknown)) else FEW if unknown else 0

    def _named(self, word: str) -> bool:
        """Whether a word names a relation or a type of things; a type of people may well name a relation to come."""
        relations, types = self.known.kin_relations(word), self.known.kin_types(word)
        return bool(relations) or any(not is_person(one) for one in types)

    def _reason(self, hop: Hop) -> bool:
        end = self.known.reached(hop).main
        return any(kinship(word, hop.relation) or kinship(word, end) for word in self.words) or self._answers(hop)

    def _onward(self, hop: Hop) -> list[tuple[Hop, bool]]:
        return [(one, natural) for one, natural in self.known.onward(hop) if self.reason(one) or one == hop.back]

    def _answers(self, hop: Hop, *, generally: bool = True) -> bool:
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
        elif reading.asked and any(self.known.types) and not self._answers(path[-1]):
            cost += _WRONG_END
        return cost + self._alignment(path, turns, onward)

    def _alignment(self, path: Sequence[Hop], turns: Sequence[bool], onward: bool) -> float:
        """The least cost of reading the words along a path: each at a hop or a node, in order, or not at all.

        An edit distance: `costs[i]` is that of the first `i` words, after each hop in turn.
        """
        twice = _UNREAD_TWICE_OPEN if onward else _UNREAD_TWICE
        near = [self._near(hop.relation) for hop in path]
        elsewhere = [any(one) for one in zip(*near, strict=True)]
        skip = [twice if also and there else one for (one, also), there in zip(self._skip, elsewhere, strict=True)]
        at_node = self._typed(tuple(self.types), _TYPE_AT_START)
        costs = [0.0]
        for i in range(len(skip)):
            costs.append(costs[i] + min(skip[i], at_node[i]))
        for place, hop in enumerate(path):
            unnamed = self._unnamed(path, place, turns[place], onward)
            at_node = self._typed((self.known.reached(hop).main,), _TYPE)
            after = [costs[0] + unnamed]
            read = [math.inf]  # with the hop named by a word
            for i, kin in enumerate(near[place]):
                again = _UNREAD_WEAK if self.reading.cues[i].weak else twice
                named = costs[i] + (1 - kin) / 2 if kin else math.inf
                stay = min(skip[i], at_node[i], (1 - kin) / 2 + again if kin else math.inf)
                read.append(min(named, read[i] + stay))
                unread = min(costs[i + 1] + unnamed, after[i] + min(skip[i], at_node[i]))
                typed = costs[i] + min(unnamed, _UNNAMED_TYPED) + at_node[i]
                after.append(min(unread, typed, read[i + 1]))
            costs = after
        return min(cost + end for cost, end in zip(costs, self._ends(skip, onward), strict=True))

    def _unread(self, i: int, cue: Cue) -> tuple[float, bool]:
        """What it costs not to read a word, and whether it costs less where a path reads it elsewhere."""
        if cue.title or cue.weak:
            return (0.0 if cue.title else _UNREAD_WEAK), False
        if not self.known.named(cue.word):
            return _UNKNOWN_RELATIONAL if is_relational(cue.word) else _UNKNOWN, False
        if not self.known.kin_relations(cue.word):
            return _UNREAD_TYPE if self._named(cue.word) else _UNKNOWN_RELATIONAL, False
        return _UNREAD_AMONG * (1 - i / len(self.words) / 2) if self.reading.among else _UNREAD, True

    def _read_as_type(self, names: tuple[str, ...], cost: float) -> list[float]:
        """What it costs to read each word as one of these types, where it may name a relation; infinite if it can't."""
        return [
            math.inf
            if not any(kinship(cue.word, name) for name in names)
            else 0.0
            if cue.title or not self.known.kin_relations(cue.word)
            else cost
            for cue in self.reading.cues
        ]

    def _unnamed(self, path: Sequence[Hop], place: int, turn: bool, onward: bool) -> float:
        """What it costs that no word names a hop."""
        hop = path[place]
        if place == len(path) - 1 and not onward and self._answers(hop, generally=False):
            return 0.0 if any(kinship(word, hop.relation) for word in self._asked) else _UNNAMED_ASKED
        if turn:
            return _UNNAMED_SHARED if self.reading.together else _UNNAMED_BACK
        return _UNNAMED

    def _ends(self, skip: Sequence[float], onward: bool) -> list[float]:
        """What it costs to end with the words from each on unread.

        A relation that is not known yet reads the first word that it may be named by, and whatever follows that.
        """
        unread, until, ends = 0.0, math.inf, []
        for i in reversed(range(len(skip) + 1)):
            if i < len(skip):
                unread += skip[i]
                until = 0.0 if self._open[i] else skip[i] + until
            best = min(until, unread if self._asked_unknown else math.inf) if onward else unread
            ends.append(_UNREAD if best == math.inf else best)
        return ends[::-1]

"""What is known of a graph's relations from the nodes explored so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from graphret.ark.scripted.transcript import Exploration
from graphret.ark.scripted.words import kinship


@dataclass(frozen=True, slots=True, order=True)
class Hop:
    """A relation followed in one direction."""

    relation: str
    outgoing: bool

    @property
    def back(self) -> Hop:
        """The same relation the other way."""
        return Hop(self.relation, not self.outgoing)


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
    """The relations seen, and the types at both of their ends."""

    def __init__(self, explorations: Iterable[Exploration]) -> None:
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

    @cached_property
    def _state(self) -> frozenset[tuple[tuple[str, bool], str, frozenset[str]]]:
        """All that its answers depend on."""
        return frozenset((key, side.main, frozenset(side.types)) for key, side in self._sides.items())

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

    def left(self, hop: Hop) -> Side:
        """The end that a hop leaves from."""
        return self._sides.get((hop.relation, not hop.outgoing)) or Side(hop.relation)

    @cached_property
    def hops(self) -> tuple[Hop, ...]:
        """Every relation in both directions, in order."""
        return tuple(Hop(name, outgoing) for name in self.relations for outgoing in (True, False))

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The names of all relations, in order."""
        return tuple(sorted({relation for relation, _ in self._sides}))

    @cached_property
    def _types(self) -> tuple[str, ...]:
        return tuple(sorted({side.main for side in self._sides.values()}))

    @cached_property
    def typed(self) -> bool:
        """Whether the nodes have types."""
        return any(self._types)

    def _kin_relations(self, word: str) -> list[str]:
        """The relations that a word may name."""
        return [one for one in self.relations if kinship(word, one)]

    def _kin_types(self, word: str) -> list[str]:
        """The types that a word may name, of those that some relation leads to or from."""
        return [one for one in self._types if kinship(word, one)]

    def kin(self, word: str) -> bool:
        """Whether a word may name a relation or a type."""
        return bool(self.kin_relations(word) or self.kin_types(word))

    def onward(self, hop: Hop) -> Iterator[tuple[Hop, bool]]:
        """What may follow a hop, and whether it is natural that nodes reached by the one play the part for the next."""
        here = self.reached(hop)
        for onward in self.hops:
            there = self.left(onward)
            if here is there or here.main == there.main:
                yield onward, True
            elif here.types[there.main] or there.types[here.main]:
                yield onward, False

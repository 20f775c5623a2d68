"""Where the nodes that agents reached stand: a column for each step away from what a search found."""

from __future__ import annotations

from dataclasses import dataclass

from graphret.explain.timeline import Reached, Timeline, edges, reached

MOST_NODES, MOST_EDGES, MOST_COLUMNS = 60, 150, 6


@dataclass(frozen=True, slots=True)
class Place:
    """A node in the picture: its rank in the vote from 1 if it has one, its column and its place in it from 0."""

    node: Reached
    rank: int | None
    column: int
    slot: int


@dataclass(frozen=True, slots=True)
class Link:
    """An edge in the picture between two places, by their numbers, in the direction of the graph."""

    source: int
    target: int
    relation: str


@dataclass(frozen=True, slots=True)
class Reach:
    """The nodes that were explored or selected, those that led there, and the edges that tools showed among them.

    `others` counts the nodes that tools showed and that are not drawn.
    """

    places: tuple[Place, ...] = ()
    links: tuple[Link, ...] = ()
    others: int = 0

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return max((place.column + 1 for place in self.places), default=0)

    @property
    def slots(self) -> int:
        """How many places the fullest column has."""
        return max((place.slot + 1 for place in self.places), default=0)


def reach(line: Timeline) -> Reach:
    """Lay out the nodes reached; the same timeline makes the same picture."""
    found, shown = reached(line), edges(line)
    ranks = {choice.id: rank for rank, choice in enumerate(line.ranking, start=1)}
    kept = _kept(found, shown, ranks)
    columns: dict[int, list[str]] = {}
    for id_ in sorted(kept, key=lambda id_: ranks.get(id_, len(ranks) + 1)):
        columns.setdefault(min(found[id_].depth, MOST_COLUMNS - 1), []).append(id_)
    places = tuple(
        Place(found[id_], ranks.get(id_), column, slot)
        for column, (_, ids) in enumerate(sorted(columns.items()))
        for slot, id_ in enumerate(ids)
    )
    number = {place.node.id: n for n, place in enumerate(places)}
    among = [Link(number[a], number[b], relation) for a, relation, b in shown if a in number and b in number and a != b]
    return Reach(places, tuple(among[:MOST_EDGES]), len(found) - len(places))


def _kept(found: dict[str, Reached], shown: list[tuple[str, str, str]], ranks: dict[str, int]) -> list[str]:
    """The nodes to draw: the vote's first, then those explored, each with the nodes that led to it."""
    parents: dict[str, str] = {}
    for source, _, target in shown:
        for id_, start in ((target, source), (source, target)):
            if id_ in found and start in found and found[start].depth < found[id_].depth:
                parents.setdefault(id_, start)
    kept: dict[str, None] = {}
    chosen = [id_ for id_, node in found.items() if node.selected and id_ not in ranks]
    explored = [id_ for id_, node in found.items() if node.explored]
    for id_ in [*(id_ for id_ in ranks if id_ in found), *explored, *chosen]:
        path = [id_]
        while path[-1] in parents:
            path.append(parents[path[-1]])
        new = [one for one in path if one not in kept]
        if len(kept) + len(new) <= MOST_NODES:
            kept.update(dict.fromkeys(new))
    return [id_ for id_ in found if id_ in kept]

"""Where nodes and edges stand in a picture, always the same for the same input: columns of cards, and lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from graphret.explain.runs import Reached, Timeline, edges, reached
from graphret.explain.words import edge_text
from graphret.types import Hit, Node

FOUND, BROUGHT = 0, 1
"""The columns of a retrieval: what the question finds by itself, and what an edge brings."""

MOST_NODES, MOST_EDGES, MOST_COLUMNS = 60, 150, 6
"""The limits of the picture of a run."""

_EDGES = ("neighbor", "path")


@dataclass(frozen=True, slots=True)
class Card:
    """A node in a picture: its rank from 1 if it has one, its column, and its place in it from 0."""

    node: Node
    rank: int | None
    column: int
    slot: int


@dataclass(frozen=True, slots=True)
class Line:
    """An edge in a picture between two cards, by their numbers."""

    source: int
    target: int
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Cards and lines; `others` counts the nodes that are not drawn."""

    cards: tuple[Card, ...] = ()
    lines: tuple[Line, ...] = ()
    others: int = 0

    @property
    def slots(self) -> int:
        """How many cards the highest column has."""
        return max((card.slot + 1 for card in self.cards), default=0)


def retrieval_picture(hits: Sequence[Hit], known: Mapping[str, Node], found: Collection[str]) -> Picture:
    """Lay out hits, by rank, and the edges of their evidence.

    Parameters
    ----------
    known
        Nodes by id, those at the other ends of edges among them.
    found
        Ids of what a flat search of the same depth returns: these stand on the left, and below them the nodes that are
        no hits, but brought one.
    """
    ranks = {hit.id: rank for rank, hit in enumerate(hits, start=1)}
    walked = [(hit, evidence) for hit in hits for evidence in hit.evidence if evidence.kind in _EDGES]
    passed = dict.fromkeys(e.source for _, e in walked if e.source is not None and e.source not in ranks)
    left = [hit.id for hit in hits if hit.id in found] + list(passed)
    right = [hit.id for hit in hits if hit.id not in found]
    nodes = {**known, **{hit.id: hit.node for hit in hits}}
    cards = [
        Card(nodes.get(id_) or Node(id_, ()), ranks.get(id_), column, slot)
        for column, ids in ((FOUND, left), (BROUGHT, right))
        for slot, id_ in enumerate(ids)
    ]
    place = {card.node.id: number for number, card in enumerate(cards)}
    lines: dict[tuple[frozenset[str], str], Line] = {}
    for hit, evidence in sorted(walked, key=lambda edge: edge[0].id in found):  # those that brought something first
        if evidence.source is not None and evidence.source != hit.id:
            text = edge_text(evidence.relation, evidence.properties)
            key = frozenset((hit.id, evidence.source)), text
            lines.setdefault(key, Line(place[evidence.source], place[hit.id], text))
    return Picture(tuple(cards), tuple(lines.values()))


def found_by_question(hits: Sequence[Hit]) -> set[str]:
    """Return the ids of hits that a flat search of this depth would return too, as far as their evidence tells."""
    return {
        hit.id
        for hit in hits
        if not any(evidence.kind in _EDGES for evidence in hit.evidence)
        or any(e.kind == "seed" and e.rank is not None and e.rank <= len(hits) for e in hit.evidence)
    }


def run_picture(run: Timeline, known: Mapping[str, Node]) -> Picture:
    """Lay out the nodes that were explored or selected, those that led there, and the edges shown among them.

    There is a column for each step away from what a search found.
    """
    found, shown = reached(run), edges(run)
    ranks = {choice.id: rank for rank, choice in enumerate(run.ranking, start=1)}
    columns: dict[int, list[str]] = {}
    for id_ in sorted(_drawn(found, shown, ranks), key=lambda id_: ranks.get(id_, len(ranks) + 1)):
        columns.setdefault(min(found[id_].depth, MOST_COLUMNS - 1), []).append(id_)
    cards = tuple(
        Card(known.get(id_) or Node(id_, ()), ranks.get(id_), column, slot)
        for column, (_, ids) in enumerate(sorted(columns.items()))
        for slot, id_ in enumerate(ids)
    )
    place = {card.node.id: number for number, card in enumerate(cards)}
    lines = [Line(place[a], place[b], text) for a, text, b in shown if a in place and b in place and a != b]
    return Picture(cards, tuple(lines[:MOST_EDGES]), len(found) - len(cards))


def _drawn(found: Mapping[str, Reached], shown: list[tuple[str, str, str]], ranks: Mapping[str, int]) -> list[str]:
    """Return the nodes to draw: the vote's first, then those explored, each with the nodes that led to it."""
    parents: dict[str, str] = {}
    for source, _, target in shown:
        for id_, start in ((target, source), (source, target)):
            if id_ in found and start in found and found[start].depth < found[id_].depth:
                parents.setdefault(id_, start)
    kept: dict[str, None] = {}
    explored = [id_ for id_, node in found.items() if node.explored]
    selected = [id_ for id_, node in found.items() if node.selected and id_ not in ranks]
    for id_ in [*(id_ for id_ in ranks if id_ in found), *explored, *selected]:
        path = [id_]
        while path[-1] in parents:
            path.append(parents[path[-1]])
        new = [one for one in path if one not in kept]
        if len(kept) + len(new) <= MOST_NODES:
            kept.update(dict.fromkeys(new))
    return [id_ for id_ in found if id_ in kept]

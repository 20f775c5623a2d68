"""Where nodes and edges stand in a picture, always the same for the same input: columns of cards, and curves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from graphret.explain.runs import Timeline
from graphret.explain.words import edge_text
from graphret.types import Hit, Node

FOUND, BROUGHT = 0, 1
"""The columns of a retrieval: what the question finds by itself, and what an edge brings."""

MOST_NODES, MOST_EDGES, MOST_COLUMNS = 60, 150, 6
"""The limits of the picture of a run."""

_HEAD, _CARD, _GAP = 28, 54, 14  # pixels: what is above the cards, the height of one, and what is between two
_PITCH, _WIDTH, _MARGIN = 330, 240, 26  # pixels, in a run: from column to column, of a card, and beside all
_EDGES = ("neighbor", "path")
_Edge: TypeAlias = "tuple[str, str, str]"


@dataclass(frozen=True, slots=True)
class Card:
    """A node in a picture: its rank from 1 if it has one, its column, and its place in it from 0."""

    node: Node
    rank: int | None
    column: int
    slot: int

    @property
    def top(self) -> int:
        """Pixels above it."""
        return _HEAD + self.slot * (_CARD + _GAP)


@dataclass(frozen=True, slots=True)
class Line:
    """An edge in a picture between two cards, by their numbers, as the path of a curve.

    `leads` where it is the first to a card, from a column further left.
    """

    source: int
    target: int
    text: str
    path: str
    leads: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """Cards and lines; `lefts` has where each column begins, and `others` counts the nodes that are not drawn."""

    cards: Sequence[Card]
    lines: Sequence[Line]
    lefts: Sequence[float]
    others: int = 0

    @property
    def height(self) -> int:
        """In pixels."""
        return max((card.top + _CARD + _GAP for card in self.cards), default=_HEAD)

    @property
    def width(self) -> float:
        """Of a run, in pixels."""
        return max(self.lefts, default=0) + _WIDTH + _MARGIN

    def ways(self, at: int) -> list[str]:
        """Return the edges by which a card was reached from its own column or one further left."""
        column = self.cards[at].column
        said = [(line, "→", line.source) for line in self.lines if line.target == at]
        said += [(line, "←", line.target) for line in self.lines if line.source == at]
        ways = [f"{arrow} {line.text}" for line, arrow, other in said if self.cards[other].column <= column]
        return list(dict.fromkeys(ways))


def retrieval_picture(hits: Sequence[Hit], known: Mapping[str, Node], found: Collection[str]) -> Picture:
    """Lay out hits, by rank, and the edges of their evidence, across in percent.

    Parameters
    ----------
    known
        Nodes by id, those at the other ends of edges among them.
    found
        Ids of what a flat search of the same depth returns: these stand on the left, and below them the nodes that are
        no hits, but brought one.
    """
    ranks = {hit.id: rank for rank, hit in enumerate(hits, start=1)}
    ordered = sorted(hits, key=lambda hit: hit.id in found)  # edges that brought something first
    edges: dict[tuple[frozenset[str], str], _Edge] = {}
    for hit in ordered:
        for e in hit.evidence:
            if e.kind in _EDGES and e.source is not None and e.source != hit.id:
                text = edge_text(e.relation, e.properties)
                edges.setdefault((frozenset((hit.id, e.source)), text), (e.source, text, hit.id))
    passed = dict.fromkeys(e.source for hit in hits for e in hit.evidence if e.kind in _EDGES and e.source)
    left = [*(id_ for id_ in ranks if id_ in found), *(id_ for id_ in passed if id_ not in ranks)]
    columns = [left, [id_ for id_ in ranks if id_ not in found]]
    return _laid_out(columns, edges.values(), known, ranks, [(4, 35), (65, 96)], (3, 0.4, 7.5))


def found_by_question(hits: Sequence[Hit]) -> set[str]:
    """Return the ids of hits that a flat search of this depth would return too, as far as their evidence tells."""
    return {
        hit.id
        for hit in hits
        if not any(evidence.kind in _EDGES for evidence in hit.evidence)
        or any(e.kind == "seed" and e.rank is not None and e.rank <= len(hits) for e in hit.evidence)
    }


def run_picture(run: Timeline, known: Mapping[str, Node]) -> Picture:
    """Lay out the nodes that were explored or selected, and the edges shown among them.

    There is a column for each step away from what a search found.
    """
    found = run.reached()
    ranks = {vote.id: rank for rank, vote in enumerate(run.ranking, start=1)}
    explored, selected = ([id_ for id_ in found if getattr(found[id_], by)] for by in ("explored", "selected"))
    drawn = [id_ for id_ in dict.fromkeys([*explored, *ranks, *selected]) if id_ in found][:MOST_NODES]
    columns: dict[int, list[str]] = {}
    for id_ in sorted(drawn, key=lambda id_: ranks.get(id_, len(ranks) + 1)):
        columns.setdefault(min(found[id_].depth, MOST_COLUMNS - 1), []).append(id_)
    spans = [(at, at + _WIDTH) for at in range(_MARGIN, _MARGIN + _PITCH * len(columns), _PITCH)]
    edges = [edge for edge in run.edges if edge[0] != edge[2]]
    ordered = [ids for _, ids in sorted(columns.items())]
    return _laid_out(ordered, edges, known, ranks, spans, (8, 3, _MARGIN - 4), len(found) - len(drawn))


def _laid_out(
    columns: Sequence[Sequence[str]],
    edges: Iterable[_Edge],
    known: Mapping[str, Node],
    ranks: Mapping[str, int],
    spans: Sequence[tuple[float, float]],
    bends: tuple[float, float, float],
    others: int = 0,
) -> Picture:
    """Place nodes in columns from top to bottom; `spans` has where each begins and ends across.

    `bends` says how far a curve within a column swings out: at least, more for each card it passes, and at most.
    """
    cards = [
        Card(known.get(id_) or Node(id_, ()), ranks.get(id_), column, slot)
        for column, ids in enumerate(columns)
        for slot, id_ in enumerate(ids)
    ]
    place = {card.node.id: number for number, card in enumerate(cards)}

    def path(a: Card, b: Card) -> str:
        """Return the curve from one card to another, out of the sides that face each other."""
        if a.column == b.column:
            outer = a.column > 0 and a.column == len(columns) - 1  # the last column's curves are right of it
            x = w = spans[a.column][outer]
            least, more, most = bends
            swing = min(most, least + more * abs(a.slot - b.slot)) * (1 if outer else -1)
            bend = back = swing
        else:
            x, w = spans[a.column][a.column < b.column], spans[b.column][a.column > b.column]
            bend, back = 0.45 * (w - x), 0.45 * (x - w)
        y, z = a.top + _CARD / 2, b.top + _CARD / 2
        return f"M {x} {y} C {x + bend:.2f} {y}, {w + back:.2f} {z}, {w} {z}"

    lines: list[Line] = []
    led: set[int] = set()
    for source, text, target in edges:
        if source in place and target in place and len(lines) < MOST_EDGES:
            a, b = place[source], place[target]
            leads = b not in led and cards[a].column < cards[b].column
            led.add(b)
            lines.append(Line(a, b, text, path(cards[a], cards[b]), leads))
    return Picture(cards, lines, [left for left, _ in spans], others)

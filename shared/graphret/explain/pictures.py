"""Deterministic layout of nodes and edges: columns of cards, and curves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphret.explain.runs import Timeline
from graphret.explain.words import edge_text
from graphret.types import Hit, Node

MOST_NODES, MOST_EDGES, MOST_COLUMNS = 60, 150, 6
"""The limits of the picture of a run."""

# The heights in pixels of the space above the cards, a card, and the gap between two.
_HEAD, _CARD, _GAP = 28, 54, 14
EDGES = ("neighbor", "path")
"""The kinds of evidence that are edges."""


@dataclass(frozen=True, slots=True)
class Card:
    """A node in a picture: its rank from 1 if any, column, and top in pixels."""

    node: Node
    rank: int | None
    column: int
    top: int


@dataclass(frozen=True, slots=True)
class Line:
    """An edge between two cards, by their numbers.

    `leads` tells whether it is the first to its target from a column further left.
    """

    source: int
    target: int
    text: str
    path: str
    leads: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """Cards and lines, the columns' left sides and width in percent, and `not_drawn`.

    `not_drawn` is the number of nodes that are left out.
    """

    cards: Sequence[Card]
    lines: Sequence[Line]
    lefts: Sequence[float]
    width: float
    not_drawn: int

    @property
    def height(self) -> int:
        """In pixels."""
        return max((card.top + _CARD + _GAP for card in self.cards), default=_HEAD)

    def edges_to(self, at: int) -> list[str]:
        """Return the edges to a card from its own column or one further left."""
        column = self.cards[at].column
        incident = [
            (line, "→", line.source) for line in self.lines if line.target == at
        ]
        incident += [
            (line, "←", line.target) for line in self.lines if line.source == at
        ]
        texts = [
            f"{arrow} {line.text}"
            for line, arrow, other in incident
            if self.cards[other].column <= column
        ]
        return list(dict.fromkeys(texts))


def retrieval_picture(
    hits: Sequence[Hit], nodes: Mapping[str, Node], by_question: Collection[str]
) -> Picture:
    """Lay out hits, by rank, and the edges of their evidence.

    On the left are the hits that the question found by itself, by id in `by_question`,
    and below them nodes that are no hits but led to one; on the right are the hits that
    edges led to. `nodes` has nodes by id, including those at other ends of edges.
    """
    ranks = {hit.id: rank for rank, hit in enumerate(hits, start=1)}
    led_to_first = sorted(hits, key=lambda hit: hit.id in by_question)
    edges = [
        (
            evidence.source,
            edge_text(evidence.relation, evidence.properties),
            evidence.target if evidence.kind == "path" and evidence.target else hit.id,
        )
        for hit in led_to_first
        for evidence in hit.evidence
        if evidence.kind in EDGES and evidence.source
    ]
    passed = dict.fromkeys(source for source, _, _ in edges if source not in ranks)
    columns = [
        [id_ for id_ in ranks if id_ in by_question] + list(passed),
        [id_ for id_ in ranks if id_ not in by_question],
    ]
    return _laid_out(columns, edges, nodes, ranks)


def run_picture(run: Timeline, nodes: Mapping[str, Node]) -> Picture:
    """Lay out the nodes that were explored or selected, and the edges between them.

    There is a column for each step away from the nodes that a search found.
    """
    reached = run.reached()
    ranks = {vote.id: rank for rank, vote in enumerate(run.ranking, start=1)}
    explored, selected = (
        [id_ for id_ in reached if getattr(reached[id_], by)]
        for by in ("explored", "selected")
    )
    drawn = [
        id_ for id_ in dict.fromkeys([*explored, *ranks, *selected]) if id_ in reached
    ][:MOST_NODES]
    columns: dict[int, list[str]] = {}
    for id_ in sorted(drawn, key=lambda id_: ranks.get(id_, len(ranks) + 1)):
        columns.setdefault(min(reached[id_].depth, MOST_COLUMNS - 1), []).append(id_)
    return _laid_out(
        [ids for _, ids in sorted(columns.items())],
        run.edges,
        nodes,
        ranks,
        len(reached) - len(drawn),
    )


def _laid_out(
    columns: Sequence[Sequence[str]],
    edges: Iterable[tuple[str, str, str]],
    nodes: Mapping[str, Node],
    ranks: Mapping[str, int],
    not_drawn: int = 0,
) -> Picture:
    """Place nodes in columns from top to bottom, and draw each edge once."""
    cards = [
        Card(
            nodes.get(id_) or Node(id_, ()),
            ranks.get(id_),
            column,
            _HEAD + slot * (_CARD + _GAP),
        )
        for column, ids in enumerate(columns)
        for slot, id_ in enumerate(ids)
    ]
    place = {card.node.id: number for number, card in enumerate(cards)}
    n = max(1, len(columns))
    margin, width = 8 / n, 62 / n
    lefts = [margin + i * (100 - 2 * margin - width) / max(1, n - 1) for i in range(n)]

    def path(a: Card, b: Card) -> str:
        """Return the curve from one card to another, between their facing sides."""
        # It leaves the first card on the right.
        beside = 0 < a.column == n - 1 if a.column == b.column else a.column < b.column
        x, z = (
            lefts[a.column] + width * beside,
            lefts[b.column] + width * (a.column > b.column),
        )
        if a.column == b.column:
            swing = min(15.0, 6 + 0.8 * abs(a.top - b.top) / (_CARD + _GAP)) / n
            z, out = x, swing if beside else -swing
            back = out
        else:
            out, back = 0.45 * (z - x), 0.45 * (x - z)
        y, w = a.top + _CARD / 2, b.top + _CARD / 2
        return f"M {x:.2f} {y} C {x + out:.2f} {y}, {z + back:.2f} {w}, {z:.2f} {w}"

    lines: dict[tuple[frozenset[str], str], Line] = {}
    led: set[str] = set()
    for source, text, target in edges:
        edge = frozenset((source, target)), text
        if (
            source != target
            and {source, target} <= place.keys()
            and edge not in lines
            and len(lines) < MOST_EDGES
        ):
            a, b = cards[place[source]], cards[place[target]]
            leads = target not in led and a.column < b.column
            led.add(target)
            lines[edge] = Line(place[source], place[target], text, path(a, b), leads)
    return Picture(cards, list(lines.values()), lefts, width, not_drawn)

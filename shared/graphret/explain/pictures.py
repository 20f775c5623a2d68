"""Where nodes and edges stand in a picture, always the same for the same input: columns
of cards, and curves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphret.explain.runs import Timeline
from graphret.explain.words import edge_text
from graphret.types import Hit, Node

MOST_NODES, MOST_EDGES, MOST_COLUMNS = 60, 150, 6
"""The limits of the picture of a run."""

_HEAD, _CARD, _GAP = (
    28,
    54,
    14,
)  # pixels: what is above the cards, the height of one, and what is between two
EDGES = ("neighbor", "path")
"""The kinds of evidence that edges are."""


@dataclass(frozen=True, slots=True)
class Card:
    """A node in a picture: its rank from 1 if it has one, its column, and how many
    pixels are above it.
    """

    node: Node
    rank: int | None
    column: int
    top: int


@dataclass(frozen=True, slots=True)
class Line:
    """An edge between two cards, by their numbers; `leads` where it is the first to one
    from a column further left.
    """

    source: int
    target: int
    text: str
    path: str
    leads: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """Cards, lines, where each column begins and how wide it is (in percent), and how
    many nodes are not drawn.
    """

    cards: Sequence[Card]
    lines: Sequence[Line]
    lefts: Sequence[float]
    width: float
    others: int

    @property
    def height(self) -> int:
        """In pixels."""
        return max((card.top + _CARD + _GAP for card in self.cards), default=_HEAD)

    def ways(self, at: int) -> list[str]:
        """Return the edges by which a card was reached from its own column or one
        further left.
        """
        column = self.cards[at].column
        ends = [(line, "→", line.source) for line in self.lines if line.target == at]
        ends += [(line, "←", line.target) for line in self.lines if line.source == at]
        ways = [
            f"{arrow} {line.text}"
            for line, arrow, other in ends
            if self.cards[other].column <= column
        ]
        return list(dict.fromkeys(ways))


def retrieval_picture(
    hits: Sequence[Hit], known: Mapping[str, Node], found: Collection[str]
) -> Picture:
    """Lay out hits, by rank, and the edges of their evidence.

    What the question finds by itself, by id in `found`, stands on the left, and below
    it nodes that are no hits but brought one; what edges brought stands on the right.
    `known` has nodes by id, those at other ends of edges too.
    """
    ranks = {hit.id: rank for rank, hit in enumerate(hits, start=1)}
    edges = [
        (
            e.source,
            edge_text(e.relation, e.properties),
            e.target if e.kind == "path" and e.target else hit.id,
        )
        for hit in sorted(
            hits, key=lambda hit: hit.id in found
        )  # edges that brought something first
        for e in hit.evidence
        if e.kind in EDGES and e.source
    ]
    passed = dict.fromkeys(source for source, _, _ in edges if source not in ranks)
    columns = [
        [id_ for id_ in ranks if id_ in found] + list(passed),
        [id_ for id_ in ranks if id_ not in found],
    ]
    return _laid_out(columns, edges, known, ranks)


def run_picture(run: Timeline, known: Mapping[str, Node]) -> Picture:
    """Lay out the nodes that were explored or selected, and the edges shown among them.

    There is a column for each step away from what a search found.
    """
    found = run.reached()
    ranks = {vote.id: rank for rank, vote in enumerate(run.ranking, start=1)}
    explored, selected = (
        [id_ for id_ in found if getattr(found[id_], by)]
        for by in ("explored", "selected")
    )
    drawn = [
        id_ for id_ in dict.fromkeys([*explored, *ranks, *selected]) if id_ in found
    ][:MOST_NODES]
    columns: dict[int, list[str]] = {}
    for id_ in sorted(drawn, key=lambda id_: ranks.get(id_, len(ranks) + 1)):
        columns.setdefault(min(found[id_].depth, MOST_COLUMNS - 1), []).append(id_)
    return _laid_out(
        [ids for _, ids in sorted(columns.items())],
        run.edges,
        known,
        ranks,
        len(found) - len(drawn),
    )


def _laid_out(
    columns: Sequence[Sequence[str]],
    edges: Iterable[tuple[str, str, str]],
    known: Mapping[str, Node],
    ranks: Mapping[str, int],
    others: int = 0,
) -> Picture:
    """Place nodes in columns from top to bottom, and draw each edge between two of them
    once.
    """
    cards = [
        Card(
            known.get(id_) or Node(id_, ()),
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
        """Return the curve from one card to another, out of the sides that face each
        other.
        """
        beside = (
            0 < a.column == n - 1 if a.column == b.column else a.column < b.column
        )  # leaves the first on the right
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
    return Picture(cards, list(lines.values()), lefts, width, others)

"""Where the nodes and edges of a retrieval stand in its picture: two columns, always the same for the same hits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from graphret.explain.words import edge_text
from graphret.types import Evidence, Hit, Node

FOUND, BROUGHT = 0, 1
"""The columns: what the question finds by itself, and what an edge brings."""

_KINDS = ("neighbor", "path")


@dataclass(frozen=True, slots=True)
class Card:
    """A node in the picture.

    Parameters
    ----------
    node
        The node, or its id alone where nothing else is known of it.
    rank
        Its place among the hits from 1, `None` for a node that only an edge comes from.
    column, slot
        Its place in the picture, both from 0.
    """

    node: Node
    rank: int | None
    column: int
    slot: int


@dataclass(frozen=True, slots=True)
class Line:
    """An edge in the picture, from the card that it comes from to the one that it brought, by their numbers."""

    source: int
    target: int
    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class Picture:
    """Cards and lines; `slots` is the height of the higher column in cards."""

    cards: tuple[Card, ...]
    lines: tuple[Line, ...]

    @property
    def slots(self) -> int:
        """How many cards the higher column has."""
        return max((card.slot + 1 for card in self.cards), default=0)


def picture(hits: Sequence[Hit], known: Mapping[str, Node], found: Collection[str]) -> Picture:
    """Lay out hits and the edges of their evidence.

    Parameters
    ----------
    hits
        The hits to draw, best first.
    known
        Nodes by id, those at the other ends of edges among them.
    found
        Ids of what a flat search of the same depth returns: these stand on the left.

    Notes
    -----
    Nodes that are no hits, but brought one, stand below the hits on the left. In each column the order is by rank.
    """
    ranks = {hit.id: rank for rank, hit in enumerate(hits, start=1)}
    edges = [(hit, evidence, evidence.source) for hit in hits for evidence in hit.evidence if evidence.kind in _KINDS]
    passed = dict.fromkeys(source for _, _, source in edges if source is not None and source not in ranks)
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
    for hit, evidence, source in sorted(
        edges, key=lambda edge: edge[0].id in found
    ):  # those that brought something first
        if source is None or source == hit.id:
            continue
        text = edge_text(evidence.relation, evidence.properties)
        key = frozenset((hit.id, source)), text
        lines.setdefault(key, Line(place[source], place[hit.id], text, _weight(evidence)))
    return Picture(tuple(cards), tuple(lines.values()))


def found_by_question(hits: Sequence[Hit]) -> set[str]:
    """Return the ids of hits that a flat search of this depth would return too, as far as their evidence tells."""
    return {
        hit.id
        for hit in hits
        if not any(evidence.kind in _KINDS for evidence in hit.evidence)
        or any(e.kind == "seed" and e.rank is not None and e.rank <= len(hits) for e in hit.evidence)
    }


def _weight(evidence: Evidence) -> float:
    return 1.0 if evidence.weight is None else max(0.0, min(1.0, evidence.weight))

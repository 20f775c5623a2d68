"""The neighbours of one node, filtered, ranked and counted, in any store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphret.ark.matching import matching
from graphret.errors import InvalidInput
from graphret.search.index import ArrayIndex, TextIndex
from graphret.stores.base import GraphStore
from graphret.types import Edge, Node

#: Most edges of a node that are read from a store that is not in columns.
CAP = 2_000
_SEARCHED = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of the neighbourhood of a node.

    Parameters
    ----------
    node
        The id of the node, which the store holds.
    query
        What ranks the neighbours; without it, and where it leaves a tie, the heaviest edge does, then the id.
    labels
        Only neighbours that bear one of them.
    relations
        Only neighbours by these relations, each in the direction ``out``, ``in`` or ``both``, seen from the node.
    k
        How many neighbours are returned.
    """

    node: str
    query: str | None = None
    labels: frozenset[str] | None = None
    relations: Mapping[str, str] | None = None
    k: int = 20


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """What was asked of the neighbourhood of a node.

    Parameters
    ----------
    nodes
        The best neighbours.
    via
        For each of them the relations that join it to the node, and whether they lead to it: those that pass.
    total
        How many neighbours pass the filters.
    counts
        How many edges there are by relation, whether they lead from the node, and the neighbour's primary label: of
        the whole neighbourhood, filters or not.
    capped, partial
        Whether there are more edges than were read, so that `counts`, or `total`, are those of the heaviest.
    """

    nodes: list[Node]
    via: list[list[tuple[str, bool]]]
    total: int
    counts: Counter[tuple[str, bool, str]]
    capped: bool = False
    partial: bool = False


def explore(store: GraphStore, index: TextIndex, asked: Asked, cap: int = CAP) -> Neighborhood:
    """Look at the neighbourhood of a node through the calls of a store's contract.

    At most `cap` edges are read, the heaviest; where there are more, what the filters let pass is read by itself, and
    those of the best matches of the query besides.
    """
    found = store.neighbors([asked.node], limit=cap + 1)
    capped = len(found) > cap
    links = _links(found[:cap], asked.node)
    nodes = _get(store, links)
    counts = Counter((link.relation, link.outgoing, nodes[link.other].label) for link in links if link.other in nodes)
    partial = capped
    if capped and (asked.labels is not None or asked.relations is not None):
        directions = set((asked.relations or {}).values())
        passing = store.neighbors(
            [asked.node],
            relations=None if asked.relations is None else list(asked.relations),
            labels=None if asked.labels is None else sorted(asked.labels),
            direction=directions.pop() if len(directions) == 1 else "both",
            limit=cap + 1,
        )
        links = _links(passing[:cap], asked.node)
        partial = len(passing) > cap
    if partial and asked.query is not None:
        links += _matching(store, index, asked)
    nodes |= _get(store, [link for link in links if link.other not in nodes])
    passed = [link for link in links if link.other in nodes and _passes(link, nodes[link.other], asked)]
    return _ranked(index, asked, passed, nodes, counts, capped, partial)


@dataclass(frozen=True, slots=True)
class _Link:
    other: str
    relation: str
    outgoing: bool
    weight: float


def _links(edges: Sequence[Edge], node: str) -> list[_Link]:
    return [
        _Link(edge.target, edge.relation, True, edge.weight)
        if edge.source == node
        else _Link(edge.source, edge.relation, False, edge.weight)
        for edge in edges
    ]


def _matching(store: GraphStore, index: TextIndex, asked: Asked) -> list[_Link]:
    """Return the links of the node with what matches the query best in the whole graph."""
    assert asked.query is not None
    best = matching(index, asked.query, _SEARCHED)
    return _links(store.neighbors(best, where={"id": asked.node}), asked.node) if best else []


def _get(store: GraphStore, links: Sequence[_Link]) -> dict[str, Node]:
    ids = list(dict.fromkeys(link.other for link in links))
    return {node.id: node for node in store.get(ids) if node is not None} if ids else {}


def _passes(link: _Link, other: Node, asked: Asked) -> bool:
    if asked.labels is not None and asked.labels.isdisjoint(other.labels):
        return False
    if asked.relations is None:
        return True
    direction = asked.relations.get(link.relation)
    return direction == "both" or direction == ("out" if link.outgoing else "in")


def _ranked(
    index: TextIndex,
    asked: Asked,
    links: Sequence[_Link],
    nodes: Mapping[str, Node],
    counts: Counter[tuple[str, bool, str]],
    capped: bool,
    partial: bool,
) -> Neighborhood:
    weights: dict[str, float] = {}
    via: dict[str, set[tuple[str, bool]]] = {}
    for link in links:
        weights[link.other] = max(link.weight, weights.get(link.other, link.weight))
        via.setdefault(link.other, set()).add((link.relation, link.outgoing))
    scores = scores_of(index, asked.query, list(weights)) if asked.query is not None and weights else {}
    order = sorted(weights, key=lambda one: (-scores.get(one, 0.0), -weights[one], one))
    chosen = order[: asked.k]
    return Neighborhood(
        [nodes[one] for one in chosen],
        [sorted(via[one], key=lambda pair: (not pair[1], pair[0])) for one in chosen],
        len(order),
        counts,
        capped,
        partial,
    )


def scores_of(index: TextIndex, query: str, ids: Collection[str]) -> dict[str, float]:
    """Return the score of each node for a query; those that the index does not hold rank below all others."""
    wanted = list(ids)
    if isinstance(index, ArrayIndex):
        there = index.table.find(wanted) >= 0
        held = [one for one, known in zip(wanted, there.tolist(), strict=True) if known]
        known = dict(zip(held, np.asarray(index.score(query, held)).tolist(), strict=True))
    else:
        try:
            known = dict(zip(wanted, np.asarray(index.score(query, wanted)).tolist(), strict=True))
        except InvalidInput:  # an index of some labels alone does not hold them all
            found = index.search(query, max(_SEARCHED, len(wanted)))
            known = dict(zip(found.ids, np.asarray(found.scores).tolist(), strict=True))
    return {one: known.get(one, -np.inf) for one in wanted}

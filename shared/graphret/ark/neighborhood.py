"""The neighbours of one node, filtered, ranked and counted (ARK, section 3.1, Neighbors)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.search.arrays import ArrayIndex, CombinedIndex
from graphret.search.bm25 import BM25Index
from graphret.search.index import TextIndex, top_k
from graphret.stores.base import GraphStore
from graphret.stores.memory import Graph, MemoryStore
from graphret.types import Edge, Node

#: Most edges of a node that are read from a database, and most neighbours that an index outside this process scores.
CAP = 2_000
#: Best matches of a query that are looked for among the neighbours beyond these.
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
    """Look at the neighbourhood of a node.

    All edges of a `MemoryStore` are looked at. Of any other store at most `cap` edges are read, the heaviest. Where
    there are more, what the filters let pass is read by itself, and the edges to the best matches of the query besides.
    """
    if isinstance(store, MemoryStore):
        return _in_memory(store.graph, index, asked, cap)
    found = store.neighbors([asked.node], limit=cap + 1)
    capped = partial = len(found) > cap
    links = _links(found[:cap], asked.node)
    nodes = _get(store, links)
    counts = Counter((link.relation, link.outgoing, nodes[link.other].label) for link in links if link.other in nodes)
    if capped and (asked.labels is not None or asked.relations is not None):
        directions = set((asked.relations or {}).values())
        passing = store.neighbors(
            [asked.node],
            relations=None if asked.relations is None else list(asked.relations),
            labels=None if asked.labels is None else sorted(asked.labels),
            direction=directions.pop() if len(directions) == 1 else "both",
            limit=cap + 1,
        )
        links, partial = _links(passing[:cap], asked.node), len(passing) > cap
    if partial and asked.query is not None and (best := matching(index, asked.query, _SEARCHED)):
        links += _links(store.neighbors(best, where={"id": asked.node}), asked.node)
    nodes |= _get(store, [link for link in links if link.other not in nodes])
    passed = [link for link in links if link.other in nodes and _passes(link, nodes[link.other], asked)]
    weights: dict[str, float] = {}
    via: dict[str, set[tuple[str, bool]]] = {}
    for link in passed:
        weights[link.other] = max(link.weight, weights.get(link.other, link.weight))
        via.setdefault(link.other, set()).add((link.relation, link.outgoing))
    scores = _scores(index, asked.query, list(weights)) if asked.query is not None else {}
    order = sorted(weights, key=lambda one: (-scores.get(one, 0.0), -weights[one], one))
    shown = order[: asked.k]
    return Neighborhood(
        [nodes[one] for one in shown], [_in_order(via[one]) for one in shown], len(order), counts, capped, partial
    )


def matching(index: TextIndex, query: str, k: int) -> list[str]:
    """Return the ids of at most `k` nodes that match a query, best first.

    An index returns `k` nodes where it has them; those that score 0 are left out, unless all do and similarity counts.
    """
    found = index.search(query, k)
    scores = np.asarray(found.scores)
    if not _by_words(index) and not (scores > 0).any():
        return list(found.ids)
    return [one for one, score in zip(found.ids, scores.tolist(), strict=True) if score > 0]


def _by_words(index: TextIndex) -> bool:
    """Whether words are all that counts for a hybrid, a multi-field or a Neo4j index, so that 0 means no match."""
    parts = index.members.values() if isinstance(index, CombinedIndex) else [index]
    return all(isinstance(part, BM25Index) for part in parts) or getattr(index, "vector", True) is None


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


def _get(store: GraphStore, links: Sequence[_Link]) -> dict[str, Node]:
    ids = list(dict.fromkeys(link.other for link in links))
    return {node.id: node for node in store.get(ids) if node is not None} if ids else {}


def _passes(link: _Link, other: Node, asked: Asked) -> bool:
    if asked.labels is not None and asked.labels.isdisjoint(other.labels):
        return False
    wanted = "both" if asked.relations is None else asked.relations.get(link.relation)
    return wanted in ("both", "out" if link.outgoing else "in")


def _in_order(via: set[tuple[str, bool]]) -> list[tuple[str, bool]]:
    return sorted(via, key=lambda one: (not one[1], one[0]))


def _scores(index: TextIndex, query: str, ids: list[str]) -> dict[str, float]:
    """The scores of nodes for a query; those that the index does not hold rank below all others."""
    known: dict[str, float] = {}
    if isinstance(index, ArrayIndex):
        held = [one for one, at in zip(ids, index.table.find(ids).tolist(), strict=True) if at >= 0]
        known = dict(zip(held, np.asarray(index.score(query, held)).tolist(), strict=True))
    elif ids:
        try:
            known = dict(zip(ids, np.asarray(index.score(query, ids)).tolist(), strict=True))
        except InvalidInput:  # an index of some labels alone does not hold them all
            found = index.search(query, max(_SEARCHED, len(ids)))
            known = dict(zip(found.ids, np.asarray(found.scores).tolist(), strict=True))
    return {one: known.get(one, -np.inf) for one in ids}


def _in_memory(graph: Graph, index: TextIndex, asked: Asked, cap: int) -> Neighborhood:
    """Look at all edges of a node by position, in columns."""
    nodes, edges = graph.nodes, graph.edges
    at = nodes.find([asked.node])
    leaving, entering = edges.leaving(at), edges.entering(at)
    entering = entering[edges.source[entering] != at[0]]  # a loop is there once
    found = np.concatenate([leaving, entering])
    others = np.concatenate([edges.target[leaving], edges.source[entering]])
    relation, outgoing = edges.relation[found], np.arange(len(found)) < len(leaving)
    keep = np.ones(len(found), dtype=bool)
    if asked.relations is not None:
        wanted = [asked.relations.get(name) for name in edges.relations]
        out, into = (np.asarray([one in ("both", way) for one in wanted], dtype=bool) for way in ("out", "in"))
        keep &= np.where(outgoing, out[relation], into[relation])
    if asked.labels is not None:
        fits = np.asarray([not asked.labels.isdisjoint(labels) for labels in nodes.label_sets], dtype=bool)
        keep &= fits[nodes.labels[others]]
    kept = np.flatnonzero(keep)
    kept = kept[np.argsort(others[kept], kind="stable")]
    starts = np.flatnonzero(np.diff(others[kept], prepend=-1))
    distinct, weight = others[kept][starts].astype(np.int64), edges.weight[found[kept]]
    heaviest = np.maximum.reduceat(weight, starts) if len(starts) else weight
    best = _best(graph, index, asked, distinct, heaviest, cap)
    ends = np.append(starts, len(kept))
    via = [
        {(edges.relations[relation[edge]], bool(outgoing[edge])) for edge in kept[ends[i] : ends[i + 1]]} for i in best
    ]
    counts = _counts(graph, others, relation, outgoing)
    return Neighborhood(nodes.at(distinct[best]), [_in_order(one) for one in via], len(distinct), counts)


def _best(
    graph: Graph, index: TextIndex, asked: Asked, neighbors: NDArray[np.int64], weights: NDArray[Any], cap: int
) -> NDArray[np.int64]:
    """Return the places of the best neighbours, which come by id, ``(k,)``."""
    if asked.query is None or not len(neighbors):
        return top_k(weights, asked.k)
    ids = graph.nodes.ids
    scores = np.full(len(neighbors), -np.inf, dtype=np.float32)
    if isinstance(index, ArrayIndex):
        same = index.table.ids is ids or index.table.ids.equals(ids)  # as where the index is of the whole store
        places = neighbors if same else index.table.find(ids.take(neighbors))
        held = np.flatnonzero(places >= 0)
        scores[held] = index.score_at(asked.query, places[held])
    else:
        some = top_k(weights, cap)
        scores[some] = list(_scores(index, asked.query, ids.take(neighbors[some])).values())
    chosen = np.arange(len(scores))
    if asked.k < len(scores):
        floor = scores[top_k(scores, asked.k)[-1]]
        above, level = np.flatnonzero(scores > floor), np.flatnonzero(scores == floor)
        chosen = np.concatenate([above, level[top_k(weights[level], asked.k - len(above))]])
    return chosen[np.lexsort((chosen, -weights[chosen], -scores[chosen]))]


def _counts(
    graph: Graph, others: NDArray[Any], relation: NDArray[Any], outgoing: NDArray[np.bool_]
) -> Counter[tuple[str, bool, str]]:
    relations, sets = graph.edges.relations, graph.nodes.label_sets
    code = (relation.astype(np.int64) * 2 + outgoing) * len(sets) + graph.nodes.labels[others]
    numbers, counts = np.bincount(code), Counter[tuple[str, bool, str]]()
    for one in np.flatnonzero(numbers).tolist():
        (kind, leaves), labels = divmod(one // len(sets), 2), sets[one % len(sets)]
        counts[relations[kind], bool(leaves), labels[0] if labels else ""] += int(numbers[one])
    return counts

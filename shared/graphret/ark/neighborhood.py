"""The neighbours of one node, filtered, ranked and counted (ARK, section 3.1, Neighbors)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.search.arrays import ArrayIndex
from graphret.search.bm25 import BM25Index
from graphret.search.index import TextIndex, top_k
from graphret.stores.base import GraphStore
from graphret.stores.memory import Graph, MemoryStore
from graphret.types import Edge, Node

#: Most edges of a node that are read from a database.
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
    if isinstance(store, MemoryStore) and isinstance(index, ArrayIndex):
        return _in_memory(store.graph, index, asked)
    edges = store.neighbors([asked.node], limit=cap + 1)
    capped = partial = len(edges) > cap
    edges, nodes = _with_nodes(store, edges[:cap], asked.node)
    counts = Counter((*_way(edge, asked.node), nodes[_other(edge, asked.node)].label) for edge in edges)
    if capped and (asked.labels is not None or asked.relations is not None):
        edges = store.neighbors(
            [asked.node],
            relations=None if asked.relations is None else list(asked.relations),
            labels=None if asked.labels is None else sorted(asked.labels),
            limit=cap + 1,
        )
        edges, partial = edges[:cap], len(edges) > cap
    if partial and asked.query is not None and (best := matching(index, asked.query, _SEARCHED)):
        edges += store.neighbors(best, where={"id": asked.node})
    edges, nodes = _with_nodes(store, edges, asked.node, nodes)
    weights: dict[str, float] = {}
    via: dict[str, set[tuple[str, bool]]] = {}
    for edge in edges:
        other, way = _other(edge, asked.node), _way(edge, asked.node)
        if _passes(way, nodes[other], asked):
            weights[other] = max(edge.weight, weights.get(other, edge.weight))
            via.setdefault(other, set()).add(way)
    scores = _scores(index, asked.query, list(weights)) if asked.query is not None else {}
    order = sorted(weights, key=lambda one: (-scores.get(one, -np.inf), -weights[one], one))
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
    parts = index.leaves() if isinstance(index, ArrayIndex) else [index]
    return all(isinstance(part, BM25Index) for part in parts) or getattr(index, "vector", True) is None


def _other(edge: Edge, node: str) -> str:
    return edge.target if edge.source == node else edge.source


def _way(edge: Edge, node: str) -> tuple[str, bool]:
    return edge.relation, edge.source == node


def _with_nodes(
    store: GraphStore, edges: Sequence[Edge], node: str, known: Mapping[str, Node] = MappingProxyType({})
) -> tuple[list[Edge], dict[str, Node]]:
    """The edges whose other ends are there, and these, with those that are known."""
    ids = [one for one in dict.fromkeys(_other(edge, node) for edge in edges) if one not in known]
    nodes = {**known, **{one.id: one for one in (store.get(ids) if ids else []) if one is not None}}
    return [edge for edge in edges if _other(edge, node) in nodes], nodes


def _passes(way: tuple[str, bool], other: Node, asked: Asked) -> bool:
    relation, outgoing = way
    if asked.labels is not None and asked.labels.isdisjoint(other.labels):
        return False
    wanted = "both" if asked.relations is None else asked.relations.get(relation)
    return wanted in ("both", "out" if outgoing else "in")


def _in_order(via: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    return sorted(via, key=lambda one: (not one[1], one[0]))


def _scores(index: TextIndex, query: str, ids: list[str]) -> dict[str, float]:
    """The scores for a query of those nodes that the index holds."""
    if isinstance(index, ArrayIndex):
        ids = [one for one, at in zip(ids, index.table.find(ids).tolist(), strict=True) if at >= 0]
    try:
        return dict(zip(ids, np.asarray(index.score(query, ids)).tolist(), strict=True)) if ids else {}
    except InvalidInput:  # an index in a database, of some labels alone, does not hold them all
        found = index.search(query, max(_SEARCHED, len(ids)))
        return dict(zip(found.ids, np.asarray(found.scores).tolist(), strict=True))


def _in_memory(graph: Graph, index: ArrayIndex, asked: Asked) -> Neighborhood:
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
    distinct, weights = others[kept][starts].astype(np.int64), edges.weight[found[kept]]
    weights = np.maximum.reduceat(weights, starts) if len(starts) else weights
    scores = np.full(len(distinct), -np.inf, dtype=np.float32)
    if asked.query is not None and len(distinct):
        same = index.table.ids is nodes.ids or index.table.ids.equals(nodes.ids)  # as where it is of the whole store
        places = distinct if same else index.table.find(nodes.ids.take(distinct))
        held = np.flatnonzero(places >= 0)
        scores[held] = index.score_at(asked.query, places[held])
    best = _best(scores, weights, asked.k)
    ends = np.append(starts, len(kept))
    via = [
        _in_order({(edges.relations[relation[edge]], bool(outgoing[edge])) for edge in kept[ends[i] : ends[i + 1]]})
        for i in best
    ]
    return Neighborhood(
        nodes.at(distinct[best]), via, len(distinct), _counts(graph, others, relation.astype(np.int64) * 2 + outgoing)
    )


def _best(scores: NDArray[Any], weights: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Return the places of the best neighbours, by score, then by weight, then by place, ``(k,)``."""
    floor = scores[top_k(scores, k)[-1]] if len(scores) else 0.0
    above, level = np.flatnonzero(scores > floor), np.flatnonzero(scores == floor)
    chosen = np.concatenate([above, level[top_k(weights[level], k - len(above))]])
    return chosen[np.lexsort((chosen, -weights[chosen], -scores[chosen]))]


def _counts(graph: Graph, others: NDArray[Any], ways: NDArray[Any]) -> Counter[tuple[str, bool, str]]:
    relations, sets = graph.edges.relations, graph.nodes.label_sets
    numbers, counts = np.bincount(ways * len(sets) + graph.nodes.labels[others]), Counter[tuple[str, bool, str]]()
    for one in np.flatnonzero(numbers).tolist():
        (kind, leaves), labels = divmod(one // len(sets), 2), sets[one % len(sets)]
        counts[relations[kind], bool(leaves), labels[0] if labels else ""] += int(numbers[one])
    return counts

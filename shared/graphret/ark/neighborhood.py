"""The neighbours of one node, filtered, ranked and counted (ARK, section 3.1,
Neighbors).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphret.edges import EdgeTable
from graphret.search.index import TextIndex, top_k
from graphret.stores.base import GraphStore
from graphret.stores.memory import Graph, MemoryStore
from graphret.types import Edge, Node
from graphret.where import Where

CAP = 2_000  # most edges of a node that are read from a database
_SEARCHED = (
    200  # best matches of a query that are looked for among the neighbours beyond these
)


class Way(NamedTuple):
    """A relation by which a neighbour is joined, whether it leads there, and the
    properties of each of its edges that has some.
    """

    relation: str
    outgoing: bool
    properties: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """What there is around a node: the best neighbours, and how many pass the filters
    in all.

    `via` has for each of them the ways by which it passes. `counts` has the edges by
    relation, direction and the neighbour's primary label, filters or not. They are
    `capped`, or the total is `partial`, where there are more edges than were read.
    """

    nodes: list[Node]
    via: list[list[Way]]
    total: int
    counts: Counter[tuple[str, bool, str]]
    capped: bool = False
    partial: bool = False


def explore(
    store: GraphStore,
    index: TextIndex,
    node: str,
    query: str | None = None,
    *,
    labels: Collection[str] | None = None,
    relations: Mapping[str, str] | None = None,
    where: Where | None = None,
    k: int = 20,
) -> Neighborhood:
    """Look at the neighbourhood of a node that the store holds.

    All edges of a `MemoryStore` are looked at. Of any other store at most `CAP` edges
    are read, the heaviest. Where there are more, what the filters let pass is read by
    itself, and the edges to the best matches of the query besides. Neighbours rank by
    the query, then by the heaviest edge, then by id. `relations` has for each name
    whether it is followed ``out``, ``in`` or ``both``, seen from the node.
    """
    whole, passing, capped, partial = _read(
        store, index, node, query, labels, relations, where
    )
    nodes, edges, incident = passing.nodes, passing.edges, _incident(passing, node)
    keep = np.ones(len(incident.edge), dtype=bool)
    if relations is not None:
        wanted = [relations.get(name) for name in edges.relations]
        out, into = (
            np.asarray([one in ("both", way) for one in wanted], dtype=bool)
            for way in ("out", "in")
        )
        keep &= np.where(
            incident.outgoing, out[incident.relation], into[incident.relation]
        )
    kept = np.flatnonzero(keep)
    fits = nodes.fits(incident.other[kept], where, labels)
    if fits is not None:
        kept = kept[fits]
    kept = kept[np.argsort(incident.other[kept], kind="stable")]
    starts = np.flatnonzero(np.diff(incident.other[kept], prepend=-1))
    others, weights = (
        incident.other[kept][starts].astype(np.int64),
        edges.weight[incident.edge[kept]],
    )
    weights = np.maximum.reduceat(weights, starts) if len(starts) else weights
    scores = np.full(len(others), -np.inf, dtype=np.float32)
    if query is not None and len(others):
        _score(index, query, passing, others, scores)
    best = _best(scores, weights, k)
    ends = np.append(starts, len(kept))
    via = [_ways(edges, incident, kept[ends[i] : ends[i + 1]]) for i in best]
    counts = _counts(whole, incident if whole is passing else _incident(whole, node))
    return Neighborhood(
        nodes.at(others[best]), via, len(others), counts, capped, partial
    )


def matching(
    index: TextIndex,
    query: str,
    k: int,
    *,
    labels: Collection[str] | None = None,
    where: Where | None = None,
) -> list[str]:
    """Return the ids of at most `k` nodes that match a query and pass the filters, best
    first, without those that score 0.
    """
    found = index.search(query, k, labels=labels, where=where)
    return [
        one
        for one, score in zip(found.ids, np.asarray(found.scores).tolist(), strict=True)
        if score > 0
    ]


def _read(
    store: GraphStore,
    index: TextIndex,
    node: str,
    query: str | None,
    labels: Collection[str] | None,
    relations: Collection[str] | None,
    where: Where | None,
) -> tuple[Graph, Graph, bool, bool]:
    """Read what is around a node, and what of it may pass the filters; whether either
    has more than was read.
    """
    if (graph := store.local_graph()) is not None:
        return graph, graph, False, False
    edges, known = store.neighbors([node], limit=CAP + 1), dict[str, Node]()
    whole = _star(store, node, edges[:CAP], known)
    if len(edges) <= CAP:
        return whole, whole, False, False
    if not (labels is None and relations is None and where is None):
        names, kinds = (
            None if one is None else sorted(one) for one in (relations, labels)
        )
        edges = store.neighbors(
            [node], relations=names, labels=kinds, where=where, limit=CAP + 1
        )
    passing, partial = edges[:CAP], len(edges) > CAP
    if partial and query is not None and (best := matching(index, query, _SEARCHED)):
        passing = [*passing, *store.neighbors(best, where={"id": node})]
    return whole, _star(store, node, passing, known), True, partial


def _star(
    store: GraphStore, node: str, edges: Sequence[Edge], known: dict[str, Node]
) -> Graph:
    """The edges of a node as a graph of their own, without those whose other end is
    gone; nodes read become known.
    """
    ids = dict.fromkeys(
        [node, *(end for edge in edges for end in (edge.source, edge.target))]
    )
    if fresh := [one for one in ids if one not in known]:
        known.update((one.id, one) for one in store.get(fresh) if one is not None)
    kept = [edge for edge in edges if edge.source in known and edge.target in known]
    return MemoryStore.of((known[one] for one in ids if one in known), kept).graph


class _Incident(NamedTuple):
    """The edges of a node: their places, the places of their other ends and of their
    relations, and which leave it.
    """

    edge: NDArray[Any]
    other: NDArray[Any]
    relation: NDArray[Any]
    outgoing: NDArray[np.bool_]


def _incident(graph: Graph, node: str) -> _Incident:
    edges, at = graph.edges, graph.nodes.find([node])
    leaving, entering = edges.leaving(at), edges.entering(at)
    entering = entering[edges.source[entering] != at[0]]  # a loop is there once
    found = np.concatenate([leaving, entering])
    others = np.concatenate([edges.target[leaving], edges.source[entering]])
    return _Incident(
        found, others, edges.relation[found], np.arange(len(found)) < len(leaving)
    )


def _ways(
    edges: EdgeTable, incident: _Incident, places: NDArray[np.int64]
) -> list[Way]:
    """Return the ways that some of the edges of a node are, those that leave it
    first.
    """
    found: dict[tuple[str, bool], list[Mapping[str, Any]]] = {}
    properties = edges.properties.take(incident.edge[places])
    for place, own in zip(places.tolist(), properties, strict=True):
        relation = edges.relations[incident.relation[place]]
        known = found.setdefault((relation, bool(incident.outgoing[place])), [])
        if own and own not in known:
            known.append(own)
    in_order = sorted(found, key=lambda way: (not way[1], way[0]))
    return [Way(*way, tuple(found[way])) for way in in_order]


def _score(
    index: TextIndex,
    query: str,
    graph: Graph,
    places: NDArray[np.int64],
    scores: NDArray[np.float32],
) -> None:
    """Write the scores for a query of those nodes that the index holds."""
    ids = graph.nodes.ids
    if (local := index.local_index()) is not None:
        # the same ids, as where it is of the whole store
        same = local.table.ids is ids or local.table.ids.array.equals(ids.array)
        held = places if same else local.table.find(ids.take(places))
        scores[held >= 0] = local.score_at(query, held[held >= 0])
    else:
        scores[:] = index.score(query, list(ids.take(places)))


def _best(scores: NDArray[Any], weights: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Return the places of the best neighbours, by score, then by weight, then by
    place, ``(k,)``.
    """
    floor = scores[top_k(scores, k)[-1]] if len(scores) else 0.0
    above, level = np.flatnonzero(scores > floor), np.flatnonzero(scores == floor)
    chosen = np.concatenate([above, level[top_k(weights[level], k - len(above))]])
    return chosen[np.lexsort((chosen, -weights[chosen], -scores[chosen]))]


def _counts(graph: Graph, incident: _Incident) -> Counter[tuple[str, bool, str]]:
    relations, sets = graph.edges.relations, graph.nodes.label_sets
    ways = incident.relation.astype(np.int64) * 2 + incident.outgoing
    counts = Counter[tuple[str, bool, str]]()
    numbers = np.bincount(ways * len(sets) + graph.nodes.labels[incident.other])
    for one in np.flatnonzero(numbers).tolist():
        (kind, leaves), labels = divmod(one // len(sets), 2), sets[one % len(sets)]
        counts[relations[kind], bool(leaves), labels[0] if labels else ""] += int(
            numbers[one]
        )
    return counts

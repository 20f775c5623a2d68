"""The neighbours of a node, filtered, ranked and counted (ARK, section 3.1)."""

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
    """A relation that joins a neighbour, its direction, and its edges' properties.

    Edges without properties have no entry.
    """

    relation: str
    outgoing: bool
    properties: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """The best neighbours of a node, and how many pass the filters in all.

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
    around, passing, capped, partial = _read(
        store, index, node, query, labels, relations, where
    )
    nodes, edges, incident = passing.nodes, passing.edges, _incident(passing, node)
    keep = np.ones(len(incident.edge), dtype=bool)
    if relations is not None:
        directions = [relations.get(name) for name in edges.relations]
        out, into = (
            np.asarray(
                [direction in ("both", way) for direction in directions], dtype=bool
            )
            for way in ("out", "in")
        )
        keep &= np.where(
            incident.outgoing, out[incident.relation], into[incident.relation]
        )
    passed = np.flatnonzero(keep)
    fits = nodes.fits(incident.other[passed], where, labels)
    if fits is not None:
        passed = passed[fits]
    passed = passed[np.argsort(incident.other[passed], kind="stable")]
    starts = np.flatnonzero(np.diff(incident.other[passed], prepend=-1))
    neighbors, weights = (
        incident.other[passed][starts].astype(np.int64),
        edges.weight[incident.edge[passed]],
    )
    weights = np.maximum.reduceat(weights, starts) if len(starts) else weights
    scores = np.full(len(neighbors), -np.inf, dtype=np.float32)
    if query is not None and len(neighbors):
        _score(index, query, passing, neighbors, scores)
    best = _best(scores, weights, k)
    bounds = np.append(starts, len(passed))
    via = [_ways(edges, incident, passed[bounds[i] : bounds[i + 1]]) for i in best]
    counts = _counts(around, incident if around is passing else _incident(around, node))
    return Neighborhood(
        nodes.at(neighbors[best]), via, len(neighbors), counts, capped, partial
    )


def matching(
    index: TextIndex,
    query: str,
    k: int,
    *,
    labels: Collection[str] | None = None,
    where: Where | None = None,
) -> list[str]:
    """Return the ids of the best `k` nodes that match a query and pass the filters.

    The best come first; nodes that score 0 are left out.
    """
    hits = index.search(query, k, labels=labels, where=where)
    return [
        node_id
        for node_id, score in zip(
            hits.ids, np.asarray(hits.scores).tolist(), strict=True
        )
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
    """Read a node's neighbourhood, and the part of it that may pass the filters.

    Returns both, then whether either has more edges than were read.
    """
    if (graph := store.local_graph()) is not None:
        return graph, graph, False, False
    edges, nodes_by_id = store.neighbors([node], limit=CAP + 1), dict[str, Node]()
    around = _star(store, node, edges[:CAP], nodes_by_id)
    if len(edges) <= CAP:
        return around, around, False, False
    if not (labels is None and relations is None and where is None):
        names, kinds = (
            None if allowed is None else sorted(allowed)
            for allowed in (relations, labels)
        )
        edges = store.neighbors(
            [node], relations=names, labels=kinds, where=where, limit=CAP + 1
        )
    passing, partial = edges[:CAP], len(edges) > CAP
    if partial and query is not None and (best := matching(index, query, _SEARCHED)):
        passing = [*passing, *store.neighbors(best, where={"id": node})]
    return around, _star(store, node, passing, nodes_by_id), True, partial


def _star(
    store: GraphStore, node: str, edges: Sequence[Edge], nodes_by_id: dict[str, Node]
) -> Graph:
    """The edges of a node as a graph, without those whose other end is gone.

    Adds the nodes that it reads to `nodes_by_id`.
    """
    ids = dict.fromkeys(
        [node, *(end for edge in edges for end in (edge.source, edge.target))]
    )
    if fresh := [node_id for node_id in ids if node_id not in nodes_by_id]:
        nodes_by_id.update(
            (read.id, read) for read in store.get(fresh) if read is not None
        )
    complete = [
        edge
        for edge in edges
        if edge.source in nodes_by_id and edge.target in nodes_by_id
    ]
    return MemoryStore.of(
        (nodes_by_id[node_id] for node_id in ids if node_id in nodes_by_id), complete
    ).graph


class _Incident(NamedTuple):
    """The edges of a node, as positions of edges, of nodes and of relations.

    `outgoing` says which of them leave the node.
    """

    edge: NDArray[Any]
    other: NDArray[Any]
    relation: NDArray[Any]
    outgoing: NDArray[np.bool_]


def _incident(graph: Graph, node: str) -> _Incident:
    edges, at = graph.edges, graph.nodes.find([node])
    leaving, entering = edges.leaving(at), edges.entering(at)
    entering = entering[edges.source[entering] != at[0]]  # a loop is there once
    places = np.concatenate([leaving, entering])
    neighbors = np.concatenate([edges.target[leaving], edges.source[entering]])
    return _Incident(
        places, neighbors, edges.relation[places], np.arange(len(places)) < len(leaving)
    )


def _ways(
    edges: EdgeTable, incident: _Incident, places: NDArray[np.int64]
) -> list[Way]:
    """Return the ways of some edges of a node, those that leave it first."""
    properties_by_way: dict[tuple[str, bool], list[Mapping[str, Any]]] = {}
    properties = edges.properties.take(incident.edge[places])
    for place, edge_properties in zip(places.tolist(), properties, strict=True):
        relation = edges.relations[incident.relation[place]]
        distinct = properties_by_way.setdefault(
            (relation, bool(incident.outgoing[place])), []
        )
        if edge_properties and edge_properties not in distinct:
            distinct.append(edge_properties)
    in_order = sorted(properties_by_way, key=lambda way: (not way[1], way[0]))
    return [Way(*way, tuple(properties_by_way[way])) for way in in_order]


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
        positions = places if same else local.table.find(ids.take(places))
        scores[positions >= 0] = local.score_at(query, positions[positions >= 0])
    else:
        scores[:] = index.score(query, list(ids.take(places)))


def _best(scores: NDArray[Any], weights: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Return the places of the best `k` neighbours, by score, weight and place."""
    floor = scores[top_k(scores, k)[-1]] if len(scores) else 0.0
    above, level = np.flatnonzero(scores > floor), np.flatnonzero(scores == floor)
    chosen = np.concatenate([above, level[top_k(weights[level], k - len(above))]])
    return chosen[np.lexsort((chosen, -weights[chosen], -scores[chosen]))]


def _counts(graph: Graph, incident: _Incident) -> Counter[tuple[str, bool, str]]:
    relations, sets = graph.edges.relations, graph.nodes.label_sets
    ways = incident.relation.astype(np.int64) * 2 + incident.outgoing
    counts = Counter[tuple[str, bool, str]]()
    numbers = np.bincount(ways * len(sets) + graph.nodes.labels[incident.other])
    for number in np.flatnonzero(numbers).tolist():
        (kind, leaves), labels = (
            divmod(number // len(sets), 2),
            sets[number % len(sets)],
        )
        counts[relations[kind], bool(leaves), labels[0] if labels else ""] += int(
            numbers[number]
        )
    return counts

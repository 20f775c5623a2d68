"""The neighbours of one node in a store and an index that lie in columns beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import copy

import numpy as np
from numpy.typing import NDArray

from graphret.ark.neighborhood import Asked, Neighborhood
from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.search.dense import DenseIndex
from graphret.search.index import ArrayIndex, TextIndex, top_k
from graphret.stores.memory import Graph

_FEW = 2_000
_BLOCK = 1_024
_SHARE = 3


class Columns:
    """Looks at neighbourhoods by integer position; what `graphret.ark.neighborhood.explore` returns, for large ones.

    Where nodes are in the index is found out once for each state of the two tables, and an index scores its nodes once
    a query.
    """

    def __init__(self) -> None:
        self._places: tuple[NodeTable, NodeTable, NDArray[np.int64]] | None = None

    def place(self, graph: Graph, index: ArrayIndex) -> None:
        """Find out now where the nodes of a graph are in an index, and have its edges in order by target."""
        graph.edges.entering(np.arange(0))
        if len(graph.nodes.ids):
            self._placed(graph.nodes, copy(index).table, np.arange(len(graph.nodes.ids)))

    def explore(self, graph: Graph, index: TextIndex, asked: Asked) -> Neighborhood:
        """Look at the neighbourhood of a node, which the graph holds."""
        nodes, edges = graph.nodes, graph.edges
        at = nodes.find([asked.node])
        leaving, entering = edges.leaving(at), edges.entering(at)
        entering = entering[edges.source[entering] != at[0]]  # a loop is there once
        found = np.concatenate([leaving, entering])
        others = np.concatenate([edges.target[leaving], edges.source[entering]])
        outgoing = np.arange(len(found)) < len(leaving)
        counts = _counts(graph, found, others, outgoing)
        keep = _passing(graph, found, others, outgoing, asked)
        if keep is not None:
            found, others, outgoing = found[keep], others[keep], outgoing[keep]
        order = np.argsort(others, kind="stable")  # two sorted runs, so that this is one merge
        found, others, outgoing = found[order], others[order], outgoing[order]
        if not len(found):
            return Neighborhood([], [], 0, counts)
        starts = np.flatnonzero(np.diff(others, prepend=-1))
        distinct = others[starts].astype(np.int64)
        weights = np.maximum.reduceat(edges.weight[found], starts)
        best = self._best(nodes, index, asked, distinct, weights)
        ends = np.append(starts[1:], len(found))
        via = [_via(edges, found[a:b], outgoing[a:b]) for a, b in zip(starts[best], ends[best], strict=True)]
        return Neighborhood(nodes.at(distinct[best]), via, len(distinct), counts)

    def _best(
        self,
        nodes: NodeTable,
        index: TextIndex,
        asked: Asked,
        distinct: NDArray[np.int64],
        weights: NDArray[np.float32],
    ) -> NDArray[np.int64]:
        """Return the best `asked.k` of the neighbours, which come by id."""
        if asked.query is None:
            return top_k(weights, asked.k)
        assert isinstance(index, ArrayIndex)
        state = copy(index)
        places = self._placed(nodes, state.table, distinct)
        scores = np.full(len(distinct), -np.inf, dtype=np.float32)
        held = np.flatnonzero(places >= 0)
        scores[held] = _scored(state, asked.query, places[held])
        return _ranked(scores, weights, asked.k)

    def _placed(self, nodes: NodeTable, table: NodeTable, distinct: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where nodes of the graph are in the index, -1 for those that are not."""
        if nodes.ids is table.ids:
            return distinct
        known = self._places
        if known is not None and known[0] is nodes and known[1] is table:
            return known[2][distinct]
        if len(distinct) <= _FEW:
            return table.find(nodes.ids.take(distinct))
        same = nodes.ids.equals(table.ids)  # as they are where the index was made of the store
        places = np.arange(len(nodes.ids)) if same else table.find(nodes.ids.tolist())
        self._places = nodes, table, places  # one assignment, so that other threads see all of it or nothing
        return places[distinct]


def _scored(index: ArrayIndex, query: str, places: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return what `ArrayIndex.scored` does, without a copy of all the vectors at once.

    Other indexes score all nodes once a query and remember it; vectors are read faster than BLAS does when it has to
    share the processor, and each by itself, so that ties are ties.
    """
    if not isinstance(index, DenseIndex):
        return index.scored(query, places)
    vector = index.query_vector(query)
    if len(places) * _SHARE > len(index.table):
        return np.asarray(np.einsum("ij,j->i", index.vectors, vector)[places], dtype=np.float32)
    scores = np.empty(len(places), dtype=np.float32)
    for start in range(0, len(places), _BLOCK):  # a block stays in the cache of the processor
        at = slice(start, start + _BLOCK)
        scores[at] = np.einsum("ij,j->i", index.vectors[places[at]], vector)
    return scores


def _ranked(scores: NDArray[np.float32], weights: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Return the `k` best by score, then by weight, then by position."""
    chosen = np.arange(len(scores))
    if k < len(scores):
        floor = scores[top_k(scores, k)[-1]]
        above, level = np.flatnonzero(scores > floor), np.flatnonzero(scores == floor)
        chosen = np.concatenate([above, level[top_k(weights[level], k - len(above))]])
    return chosen[np.lexsort((chosen, -weights[chosen], -scores[chosen]))]


def _counts(
    graph: Graph, found: NDArray[np.int64], others: NDArray[np.int32], outgoing: NDArray[np.bool_]
) -> Counter[tuple[str, bool, str]]:
    relations, sets = graph.edges.relations, graph.nodes.label_sets
    code = (graph.edges.relation[found].astype(np.int64) * 2 + outgoing) * len(sets) + graph.nodes.labels[others]
    counts: Counter[tuple[str, bool, str]] = Counter()
    if not len(code):
        return counts
    numbers = np.bincount(code, minlength=2 * len(relations) * len(sets))
    for one in np.flatnonzero(numbers).tolist():
        (relation, leaves), labels = divmod(one // len(sets), 2), sets[one % len(sets)]
        counts[relations[relation], bool(leaves), labels[0] if labels else ""] += int(numbers[one])
    return counts


def _passing(
    graph: Graph, found: NDArray[np.int64], others: NDArray[np.int32], outgoing: NDArray[np.bool_], asked: Asked
) -> NDArray[np.bool_] | None:
    keep: NDArray[np.bool_] | None = None
    if asked.relations is not None:
        relation = graph.edges.relation[found]
        out, into = (_chosen(graph.edges, asked.relations, ("both", one)) for one in ("out", "in"))
        keep = np.where(outgoing, out[relation], into[relation])
    if asked.labels is not None:
        fits = np.asarray([not asked.labels.isdisjoint(labels) for labels in graph.nodes.label_sets], dtype=bool)
        bears = fits[graph.nodes.labels[others]]
        keep = bears if keep is None else keep & bears
    return keep


def _chosen(edges: EdgeTable, relations: Mapping[str, str], directions: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.asarray([relations.get(name) in directions for name in edges.relations], dtype=bool)


def _via(edges: EdgeTable, found: NDArray[np.int64], outgoing: NDArray[np.bool_]) -> list[tuple[str, bool]]:
    pairs = zip(edges.relation[found].tolist(), outgoing.tolist(), strict=True)
    via = {(edges.relations[relation], leaves) for relation, leaves in pairs}
    return sorted(via, key=lambda one: (not one[1], one[0]))

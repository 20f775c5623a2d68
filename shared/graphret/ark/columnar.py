"""The neighbours of one node whose edges lie in columns, ranked by an index that lies in columns too, or by another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from graphret.ark.elsewhere import scores_elsewhere
from graphret.ark.grouped import Around, Grouped
from graphret.ark.hubs import KEPT
from graphret.ark.neighborhood import CAP, Asked, Neighborhood
from graphret.ark.places import Places
from graphret.edges import EdgeTable
from graphret.search.dense import DenseIndex
from graphret.search.index import ArrayIndex, TextIndex, top_k
from graphret.stores.incidence import Incidence
from graphret.stores.memory import Graph
from graphret.types import Node

_BLOCK = 1_024
_SHARE = 3


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was asked of the neighbourhood of a node, its best neighbours by position in a table; see `Neighborhood`."""

    positions: NDArray[np.int64]
    via: list[list[tuple[str, bool]]]
    total: int
    counts: Counter[tuple[str, bool, str]]

    def read(self, nodes: Sequence[Node | None]) -> Neighborhood:
        """Return it with the neighbours themselves, `None` for one that was deleted just now."""
        shown = [(node, by) for node, by in zip(nodes, self.via, strict=True) if node is not None]
        return Neighborhood([node for node, _ in shown], [by for _, by in shown], self.total, self.counts)


class Columns:
    """Looks at neighbourhoods by integer position; what `graphret.ark.neighborhood.explore` returns, for large ones.

    Where nodes are in the index is found out once, and after a write of those that came or went; the edges of a hub are
    gathered once for each state of the graph, and an index scores its nodes once a query.

    Parameters
    ----------
    together
        Whether the index lies in the store itself, so that what it says changes with the state of the store alone.
    """

    def __init__(self, together: bool = False) -> None:
        self._together = together
        self._places = Places()
        self._hubs: WeakKeyDictionary[EdgeTable, dict[str, Around]] = WeakKeyDictionary()

    def place(self, graph: Graph, index: ArrayIndex) -> None:
        """Find out now where the nodes of a graph are in an index, and have its edges in order by target."""
        graph.edges.entering(np.arange(0))
        if len(graph.nodes.ids):
            self._places.of(graph.nodes, copy(index).table, np.arange(len(graph.nodes)))

    def place_hub(self, around: Around, index: TextIndex) -> None:
        """Find out now where the neighbours of a hub are in an index."""
        if isinstance(index, ArrayIndex):
            nodes = around.links.nodes
            around.places.of(nodes, copy(index).table, np.arange(len(nodes)))

    def explore(self, graph: Graph, index: TextIndex, asked: Asked) -> Neighborhood:
        """Look at the neighbourhood of a node, which the graph holds."""
        chosen = self.look(self._around(graph, asked.node), index, asked)
        return chosen.read(graph.nodes.at(chosen.positions))

    def _around(self, graph: Graph, node: str) -> Around:
        """Return the edges of a node; a hub's are kept for as long as the graph is."""
        nodes, edges = graph.nodes, graph.edges
        known = self._hubs.get(edges, {})
        if any(around.links.nodes is not nodes for around in known.values()):  # nodes alone were written
            known = self._hubs[edges] = {}
        if node in known:
            return known[node]
        at = nodes.find([node])
        leaving, entering = edges.leaving(at), edges.entering(at)
        entering = entering[edges.source[entering] != at[0]]  # a loop is there once
        found = np.concatenate([leaving, entering])
        others = np.concatenate([edges.target[leaving], edges.source[entering]])
        outgoing = np.arange(len(found)) < len(leaving)
        links = Incidence(nodes, others, edges.relation[found], outgoing, edges.weight[found], edges.relations)
        around = Around(links, self._places)
        if CAP < len(links) <= KEPT:
            kept, total = {node: around}, len(links)
            for other, one in known.items():
                total += len(one.links)
                if total <= KEPT:
                    kept[other] = one
            self._hubs[edges] = kept  # one assignment: other threads see all of it or nothing
        return around

    def look(self, around: Around, index: TextIndex, asked: Asked) -> Chosen:
        """Look at a neighbourhood."""
        near = around.passing(asked)
        best = self._best(around, near, index, asked)
        via = [_via(near.links, slice(a, b)) for a, b in zip(near.starts[best], near.starts[best + 1], strict=True)]
        return Chosen(near.positions[best], via, len(near.positions), around.counts)

    def _best(self, around: Around, near: Grouped, index: TextIndex, asked: Asked) -> NDArray[np.int64]:
        """Return the best `asked.k` of the neighbours, which come by id."""
        nodes, distinct, weights = near.links.nodes, near.positions, near.weights
        if asked.query is None or not len(distinct):
            return top_k(weights, asked.k)
        if not isinstance(index, ArrayIndex):
            known = around.matches if self._together else {}
            return _ranked(scores_elsewhere(index, asked.query, asked.k, near, known), weights, asked.k)
        state = copy(index)
        places = around.places.of(nodes, state.table, distinct)
        if (places >= 0).all():
            scores = _scored(state, asked.query, places)
        else:
            held = np.flatnonzero(places >= 0)
            scores = np.full(len(distinct), -np.inf, dtype=np.float32)
            scores[held] = _scored(state, asked.query, places[held])
        return _ranked(scores, weights, asked.k)


def _scored(index: ArrayIndex, query: str, places: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return what `ArrayIndex.score_at` does, without a copy of all the vectors at once.

    Other indexes score all nodes once a query and remember it; vectors are read faster than BLAS does when it has to
    share the processor, and each by itself, so that ties are ties.
    """
    if not isinstance(index, DenseIndex):
        return index.score_at(query, places)
    vector = index.query_vector(query)
    if len(places) * _SHARE > len(index.table):
        return np.asarray(np.einsum("ij,j->i", index.vectors, vector)[places], dtype=np.float32)
    scores = np.empty(len(places), dtype=np.float32)
    for start in range(0, len(places), _BLOCK):  # a block stays in the cache of the processor
        at = slice(start, start + _BLOCK)
        scores[at] = np.einsum("ij,j->i", index.vectors[places[at]], vector)
    return scores


def _ranked(scores: NDArray[np.float32], weights: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Return the `k` best by score, then by weight, then by position."""
    chosen = np.arange(len(scores))
    if k < len(scores):
        floor = scores[top_k(scores, k)[-1]]
        above, level = np.flatnonzero(scores > floor), np.flatnonzero(scores == floor)
        chosen = np.concatenate([above, level[top_k(weights[level], k - len(above))]])
    return chosen[np.lexsort((chosen, -weights[chosen], -scores[chosen]))]


def _via(links: Incidence, edges: slice) -> list[tuple[str, bool]]:
    pairs = zip(links.relation[edges].tolist(), links.outgoing[edges].tolist(), strict=True)
    via = {(links.relations[relation], leaves) for relation, leaves in pairs}
    return sorted(via, key=lambda one: (not one[1], one[0]))

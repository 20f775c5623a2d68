"""The nodes that match a plan, and their scores: set joins over a graph in memory (GRASP, section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.edges import ranges, row_starts
from graphret.planning.graph_plan import GraphPlan, Order, PlanHop
from graphret.stores.memory import Graph
from graphret.types import Node
from graphret.where import Where

#: The nodes that an anchor may mean, by its variable, with the cosine of each.
Bindings: TypeAlias = Mapping[str, Mapping[str, float]]

#: Cosines are summed in another order by each engine.
DECIMALS = 6

#: How the edges of a hop are asked for at its source, and at its other end.
_SEEN = {"any": "both", "out": "out", "in": "in"}
_TURNED = {"any": "both", "out": "in", "in": "out"}
_Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Match:
    """A node that a plan's target may be, and its anchor score: the sum of the cosines of the nodes that the anchors
    stand for, where several paths lead to it that of the best; and how many paths there are.
    """

    id: str
    score: float
    paths: int = 1


def match_in_memory(plan: GraphPlan, graph: Graph, bindings: Bindings, limit: int = 1000) -> list[Match]:
    """Return what a plan finds in a graph, by its order or else by score, then by the number of paths, ties by id.

    Two variables may stand for one node. Variables that nothing more is asked of are forgotten as soon as may be, and
    of rows that are alike then the best is kept, so that what is held grows with the nodes and not with the paths.

    Parameters
    ----------
    bindings
        Of every anchor the nodes that it may mean; an anchor of none matches nothing.
    limit
        Most matches that are returned.
    """
    positions, scores, paths = _Join(plan, graph, bindings).run()
    order = np.lexsort((positions, -paths, -scores))[: limit if plan.order is None else None]
    positions = positions[order]
    rows = zip(
        graph.nodes.ids.take(positions), scores[order].tolist(), paths[order].astype(np.int64).tolist(), strict=True
    )
    found = [Match(*row) for row in rows]
    return found if plan.order is None else ordered(plan.order, found, graph.nodes.at(positions))[:limit]


def ordered(order: Order, matches: Sequence[Match], nodes: Sequence[Node | None]) -> list[Match]:
    """Return matches by a property of their nodes, as many as the order wants: numbers, then texts, then the others."""
    sign = -1 if order.descending else 1
    values = [node.properties.get(order.by) if node else None for node in nodes]
    texts = sorted({value for value in values if isinstance(value, str)})
    rank = {text: place for place, text in enumerate(texts)}

    def key(place: int) -> tuple[int, float]:
        value = values[place]
        if isinstance(value, (int, float)):
            return 0, sign * float(value)
        return (1, sign * rank[value]) if isinstance(value, str) else (2, 0)

    return [matches[place] for place in sorted(range(len(matches)), key=key)][: order.limit]


class _Join:
    """Rows of the variables joined so far, with the best score of each row and how many paths it stands for."""

    def __init__(self, plan: GraphPlan, graph: Graph, bindings: Bindings) -> None:
        self.plan, self.graph = plan, graph
        nodes = graph.nodes
        self.domain = {
            var: nodes.mask(Where.parse(plan.where.get(var)), labels or None)
            for var, labels in plan.labels_of().items()
        }
        self.bound: dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        for anchor in plan.anchors:
            bound = bindings.get(anchor.var, {})
            found = nodes.find(list(bound))
            cosines = np.asarray(list(bound.values()), dtype=np.float64)
            known = found >= 0
            if (mask := self.domain[anchor.var]) is not None:
                known[known] = mask[found[known]]
            self.bound[anchor.var] = found[known], cosines[known]
        if plan.apart:
            named = nodes.find([node_id for bound in bindings.values() for node_id in bound])
            for var in self.domain.keys() - self.bound.keys():
                given = self.domain[var]
                mask = np.ones(len(nodes), dtype=bool) if given is None else given.copy()
                mask[named[named >= 0]] = False
                self.domain[var] = mask
        self.columns: dict[str, NDArray[np.int64]] = {}
        self.scores: NDArray[np.float64] = np.zeros(0)
        self.paths: NDArray[np.float64] = np.zeros(0)

    def run(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Join all hops; return the positions of the target's nodes, distinct, their scores and paths."""
        target, waiting = self.plan.target.var, [hop for hop in self.plan.hops if not hop.negated]
        absent = [hop for hop in self.plan.hops if hop.negated]
        self._begin(min((var for var in self.bound if var in self.plan.joined()), key=self._size, default=target))
        while True:
            for hop in [hop for hop in waiting if {hop.source, hop.to_var} <= self.columns.keys()]:
                waiting.remove(hop)
                self._keep(hop, True)
            self._forget({target}.union(*({hop.source, hop.to_var} for hop in [*waiting, *absent])))
            if not waiting:
                break
            hop = min((hop for hop in waiting if {hop.source, hop.to_var} & self.columns.keys()), key=self._cost)
            waiting.remove(hop)
            self._extend(hop)
        for hop in absent:
            if {hop.source, hop.to_var} <= self.columns.keys():
                self._keep(hop, False)
            else:
                self._without(hop)
        self._forget({target})
        return self.columns[target], np.round(self.scores, DECIMALS), self.paths

    def _size(self, var: str) -> int:
        return len(self.bound[var][0])

    def _begin(self, var: str) -> None:
        if var in self.bound:
            self.columns[var], self.scores = self.bound[var]
        else:
            mask, n = self.domain[var], len(self.graph.nodes)
            self.columns[var] = np.arange(n) if mask is None else np.flatnonzero(mask)
            self.scores = np.zeros(len(self.columns[var]))
        self.paths = np.ones(len(self.scores))

    def _cost(self, hop: PlanHop) -> tuple[bool, int]:
        """What is joined first: hops to an anchor, then those from the fewest nodes."""
        near, far = hop.ends(self.columns)
        return far not in self.bound, self._size(far) if far in self.bound else len(np.unique(self.columns[near]))

    def _pairs(self, hop: PlanHop, begin: str, positions: NDArray[np.int64]) -> _Pairs:
        """The pairs that a hop joins, from nodes that `begin` stands for to the other variable's, distinct."""
        edges = self.graph.edges
        codes = [code for code, name in enumerate(edges.relations) if name in hop.rel]
        found, which = edges.incident_each(positions, (_SEEN if begin == hop.source else _TURNED)[hop.direction])
        kept = np.isin(edges.relation[found], codes)
        found, own, n = found[kept], positions[which[kept]], len(self.graph.nodes)
        other = np.where(edges.source[found] == own, edges.target[found], edges.source[found])
        own, other = np.divmod(np.unique(own * n + other), max(n, 1))
        end = hop.to_var if begin == hop.source else hop.source
        mask = self.domain[end]
        if end in self.bound:
            inside = np.isin(other, self.bound[end][0])
        elif mask is not None:
            inside = mask[other]
        else:
            return own, other
        return own[inside], other[inside]

    def _between(self, hop: PlanHop) -> _Pairs:
        """The pairs of a hop from a variable that has rows, by whichever of its ends reads fewer edges."""
        near, far = hop.ends(self.columns)
        here = np.unique(self.columns[near])
        there = np.unique(self.columns[far]) if far in self.columns else self.bound.get(far, (None,))[0]
        if there is None:
            return self._pairs(hop, near, here)
        there, degrees = np.unique(there), self.graph.edges.degrees
        if degrees(here).sum() <= degrees(there).sum():
            return self._pairs(hop, near, here)
        other, own = self._pairs(hop, far, there)
        order = np.lexsort((other, own))
        return own[order], other[order]

    def _extend(self, hop: PlanHop) -> None:
        """Join the rows with the variable that a hop leads to."""
        near, far = hop.ends(self.columns)
        own, other = self._between(hop)
        rows, starts = self.columns[near], row_starts(own, len(self.graph.nodes))
        row = np.repeat(np.arange(len(rows)), starts[rows + 1] - starts[rows])
        reached = other[ranges(starts, rows)]
        self.columns = {var: column[row] for var, column in self.columns.items()}
        self.columns[far], self.scores, self.paths = reached, self.scores[row], self.paths[row]
        if far in self.bound:
            positions, cosines = self.bound[far]
            order = np.argsort(positions)
            self.scores = self.scores + cosines[order][np.searchsorted(positions[order], reached)]

    def _keep(self, hop: PlanHop, there: bool) -> None:
        """Keep the rows whose two nodes a hop joins, or those that it does not."""
        n, (own, other) = len(self.graph.nodes), self._between(hop)
        near, far = hop.ends(self.columns)
        self._select(np.isin(self.columns[near] * n + self.columns[far], own * n + other, invert=not there))

    def _without(self, hop: PlanHop) -> None:
        """Keep the rows from which a hop leads nowhere."""
        near, _ = hop.ends(self.columns)
        self._select(np.isin(self.columns[near], self._between(hop)[0], invert=True))

    def _select(self, kept: NDArray[np.bool_]) -> None:
        self.columns = {var: column[kept] for var, column in self.columns.items()}
        self.scores, self.paths = self.scores[kept], self.paths[kept]

    def _forget(self, needed: set[str]) -> None:
        """Leave out the variables that nothing more is asked of; of rows that are alike keep the best, for all."""
        kept: Sequence[str] = [var for var in self.columns if var in needed]
        if len(kept) == len(self.columns) and len(kept) > 1:
            return
        if not kept:  # rows stand for the anchors alone
            kept = list(self.columns)[:1]
        table = np.stack([self.columns[var] for var in kept])
        order = np.lexsort((-self.scores, *table[::-1]))
        table, scores = table[:, order], self.scores[order]
        first = np.append(True, (np.diff(table, axis=1) != 0).any(axis=0))[: len(scores)]
        self.paths = np.add.reduceat(self.paths[order], np.flatnonzero(first)) if len(scores) else self.paths
        self.columns, self.scores = dict(zip(kept, table[:, first], strict=True)), scores[first]

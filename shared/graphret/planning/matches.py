"""The nodes that match a plan, and their scores: set joins over a graph in memory
(GRASP, section 3.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.edges import row_starts
from graphret.planning.graph_plan import GraphPlan, Order, PlanHop
from graphret.splice import ranges
from graphret.stores.memory import Graph
from graphret.types import Node
from graphret.where import Where

#: The nodes that an anchor may mean, by its variable, with the cosine of each.
Bindings: TypeAlias = Mapping[str, Mapping[str, float]]

#: Cosines are summed in another order by each engine.
DECIMALS = 6

_Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class PlanMatch:
    """A node that a plan's target may be, and its anchor score: the sum of the cosines
    of the nodes that the anchors stand for, where several paths lead to it that of the
    best; and how many paths there are.
    """

    id: str
    score: float
    paths: int = 1


def match_in_memory(
    plan: GraphPlan, graph: Graph, bindings: Bindings, limit: int
) -> list[PlanMatch]:
    """Return what a plan finds in a graph, as `find_matches` does; two variables may
    stand for one node.

    Variables that nothing more is asked of are forgotten as soon as may be, and of rows
    that are alike then the best is kept, so that what is held grows with the nodes and
    not with the paths.
    """
    join = _Join(plan, graph, bindings)
    join.run()
    positions, scores, paths = join.targets()
    order = np.lexsort((positions, -paths, -scores))[
        : limit if plan.order is None else None
    ]
    positions = positions[order]
    ids, counts = graph.nodes.ids.take(positions), paths[order].astype(np.int64)
    found = [
        PlanMatch(*row)
        for row in zip(ids, scores[order].tolist(), counts.tolist(), strict=True)
    ]
    if plan.order is None:
        return found
    return ordered(plan.order, found, join.measures())[:limit]


def ordered(
    order: Order, matches: Sequence[PlanMatch], measures: Mapping[str, Any]
) -> list[PlanMatch]:
    """Return matches by what their order measures of each, as many as it wants:
    numbers, then texts, then the others.
    """
    values: list[Any] = [measures.get(match.id) for match in matches]
    found: list[int] = []
    for kind in ((int, float), str):
        places = [
            place for place, value in enumerate(values) if isinstance(value, kind)
        ]
        found += sorted(places, key=values.__getitem__, reverse=order.descending)
    return [matches[place] for place in dict.fromkeys([*found, *range(len(matches))])][
        : order.limit
    ]


def measured(
    order: Order, pairs: Iterable[tuple[str, str]], nodes: Mapping[str, Node]
) -> dict[str, Any]:
    """Return what an order measures of each target.

    Parameters
    ----------
    pairs
        The ids of a target and of a node whose property counts, distinct.
    nodes
        The latter by id; none are needed where they are only counted.
    """
    if not order.by:
        return dict(Counter(target for target, _ in pairs))
    found: dict[str, Any] = {}
    for target, node_id in pairs:
        value = nodes[node_id].properties.get(order.by) if node_id in nodes else None
        if value is None:
            continue
        held = found.get(target)
        further = held is None or type(held) is not type(value)
        if further or (value > held if order.descending else value < held):
            found[target] = value
    return found


def has_properties(properties: Mapping[str, Any], hop: PlanHop) -> bool:
    """Whether an edge's properties satisfy what a hop asks of them."""
    where = Where.parse(hop.where)
    # conditions read nodes: an edge stands as one that has nothing but properties
    return where is None or where.matches(Node("edge", (), properties=properties))


def direction_from(hop: PlanHop, var: str) -> str:
    """Return how a store is asked for the edges of a hop, seen from one end of it."""
    if hop.direction == "any":
        return "both"
    outgoing = (hop.direction == "out") == (var == hop.source)
    return "out" if outgoing else "in"


class _Join:
    """Rows of the variables joined so far, with the best score of each row and how many
    paths it stands for.
    """

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
            named = nodes.find(
                [node_id for bound in bindings.values() for node_id in bound]
            )
            for var in self.domain.keys() - self.bound.keys():
                given = self.domain[var]
                mask = (
                    np.ones(len(nodes), dtype=bool) if given is None else given.copy()
                )
                mask[named[named >= 0]] = False
                self.domain[var] = mask
        self.columns: dict[str, NDArray[np.int64]] = {}
        self.scores: NDArray[np.float64] = np.zeros(0)
        self.paths: NDArray[np.float64] = np.zeros(0)

    def run(self) -> None:
        """Join all hops."""
        begin, steps = self.plan.steps(
            {var: len(nodes) for var, (nodes, _) in self.bound.items()}
        )
        self._begin(begin)
        for hop, near, far, needed in steps:
            if hop.negated or far in self.columns:
                self._select(hop, near, far)
            else:
                self._extend(hop, near, far)
            self._forget(needed)

    def targets(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the positions of the target's nodes, distinct, their scores and
        paths.
        """
        target = self.plan.target.var
        columns, scores, paths = self.columns, self.scores, self.paths
        self._forget({target})
        found = self.columns[target], np.round(self.scores, DECIMALS), self.paths
        self.columns, self.scores, self.paths = columns, scores, paths
        return found

    def measures(self) -> dict[str, Any]:
        """Return what the plan's order measures of each target, by id."""
        order, nodes = self.plan.order, self.graph.nodes
        assert order is not None
        target = self.plan.target.var
        own, other = self.columns[target], self.columns[order.of or target]
        own, other = np.unique(np.stack([own, other]), axis=1)
        there = np.unique(other)
        known = {node.id: node for node in nodes.at(there)} if order.by else {}
        ids = nodes.ids
        pairs = zip(ids.take(own), ids.take(other), strict=True)
        return measured(order, pairs, known)

    def _begin(self, var: str) -> None:
        if var in self.bound:
            self.columns[var], self.scores = self.bound[var]
        else:
            self.columns[var] = self._in_domain(var)
            self.scores = np.zeros(len(self.columns[var]))
        self.paths = np.ones(len(self.scores))

    def _pairs(self, hop: PlanHop, begin: str, positions: NDArray[np.int64]) -> _Pairs:
        """The pairs that a hop joins, from nodes that `begin` stands for to the other
        variable's, distinct.
        """
        edges = self.graph.edges
        codes = [code for code, name in enumerate(edges.relations) if name in hop.rel]
        found, which = edges.incident_each(positions, direction_from(hop, begin))
        kept = np.flatnonzero(np.isin(edges.relation[found], codes))
        if hop.where:
            kept = kept[self._fitting(found[kept], hop)]
        found, own, n = found[kept], positions[which[kept]], len(self.graph.nodes)
        other = np.where(
            edges.source[found] == own, edges.target[found], edges.source[found]
        )
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

    def _fitting(self, found: NDArray[np.int64], hop: PlanHop) -> NDArray[np.bool_]:
        """Which of some edges have the properties that a hop asks for."""
        edges = self.graph.edges
        properties = edges.properties.take(found)
        weights = edges.weight[found].tolist()
        return np.asarray(
            [
                has_properties({**own, "weight": weight}, hop)
                for own, weight in zip(properties, weights, strict=True)
            ],
            dtype=bool,
        )

    def _between(self, hop: PlanHop, near: str, far: str) -> _Pairs:
        """The pairs of a hop from a variable that has rows, by whichever of its ends
        reads fewer edges.
        """
        here = np.unique(self.columns[near])
        there = self.columns.get(far, self.bound.get(far, (None,))[0])
        if there is None:
            return self._pairs(hop, near, here)
        there, degrees = np.unique(there), self.graph.edges.degrees
        if degrees(here).sum() <= degrees(there).sum():
            return self._pairs(hop, near, here)
        other, own = self._pairs(hop, far, there)
        order = np.lexsort((other, own))
        return own[order], other[order]

    def _extend(self, hop: PlanHop, near: str, far: str) -> None:
        """Join the rows with the variable that a hop leads to."""
        own, other = self._between(hop, near, far)
        rows, starts = self.columns[near], row_starts(own, len(self.graph.nodes))
        row = np.repeat(np.arange(len(rows)), starts[rows + 1] - starts[rows])
        reached = other[ranges(starts, rows)]
        self.columns = {var: column[row] for var, column in self.columns.items()}
        self.columns[far], self.scores, self.paths = (
            reached,
            self.scores[row],
            self.paths[row],
        )
        if far in self.bound:
            positions, cosines = self.bound[far]
            order = np.argsort(positions)
            self.scores = (
                self.scores + cosines[order][np.searchsorted(positions[order], reached)]
            )

    def _select(self, hop: PlanHop, near: str, far: str) -> None:
        """Keep the rows that a hop joins with its other end, or those that a negated
        one does not.
        """
        if hop.negated:
            self._narrow(far)
        own, other = self._between(hop, near, far)
        here, there, n = (
            self.columns[near],
            self.columns.get(far),
            len(self.graph.nodes),
        )
        joined = (
            np.isin(here, own)
            if there is None
            else np.isin(here * n + there, own * n + other)
        )
        kept = joined != hop.negated
        self.columns = {var: column[kept] for var, column in self.columns.items()}
        self.scores, self.paths = self.scores[kept], self.paths[kept]

    def _narrow(self, var: str) -> None:
        """Leave to the end of a negated hop the nodes from which those go on that
        follow it.
        """
        for hop, near, far in reversed(self.plan.going_on(var)):
            ends = self.bound[far][0] if far in self.bound else self._in_domain(far)
            _, left = self._pairs(hop, far, np.unique(ends))
            mask = np.zeros(len(self.graph.nodes), dtype=bool)
            mask[left] = True
            self.domain[near] = mask
            if near in self.bound:
                positions, cosines = self.bound[near]
                self.bound[near] = positions[mask[positions]], cosines[mask[positions]]

    def _in_domain(self, var: str) -> NDArray[np.int64]:
        """The nodes that a variable without an anchor may stand for."""
        mask, n = self.domain[var], len(self.graph.nodes)
        return np.arange(n) if mask is None else np.flatnonzero(mask)

    def _forget(self, needed: set[str]) -> None:
        """Leave out the variables that nothing more is asked of; of rows that are alike
        keep the best, for all.
        """
        kept = [var for var in self.columns if var in needed]
        if 1 < len(kept) == len(self.columns):
            return
        table = np.stack([self.columns[var] for var in kept])
        order = np.lexsort((-self.scores, *table[::-1]))
        table, scores = table[:, order], self.scores[order]
        first = np.append(True, (np.diff(table, axis=1) != 0).any(axis=0))[
            : len(scores)
        ]
        self.paths = (
            np.add.reduceat(self.paths[order], np.flatnonzero(first))
            if len(scores)
            else self.paths
        )
        self.columns, self.scores = (
            dict(zip(kept, table[:, first], strict=True)),
            scores[first],
        )

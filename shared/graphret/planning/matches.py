"""The nodes that match a plan, by set joins in memory (GRASP, section 3.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.edges import row_starts
from graphret.numeric import ranges, unique
from graphret.planning.graph_plan import GraphPlan, Order, PlanHop
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
    """A node that matches a plan's target, its anchor score, and its number of paths.

    The score is the sum of the anchors' cosines, of several paths the best.
    """

    id: str
    score: float
    paths: int = 1


def match_in_memory(
    plan: GraphPlan, graph: Graph, bindings: Bindings, limit: int
) -> list[PlanMatch]:
    """Return what a plan finds in a graph, as `find_matches` does.

    Two variables may stand for one node.

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
    matches = [
        PlanMatch(*row)
        for row in zip(ids, scores[order].tolist(), counts.tolist(), strict=True)
    ]
    if plan.order is None:
        return matches
    return ordered(plan.order, matches, join.measures())[:limit]


def ordered(
    order: Order, matches: Sequence[PlanMatch], measures: Mapping[str, Any]
) -> list[PlanMatch]:
    """Return the first matches by the plan's order: numbers, texts, then others."""
    values: list[Any] = [measures.get(match.id) for match in matches]
    ranking: list[int] = []
    for kind in ((int, float), str):
        places = [
            place for place, value in enumerate(values) if isinstance(value, kind)
        ]
        ranking += sorted(places, key=values.__getitem__, reverse=order.descending)
    return [
        matches[place] for place in dict.fromkeys([*ranking, *range(len(matches))])
    ][: order.limit]


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
    measures: dict[str, Any] = {}
    for target, node_id in pairs:
        value = nodes[node_id].properties.get(order.by) if node_id in nodes else None
        if value is None:
            continue
        best = measures.get(target)
        further = best is None or type(best) is not type(value)
        if further or (value > best if order.descending else value < best):
            measures[target] = value
    return measures


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
    """Rows of the variables joined so far, with best scores and numbers of paths."""

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
            positions = nodes.find(list(bound))
            cosines = np.asarray(list(bound.values()), dtype=np.float64)
            usable = positions >= 0
            if (mask := self.domain[anchor.var]) is not None:
                usable[usable] = mask[positions[usable]]
            self.bound[anchor.var] = positions[usable], cosines[usable]
        if plan.apart:
            named_positions = nodes.find(
                [node_id for bound in bindings.values() for node_id in bound]
            )
            for var in self.domain.keys() - self.bound.keys():
                allowed = self.domain[var]
                mask = (
                    np.ones(len(nodes), dtype=bool)
                    if allowed is None
                    else allowed.copy()
                )
                mask[named_positions[named_positions >= 0]] = False
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
        """Return the positions of the distinct targets, their scores and paths."""
        target = self.plan.target.var
        columns, scores, paths = self.columns, self.scores, self.paths
        self._forget({target})
        targets = self.columns[target], np.round(self.scores, DECIMALS), self.paths
        self.columns, self.scores, self.paths = columns, scores, paths
        return targets

    def measures(self) -> dict[str, Any]:
        """Return what the plan's order measures of each target, by id."""
        order, nodes = self.plan.order, self.graph.nodes
        assert order is not None
        target = self.plan.target.var
        targets, measured_nodes = self.columns[target], self.columns[order.of or target]
        targets, measured_nodes = np.unique(np.stack([targets, measured_nodes]), axis=1)
        distinct = unique(measured_nodes)
        nodes_by_id = {node.id: node for node in nodes.at(distinct)} if order.by else {}
        ids = nodes.ids
        pairs = zip(ids.take(targets), ids.take(measured_nodes), strict=True)
        return measured(order, pairs, nodes_by_id)

    def _begin(self, var: str) -> None:
        if var in self.bound:
            self.columns[var], self.scores = self.bound[var]
        else:
            self.columns[var] = self._in_domain(var)
            self.scores = np.zeros(len(self.columns[var]))
        self.paths = np.ones(len(self.scores))

    def _pairs(self, hop: PlanHop, begin: str, positions: NDArray[np.int64]) -> _Pairs:
        """The distinct pairs of nodes that a hop joins, from those of one end."""
        edges = self.graph.edges
        codes = [code for code, name in enumerate(edges.relations) if name in hop.rel]
        incident, row = edges.incident_each(positions, direction_from(hop, begin))
        matching = np.flatnonzero(np.isin(edges.relation[incident], codes))
        if hop.where:
            matching = matching[self._fitting(incident[matching], hop)]
        incident, near_ends, n = (
            incident[matching],
            positions[row[matching]],
            len(self.graph.nodes),
        )
        far_ends = np.where(
            edges.source[incident] == near_ends,
            edges.target[incident],
            edges.source[incident],
        )
        near_ends, far_ends = np.divmod(unique(near_ends * n + far_ends), max(n, 1))
        end = hop.to_var if begin == hop.source else hop.source
        mask = self.domain[end]
        if end in self.bound:
            inside = np.isin(far_ends, self.bound[end][0])
        elif mask is not None:
            inside = mask[far_ends]
        else:
            return near_ends, far_ends
        return near_ends[inside], far_ends[inside]

    def _fitting(
        self, edge_positions: NDArray[np.int64], hop: PlanHop
    ) -> NDArray[np.bool_]:
        """Which of some edges have the properties that a hop asks for."""
        edges = self.graph.edges
        properties = edges.properties.take(edge_positions)
        weights = edges.weight[edge_positions].tolist()
        return np.asarray(
            [
                has_properties({**edge_properties, "weight": weight}, hop)
                for edge_properties, weight in zip(properties, weights, strict=True)
            ],
            dtype=bool,
        )

    def _between(self, hop: PlanHop, near: str, far: str) -> _Pairs:
        """The pairs of a hop, read from the end that has fewer edges."""
        near_nodes = unique(self.columns[near])
        far_nodes = self.columns.get(far, self.bound.get(far, (None,))[0])
        if far_nodes is None:
            return self._pairs(hop, near, near_nodes)
        far_nodes, degrees = unique(far_nodes), self.graph.edges.degrees
        if degrees(near_nodes).sum() <= degrees(far_nodes).sum():
            return self._pairs(hop, near, near_nodes)
        far_ends, near_ends = self._pairs(hop, far, far_nodes)
        order = np.lexsort((far_ends, near_ends))
        return near_ends[order], far_ends[order]

    def _extend(self, hop: PlanHop, near: str, far: str) -> None:
        """Join the rows with the variable that a hop leads to."""
        near_ends, far_ends = self._between(hop, near, far)
        rows, starts = self.columns[near], row_starts(near_ends, len(self.graph.nodes))
        row = np.repeat(np.arange(len(rows)), starts[rows + 1] - starts[rows])
        reached = far_ends[ranges(starts, rows)]
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
        """Keep the rows that a hop joins, or, if negated, those that it does not."""
        if hop.negated:
            self._narrow(far)
        near_ends, far_ends = self._between(hop, near, far)
        near_column, far_column, n = (
            self.columns[near],
            self.columns.get(far),
            len(self.graph.nodes),
        )
        joined = (
            np.isin(near_column, near_ends)
            if far_column is None
            else np.isin(near_column * n + far_column, near_ends * n + far_ends)
        )
        selected = joined != hop.negated
        self.columns = {var: column[selected] for var, column in self.columns.items()}
        self.scores, self.paths = self.scores[selected], self.paths[selected]

    def _narrow(self, var: str) -> None:
        """Limit the end of a negated hop to nodes from which the next hops go on."""
        for hop, near, far in reversed(self.plan.going_on(var)):
            far_nodes = (
                self.bound[far][0] if far in self.bound else self._in_domain(far)
            )
            _, near_nodes = self._pairs(hop, far, unique(far_nodes))
            mask = np.zeros(len(self.graph.nodes), dtype=bool)
            mask[near_nodes] = True
            self.domain[near] = mask
            if near in self.bound:
                positions, cosines = self.bound[near]
                self.bound[near] = positions[mask[positions]], cosines[mask[positions]]

    def _in_domain(self, var: str) -> NDArray[np.int64]:
        """The nodes that a variable without an anchor may stand for."""
        mask, n = self.domain[var], len(self.graph.nodes)
        return np.arange(n) if mask is None else np.flatnonzero(mask)

    def _forget(self, needed: set[str]) -> None:
        """Drop the variables that are no longer needed, and merge equal rows."""
        kept_vars = [var for var in self.columns if var in needed]
        if 1 < len(kept_vars) == len(self.columns):
            return
        table = np.stack([self.columns[var] for var in kept_vars])
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
            dict(zip(kept_vars, table[:, first], strict=True)),
            scores[first],
        )

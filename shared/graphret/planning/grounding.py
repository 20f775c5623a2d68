"""Where paths lead to in a graph: the nodes at their ends, and how many ways lead to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.planning.graph_plan import Anchor, GraphPlan, PlanHop, RiskLevel, Target
from graphret.planning.paths import Hop
from graphret.planning.queries import find_matches
from graphret.stores.base import GraphStore
from graphret.stores.memory import Graph, MemoryStore

#: Nodes that a path is followed on from: those that most ways lead to.
FRONTIER = 5_000
#: Ends that a database is asked for.
MOST_ENDS = 1_000

#: Nodes by position, or by id where a database holds them, and how many ways lead to each.
Ends: TypeAlias = tuple[NDArray[Any], NDArray[np.float64]]


class Grounded(Protocol):
    """What is around some nodes."""

    def ends(self, path: Sequence[Hop]) -> Ends:
        """Return where a path leads to, never by way of the nodes that the question names."""
        ...

    def ids(self, nodes: NDArray[Any]) -> list[str]:
        """Return the ids of nodes."""
        ...


def ground(store: GraphStore, starts: Mapping[str, float], named: Sequence[str]) -> Grounded:
    """Return what is around the nodes of a mention; `named` are all that the question names."""
    if isinstance(store, MemoryStore):
        return _InMemory(store.graph, list(starts), named)
    return _Queried(store, starts)


class _InMemory:
    def __init__(self, graph: Graph, starts: Sequence[str], named: Sequence[str]) -> None:
        self.graph, self.named = graph, graph.nodes.find(list(named))
        begin = np.unique(graph.nodes.find(list(starts)))
        begin = begin[begin >= 0]
        self._known: dict[tuple[Hop, ...], Ends] = {(): (begin, np.ones(len(begin)))}

    def ends(self, path: Sequence[Hop]) -> Ends:
        key = tuple(path)
        if key not in self._known:
            self._known[key] = self._step(self.ends(key[:-1]), key[-1])
        return self._known[key]

    def _step(self, begin: Ends, hop: Hop) -> Ends:
        nodes, ways = begin
        if len(nodes) > FRONTIER:
            best = np.sort(np.argsort(-ways, kind="stable")[:FRONTIER])
            nodes, ways = nodes[best], ways[best]
        edges, table = self.graph.edges, self.graph.nodes
        found, which = edges.incident_each(nodes, "out" if hop.outgoing else "in")
        kept = edges.relation[found] == edges.relations.index(hop.relation)
        found, which = found[kept], which[kept]
        other = (edges.target if hop.outgoing else edges.source)[found].astype(np.int64)
        if hop.label and (mask := table.mask(None, [hop.label])) is not None:
            kept = mask[other]
            other, which = other[kept], which[kept]
        pairs = np.unique(other * len(nodes) + which)  # edges that differ in their parts alone lead one way
        other, which = np.divmod(pairs, max(len(nodes), 1))
        ends, place = np.unique(other, return_inverse=True)
        counts = np.bincount(place, weights=ways[which], minlength=len(ends)).astype(np.float64)
        kept = ~np.isin(ends, self.named)
        return ends[kept], counts[kept]

    def ids(self, nodes: NDArray[Any]) -> list[str]:
        return self.graph.nodes.ids.take(nodes)


class _Queried:
    def __init__(self, store: GraphStore, starts: Mapping[str, float]) -> None:
        self.store, self.starts = store, starts
        self._known: dict[tuple[Hop, ...], Ends] = {}

    def ends(self, path: Sequence[Hop]) -> Ends:
        key = tuple(path)
        if key not in self._known:
            plan = plan_of([("", key)])
            found = find_matches(plan, self.store, {plan.anchors[0].var: self.starts}, limit=MOST_ENDS)
            ids = np.asarray([match.id for match in found], dtype=object)
            self._known[key] = ids, np.asarray([match.paths for match in found], dtype=np.float64)
        return self._known[key]

    def ids(self, nodes: NDArray[Any]) -> list[str]:
        return list(nodes)


def plan_of(walks: Sequence[tuple[str, Sequence[Hop]]], *, about: str = "", risk: RiskLevel = "normal") -> GraphPlan:
    """Return the plan of paths, each from what the question calls by a text, that meet in one target."""
    anchors, hops = [], []
    for number, (text, path) in enumerate(walks):
        var = f"a{number + 1}"
        anchors.append(Anchor(var=var, text=text or "-", label=path[0].start or None))
        for place, hop in enumerate(path):
            to_var = "T" if place == len(path) - 1 else f"x{number + 1}_{place + 1}"
            told = {"from": var, "rel": hop.relation, "to_var": to_var, "to_label": hop.label or None}
            hops.append(PlanHop.model_validate(told | {"direction": "out" if hop.outgoing else "in"}))
            var = to_var
    label = walks[0][1][-1].label
    target = Target(labels=[label] if label else [], relevance_text=about)
    return GraphPlan(anchors=anchors, hops=hops, target=target, apart=True, risk_level=risk)

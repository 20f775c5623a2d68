"""Where paths lead to in a graph, and the plan of paths that meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from graphret.planning.graph_plan import Anchor, GraphPlan, PlanHop, RiskLevel, Target
from graphret.planning.paths import Hop
from graphret.planning.queries import find_matches
from graphret.stores.base import GraphStore

#: Ends of a path that are looked at.
MOST_ENDS = 5_000


class Grounded:
    """What is around the nodes of a mention; `named` are all nodes that the question names."""

    def __init__(self, store: GraphStore, starts: Mapping[str, float], named: Iterable[str]) -> None:
        self._store = store
        self._bindings = {"a1": starts, "named": dict.fromkeys(named, 0.0)}
        self.ends = cache(self._ends)

    def _ends(self, path: tuple[Hop, ...]) -> frozenset[str]:
        """Return the nodes that a path leads to, never by way of those that the question names."""
        found = find_matches(plan_of([("", path)]), self._store, self._bindings, limit=MOST_ENDS)
        return frozenset(match.id for match in found)


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

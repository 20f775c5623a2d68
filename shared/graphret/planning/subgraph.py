"""What a plan may match of a graph that is elsewhere, read hop by hop."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from graphret.planning.graph_plan import GraphPlan
from graphret.planning.matches import Bindings, direction_from
from graphret.stores.base import GraphStore
from graphret.stores.memory import Graph, fetch_graph
from graphret.types import Edge, EdgeKey


def fetch_plan_graph(plan: GraphPlan, store: GraphStore, bindings: Bindings) -> Graph:
    """Read all that a plan may match, with one call of `neighbors` for each hop.

    The hops are followed in the order of `GraphPlan.steps`, from the nodes of an
    anchor, or from all that the target may be where there is none.
    """
    labels = {var: names or None for var, names in plan.labels_of().items()}
    reached = {a.var: set(bindings.get(a.var, ())) for a in plan.anchors}
    begin, steps = plan.steps({var: len(ids) for var, ids in reached.items()})
    if begin not in reached:
        blocks = store.nodes(labels[begin], plan.where.get(begin))
        reached[begin] = {node.id for block in blocks for node in block}
    edges: dict[EdgeKey, Edge] = {}
    followed = [
        step
        for hop, near, far, _ in steps
        for step in [(hop, near, far), *(plan.going_on(far) if hop.negated else ())]
    ]
    for hop, near, far in followed:
        joining = store.neighbors(
            sorted(reached[near]),
            relations=hop.rel,
            labels=labels[far],
            where=plan.where.get(far),
            direction=direction_from(hop, near),
        )
        edges.update((edge.identity, edge) for edge in joining)
        reached.setdefault(far, _ends(joining, reached[near]))
    return fetch_graph(store, set().union(*reached.values()), edges.values())


def _ends(edges: Iterable[Edge], anchors: Collection[str]) -> set[str]:
    """The other ends of edges that touch some nodes."""
    leaving = {edge.target for edge in edges if edge.source in anchors}
    return leaving | {edge.source for edge in edges if edge.target in anchors}

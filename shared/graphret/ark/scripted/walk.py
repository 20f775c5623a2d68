"""Following a plan through what has been explored, and asking for what has not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphret.ark.scripted.plan import Plan
from graphret.ark.scripted.schema import Hop
from graphret.ark.scripted.transcript import EXPLORE, Exploration

#: A tool and its arguments.
Call: TypeAlias = tuple[str, dict[str, Any]]

#: Neighbours asked for of a node.
NEIGHBORS_K = 100
#: Nodes looked at whole to learn what relations they have, in the first and the second turn spent on it; then all.
PROBES = (3, 12)


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a plan has been followed.

    Parameters
    ----------
    ends
        The nodes where it ends, as far as seen, with the number of paths that lead to each.
    wanted
        What is to be explored before it can go on.
    """

    ends: dict[str, int] = field(default_factory=dict)
    wanted: list[Call] = field(default_factory=list)


def follow(start: str, plan: Plan, around: Mapping[str, Sequence[Exploration]]) -> Walk | None:
    """Follow a plan from a node, never back to it, as far as what has been explored allows.

    Returns
    -------
    Walk or None
        `None` where the plan leads nowhere, or no relation is left to be discovered at its open end.
    """
    frontier: dict[str, int] = {start: 1}
    for depth, hop in enumerate(plan.hops, start=1):
        wanted: list[Call] = []
        reached: Counter[str] = Counter()
        for node, paths in frontier.items():
            ends, complete = _step(node, hop, around.get(node, ()))
            if not complete:
                wanted.append((EXPLORE, {"node": node, "relation_types": [_arrow(hop)], "k": NEIGHBORS_K}))
            for end in ends:
                if end != start:
                    reached[end] += paths
        if wanted:
            return Walk(dict(reached) if depth == len(plan.hops) and not plan.open else {}, wanted)
        frontier = dict(reached)
    if plan.open:
        wanted = _probes(frontier, around)
        return Walk({}, wanted) if wanted else None
    return Walk(frontier) if frontier else None


def _probes(frontier: Mapping[str, int], around: Mapping[str, Sequence[Exploration]]) -> list[Call]:
    fresh = [node for node in frontier if all(one.asked is not None for one in around.get(node, ()))]
    done = len(frontier) - len(fresh)
    size = next((size for size in PROBES if done < size), len(fresh))
    return [(EXPLORE, {"node": node, "k": NEIGHBORS_K}) for node in fresh[:size]]


def _step(node: str, hop: Hop, looks: Sequence[Exploration]) -> tuple[list[str], bool]:
    """The nodes that a hop leads to from a node as far as seen, and whether there is nothing more to ask for."""
    step = (hop.relation, hop.outgoing)
    ends = dict.fromkeys(other.id for one in looks for other in one.neighbors if step in other.via)
    if any(one.asked == frozenset([_arrow(hop)]) for one in looks):
        return list(ends), True
    whole = next((one for one in looks if one.asked is None), None)
    if whole is None:
        return list(ends), False
    there = sum(count for relation, outgoing, _, count in whole.relations if (relation, outgoing) == step)
    return list(ends), len(ends) >= min(there, NEIGHBORS_K)


def _arrow(hop: Hop) -> str:
    return f"-[{hop.relation}]->" if hop.outgoing else f"<-[{hop.relation}]-"

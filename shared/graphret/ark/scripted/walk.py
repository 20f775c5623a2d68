"""Following a plan through what has been explored, and asking for what has not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphret.ark.definitions import EXPLORE
from graphret.ark.scripted.plan import Plan
from graphret.ark.scripted.schema import Hop
from graphret.ark.scripted.transcript import Exploration

#: A tool and its arguments.
Call: TypeAlias = tuple[str, dict[str, Any]]

#: Neighbours asked for of a node.
NEIGHBORS_K = 100
#: Nodes looked at whole to learn what relations they have, in the first and the second turn spent on it.
PROBES = (3, 12)


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a plan has been followed.

    Parameters
    ----------
    ends
        The nodes where it ends, as far as seen, with the number of paths that lead to each; of as many paths those
        first that were shown first.
    wanted
        What is to be explored before it can go on.
    """

    ends: dict[str, int] = field(default_factory=dict)
    wanted: list[Call] = field(default_factory=list)


def follow(
    start: str,
    plan: Plan,
    around: Mapping[str, Sequence[Exploration]],
    *,
    named: Collection[str] = (),
    query: str = "",
) -> Walk | None:
    """Follow a plan from a node, never back to it, as far as what has been explored allows.

    Parameters
    ----------
    named
        Nodes that the question names, which are no answers.
    query
        What ranks the nodes where it ends.

    Returns
    -------
    Walk or None
        `None` where the plan leads nowhere, or no relation is left to be discovered at its open end.
    """
    frontier: dict[str, int] = {start: 1}
    for depth, hop in enumerate(plan.hops, start=1):
        last = depth == len(plan.hops) and not plan.probes
        ranking = query if last else ""
        wanted: list[Call] = []
        reached: Counter[str] = Counter()
        places: dict[str, int] = {}
        for node, paths in frontier.items():
            shown, complete = _step(node, hop, around.get(node, ()), ranking)
            if not complete:
                asked = {"node": node, "relation_types": [_arrow(hop)], "k": NEIGHBORS_K}
                wanted.append((EXPLORE, asked | ({"query": ranking} if ranking else {})))
            for place, end in enumerate(shown):
                if end != start:
                    reached[end] += paths
                    places[end] = min(place, places.get(end, place))
        frontier = {end: reached[end] for end in sorted(reached, key=places.__getitem__)} if ranking else dict(reached)
        if wanted:
            return Walk({end: n for end, n in frontier.items() if end not in named} if last else {}, wanted)
    if plan.probes:
        wanted = _probes(frontier, around, plan.probes)
        return Walk({}, wanted) if wanted else None
    ends = {end: paths for end, paths in frontier.items() if end not in named}
    return Walk(ends) if ends else None


def _probes(frontier: Mapping[str, int], around: Mapping[str, Sequence[Exploration]], most: int) -> list[Call]:
    fresh = [node for node in frontier if all(one.asked is not None for one in around.get(node, ()))]
    done = len(frontier) - len(fresh)
    size = next((size for size in PROBES if done < size), most)
    return [(EXPLORE, {"node": node, "k": NEIGHBORS_K}) for node in fresh[: max(0, min(size, most - done))]]


def _step(node: str, hop: Hop, looks: Sequence[Exploration], query: str) -> tuple[list[str], bool]:
    """The nodes that a hop leads to from a node as far as seen, and whether there is nothing more to ask for."""
    step = (hop.relation, hop.outgoing)
    best = [one for one in looks if one.asked == frozenset([_arrow(hop)]) and one.query == query]
    ends = dict.fromkeys(other.id for one in (*best, *looks) for other in one.neighbors if step in other.via)
    whole = next((one for one in looks if one.asked is None), None)
    if best or whole is None:
        return list(ends), bool(best)
    there = sum(count for relation, outgoing, _, count in whole.relations if (relation, outgoing) == step)
    return list(ends), len(ends) >= min(there, NEIGHBORS_K) and (not query or there <= 1)


def _arrow(hop: Hop) -> str:
    return f"-[{hop.relation}]->" if hop.outgoing else f"<-[{hop.relation}]-"

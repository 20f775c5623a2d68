"""A path of relations followed from a node with ARK's tools, as far as what they have shown so far allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphret.ark.arguments import arrow
from graphret.ark.prompt import EXPLORE, FINISH, SELECT
from graphret.ark.settings import ArkSettings
from graphret.ark.transcript import Transcript
from graphret.planning.paths import Explored, Hop, Plan

#: A tool and its arguments.
Call: TypeAlias = tuple[str, dict[str, Any]]

#: Nodes asked for around a node.
NEIGHBORS_K = 100
#: Explorations in one turn and in all, and the last turn.
TURN, EXPLORATIONS, LAST_TURN = ArkSettings().max_calls, 160, 18
#: Nodes looked at whole to learn what relations they have, in the first and the second turn spent on it.
PROBES = (3, 12)


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a plan was followed: its ends so far with the number of paths to each, and what is to be explored."""

    ends: Mapping[str, int] = field(default_factory=dict)
    wanted: Sequence[Call] = ()


def explorations(walks: Sequence[Walk], seen: Transcript) -> list[Call]:
    """Return the explorations that walks want next, each once, as far as there is room for them."""
    explored = sum(map(len, seen.explorations.values()))
    room = min(TURN, EXPLORATIONS - explored) if seen.turns < LAST_TURN else 0
    return list({repr(call): call for walk in walks for call in walk.wanted}.values())[: max(0, room)]


def ending(chosen: Sequence[str]) -> list[Call]:
    """Return the calls that select nodes and finish."""
    return [*([(SELECT, {"nodes": list(chosen)})] if chosen else []), (FINISH, {})]


def follow(start: str, plan: Plan, seen: Transcript, named: Collection[str] = ()) -> Walk | None:
    """Follow a plan from a node, never back to it, as far as what has been explored allows.

    Nodes that the question names are no answers. `None` where it leads nowhere, or no relation is left to be discovered
    at its open end.
    """
    frontier: dict[str, int] = {start: 1}
    for depth, hop in enumerate(plan.hops, start=1):
        wanted: list[Call] = []
        reached: Counter[str] = Counter()
        for node, paths in frontier.items():
            shown, complete = _step(hop, seen.explorations.get(node, ()))
            if not complete:
                relations = [arrow(hop.relation, hop.outgoing)]
                wanted.append((EXPLORE, {"node": node, "relation_types": relations, "k": NEIGHBORS_K}))
            for end in shown:
                reached[end] += paths
        del reached[start]
        frontier = reached
        if wanted:
            last = depth == len(plan.hops) and not plan.probes
            return Walk({end: n for end, n in frontier.items() if end not in named} if last else {}, wanted)
    if plan.probes:
        fresh = [node for node in frontier if all(one.asked is not None for one in seen.explorations.get(node, ()))]
        done = len(frontier) - len(fresh)
        size = min(next((size for size in PROBES if done < size), plan.probes), plan.probes - done)
        wanted = [(EXPLORE, {"node": node, "k": NEIGHBORS_K}) for node in fresh[: max(0, size)]]
        return Walk({}, wanted) if wanted else None
    ends = {end: paths for end, paths in frontier.items() if end not in named}
    return Walk(ends) if ends else None


def _step(hop: Hop, looks: Sequence[Explored]) -> tuple[list[str], bool]:
    """The nodes that a hop leads to from a node as far as seen, and whether there is nothing more to ask for."""
    step = hop.relation, hop.outgoing
    ends = dict.fromkeys(other.id for one in looks for other in one.neighbors if step in other.via)
    complete = any(one.asked == frozenset([arrow(*step)]) for one in looks)
    if not complete and (whole := next((one for one in looks if one.asked is None), None)):
        there = sum(count for relation, outgoing, _, count in whole.relations if (relation, outgoing) == step)
        complete = len(ends) >= min(there, NEIGHBORS_K)
    return list(ends), complete

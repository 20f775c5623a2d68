"""From what a question says to hops to follow: the paths whose relations and types fit its words best, in order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from graphret.ark.scripted.fit import Fit
from graphret.ark.scripted.question import Reading
from graphret.ark.scripted.schema import Hop, Known

#: Longest path that is looked for.
MOST_HOPS = 3
#: What it costs where nodes of one type are to play the part of another: a director who also acts.
ODD_PART = 0.6

#: Paths of one length that are looked at under one reading, where no fewer are asked for.
MOST_PATHS = 480


@dataclass(frozen=True, slots=True)
class Plan:
    """Hops to follow from a name, and how many of their ends to look at for a relation that is to follow, if any."""

    hops: tuple[Hop, ...]
    probes: int
    cost: float


@lru_cache(maxsize=64)
def plans(
    read: tuple[Reading, ...],
    types: tuple[str, ...],
    first: tuple[Hop, ...],
    known: Known,
    *,
    most_hops: int = MOST_HOPS,
    most_paths: int = MOST_PATHS,
    worst: float = math.inf,
) -> tuple[Plan, ...]:
    """Return the paths on which each hop has some reason to be taken, the one that fits the question best first.

    Parameters
    ----------
    read
        The ways to read the question.
    types
        The types of the node that the name belongs to.
    first
        The hops that lead from it.
    known
        What is known of the graph.
    most_paths
        How many paths of one length are looked at under one reading, those first on which each node plays its part.
    worst
        What a plan may cost.

    Notes
    -----
    The last ones made are kept: from turn to turn, little new is known of a graph's relations.
    """
    costs: dict[tuple[tuple[Hop, ...], int], float] = {}
    for reading in read:
        fit = Fit(reading, types, known)
        for path, odd in _paths(fit, first, most_hops, most_paths):
            for probes in {0, fit.lacking} if len(path) < most_hops else {0}:
                cost = odd + fit.cost(path, probes > 0)
                costs[path, probes] = min(cost, costs.get((path, probes), cost))
    made = [Plan(path, probes, cost) for (path, probes), cost in costs.items() if cost <= worst]
    return tuple(sorted(made, key=lambda plan: (plan.cost, len(plan.hops), plan.probes, plan.hops)))


def _paths(fit: Fit, first: Sequence[Hop], most: int, at_once: int) -> Iterator[tuple[tuple[Hop, ...], float]]:
    begun = [hop for hop in first if fit.reason(hop)][:at_once]
    level: list[tuple[tuple[Hop, ...], float]] = [((hop,), 0.0) for hop in begun]
    for length in range(1, most + 1):
        yield from level
        if length < most:
            longer = [
                ((*path, hop), odd + (0.0 if natural else ODD_PART))
                for path, odd in level
                for hop, natural in fit.onward(path[-1])
            ]
            level = sorted(longer, key=lambda one: one[1])[:at_once] if len(longer) > at_once else longer

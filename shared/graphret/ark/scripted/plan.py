"""From what a question says to hops to follow: the paths whose relations and types fit its words best, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphret.ark.scripted.fit import Fit
from graphret.ark.scripted.question import Reading
from graphret.ark.scripted.schema import Hop, Known

#: Longest path that is looked for.
MOST_HOPS = 3
#: What it costs where nodes of one type are to play the part of another: a director who also acts.
ODD_PART = 0.6

_PATHS = 500  # of one length that are looked at


@dataclass(frozen=True, slots=True)
class Plan:
    """Hops to follow from a name, and how many of their ends to look at for a relation that is to follow, if any."""

    hops: tuple[Hop, ...]
    probes: int
    cost: float


def plans(
    read: Sequence[Reading], types: Sequence[str], first: Sequence[Hop], known: Known, most_hops: int = MOST_HOPS
) -> list[Plan]:
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
    """
    costs: dict[tuple[tuple[Hop, ...], int], float] = {}
    for reading in read:
        fit = Fit(reading, types, known)
        for path, odd in _paths(fit, first, known, most_hops):
            for probes in {0, fit.lacking} if len(path) < most_hops else {0}:
                cost = odd + fit.cost(path, probes > 0)
                costs[path, probes] = min(cost, costs.get((path, probes), cost))
    made = [Plan(path, probes, cost) for (path, probes), cost in costs.items()]
    return sorted(made, key=lambda plan: (plan.cost, len(plan.hops), plan.probes, plan.hops))


def _paths(fit: Fit, first: Sequence[Hop], known: Known, most: int) -> Iterator[tuple[tuple[Hop, ...], float]]:
    level: list[tuple[tuple[Hop, ...], float]] = [((hop,), 0.0) for hop in first if fit.reason(hop)]
    for length in range(1, most + 1):
        yield from level
        if length < most:
            level = [
                ((*path, hop), odd + (0.0 if natural else ODD_PART))
                for path, odd in level
                for hop, natural in known.onward(path[-1])
                if fit.reason(hop) or hop == path[-1].back
            ][:_PATHS]

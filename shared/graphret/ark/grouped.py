"""The edges of one node by neighbour, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.stores.incidence import Incidence


@dataclass(frozen=True, slots=True)
class Grouped:
    """Edges of a node by neighbour.

    Parameters
    ----------
    links
        The edges, sorted by the neighbour's position.
    starts
        Where the edges of each neighbour begin, and where the last one's end, ``(n + 1,)``.
    positions
        The neighbours, ascending, ``(n,)``.
    weights
        The weight of the heaviest edge to each, ``(n,)``.
    """

    links: Incidence
    starts: NDArray[np.int64]
    positions: NDArray[np.int64]
    weights: NDArray[Any]


class Around:
    """The edges of a node, and what follows from all of them, found out when it is first asked for."""

    def __init__(self, links: Incidence) -> None:
        self.links = links

    @cached_property
    def all(self) -> Grouped:
        """All edges by neighbour."""
        return grouped(self.links)

    @cached_property
    def counts(self) -> Counter[tuple[str, bool, str]]:
        """How many edges there are by relation, whether they lead from the node, and the neighbour's primary label."""
        return _counts(self.links)


def grouped(links: Incidence) -> Grouped:
    """Group edges by neighbour."""
    if (links.others[1:] < links.others[:-1]).any():
        links = links.at(np.argsort(links.others, kind="stable"))  # sorted runs, so that this is a merge
    starts = np.flatnonzero(np.diff(links.others, prepend=-1))
    weights = np.maximum.reduceat(links.weight, starts) if len(starts) else links.weight
    positions = links.others[starts].astype(np.int64)
    return Grouped(links, np.append(starts, len(links)), positions, weights)


def _counts(links: Incidence) -> Counter[tuple[str, bool, str]]:
    relations, sets = links.relations, links.nodes.label_sets
    code = (links.relation.astype(np.int64) * 2 + links.outgoing) * len(sets) + links.nodes.labels[links.others]
    counts: Counter[tuple[str, bool, str]] = Counter()
    if not len(code):
        return counts
    numbers = np.bincount(code, minlength=2 * len(relations) * len(sets))
    for one in np.flatnonzero(numbers).tolist():
        (relation, leaves), labels = divmod(one // len(sets), 2), sets[one % len(sets)]
        counts[relations[relation], bool(leaves), labels[0] if labels else ""] += int(numbers[one])
    return counts

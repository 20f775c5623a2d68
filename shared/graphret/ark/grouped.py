"""The edges of one node by neighbour, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.ark.neighborhood import Asked
from graphret.ark.places import Places
from graphret.search.index import Matches
from graphret.stores.incidence import Incidence

#: Filters of which the edges that pass are kept, at most, and no more edges of them than the node has.
_FILTERS = 8
_Filters: TypeAlias = tuple[frozenset[str] | None, frozenset[tuple[str, str]] | None]


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
    """The edges of a node, and what follows from them, found out when it is first asked for and kept.

    `places` knows where the neighbours are in an index, and may be that of the same node's edges before a write.
    `matches` is for what an index was found to say, as long as that depends on nothing but the state of the graph.
    """

    def __init__(self, links: Incidence, places: Places | None = None) -> None:
        self.links = links
        self.places = places or Places()
        self.matches: dict[tuple[str, int], Matches] = {}
        self._passing: dict[_Filters, Grouped] = {}

    def elsewhere(self) -> Around:
        """Return the same edges after a write that did not touch them, with what follows from them."""
        same = copy(self)
        same.matches = {}
        return same

    @cached_property
    def all(self) -> Grouped:
        """All edges by neighbour."""
        return grouped(self.links)

    @cached_property
    def counts(self) -> Counter[tuple[str, bool, str]]:
        """How many edges there are by relation, whether they lead from the node, and the neighbour's primary label."""
        return _counts(self.links)

    def passing(self, asked: Asked) -> Grouped:
        """Return the edges that pass the filters, by neighbour; those of the last few filters are kept."""
        if asked.relations is None and asked.labels is None:
            return self.all
        key = asked.labels, None if asked.relations is None else frozenset(asked.relations.items())
        found = self._passing.get(key)
        if found is None:
            found = grouped(self.links.at(np.flatnonzero(_mask(self.links, asked))))
            kept, edges = {key: found}, len(found.links)
            for other, part in self._passing.items():
                edges += len(part.links)
                if len(kept) < _FILTERS and edges <= len(self.links):
                    kept[other] = part
            self._passing = kept  # one assignment: other threads see all of it or nothing
        return found


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


def _mask(links: Incidence, asked: Asked) -> NDArray[np.bool_]:
    keep = np.ones(len(links), dtype=bool)
    if asked.relations is not None:
        out, into = (_chosen(links.relations, asked.relations, ("both", one)) for one in ("out", "in"))
        keep = np.where(links.outgoing, out[links.relation], into[links.relation])
    if asked.labels is not None:
        fits = np.asarray([not asked.labels.isdisjoint(labels) for labels in links.nodes.label_sets], dtype=bool)
        keep = keep & fits[links.nodes.labels[links.others]]
    return keep


def _chosen(names: Sequence[str], relations: Mapping[str, str], directions: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.asarray([relations.get(name) in directions for name in names], dtype=bool)

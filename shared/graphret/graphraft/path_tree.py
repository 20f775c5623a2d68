"""`PathTree`: the kinds of paths from nodes of some labels, by the steps that they share."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.planning import Hop, PathSpace

#: Hops from an entity; each begins where the one before ends.
Path: TypeAlias = tuple[Hop, ...]
#: A relation, whether it is followed from its source to its target, and the label of where it leads.
Step: TypeAlias = tuple[str, bool, str]


class PathTree:
    """The paths that a graph may have from nodes of some labels, each the child of the one without its last hop.

    Attributes
    ----------
    paths
        What each place of the tree stands for; nothing for a root.
    roots
        The place that paths from nodes of each label begin at.
    steps
        What leads from a place to its children.
    """

    def __init__(self, space: PathSpace, labels: tuple[str, ...]) -> None:
        self.paths: list[Path] = []
        self.roots: dict[str, int] = {}
        numbers: dict[Step, int] = {}
        children: dict[tuple[int, int], int] = {}
        for row in space.table(labels).hops:
            hops = space.path(row)
            at, before = self.roots.setdefault(hops[0].start, len(self.paths)), hops[0].start
            if at == len(self.paths):
                self.paths.append(())
            for hop in hops:
                step = numbers.setdefault((hop.relation, hop.outgoing, hop.label), len(numbers))
                child = children.setdefault((at, step), len(self.paths))
                if child == len(self.paths):
                    self.paths.append((*self.paths[at], replace(hop, start=before)))
                at, before = child, hop.label
        self.steps = tuple(numbers)
        listed = sorted((at * len(numbers) + step, child) for (at, step), child in children.items())
        self._keys, self._children = np.asarray(listed, dtype=np.int64).reshape(-1, 2).T

    def __len__(self) -> int:
        return len(self.paths)

    def child(self, walks: NDArray[np.int64], steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where steps lead from places, -1 where there is no such path.

        A place of another tree of this kind is the own one plus a multiple of the size of the tree, and remains so.
        """
        if not len(self._keys):
            return np.full(len(walks), -1)
        places = walks % len(self)
        keys = places * len(self.steps) + steps
        found = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[found] == keys, walks - places + self._children[found], -1)

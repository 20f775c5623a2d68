"""`Sharing`: with whom each node shares the rarest names, kept through changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.lists import Lists
from graphret.sage.neighbors import Neighbors
from graphret.splice import Splice
from graphret.storage import Bundle, Parts

#: Another node, by its number, and how rare the names are that both bear.
SHARER = np.dtype([("other", np.int32), ("rarity", np.float32)])


@dataclass(frozen=True, eq=False)
class Sharing:
    """With whom each node shares the rarest names (see `entities.overlapping`).

    Nodes have numbers here, which stay when others come before them: a change writes
    the lists of the nodes that it touches, and copies no other.

    Parameters
    ----------
    lists
        The sharers of each node, the rarest first.
    numbers
        The number of each node, ``(n,)``.
    n_numbers
        How many were given to nodes, those that are gone among them.
    """

    lists: Lists[np.void]
    numbers: NDArray[np.int32]
    n_numbers: int

    @classmethod
    def of(cls, found: Neighbors, n_nodes: int) -> Sharing:
        """Keep what was found for all nodes of a table."""
        every = np.arange(n_nodes)
        return cls(_listed(found, every, every), every.astype(np.int32), n_nodes)

    def changed(
        self, change: Change, again: NDArray[np.int64], found: Neighbors
    ) -> Sharing:
        """Return the sharers after a change, with those of some nodes as found.

        No other node shares a name with one that came, was altered or is gone.
        """
        n_numbers = self.n_numbers + len(change.fresh)
        new = np.arange(self.n_numbers, n_numbers, dtype=np.int32)
        numbers = change.column(self.numbers, new)
        order = change.came_from.copy()
        order[again] = len(change.before) + np.arange(len(again))
        splice = Splice((len(change.before), len(again)), order)
        made = _listed(found, again, numbers)
        return Sharing(splice.of_lists(self.lists, made), numbers, n_numbers)

    def at(self, nodes: NDArray[np.int64]) -> Neighbors:
        """Return the sharers of some nodes, ascending as these are."""
        sharers, starts = self.lists.take(nodes).pack()
        position = np.zeros(self.n_numbers, np.int32)
        position[self.numbers] = np.arange(len(self.numbers))
        own = np.repeat(nodes.astype(np.int32), np.diff(starts))
        return Neighbors(own, position[sharers["other"]], sharers["rarity"])

    def parts(self) -> Parts:
        """The sharers as they are saved, nodes by position."""
        every = np.arange(len(self.numbers))
        lists = _listed(self.at(every), every, every)
        sharers, starts = lists.pack()
        return Parts({"sharers": sharers, "starts": starts})

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Sharing:
        """Open saved sharers."""
        sharers, starts = (bundle.arrays[name] for name in ("sharers", "starts"))
        n_nodes = len(starts) - 1
        numbers = np.arange(n_nodes, dtype=np.int32)
        return cls(Lists.packed(sharers, starts), numbers, n_nodes)


def _listed(
    found: Neighbors, nodes: NDArray[np.int64], numbers: NDArray[np.integer]
) -> Lists[np.void]:
    """Return what was found for each of some nodes, which are ascending."""
    sharers = np.empty(len(found.own), SHARER)
    sharers["other"] = numbers[found.other]
    sharers["rarity"] = found.similarity
    starts = np.searchsorted(found.own, nodes.astype(found.own.dtype))
    return Lists.packed(sharers, np.append(starts, len(sharers)))

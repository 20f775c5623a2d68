"""`Change`: from one table of nodes to the next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from graphret.nodes import NodeTable
from graphret.numeric import unique
from graphret.splice import Merge, Splice
from graphret.types import Node

T = TypeVar("T", bound=np.generic)

_MOST_HELD = 1 << 10  # nodes, decoded


@dataclass(frozen=True, eq=False)
class Change:
    """What became of the nodes of a table.

    Parameters
    ----------
    before, after
        The tables.
    places
        Where each node of `before` is in `after`, altered or not; -1 where it is gone.
    fresh
        Where the nodes are in `after` that are new or altered, ascending.
    splice
        How a column of `after` is assembled from `before` and the fresh nodes.
    """

    before: NodeTable
    after: NodeTable
    places: NDArray[np.int32]
    fresh: NDArray[np.int64]
    splice: Splice

    @classmethod
    def of(
        cls, before: NodeTable, fresh: NodeTable, deletes: Collection[str] = ()
    ) -> Change:
        """Nodes come in place of those of their ids, and others go.

        `deletes` are ids of nodes of `before`, not of `fresh`; unknown ones are
        ignored.
        """
        same, deleted = before.find(fresh.ids), before.find(list(deletes))
        is_same = same >= 0
        gone = unique(same[is_same], deleted[deleted >= 0])
        splice = Merge(len(before), gone, before.places_for(fresh.ids))
        after = NodeTable.spliced([before, fresh], splice)
        after.restriction = before.restriction
        places, new = splice.moved.copy(), splice.others
        places[same[is_same]] = new[is_same]
        return cls(before, after, places, new, splice)

    @classmethod
    def whole(cls, nodes: NodeTable) -> Change:
        """All nodes of a table come, and none was there."""
        every = np.arange(len(nodes))
        splice = Splice((0, len(nodes)), every)
        return cls(NodeTable.of([]), nodes, np.zeros(0, np.int32), every, splice)

    @classmethod
    def reading(cls, nodes: NodeTable, again: Collection[str]) -> Change:
        """The nodes of a table stay, and some are read again."""
        every = np.arange(len(nodes), dtype=np.int32)
        fresh = np.sort(nodes.positions(again))
        return cls(nodes, nodes, every, fresh, _splice(len(nodes), every, fresh))

    def only(self, fresh: NDArray[np.int64]) -> Change:
        """Return the change as it is for whom only some of the fresh nodes differ.

        These are ascending, and all that are new are among them.
        """
        if np.array_equal(fresh, self.fresh):
            return self
        splice = _splice(len(self.before), self.origins, fresh)
        return replace(self, fresh=fresh, splice=splice)

    @cached_property
    def origins(self) -> NDArray[np.int32]:
        """Where each node of `after` was, altered or not; -1 for one that is new."""
        origins = np.full(len(self.after), -1, np.int32)
        stays = np.flatnonzero(self.places >= 0)
        origins[self.places[stays]] = stays
        return origins

    @cached_property
    def came_from(self) -> NDArray[np.int64]:
        """Where each node of `after` was, -1 for one that is new or altered."""
        came_from = self.splice.order.copy()
        came_from[self.fresh] = -1
        return came_from

    @cached_property
    def nodes(self) -> Sequence[Node]:
        """The nodes that are new or altered, read once for all who ask.

        Many would take more memory than what is made of them: they are read anew, block
        by block, by each who asks.
        """
        if len(self.fresh) > _MOST_HELD:
            return self.after.take(self.fresh)
        return self.after.at(self.fresh)

    def read(self, chosen: NDArray[np.int64]) -> Iterator[tuple[int, Node]]:
        """Yield the nodes at some positions after the change, with these.

        The fresh ones are not read again where they are all that is asked for.
        """
        if np.array_equal(chosen, self.fresh):
            return zip(chosen.tolist(), self.nodes, strict=True)
        return zip(chosen.tolist(), self.after.each(chosen), strict=True)

    @cached_property
    def moved(self) -> NDArray[np.int32]:
        """Where each node of `before` is now, -1 where it is gone or altered."""
        return self.splice.moved

    @cached_property
    def left(self) -> NDArray[np.int64]:
        """Where the nodes were that are gone or altered, ascending."""
        return np.flatnonzero(self.moved < 0)

    def column(self, before: NDArray[T], fresh: NDArray[T]) -> NDArray[T]:
        """Return a column of `after` from that of `before` and the fresh values."""
        return self.splice.of(before, fresh)

    def carried(self, counts: NDArray[T]) -> NDArray[T]:
        """Return counts by node for the nodes of `after`: 0 for those that are new.

        Those that are altered have the counts that they had.
        """
        was = self.origins[self.fresh]
        fresh = np.zeros(len(was), counts.dtype)
        fresh[was >= 0] = counts[was[was >= 0]]
        return self.column(counts, fresh)


def _splice(
    n_before: int, origins: NDArray[np.int32], fresh: NDArray[np.int64]
) -> Splice:
    """Return how columns are assembled, given where each node was, -1 for a new one."""
    order = origins.astype(np.int64)
    order[fresh] = n_before + np.arange(len(fresh))
    return Splice((n_before, len(fresh)), order)

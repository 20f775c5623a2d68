"""Where the nodes of one table are in another, found out anew only of the nodes that came or went."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphret.columns import Strings, to_numpy
from graphret.nodes import NodeTable

#: Fewer nodes are looked up each time.
_FEW = 2_000
#: So many ids of either table may be in it alone, or all are looked up.
_ALONE = 64


class Places:
    """Where the nodes of a graph, or the neighbours of a hub, are in an index, as it was last asked for."""

    def __init__(self) -> None:
        self._known: tuple[Strings, Strings, NDArray[np.int64]] | None = None

    def of(self, nodes: NodeTable, table: NodeTable, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where nodes are in a table, -1 for those that are not there.

        Parameters
        ----------
        nodes
            The nodes of a graph or some of them.
        table
            The nodes of the index.
        wanted
            Which of `nodes` are asked for, by position.
        """
        if nodes.ids is table.ids:
            return wanted
        known = self._known
        if known is None or known[0] is not nodes.ids or known[1] is not table.ids:
            if len(wanted) <= _FEW:
                return table.find(nodes.ids.take(wanted))
            if nodes.ids.equals(table.ids):  # as they are where the index was made of the store, or follows it
                places = np.arange(len(nodes))
            else:
                moved = _moved(nodes, table, *known) if known is not None else None
                places = table.find(nodes.ids.tolist()) if moved is None else moved
            self._known = known = nodes.ids, table.ids, places  # one assignment: other threads see all of it or nothing
        return known[2][wanted]


def _moved(
    nodes: NodeTable, table: NodeTable, before: Strings, within: Strings, places: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Return where nodes are in a table, given where those of `before` were in `within`; `None` if much is new."""
    was, now = aligned(nodes.ids, before), aligned(within, table.ids)
    if was is None or now is None:
        return None
    found: NDArray[np.int64] = np.append(now, -1)[np.append(places, -1)[was]]  # -1 leads to the -1 behind the last
    fresh = np.flatnonzero(was < 0)
    found[fresh] = table.find(nodes.ids.take(fresh))
    came = np.ones(len(table), dtype=bool)
    came[now[now >= 0]] = False
    came_at = np.flatnonzero(came)
    at = nodes.find(table.ids.take(came_at))
    found[at[at >= 0]] = came_at[at >= 0]
    return found


def aligned(ids: Strings, others: Strings) -> NDArray[np.int64] | None:
    """Return where each string is among others, -1 if it is not; `None` where many are in one of both alone."""
    if ids is others:
        return np.arange(len(ids))
    at = pc.index_in(ids.array, value_set=others.array)
    found = np.where(to_numpy(pc.is_valid(at)), to_numpy(at), -1).astype(np.int64)
    both = int((found >= 0).sum())
    return found if len(ids) + len(others) - 2 * both <= _ALONE else None

"""`Relinked`: the edges that a change makes anew, in place of those it makes void."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.edges import EdgeTable, joined
from graphret.numeric import marked, unique


@dataclass(frozen=True, eq=False)
class Relinked:
    """All edges of some relations at some nodes, found anew.

    Parameters
    ----------
    relations
        Which relations.
    nodes
        Which nodes, ``(n,)``.
    edges
        The edges of these relations that have such a node at one of `ends`.
    ends
        Which ends of an edge count: ``source``, ``target`` or both.
    """

    relations: Sequence[str]
    nodes: NDArray[np.bool_]
    edges: EdgeTable
    ends: Sequence[str] = ("source",)

    def void(self, edges: EdgeTable) -> NDArray[np.int64]:
        """Return the edges of a table that these take the place of, by position."""
        leaving, entering = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if "source" in self.ends:
            leaving = edges.leaving(np.flatnonzero(self.nodes))
        if "target" in self.ends:
            entering = marked(self.nodes, edges.target)
        at: NDArray[np.int64] = unique(leaving, entering)
        of_relation = edges.relation_mask(self.relations)
        if of_relation is None or not len(edges):
            return at
        return at[of_relation[edges.relation[at]]]


def relinked(
    edges: EdgeTable, change: Change, found: Sequence[Relinked]
) -> tuple[EdgeTable, NDArray[np.int64]]:
    """Return the edges after a change, given what it makes anew.

    With them come the nodes whose edges are others than before, by where edges leave.
    """
    n_nodes = len(change.after)
    moved = edges.moved(n_nodes, change.places)
    voids = [part.void(moved) for part in found if part.nodes.any()]
    void = np.concatenate([np.zeros(0, np.int64), *voids])
    fresh = joined(n_nodes, [part.edges for part in found])
    sources = unique(moved.source[void], fresh.source).astype(np.int64)
    return moved.merged(fresh, void), sources

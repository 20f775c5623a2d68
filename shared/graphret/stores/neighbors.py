"""The neighbours of nodes in a graph of columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.where import Where


def neighbor_edges(
    nodes: NodeTable,
    edges: EdgeTable,
    ids: Sequence[str],
    relations: Collection[str] | None,
    labels: Collection[str] | None,
    where: Where | None,
    direction: str,
    limit: int | None,
) -> NDArray[np.int64]:
    """Return the positions of the edges that `GraphStore.neighbors` describes, ascending."""
    anchors = np.unique(nodes.find(ids))
    anchors = anchors[anchors >= 0]
    of_relation = edges.relation_mask(relations)

    def fitting(found: NDArray[np.int64], other: NDArray[np.int32]) -> NDArray[np.int64]:
        if of_relation is not None and len(edges.relations):
            found = found[of_relation[edges.relation[found]]]
        fits = nodes.fits(other[found], where, labels)
        return found if fits is None else found[fits]

    none = np.empty(0, dtype=np.int64)
    leaving = fitting(edges.leaving(anchors), edges.target) if direction != "in" else none
    entering = fitting(edges.entering(anchors), edges.source) if direction != "out" else none
    if limit is not None:
        # For each anchor its edges, the heaviest first, then in their order; a loop counts once.
        if direction == "both":
            entering = entering[edges.source[entering] != edges.target[entering]]
        edge = np.concatenate([leaving, entering])
        anchor = np.concatenate([edges.source[leaving], edges.target[entering]])
        order = np.lexsort((edge, -edges.weight[edge], anchor))
        place = np.arange(len(order)) - np.searchsorted(anchor[order], anchor[order])
        return np.unique(edge[order[place < limit]])
    found = np.sort(np.concatenate([leaving, entering]))
    again = np.flatnonzero(found[1:] == found[:-1])  # between two of the nodes
    return np.delete(found, again) if len(again) else found

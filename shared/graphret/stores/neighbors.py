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
    none = np.empty(0, dtype=np.int64)
    leaving = edges.leaving(anchors) if direction != "in" else none
    entering = edges.entering(anchors) if direction != "out" else none
    found, split = np.concatenate([leaving, entering]), len(leaving)

    def keep(chosen: NDArray[np.bool_]) -> None:
        nonlocal found, split
        found, split = found[chosen], int(np.count_nonzero(chosen[:split]))

    of_relation = edges.relation_mask(relations)
    if of_relation is not None and len(edges.relations):
        keep(of_relation[edges.relation[found]])
    if where is not None or labels is not None:
        fits = nodes.fits(np.concatenate([edges.target[found[:split]], edges.source[found[split:]]]), where, labels)
        if fits is not None:
            keep(fits)
    if limit is not None:
        # For each anchor its edges, the heaviest first, then in their order; a loop counts once.
        leaving, entering = found[:split], found[split:]
        if direction == "both":
            entering = entering[edges.source[entering] != edges.target[entering]]
        edge = np.concatenate([leaving, entering])
        anchor = np.concatenate([edges.source[leaving], edges.target[entering]])
        order = np.lexsort((edge, -edges.weight[edge], anchor))
        place = np.arange(len(order)) - np.searchsorted(anchor[order], anchor[order])
        return np.unique(edge[order[place < limit]])
    found.sort()
    again = np.flatnonzero(found[1:] == found[:-1])  # between two of the nodes
    return np.delete(found, again) if len(again) else found

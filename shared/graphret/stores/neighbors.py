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
    found = edges.incident(anchors, direction)
    of_relation = edges.relation_mask(relations)
    if of_relation is not None:
        found = found[of_relation[edges.relation[found]]] if len(edges.relations) else found
    source, target = edges.source[found], edges.target[found]
    leaves = _among(source, anchors) if direction != "in" else np.zeros(len(found), dtype=bool)
    enters = _among(target, anchors) if direction != "out" else np.zeros(len(found), dtype=bool)
    fits = nodes.fits(np.concatenate([target, source]).astype(np.int64), where, labels)
    if fits is not None:
        leaves &= fits[: len(found)]
        enters &= fits[len(found) :]
    if limit is None:
        return found[leaves | enters]
    # For each anchor its edges, the heaviest first, then in their order; a loop is there once.
    out, into = np.flatnonzero(leaves), np.flatnonzero(enters & ~(leaves & (source == target)))
    edge, anchor = np.concatenate([out, into]), np.concatenate([source[out], target[into]])
    order = np.lexsort((edge, -edges.weight[found[edge]], anchor))
    first = np.searchsorted(anchor[order], anchor[order])
    chosen = edge[order[np.arange(len(order)) - first < limit]]
    return found[np.unique(chosen)]


def _among(ends: NDArray[np.int32], anchors: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not len(anchors):
        return np.zeros(len(ends), dtype=bool)
    place = np.minimum(np.searchsorted(anchors, ends), len(anchors) - 1)
    return np.asarray(anchors[place] == ends)

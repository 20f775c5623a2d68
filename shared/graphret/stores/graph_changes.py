"""What changed in a saved graph since it was written in whole: its nodes and edges."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.columns import TextArray
from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.numeric import unique
from graphret.storage import Bundle, Parts
from graphret.stores.memory import Graph

#: The name of the part that lies beside a graph.
CHANGES = "changes"


def graph_changes(
    graph: Graph, touched: Collection[str], sources: Collection[str]
) -> tuple[Parts, NDArray[np.int64]]:
    """Return how a graph differs from one that it was made of.

    Parameters
    ----------
    touched
        The ids of the nodes that came, went or were altered.
    sources
        The ids of the nodes from which other edges lead, beside these.

    Returns
    -------
    tuple
        What `changed_graph` reads, and where those of the touched nodes are that there
        still are, ascending.
    """
    ids = sorted(touched)
    found = graph.nodes.find(ids)
    positions = found[found >= 0]
    gone = [id_ for id_, position in zip(ids, found, strict=True) if position < 0]
    relinked = graph.nodes.find(sorted(sources))
    leads = np.sort(relinked[relinked >= 0])
    parts = Parts({"sources": leads})
    parts.add("nodes", graph.nodes.take(positions).parts())
    parts.add_texts("gone", TextArray.of(gone))
    edges = _edges_at(graph, positions, leads)
    parts.add("edges", edges.parts(with_adjacency=False))
    return parts, positions


def _edges_at(
    graph: Graph, nodes: NDArray[np.int64], sources: NDArray[np.int64]
) -> EdgeTable:
    """Return the edges at some nodes, and those that lead from others."""
    edges = graph.edges
    chosen = np.isin(edges.source, unique(nodes, sources))
    chosen |= np.isin(edges.target, nodes)
    return edges.take(np.flatnonzero(chosen))


def changed_graph(graph: Graph, saved: Bundle) -> tuple[Graph, Change]:
    """Return a graph after the changes that were saved, and what became of its nodes.

    The edges that were saved take the place of all at nodes that came, went or were
    altered, and of those that lead from the sources.
    """
    fresh = NodeTable.from_bundle(saved.sub("nodes"))
    change = Change.of(graph.nodes, fresh, saved.texts("gone").tolist())
    stay = graph.edges.moved(len(change.after), change.moved)
    void = np.flatnonzero(np.isin(stay.source, saved.arrays["sources"]))
    edges = stay.merged(EdgeTable.from_bundle(saved.sub("edges")), void)
    return Graph(change.after, edges), change

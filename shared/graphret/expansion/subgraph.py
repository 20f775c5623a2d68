"""Read the neighbourhood of seeds from a graph that is not in this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphret.edges import EdgeTable
from graphret.errors import InvalidInput
from graphret.expansion.frontier import Frontier
from graphret.search.bm25 import BM25Index
from graphret.search.fields import NodeText
from graphret.search.hybrid import HybridIndex
from graphret.search.index import TextIndex, min_max
from graphret.stores.base import GraphStore
from graphret.stores.memory import Graph, fetch_graph
from graphret.types import Edge

#: How many neighbours of the seeds, the best by their own score, start a second hop.
ONWARD = 60


def fetch_subgraph(
    store: GraphStore,
    index: HybridIndex | TextIndex,
    query: str,
    seeds: Sequence[str],
    links: int | None,
) -> Frontier:
    """Read one hop around all seeds, and a second around their best neighbours.

    That takes two batched calls for edges. Where `index` is in this process and holds
    every node, only the seeds are read from the store; positions are those of the
    index, and its statistics stay those of the whole graph. Otherwise the nodes are
    read and indexed separately, and `index` gives each node's own score.

    Parameters
    ----------
    links
        At most this many edges of a node are read, the heaviest first.
    """
    stored = [
        node.id for node in store.get(list(dict.fromkeys(seeds))) if node is not None
    ]
    edges_by_identity = (
        {edge.identity: edge for edge in store.neighbors(stored, limit=links)}
        if stored
        else {}
    )
    near = _other_ends(edges_by_identity.values(), stored)
    onward = near if len(near) <= ONWARD else _best(index, query, near)
    if onward:
        edges_by_identity.update(
            {edge.identity: edge for edge in store.neighbors(onward, limit=links)}
        )
    edges = list(edges_by_identity.values())
    ids = [*stored, *_other_ends(edges, stored)]
    hybrid = index if isinstance(index, HybridIndex) else None
    if hybrid is not None and (hybrid.table.find(ids) >= 0).all():
        graph = Graph(hybrid.table, EdgeTable.of(hybrid.table, edges))
        return Frontier(query, graph, hybrid, graph.nodes.find(stored))
    graph = fetch_graph(store, ids, edges)
    table = graph.nodes
    positions = table.find(stored)
    positions = positions[positions >= 0]
    if hybrid is not None:
        lexical = hybrid.lexical
        subgraph_index = BM25Index.build(
            table,
            text=lexical.text,
            analyzer=lexical.analyzer,
            settings=lexical.settings,
        )
        return Frontier(query, graph, HybridIndex(subgraph_index), positions)
    subgraph_index = BM25Index.build(table, text=_text_without_neighbors(index))
    return Frontier(
        query,
        graph,
        HybridIndex(subgraph_index),
        positions,
        scores=_index_scores(index, query, table.ids.tolist()),
    )


def _text_without_neighbors(index: TextIndex) -> NodeText:
    """Return how an index reads nodes, without the names of neighbours.

    Those would lead to more nodes to read.
    """
    texts = index.node_texts()
    return replace(texts[0], neighbors=0) if len(texts) == 1 else NodeText()


def _other_ends(edges: Iterable[Edge], ids: Sequence[str]) -> list[str]:
    """Return the ends of edges that are not among `ids`, each once."""
    excluded = set(ids)
    end_ids = dict.fromkeys(end for edge in edges for end in (edge.source, edge.target))
    return [end for end in end_ids if end not in excluded]


def _best(index: TextIndex, query: str, ids: list[str]) -> list[str]:
    """Return the nodes with the highest scores of their own."""
    scores = _index_scores(index, query, ids)
    if scores is None:
        return ids[:ONWARD]
    return [ids[i] for i in np.argsort(-scores, kind="stable")[:ONWARD].tolist()]


def _index_scores(
    index: TextIndex, query: str, ids: list[str]
) -> NDArray[np.float32] | None:
    """Return the index's scores of nodes, or `None` where it does not hold them all."""
    try:
        return min_max(np.asarray(index.score(query, ids), dtype=np.float32))
    except InvalidInput:  # an index over some labels alone does not hold them all
        return None

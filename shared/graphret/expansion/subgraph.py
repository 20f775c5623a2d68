"""What seeds reach in a graph that is not laid out in this process beside its index."""

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

#: From how many of the nodes that seeds lead to, the best by their own score, a second
#: hop goes.
ONWARD = 60


def fetch_subgraph(
    store: GraphStore,
    index: HybridIndex | TextIndex,
    query: str,
    seeds: Sequence[str],
    links: int | None,
) -> Frontier:
    """Read one hop around all seeds, and a second around the best of what they lead to:
    two batched calls.

    Where `index` is in this process and holds every node, no node is read from the
    store but the seeds, which the store must hold; positions are those of the index,
    and all its statistics stay those of the whole graph. Otherwise the nodes are read
    and indexed by themselves, and each node's own score is asked of `index`.

    Parameters
    ----------
    links
        At most this many edges of a node are read, the heaviest first.
    """
    held = [
        node.id for node in store.get(list(dict.fromkeys(seeds))) if node is not None
    ]
    edges = (
        {edge.identity: edge for edge in store.neighbors(held, limit=links)}
        if held
        else {}
    )
    near = _others(edges.values(), held)
    onward = near if len(near) <= ONWARD else _best(index, query, near)
    if onward:
        edges.update(
            {edge.identity: edge for edge in store.neighbors(onward, limit=links)}
        )
    found = list(edges.values())
    ids = [*held, *_others(found, held)]
    hybrid = index if isinstance(index, HybridIndex) else None
    if hybrid is not None and (hybrid.table.find(ids) >= 0).all():
        graph = Graph(hybrid.table, EdgeTable.of(hybrid.table, found))
        return Frontier(query, graph, hybrid, graph.nodes.find(held))
    graph = fetch_graph(store, ids, found)
    table = graph.nodes
    at = table.find(held)
    at = at[at >= 0]
    if hybrid is not None:
        own = hybrid.lexical
        around = BM25Index.build(
            table, text=own.text, analyzer=own.analyzer, settings=own.settings
        )
        return Frontier(query, graph, HybridIndex(around), at)
    around = BM25Index.build(table, text=_own_text(index))
    return Frontier(
        query,
        graph,
        HybridIndex(around),
        at,
        scores=_asked(index, query, table.ids.tolist()),
    )


def _own_text(index: TextIndex) -> NodeText:
    """How an index elsewhere reads nodes, without the names of neighbours: each would
    lead to more nodes to read.
    """
    texts = index.node_texts()
    return replace(texts[0], neighbors=0) if len(texts) == 1 else NodeText()


def _others(edges: Iterable[Edge], ids: Sequence[str]) -> list[str]:
    seen = set(ids)
    ends = dict.fromkeys(end for edge in edges for end in (edge.source, edge.target))
    return [end for end in ends if end not in seen]


def _best(index: TextIndex, query: str, ids: list[str]) -> list[str]:
    scores = _asked(index, query, ids)
    if scores is None:
        return ids[:ONWARD]
    return [ids[i] for i in np.argsort(-scores, kind="stable")[:ONWARD].tolist()]


def _asked(index: TextIndex, query: str, ids: list[str]) -> NDArray[np.float32] | None:
    try:
        return min_max(np.asarray(index.score(query, ids), dtype=np.float32))
    except InvalidInput:  # an index of some labels alone does not know them all
        return None

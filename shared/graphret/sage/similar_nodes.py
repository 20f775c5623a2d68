"""`link_similar`: similarity edges among nodes with rich text.

They are for a graph that has relations of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from graphret.errors import InvalidInput
from graphret.executors import batched
from graphret.sage.neighbors import Side, nearest, pair_numbers
from graphret.sage.settings import SimilaritySettings
from graphret.sage.similarity import IS_SIMILAR
from graphret.search.dense import DenseIndex
from graphret.search.fields import NodeText
from graphret.stores.base import GraphStore, require_names
from graphret.types import Edge, Node

#: The property of such an edge, by which it is told from those of a `SageGraph` in the
#: same store.
COSINE = "cosine"

#: The shortest text that is rich, in characters.
MIN_CHARACTERS = 100

_EDGES = 10_000  # are written at once


@dataclass(frozen=True, slots=True)
class RichNodes:
    """The nodes of a graph whose text is rich enough to be compared.

    Parameters
    ----------
    nodes
        They, by id.
    borne, rich
        By label, how many nodes were read that bear it, and how many of them are rich.
    """

    nodes: list[Node]
    borne: dict[str, int]
    rich: dict[str, int]

    def candidates(self, settings: SimilaritySettings = SimilaritySettings()) -> int:
        """Return how many pairs are candidates for an edge at most.

        Two nodes that are neighbours of each other are one pair.
        """
        n = len(self.nodes)
        return min(n * settings.neighbors, n * (n - 1) // 2)

    def edges(self, settings: SimilaritySettings = SimilaritySettings()) -> int:
        """Return about how many edges come of so many candidates at most."""
        return round(self.candidates(settings) * (100 - settings.percentile) / 100)


def rich_nodes(
    store: GraphStore,
    text: NodeText = NodeText(),
    *,
    labels: Collection[str] | None = None,
    min_characters: int = MIN_CHARACTERS,
) -> RichNodes:
    """Return the nodes that `link_similar` compares, without embedding anything.

    Parameters
    ----------
    store
        The graph.
    text
        How nodes become text: which properties are read, for instance.
    labels
        Only nodes that bear one of these labels.
    min_characters
        Only nodes with at least as long a text.

    Raises
    ------
    InvalidInput
        When no node bears one of the labels; the message names it.
    """
    chosen = require_names("labels", labels)
    text = text.bound(store)
    nodes: list[Node] = []
    borne: Counter[str] = Counter()
    rich: Counter[str] = Counter()
    for block in store.nodes(labels=chosen):
        for node, said in zip(block, text.all_texts(block), strict=True):
            borne.update(node.labels)
            if len(said) >= min_characters:
                rich.update(node.labels)
                nodes.append(node)
    for label in chosen or ():
        if label not in borne:
            known = ", ".join(sorted(store.schema().labels)) or "there are none"
            raise InvalidInput(f"labels: no node is a {label!r}; labels are: {known}")
    counts = dict(sorted(borne.items()))
    return RichNodes(nodes, counts, {label: rich[label] for label in counts})


def link_similar(
    store: GraphStore,
    index: DenseIndex,
    *,
    labels: Collection[str] | None = None,
    min_characters: int = MIN_CHARACTERS,
    settings: SimilaritySettings = SimilaritySettings(),
) -> int:
    """Write `IS_SIMILAR` edges between similar nodes into a store.

    They stand beside the store's own relations (SAGE, section 3.1). Candidates are the
    nearest neighbours of every chosen node by cosine; those at or above the percentile
    of their cosines become edges, from the id that sorts lower to the other, weighted
    by the cosine. Written again, the store has the edges that follow from it as it is
    then, and no others of this kind.

    Parameters
    ----------
    store
        The graph, and no view. Of one that something else wrote nothing is changed but
        these edges.
    index
        The embeddings of its nodes: ``DenseIndex.of_store(store, encoder)``, or
        `DenseIndex.build` with vectors.
    labels
        Only nodes that bear one of these labels.
    min_characters
        Only nodes of which the index reads at least as long a text; names alone are
        found by search and queries.
    settings
        The percentile, and the neighbours of a node that are candidates.

    Returns
    -------
    int
        How many such edges there are now.

    Raises
    ------
    InvalidInput
        When the store lacks a node of the index.
    StoreError
        When it is a view.
    """
    table = index.table
    bears = table.mask(None, require_names("labels", labels))
    chosen = np.asarray(
        [len(text) >= min_characters for text in index.text.all_texts(table)],
        dtype=np.bool_,
    )
    positions = np.flatnonzero(chosen if bears is None else chosen & bears)
    side = Side(positions, positions)
    found = nearest(index.vectors, side, side, settings.neighbors)
    pairs = pair_numbers(found.own, found.other, len(table))
    pairs, first = np.unique(pairs, return_index=True)
    low, high = np.divmod(pairs, max(len(table), 1))
    cosine = found.similarity[first]
    if len(cosine):
        kept = cosine >= np.percentile(cosine, settings.percentile)
        low, high, cosine = low[kept], high[kept], cosine[kept]
    columns = zip(
        low.tolist(),
        high.tolist(),
        cosine.astype(np.float64).round(6).tolist(),
        strict=True,
    )
    ids = list(table.ids)
    edges = [
        Edge(ids[i], IS_SIMILAR, ids[j], value, {COSINE: value})
        for i, j, value in columns
    ]
    now = {edge.identity for edge in edges}
    before = [
        edge
        for block in store.edges(relations=[IS_SIMILAR])
        for edge in block
        if COSINE in edge.properties
    ]
    for block in batched(edges, _EDGES):
        store.upsert(edges=block)
    store.delete_edges([edge for edge in before if edge.identity not in now])
    return len(edges)

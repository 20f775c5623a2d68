"""What changed in a graph since it was saved in whole: written, and put in place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphret.change import Change
from graphret.corpus.metadata import CorpusNames, undescribed
from graphret.edges import EdgeTable
from graphret.sage.connections import Connections
from graphret.sage.similarity import Fitted, SimilarityIndex
from graphret.sage.state import SageState, Touched
from graphret.search.dense import DenseIndex
from graphret.search.hybrid import HybridIndex
from graphret.storage import Bundle, Parts
from graphret.stores.graph_changes import changed_graph, graph_changes


def changes_since(state: SageState, touched: Touched) -> Parts:
    """Return how a graph differs from one that it was made of.

    The size follows what was touched, and the number of explicit edges. Embeddings are
    part of it, so that nothing is embedded again.
    """
    parts, positions = graph_changes(state.graph, touched.nodes, touched.sources)
    parts.add("explicit", state.explicit.parts(with_adjacency=False))
    similarity = state.connections.similarity
    if (dense := state.index.dense) is not None:
        parts.arrays["vectors"] = dense.vectors[positions]
        hashes, vectors = similarity.embeddings.texts_of(positions)
        parts.arrays |= {"text_hashes": hashes, "text_vectors": vectors}
    n_fitted = similarity.fitted.n_nodes if similarity.fitted else 0
    parts.meta["fitted"] = {"n_nodes": n_fitted, "thresholds": similarity.thresholds}
    return parts


def with_changes(state: SageState, saved: Bundle) -> tuple[SageState, Touched]:
    """Return a state with the changes that were saved, and what they touch.

    What edges follow from is worked out when a later change asks for it.
    """
    graph, change = changed_graph(state.graph, saved)
    index = _changed_index(state.index, change, saved)
    connect = None
    if state.connect is not None:
        connect = ChangedConnections(state, change, index.dense, saved)
    after = SageState(
        graph,
        index,
        EdgeTable.from_bundle(saved.sub("explicit")),
        saved.meta["fitted"]["thresholds"],
        connect,
    )
    nodes = {*graph.nodes.ids.take(change.fresh), *saved.texts("gone").tolist()}
    return after, Touched(nodes, {*graph.nodes.ids.take(saved.arrays["sources"])})


def _changed_index(index: HybridIndex, change: Change, saved: Bundle) -> HybridIndex:
    """Return the text index after the change, with the embeddings that were saved."""
    if index.dense is None:
        return index.changed(change)
    return HybridIndex(
        index.lexical.changed(change),
        index.dense.spliced(change, saved.arrays["vectors"]),
        alpha=index.alpha,
        dense_quality=index.dense_quality,
    )


class ChangedConnections:
    """What edges follow from after changes that were saved.

    It is worked out when a change first asks for it.
    """

    def __init__(
        self, before: SageState, change: Change, dense: DenseIndex | None, saved: Bundle
    ) -> None:
        self._made_of: tuple[Any, ...] = before, change, dense, saved
        self._connections: Connections | None = None

    def __call__(self) -> Connections:
        """Return the connections; the first time they are worked out."""
        if self._connections is None:
            self._connections = _changed_connections(*self._made_of)
            self._made_of = ()
        return self._connections


def _changed_connections(
    before: SageState, change: Change, dense: DenseIndex | None, saved: Bundle
) -> Connections:
    """Return what edges follow from after the change."""
    connections = before.connections
    similarity = _knowing(connections.similarity, saved)
    names = _changed_names(connections, change)
    changed = replace(connections, similarity=similarity).changed(change, dense)
    return replace(changed, names=names)


def _knowing(similarity: SimilarityIndex, saved: Bundle) -> SimilarityIndex:
    """Return the index with the thresholds and the embeddings of texts at hand.

    A change fits a threshold when it is first needed: it may have been after the graph
    was saved in whole.
    """
    similarity = replace(similarity, fitted=Fitted(**saved.meta["fitted"]))
    if "text_hashes" not in saved.arrays:
        return similarity
    embeddings = similarity.embeddings.knowing(
        saved.arrays["text_hashes"], saved.arrays["text_vectors"]
    )
    return replace(similarity, embeddings=embeddings)


def _changed_names(before: Connections, change: Change) -> CorpusNames | None:
    """Return the names of the corpus after the change, if any were saved."""
    if before.names is None:
        return None
    names, _ = before.names.changed(
        undescribed(change.before.at(change.left)), undescribed(change.nodes)
    )
    return names

"""What changed in a graph since it was saved in whole: written, and made again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from graphret.change import Change
from graphret.columns import TextArray
from graphret.corpus.metadata import CorpusNames, undescribed
from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.sage.connections import Connections
from graphret.sage.similarity import Fitted, SimilarityIndex
from graphret.sage.state import SageState
from graphret.search.hybrid import HybridIndex
from graphret.storage import Bundle, Parts


def changes_since(state: SageState, touched: Collection[str]) -> Parts:
    """Return how a graph differs from one that has other nodes of some ids.

    Its size follows the number of `touched` ids and of explicit edges. Embeddings are
    part of it, so that nothing is embedded again.
    """
    nodes, ids = state.graph.nodes, sorted(touched)
    found = nodes.find(ids)
    positions = found[found >= 0]
    gone = [id_ for id_, position in zip(ids, found, strict=True) if position < 0]
    parts = Parts()
    parts.add("nodes", nodes.take(positions).parts())
    parts.add_texts("gone", TextArray.of(gone))
    parts.add("explicit", state.explicit.parts())
    similarity = state.connections.similarity
    if (dense := state.index.dense) is not None:
        parts.arrays["vectors"] = dense.vectors[positions]
        hashes, vectors = similarity.embeddings.texts_of(positions)
        parts.arrays |= {"text_hashes": hashes, "text_vectors": vectors}
    if similarity.fitted is not None:
        n_nodes, thresholds = similarity.fitted.n_nodes, similarity.thresholds
        parts.meta["fitted"] = {"n_nodes": n_nodes, "thresholds": thresholds}
    return parts


def with_changes(state: SageState, saved: Bundle) -> tuple[SageState, set[str]]:
    """Return a state with changes made that were saved, and the ids that they touch.

    The edges afterwards are those of the graph that was saved.
    """
    fresh = NodeTable.from_bundle(saved.sub("nodes"))
    gone = saved.texts("gone").tolist()
    change = Change.of(state.graph.nodes, fresh, gone)
    index = _changed_index(state.index, change, saved)
    before = state.connections
    similarity = _knowing(before.similarity, saved)
    connections = replace(before, similarity=similarity).changed(change, index.dense)
    connections = replace(connections, names=_changed_names(before, change))
    explicit = EdgeTable.from_bundle(saved.sub("explicit"))
    after = SageState.connected(index, connections, explicit)
    return after, {*fresh.ids, *gone}


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


def _knowing(similarity: SimilarityIndex, saved: Bundle) -> SimilarityIndex:
    """Return the index with the thresholds and the embeddings of texts at hand.

    A change fits a threshold when it is first needed: it may have been after the graph
    was saved in whole.
    """
    if "fitted" in saved.meta:
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

"""A `SageGraph` in a folder: one bundle, written in whole or not at all."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphret import storage
from graphret.corpus.chunkers import Chunker, chunker_name, named_chunker
from graphret.edges import EdgeTable
from graphret.ranker import LearnedRanking
from graphret.sage.connections import SavedConnections
from graphret.sage.settings import LinkSettings, SageSettings, SimilaritySettings
from graphret.sage.state import SageState
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.encoder import as_encoder
from graphret.search.hybrid import HybridIndex
from graphret.stores.memory import graph_from_bundle, graph_parts

KIND = "sage"


def save(
    folder: str | Path,
    state: SageState,
    settings: SageSettings,
    chunker: Chunker | None,
    ranking: LearnedRanking | None,
    replaces: str | None,
) -> str:
    """Write a graph's state, with what later changes need, and return its generation.

    See `SageGraph.save`.
    """
    parts = graph_parts(state.graph)
    parts.add("lexical", state.index.lexical.parts())
    if state.index.dense:
        parts.add("dense", state.index.dense.parts())
    follow_alone = not len(state.explicit)
    parts.add("connections", state.connections.parts(follow_alone=follow_alone))
    parts.add("explicit", state.explicit.parts())
    parts.meta["settings"] = {
        "rows_per_segment": settings.rows_per_segment,
        "alpha": settings.alpha,
        "dense_quality": state.index.dense_quality,
        "similarity": asdict(settings.similarity),
        "links": asdict(settings.links),
    }
    parts.meta["thresholds"] = state.thresholds
    if ranking is not None:
        parts.add("ranking", ranking.parts())
    parts.meta["chunker"] = chunker_name(chunker)
    return storage.save(folder, parts, kind=KIND, replaces=replaces)


def load(
    folder: str | Path, encoder: Any, chunker: Chunker | str | None, verify: bool
) -> tuple[SageState, SageSettings, Chunker | None, LearnedRanking | None, str]:
    """Open what `save` wrote, by memory map; see `SageGraph.load`."""
    bundle = storage.load(folder, kind=KIND, verify=verify)
    graph = graph_from_bundle(bundle)
    lexical = BM25Index.from_bundle(bundle.sub("lexical"), graph.nodes)
    meta = bundle.meta["settings"]
    settings = SageSettings(
        rows_per_segment=meta["rows_per_segment"],
        alpha=meta["alpha"],
        text=lexical.text,
        analyzer=lexical.analyzer,
        bm25=lexical.settings,
        similarity=SimilaritySettings(**meta["similarity"]),
        links=LinkSettings(**meta["links"]),
    )
    made_by = bundle.meta.get("dense", {}).get("encoder")
    model = as_encoder(made_by if encoder == "saved" else encoder)
    dense = connect = None
    if (
        model is not None or made_by is None
    ):  # without its encoder the graph can be read and not changed
        own = bundle.sub("connections")
        connect = SavedConnections(own, graph, settings.similarity, settings.links)
        if "dense" in bundle.meta:
            dense = DenseIndex.from_bundle(
                bundle.sub("dense"), graph.nodes, model, lexical.text
            )
    explicit = EdgeTable.from_bundle(bundle.sub("explicit"))
    if chunker == "saved":
        chunker = bundle.meta["chunker"] if connect else None
    cut = named_chunker(chunker, model) if isinstance(chunker, str) else chunker
    index = HybridIndex(
        lexical, dense, alpha=meta["alpha"], dense_quality=meta["dense_quality"]
    )
    thresholds = bundle.meta["thresholds"] if connect else {}
    ranking = (
        LearnedRanking.from_bundle(bundle.sub("ranking"))
        if "ranking" in bundle.meta
        else None
    )
    return (
        SageState(graph, index, explicit, thresholds, connect),
        settings,
        cut,
        ranking,
        bundle.about["generation"],
    )

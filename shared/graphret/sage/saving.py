"""A `SageGraph` on disk: one bundle, written in whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphret import storage
from graphret.corpus import Chunker
from graphret.edges import EdgeTable
from graphret.errors import InvalidInput
from graphret.sage.chunkers import chunker_name, named_chunker
from graphret.sage.links import LinkSettings
from graphret.sage.similarity_index import SimilarityIndex
from graphret.sage.state import SageSettings, SageState
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex, HnswSettings
from graphret.search.hybrid import HybridIndex
from graphret.search.resolve import named_encoder, resolve_encoder
from graphret.stores.memory import graph_from_bundle, graph_parts

KIND = "sage"
VERSION = 1


def write(folder: str | Path, state: SageState, settings: SageSettings, chunker: Chunker | None) -> None:
    """Write a state of a graph, and what is needed to change it later."""
    if state.similarity is None:
        raise InvalidInput("a view of a graph cannot be saved")
    if state.similarity.encoder_name is not None and state.index.dense is None:
        raise InvalidInput("the graph was opened without its encoder: saved, it would lose its embeddings")
    parts = graph_parts(state.graph)
    parts.add("lexical", state.index.lexical.parts())
    if state.index.dense:
        parts.add("dense", state.index.dense.parts())
    parts.add("similarity", state.similarity.parts())
    parts.add("explicit", state.explicit.parts())
    parts.meta["settings"] = {
        "rows_per_segment": settings.rows_per_segment,
        "balance_segments": settings.balance_segments,
        "alpha": settings.alpha,
        "links": settings.links.to_dict(),
    }
    parts.meta["chunker"] = chunker_name(chunker)
    storage.save(folder, parts, kind=KIND, version=VERSION)


def read(
    folder: str | Path, encoder: Any, chunker: Chunker | str | None, verify: bool
) -> tuple[SageState, SageSettings, Chunker | None]:
    """Open what `write` wrote, by memory map; see `SageGraph.load`."""
    bundle = storage.load(folder, kind=KIND, version=VERSION, verify=verify)
    graph = graph_from_bundle(bundle)
    lexical = BM25Index.from_bundle(bundle.sub("lexical"), graph.nodes)
    dense, model = None, None
    if "dense" in bundle.meta:
        saved = bundle.meta["dense"]["encoder"]
        model = named_encoder(saved) if isinstance(encoder, str) and encoder == "saved" else resolve_encoder(encoder)
        opened = DenseIndex.from_bundle(bundle.sub("dense"), graph.nodes, model, lexical.text)
        dense = opened if model is not None or saved is None else None
    similarity = SimilarityIndex.from_bundle(bundle.sub("similarity"), graph.nodes, model, lexical.text)
    meta = bundle.meta["settings"]
    settings = SageSettings(
        rows_per_segment=meta["rows_per_segment"],
        balance_segments=meta["balance_segments"],
        alpha=meta["alpha"],
        text=lexical.text,
        analyzer=lexical.analyzer,
        bm25=lexical.settings,
        hnsw=dense.hnsw if dense else HnswSettings(),
        similarity=similarity.settings,
        links=LinkSettings(**meta["links"]),
    )
    state = SageState(
        graph,
        HybridIndex(lexical, dense, alpha=settings.alpha),
        similarity,
        EdgeTable.from_bundle(bundle.sub("explicit")),
    )
    if chunker == "saved":
        chunker = bundle.meta["chunker"]
        if chunker == "semantic" and model is None:
            chunker = "sentence"  # without its encoder the graph can be read and not added to
    return state, settings, named_chunker(chunker, model) if isinstance(chunker, str) else chunker

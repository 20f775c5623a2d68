"""A `SageGraph` in a folder: one bundle, and beside it what has changed since.

Each is written in whole or not at all.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from graphret import storage
from graphret.corpus.chunkers import Chunker, chunker_name, named_chunker
from graphret.edges import EdgeTable
from graphret.ranker import LearnedRanking
from graphret.sage.changes import changes_since, with_changes
from graphret.sage.connections import SavedConnections
from graphret.sage.settings import LinkSettings, SageSettings, SimilaritySettings
from graphret.sage.state import SageState, Touched
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.encoder import as_encoder
from graphret.search.hybrid import HybridIndex
from graphret.storage import Parts
from graphret.stores.graph_changes import CHANGES
from graphret.stores.memory import graph_from_bundle, graph_parts

KIND = "sage"


#: Changes are saved beside the graph as long as they touch no more than one node in so
#: many: each save writes them all, and whoever opens the graph puts them in place.
ONE_IN = 64


@dataclass
class Saved:
    """Where a graph lies, and what has changed since it was written there in whole.

    Parameters
    ----------
    folder, generation
        The place, and what was in force there when the graph was opened or saved.
    touched
        What has changed since; `None` if that does not tell all that is different.
    """

    folder: Path
    generation: str
    touched: Touched | None


def save(
    folder: str | Path,
    state: SageState,
    settings: SageSettings,
    chunker: Chunker | None,
    ranking: LearnedRanking | None,
    saved: Saved | None,
    whole: bool,
) -> Saved:
    """Write a graph's state, or what changed of it since it was `saved`.

    See `SageGraph.save`.
    """
    place = Path(folder).resolve()
    known = saved if saved is not None and saved.folder == place else None
    touched = known.touched if known is not None else None
    if (
        known is not None
        and touched is not None
        and len(touched.nodes) * ONE_IN <= len(state.graph.nodes)
        and storage.in_force(folder) is not None
        and not whole
    ):
        parts = changes_since(state, touched)
        _add_chosen(parts, chunker, ranking)
        generation = storage.save_beside(
            folder, CHANGES, parts, replaces=known.generation
        )
        return Saved(place, generation, touched)
    parts = _whole(state, settings)
    _add_chosen(parts, chunker, ranking)
    replaces = known.generation if known is not None else None
    generation = storage.save(folder, parts, kind=KIND, replaces=replaces)
    return Saved(place, generation, Touched())


def _whole(state: SageState, settings: SageSettings) -> Parts:
    """Return all of a state, with what later changes need."""
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
    return parts


def _add_chosen(
    parts: Parts, chunker: Chunker | None, ranking: LearnedRanking | None
) -> None:
    """Add what a graph's owner may choose anew at any time."""
    if ranking is not None:
        parts.add("ranking", ranking.parts())
    parts.meta["chunker"] = chunker_name(chunker)


def _saved_settings(meta: dict[str, Any], lexical: BM25Index) -> SageSettings:
    """Return the settings that a graph was built with."""
    return SageSettings(
        rows_per_segment=meta["rows_per_segment"],
        alpha=meta["alpha"],
        text=lexical.text,
        analyzer=lexical.analyzer,
        bm25=lexical.settings,
        similarity=SimilaritySettings(**meta["similarity"]),
        links=LinkSettings(**meta["links"]),
    )


def load(
    folder: str | Path, encoder: Any, chunker: Chunker | str | None, verify: bool
) -> tuple[SageState, SageSettings, Chunker | None, LearnedRanking | None, Saved]:
    """Open what `save` wrote, by memory map; see `SageGraph.load`."""
    bundle = storage.load(folder, kind=KIND, verify=verify)
    graph = graph_from_bundle(bundle)
    lexical = BM25Index.from_bundle(bundle.sub("lexical"), graph.nodes)
    meta = bundle.meta["settings"]
    settings = _saved_settings(meta, lexical)
    made_by = bundle.meta.get("dense", {}).get("encoder")
    model = as_encoder(made_by if encoder == "saved" else encoder)
    # Without its encoder the graph can be read and not changed.
    can_change = model is not None or made_by is None
    dense = None
    if can_change and "dense" in bundle.meta:
        dense = DenseIndex.from_bundle(
            bundle.sub("dense"), graph.nodes, model, lexical.text
        )
    state = SageState(
        graph,
        HybridIndex(
            lexical, dense, alpha=meta["alpha"], dense_quality=meta["dense_quality"]
        ),
        EdgeTable.from_bundle(bundle.sub("explicit")),
        bundle.meta["thresholds"],
        SavedConnections(
            bundle.sub("connections"), graph, settings.similarity, settings.links
        ),
    )
    chosen, touched = bundle, Touched()
    if CHANGES in bundle.meta:
        chosen = bundle.sub(CHANGES)
        state, touched = with_changes(state, chosen)
    if not can_change:
        state = replace(state, thresholds={}, connect=None)
    if chunker == "saved":
        chunker = chosen.meta["chunker"] if can_change else None
    cut = named_chunker(chunker, model) if isinstance(chunker, str) else chunker
    ranking = (
        LearnedRanking.from_bundle(chosen.sub("ranking"))
        if "ranking" in chosen.meta
        else None
    )
    saved = Saved(Path(folder).resolve(), bundle.about["generation"], touched)
    return state, settings, cut, ranking, saved

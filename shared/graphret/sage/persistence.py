"""A `SageGraph` kept: one bundle in a folder, written in whole or not at all, or nodes and edges in a store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphret import storage
from graphret.contracts import require_direct
from graphret.corpus.chunkers import Chunker, chunker_name, named_chunker
from graphret.edges import EdgeTable
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.sage.links import LinkSettings
from graphret.sage.similarity_index import SimilarityIndex
from graphret.sage.state import SageSettings, SageState
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex, HnswSettings
from graphret.search.encoder import Encoder, as_encoder, named_encoder
from graphret.search.hybrid import HybridIndex
from graphret.search.vectors import check_vectors
from graphret.stores.base import GraphStore, delete_edges
from graphret.stores.memory import Graph, graph_from_bundle, graph_parts
from graphret.types import Edge, Node

# -- in a folder

KIND = "sage"
VERSION = 1


def save(
    folder: str | Path, state: SageState, settings: SageSettings, chunker: Chunker | None, replaces: str | None
) -> str:
    """Write a state of a graph, and what is needed to change it later; return its generation. See `SageGraph.save`."""
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
    return storage.save(folder, parts, kind=KIND, version=VERSION, replaces=replaces)


def load(
    folder: str | Path, encoder: Any, chunker: Chunker | str | None, verify: bool
) -> tuple[SageState, SageSettings, Chunker | None, str]:
    """Open what `write` wrote, by memory map; see `SageGraph.load`."""
    bundle = storage.load(folder, kind=KIND, version=VERSION, verify=verify)
    graph = graph_from_bundle(bundle)
    lexical = BM25Index.from_bundle(bundle.sub("lexical"), graph.nodes)
    dense, model = None, None
    if "dense" in bundle.meta:
        saved = bundle.meta["dense"]["encoder"]
        model = named_encoder(saved) if isinstance(encoder, str) and encoder == "saved" else as_encoder(encoder)
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
    cut = named_chunker(chunker, model) if isinstance(chunker, str) else chunker
    return state, settings, cut, bundle.generation


# -- in a store

#: The properties that a node has in a store besides its own: the graph that it belongs to, those of its properties that
#: not every store holds, as JSON, its embedding, and the encoder that this is from.
MARK, AS_JSON, EMBEDDING, ENCODER = "sage_graph", "sage_json", "embedding", "embedding_model"

_OURS = (MARK, AS_JSON, EMBEDDING, ENCODER)
_NODES, _EDGES = 2_000, 10_000


@dataclass(frozen=True, slots=True)
class Written:
    """What `write_to` changed in a store."""

    nodes: int = 0
    edges: int = 0
    nodes_removed: int = 0
    edges_removed: int = 0


def write_to(state: SageState, store: GraphStore, *, name: str, embeddings: bool) -> Written:
    """Write a graph to a store; see `SageGraph.write_to`."""
    require_direct(store)
    fresh = dict(_outgoing(state, name, embeddings))
    held = _held(store, name)
    _require_ours(store, fresh.keys() - held.keys())
    gone = held.keys() - fresh.keys()
    if gone:
        store.delete(sorted(gone))
    known = {edge.identity: edge for edge in _edges(store, name)}
    sent = (replace(edge, properties=_flat(edge.properties)) for edge in state.graph.edges.edges(state.graph.nodes.ids))
    wanted = {edge.identity: edge for edge in sent}
    stale = [edge for key, edge in known.items() if key not in wanted]
    delete_edges(store, stale)
    changed = [node for node_id, node in fresh.items() if node != held.get(node_id)]
    links = [edge for key, edge in wanted.items() if known.get(key) != edge]
    for block in _blocks(changed, _NODES):
        store.upsert(block)
    for links_block in _blocks(links, _EDGES):
        store.upsert(edges=links_block)
    return Written(len(changed), len(links), len(gone), len(stale))


def read_from(store: GraphStore, *, name: str, encoder: Any, settings: SageSettings) -> SageState:
    """Read a graph from a store; see `SageGraph.from_store`."""
    require_direct(store)
    held = _held(store, name)
    if not held:
        raise InvalidInput(f"store: it holds no nodes of a graph {name!r}; SageGraph.write_to writes them")
    made_by = next((node.properties[ENCODER] for node in held.values() if ENCODER in node.properties), None)
    saved = isinstance(encoder, str) and encoder == "saved"
    model = (named_encoder(made_by) if made_by else None) if saved else as_encoder(encoder)
    if model is not None and made_by is not None and model.name != made_by:
        raise InvalidInput(f"encoder: the graph was built with {made_by!r}, not with {model.name!r}")
    table = NodeTable.of(_node_in(node) for node in held.values())
    read = (replace(edge, properties=_unflat(edge.properties)) for edge in _edges(store, name))
    edges = EdgeTable.of(table, read)
    lexical = BM25Index.build(table, text=settings.text, analyzer=settings.analyzer, settings=settings.bm25)
    dense = None
    if model is not None:
        dense = _dense(table, [held[node_id].properties.get(EMBEDDING) for node_id in table.ids], model, settings)
    index = HybridIndex(lexical, dense, alpha=settings.alpha)
    return SageState(Graph(table, edges), index, None, EdgeTable.empty(len(table)))


def _dense(table: NodeTable, vectors: Sequence[Any], model: Encoder, settings: SageSettings) -> DenseIndex:
    if any(one is None for one in vectors):
        return DenseIndex.build(table, model, text=settings.text, hnsw=settings.hnsw)
    rows = check_vectors(vectors, len(table), what="embedding")  # unit rows, not to be rounded again
    return DenseIndex(table, rows, model, text=settings.text, hnsw=settings.hnsw)


# -- nodes and edges as they are in a store


def _outgoing(state: SageState, name: str, embeddings: bool) -> Iterator[tuple[str, Node]]:
    dense = state.index.dense if embeddings else None
    for place, node in enumerate(state.graph.nodes):
        taken = next((key for key in _OURS if key in node.properties), None)
        if taken is not None:
            raise InvalidInput(f"node {node.id!r}: the property {taken!r} is one that a graph in a store needs itself")
        own: dict[str, Any] = {MARK: name}
        if dense is not None:
            own[EMBEDDING] = dense.vectors[place].tolist()
            if dense.encoder is not None:
                own[ENCODER] = dense.encoder.name
        yield node.id, replace(node, properties={**_flat(node.properties), **own})


def _node_in(node: Node) -> Node:
    own = {key: value for key, value in _unflat(node.properties).items() if key not in _OURS}
    return replace(node, properties=own)


def _flat(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties of which every value is one that all stores hold, the others as one JSON object."""
    plain = {key: value for key, value in properties.items() if _is_plain(value)}
    nested = {key: value for key, value in properties.items() if key not in plain}
    return {**plain, AS_JSON: json.dumps(nested, ensure_ascii=False)} if nested else plain


def _unflat(properties: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in properties.items() if key != AS_JSON}
    return plain | json.loads(properties[AS_JSON]) if AS_JSON in properties else plain


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        kinds = {type(item) for item in value}
        return len(kinds) <= 1 and all(not isinstance(item, list) and _is_plain(item) for item in value)
    if type(value) is int:
        return abs(value) <= 2**53
    return isinstance(value, (str, float, bool))


# -- what a store holds


def _held(store: GraphStore, name: str) -> dict[str, Node]:
    return {node.id: node for block in store.nodes(where={MARK: name}) for node in block}


def _edges(store: GraphStore, name: str) -> Iterator[Edge]:
    """Go through the edges between the nodes of a graph."""
    for block in store.view({MARK: name}).edges():
        yield from block


def _require_ours(store: GraphStore, ids: Iterable[str]) -> None:
    for block in _blocks(sorted(ids), _EDGES):
        for node in store.get(block):
            if node is not None:
                raise InvalidInput(f"node {node.id!r}: the store holds a node of this id that is not the graph's")


def _blocks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[i : i + size] for i in range(0, len(items), size))

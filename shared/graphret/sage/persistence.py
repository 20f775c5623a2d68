"""A `SageGraph` kept: one bundle in a folder, written in whole or not at all, or nodes and edges in a store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from graphret import storage
from graphret.contracts import require_direct
from graphret.corpus.chunkers import Chunker, chunker_name, named_chunker
from graphret.edges import EdgeTable
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.sage.links import LinkSettings
from graphret.sage.settings import SageSettings, SimilaritySettings
from graphret.sage.similarity import SimilarityIndex
from graphret.sage.state import SageState
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.encoder import as_encoder, named_encoder
from graphret.search.hybrid import HybridIndex
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
    parts = graph_parts(state.graph)
    parts.add("lexical", state.index.lexical.parts())
    if state.index.dense:
        parts.add("dense", state.index.dense.parts())
    parts.add("similarity", state.changeable.parts())
    parts.add("explicit", state.explicit.parts())
    parts.meta["settings"] = {
        "rows_per_segment": settings.rows_per_segment,
        "alpha": settings.alpha,
        "similarity": asdict(settings.similarity),
        "links": asdict(settings.links),
    }
    parts.meta["chunker"] = chunker_name(chunker)
    return storage.save(folder, parts, kind=KIND, version=VERSION, replaces=replaces)


def load(
    folder: str | Path, encoder: Any, chunker: Chunker | str | None, verify: bool
) -> tuple[SageState, SageSettings, Chunker | None, str]:
    """Open what `save` wrote, by memory map; see `SageGraph.load`."""
    bundle = storage.load(folder, kind=KIND, version=VERSION, verify=verify)
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
    model = named_encoder(made_by) if encoder == "saved" else as_encoder(encoder)
    whole = model is not None or made_by is None
    dense = None
    if whole and "dense" in bundle.meta:
        dense = DenseIndex.from_bundle(bundle.sub("dense"), graph.nodes, model, lexical.text)
    similarity = SimilarityIndex.from_bundle(bundle.sub("similarity"), graph.nodes, settings.similarity)
    index = HybridIndex(lexical, dense, alpha=settings.alpha)
    explicit = EdgeTable.from_bundle(bundle.sub("explicit"))
    if chunker == "saved":
        chunker = bundle.meta["chunker"]
        if chunker == "semantic" and model is None:
            chunker = None  # without its encoder the graph can be read and not added to
    cut = named_chunker(chunker, model) if isinstance(chunker, str) else chunker
    return SageState(graph, index, similarity if whole else None, explicit), settings, cut, bundle.generation


# -- in a store

#: The properties that a node has in a store besides its own: the graph that it belongs to, and those of its properties
#: that not every store holds, as JSON.
MARK, AS_JSON = "sage_graph", "sage_json"

_NODES, _EDGES = 2_000, 10_000


def write_to(state: SageState, store: GraphStore, name: str) -> None:
    """Write a graph to a store; see `SageGraph.write_to`."""
    require_direct(store)
    fresh = {node.id: _to_store(node, name) for node in state.graph.nodes}
    held = _held(store, name)
    for block in _blocks(sorted(fresh.keys() - held.keys()), _EDGES):
        if taken := next(filter(None, store.get(block)), None):
            raise InvalidInput(f"node {taken.id!r}: the store holds a node of this id that is not the graph's")
    store.delete(sorted(held.keys() - fresh.keys()))
    known = {edge.identity: edge for edge in _edges(store, name)}
    own = state.graph.edges.edges(state.graph.nodes.ids)
    wanted = {edge.identity: replace(edge, properties=_flat(edge.properties)) for edge in own}
    delete_edges(store, [edge for key, edge in known.items() if key not in wanted])
    for nodes in _blocks([node for node_id, node in fresh.items() if node != held.get(node_id)], _NODES):
        store.upsert(nodes)
    for edges in _blocks([edge for key, edge in wanted.items() if edge != known.get(key)], _EDGES):
        store.upsert(edges=edges)


def read_from(store: GraphStore, name: str, encoder: Any, settings: SageSettings) -> SageState:
    """Read a graph from a store; see `SageGraph.from_store`."""
    require_direct(store)
    table = NodeTable.of(_from_store(node) for node in _held(store, name).values())
    if not len(table):
        raise InvalidInput(f"store: it holds no nodes of a graph {name!r}; SageGraph.write_to writes them")
    edges = EdgeTable.of(table, (replace(e, properties=_unflat(e.properties)) for e in _edges(store, name)))
    lexical = BM25Index.build(table, text=settings.text, analyzer=settings.analyzer, settings=settings.bm25)
    model = as_encoder(encoder)
    dense = DenseIndex.build(table, model, text=settings.text) if model is not None else None
    index = HybridIndex(lexical, dense, alpha=settings.alpha)
    return SageState(Graph(table, edges), index, None, EdgeTable.empty(len(table)))


def _held(store: GraphStore, name: str) -> dict[str, Node]:
    return {node.id: node for block in store.nodes(where={MARK: name}) for node in block}


def _edges(store: GraphStore, name: str) -> Iterator[Edge]:
    """Go through the edges between the nodes of a graph."""
    for block in store.view({MARK: name}).edges():
        yield from block


def _to_store(node: Node, name: str) -> Node:
    if taken := {MARK, AS_JSON} & node.properties.keys():
        raise InvalidInput(f"node {node.id!r}: the property {min(taken)!r} is one that a graph in a store needs itself")
    return replace(node, properties={**_flat(node.properties), MARK: name})


def _from_store(node: Node) -> Node:
    return replace(node, properties={key: value for key, value in _unflat(node.properties).items() if key != MARK})


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
        return all(isinstance(one, str) for one in value)
    return abs(value) <= 2**53 if type(value) is int else isinstance(value, (str, float, bool))


def _blocks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[i : i + size] for i in range(0, len(items), size))

"""A `SageGraph` in a store: written to any of them, brought up to date there, and read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphret.contracts import require_direct
from graphret.edges import EdgeTable
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.sage.state import SageSettings, SageState
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.encoder import Encoder
from graphret.search.hybrid import HybridIndex
from graphret.search.resolve import named_encoder, resolve_encoder
from graphret.search.vectors import check_vectors
from graphret.stores.base import GraphStore, delete_edges
from graphret.stores.memory import Graph
from graphret.types import Edge, Node

if TYPE_CHECKING:
    from graphret.sage.graph import SageGraph, SageView

#: The properties that a node has in a store besides its own: the graph that it belongs to, those of its properties that
#: not every store holds, as JSON, its embedding, the encoder that this is from, and, where others keep things on its
#: nodes, which of the labels, fields and properties are the graph's, as JSON.
MARK, AS_JSON, EMBEDDING, ENCODER, OWN = "sage_graph", "sage_json", "embedding", "embedding_model", "sage_own"

_OURS = (MARK, AS_JSON, EMBEDDING, ENCODER, OWN)
_FIELDS = ("name", "text")
_NODES, _EDGES = 2_000, 10_000


@dataclass(frozen=True, slots=True)
class Written:
    """What `write_to` changed in a store."""

    nodes: int = 0
    edges: int = 0
    nodes_removed: int = 0
    edges_removed: int = 0


def write_to(graph: SageGraph, store: GraphStore, *, name: str = "sage", embeddings: bool = True) -> Written:
    """Write a graph to a store, or bring it up to date there; only what differs is written.

    Every node gets the property ``sage_graph``, so that other nodes may live in the same store, edges between them and
    the graph's included. Properties that not every store holds, such as the rows of a table, are written as one JSON
    object, ``sage_json``; conditions on them work on the graph that is read back, not in the store.
    In a Neo4j database whose layout something else made, others may keep labels and properties on the same nodes, and
    edges between them; these stay as they are (an embedding of theirs while the texts do), and are not read back. What
    is the graph's is said in the property ``sage_own`` there, and by ``sage_graph`` on its edges.
    Blocks are transactions: a write that was interrupted is completed by another one.

    Parameters
    ----------
    name
        What tells this graph from others in the same store.
    embeddings
        Whether nodes get their embeddings too, which spares `from_store` to embed them.

    Raises
    ------
    InvalidInput
        When the store holds a node of the same id that does not belong to the graph, or a property of the graph has one
        of the names above.
    """
    require_direct(store)
    shared = bool(getattr(store, "shares_nodes", False))
    fresh = dict(_outgoing(graph, name, embeddings, shared))
    held = _held(store, name)
    _require_ours(store, fresh.keys() - held.keys())
    gone = held.keys() - fresh.keys()
    if gone:
        store.delete(sorted(gone))
    mark = {MARK: name} if shared else {}
    known = {edge.identity: edge for edge in _edges(store, name, shared)}
    wanted = {edge.identity: edge for edge in (_edge_out(edge, mark) for edge in graph.edges.edges(graph.nodes.ids))}
    stale = [edge for key, edge in known.items() if key not in wanted]
    delete_edges(store, stale)
    same = _is_there if shared else Node.__eq__
    changed = [node for node_id, node in fresh.items() if node_id not in held or not same(node, held[node_id])]
    links = [edge for key, edge in wanted.items() if known.get(key) != edge]
    for block in _blocks(changed, _NODES):
        if shared:
            store.amend([(_before(held.get(node.id), node), node) for node in block])  # type: ignore[attr-defined]
        else:
            store.upsert(block)
    for links_block in _blocks(links, _EDGES):
        store.upsert(edges=links_block)
    return Written(len(changed), len(links), len(gone), len(stale))


def from_store(
    store: GraphStore, *, name: str = "sage", encoder: Any = "saved", settings: SageSettings | None = None
) -> SageView:
    """Read a graph that `write_to` wrote. It can be asked and not changed, and does not see later changes of the store.

    Parameters
    ----------
    store
        The store, or a view of it.
    encoder
        ``"saved"`` for the one that the graph was built with, where its name says which it is; otherwise the same
        encoder again, or `None` to search without it. Nodes are embedded where the store does not have all embeddings.
    settings
        Those that the graph was built with, where they were not the default.

    Raises
    ------
    InvalidInput
        When the store holds no such graph, or the encoder is another one than the graph was built with.
    """
    from graphret.sage.graph import SageView

    require_direct(store)
    settings = settings or SageSettings()
    held = _held(store, name)
    if not held:
        raise InvalidInput(f"store: it holds no nodes of a graph {name!r}; SageGraph.write_to writes them")
    made_by = next((node.properties[ENCODER] for node in held.values() if ENCODER in node.properties), None)
    saved = isinstance(encoder, str) and encoder == "saved"
    model = (named_encoder(made_by) if made_by else None) if saved else resolve_encoder(encoder)
    if model is not None and made_by is not None and model.name != made_by:
        raise InvalidInput(f"encoder: the graph was built with {made_by!r}, not with {model.name!r}")
    table = NodeTable.of(_node_in(node) for node in held.values())
    marked = any(OWN in node.properties for node in held.values())
    edges = EdgeTable.of(table, (_edge_in(edge, marked) for edge in _edges(store, name, marked)))
    lexical = BM25Index.build(table, text=settings.text, analyzer=settings.analyzer, settings=settings.bm25)
    dense = None
    if model is not None:
        dense = _dense(table, [held[node_id].properties.get(EMBEDDING) for node_id in table.ids], model, settings)
    index = HybridIndex(lexical, dense, alpha=settings.alpha)
    state = SageState(Graph(table, edges), index, None, EdgeTable.empty(len(table)))
    return SageView(state, settings, chunker=None, metadata=None)


class Living:
    """Gives a `SageGraph` its life in stores."""

    def write_to(self: Any, store: GraphStore, *, name: str = "sage", embeddings: bool = True) -> Written:
        """Write the graph to a store, or bring it up to date there; see `graphret.sage.living.write_to`."""
        return write_to(self, store, name=name, embeddings=embeddings)

    @classmethod
    def from_store(
        cls, store: GraphStore, *, name: str = "sage", encoder: Any = "saved", settings: SageSettings | None = None
    ) -> SageView:
        """Read a graph that `write_to` wrote; see `graphret.sage.living.from_store`."""
        return from_store(store, name=name, encoder=encoder, settings=settings)


def _dense(table: NodeTable, vectors: Sequence[Any], model: Encoder, settings: SageSettings) -> DenseIndex:
    if any(one is None for one in vectors):
        return DenseIndex.build(table, model, text=settings.text, hnsw=settings.hnsw)
    rows = check_vectors(vectors, len(table), what="embedding")  # unit rows, not to be rounded again
    return DenseIndex(table, rows, model, text=settings.text, hnsw=settings.hnsw)


# -- nodes and edges as they are in a store


def _outgoing(graph: SageGraph, name: str, embeddings: bool, shared: bool) -> Iterator[tuple[str, Node]]:
    dense = graph.index.dense if embeddings else None
    for place, node in enumerate(graph.nodes):
        taken = next((key for key in _OURS if key in node.properties), None)
        if taken is not None:
            raise InvalidInput(f"node {node.id!r}: the property {taken!r} is one that a graph in a store needs itself")
        own: dict[str, Any] = {MARK: name}
        if dense is not None:
            own[EMBEDDING] = dense.vectors[place].tolist()
            if dense.encoder is not None:
                own[ENCODER] = dense.encoder.name
        sent = _flat(node.properties)
        if shared:
            fields = [field for field in _FIELDS if getattr(node, field)]
            own[OWN] = json.dumps([node.labels, fields, list(sent)], ensure_ascii=False)
        yield node.id, replace(node, properties={**sent, **own})


def _own(node: Node) -> Node:
    """Return of a node in a store what is the graph's, as far as it says."""
    if OWN not in node.properties:
        return node
    labels, fields, names = json.loads(node.properties[OWN])
    return replace(
        node,
        labels=tuple(labels),
        properties={key: value for key, value in node.properties.items() if key in _OURS or key in names},
        **{field: "" for field in _FIELDS if field not in fields},
    )


def _before(held: Node | None, node: Node) -> Node:
    """Return what was written of a node before, the node itself where nothing says what that was."""
    return node if held is None or OWN not in held.properties else _own(held)


def _is_there(node: Node, held: Node) -> bool:
    """Whether a store holds a node, besides what others keep on it."""
    return _own(held) == node and set(node.labels) <= set(held.labels)


def _node_in(node: Node) -> Node:
    node = _own(node)
    own = {key: value for key, value in _unflat(node.properties).items() if key not in _OURS}
    return replace(node, properties=own)


def _edge_out(edge: Edge, mark: Mapping[str, str]) -> Edge:
    if mark and MARK in edge.properties:
        raise InvalidInput(
            f"edge {edge.source!r} to {edge.target!r}: the property {MARK!r} is one that a graph needs itself here"
        )
    return replace(edge, properties={**_flat(edge.properties), **mark})


def _edge_in(edge: Edge, marked: bool) -> Edge:
    own = {key: value for key, value in edge.properties.items() if not (marked and key == MARK)}
    return replace(edge, properties=_unflat(own))


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
        return -(2**63) <= value < 2**63
    return isinstance(value, (str, float, bool))


# -- what a store holds


def _held(store: GraphStore, name: str) -> dict[str, Node]:
    return {node.id: node for block in store.nodes(where={MARK: name}) for node in block}


def _edges(store: GraphStore, name: str, marked: bool) -> Iterator[Edge]:
    """Go through the edges of a graph, where others have edges between its nodes by the mark that is on its own."""
    for block in store.view({MARK: name}).edges():
        yield from (edge for edge in block if not marked or edge.properties.get(MARK) == name)


def _require_ours(store: GraphStore, ids: Iterable[str]) -> None:
    for block in _blocks(sorted(ids), _EDGES):
        for node in store.get(block):
            if node is not None:
                raise InvalidInput(f"node {node.id!r}: the store holds a node of this id that is not the graph's")


def _blocks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[i : i + size] for i in range(0, len(items), size))

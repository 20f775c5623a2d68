"""Any LlamaIndex property graph as a graphret store."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import groupby
from typing import Any

from llama_index.core.graph_stores.simple_labelled import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import LabelledNode, PropertyGraphStore, Relation

from graphret.errors import InvalidInput, StoreError
from graphret.schema import GraphSchema, schema_of
from graphret.stores.base import GraphStore, require_direction, require_ids, require_limit, require_names
from graphret.stores.following import Following, require_whole
from graphret.stores.memory import MemoryStore
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike, both
from llama_index_graphret.labelled import decoded, decoded_edges, encoded, encoded_edges
from llama_index_graphret.property_graph_sources import Found, Methods, Named, Simple, Source
from llama_index_graphret.property_graph_store import GraphretPropertyGraphStore

BLOCK = 1000
_ROWS = ("source_row", "target_row")


def from_property_graph_store(
    store: PropertyGraphStore,
    *,
    name_property: str | None = None,
    text_property: str | None = None,
    **options: Any,
) -> GraphStore:
    """Return a LlamaIndex property graph as a graphret store.

    Parameters
    ----------
    store
        Any `PropertyGraphStore`. Of a `Neo4jPropertyGraphStore` only the driver and the database are used: the
        `Neo4jStore` that comes back reads the whole graph, whoever wrote it, in read transactions. It writes where
        LlamaIndex's nodes are alone, none yet included, so that LlamaIndex reads them, and keeps embeddings of nodes
        whose name and text stay.
    name_property, text_property
        The properties that are the name and the text of nodes which have none themselves.
    **options
        For Neo4j, further options of `Neo4jStore.from_driver`: ``id_property`` where the id is not ``id``,
        ``label="__Node__"`` to read LlamaIndex's nodes alone where the database has others, ``hidden``, ``timeout``.

    Raises
    ------
    InvalidInput
        When `store` is no property graph, or an option is not one of its store's.
    StoreUnavailable, AccessDenied
        When Neo4j cannot be reached or refuses the user.
    """
    if not isinstance(store, PropertyGraphStore):
        raise InvalidInput(f"store: a LlamaIndex PropertyGraphStore is expected, not {type(store).__name__}")
    if any(kind.__name__ == "Neo4jPropertyGraphStore" for kind in type(store).__mro__):
        from llama_index_graphret.property_graph_neo4j import over_neo4j

        return over_neo4j(store, name_property=name_property, text_property=text_property, **options)
    if options:
        raise InvalidInput(f"{next(iter(options))}: not an option for a {type(store).__name__}")
    if isinstance(store, GraphretPropertyGraphStore):
        if name_property is not None or text_property is not None:
            raise InvalidInput("name_property, text_property: the nodes of a graphret store have name and text already")
        return store.store
    return PropertyGraphStoreAdapter(store, name_property=name_property, text_property=text_property)


class PropertyGraphStoreAdapter(Following):
    """A LlamaIndex property graph behind the contract of `GraphStore`.

    What LlamaIndex's model has no place for (several labels, a name that is not the id, a name beside a text, weights,
    and edges that differ in their rows alone) is kept as one JSON property, ``graphret``, of the node or relation.
    Weights are doubles there, but `limit` compares them in single precision, and one of 3.4e38 or more is refused.

    A `PropertyGraphStore` answers only for all nodes or for given ones, so that `schema`, `count`, `nodes` and `edges`
    read the whole graph, and conditions are applied to what was read. A `SimplePropertyGraphStore` is read and written
    through its ``graph``: its own `delete` takes neighbours away too, and its `upsert_relations` changes nothing that
    is there. Its chunks have ``MENTIONS`` edges to what was extracted from them, read from ``triplet_source_id``.

    Parameters
    ----------
    store
        The property graph. What it keeps of a property, and whether a relation that is there can be replaced, is up to
        it: `upsert` reads again what it replaced, and raises a `StoreError` where that was not kept.
    name_property, text_property
        As `from_property_graph_store` has them.
    """

    def __init__(
        self, store: PropertyGraphStore, *, name_property: str | None = None, text_property: str | None = None
    ) -> None:
        self.store = store
        self.name_property = name_property
        self.text_property = text_property
        self._source: Source = Simple(store) if isinstance(store, SimplePropertyGraphStore) else Methods(store)
        self._where: Where | None = None
        self._writing = threading.Lock()

    # -- reading

    def schema(self) -> GraphSchema:
        """Return the labels, relations and properties with their counts; the whole graph is read.

        Of nodes with the same labels, and of edges of one relation, the properties of 2,000 are looked at.
        """
        nodes, edges = self._everything()
        return schema_of([*nodes.values()], [*edges.values()])

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here."""
        wanted = require_ids(ids)
        found = {node.id: node for node in self._nodes(self._source.nodes(list(dict.fromkeys(wanted))))}
        return [found.get(node_id) for node_id in wanted]

    def neighbors(
        self,
        ids: Sequence[str],
        *,
        relations: Collection[str] | None = None,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
        direction: str = "both",
        limit: int | None = None,
    ) -> list[Edge]:
        """Return the edges that touch the nodes; see `GraphStore.neighbors`."""
        anchors = list(dict.fromkeys(require_ids(ids)))
        options: dict[str, Any] = {
            "relations": require_names("relations", relations),
            "labels": require_names("labels", labels),
            "where": Where.parse(where),
            "direction": require_direction(direction),
            "limit": require_limit(limit),
        }
        nodes, edges = self._graph(self._source.triplets(anchors)) if anchors else ({}, {})
        around = MemoryStore.of(nodes.values(), edges.values())
        return [edges[_identity(edge)] for edge in around.neighbors(anchors, **options)]

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are; the whole graph is read."""
        nodes, edges = self._everything()
        return len(nodes), len(edges)

    def nodes(self, labels: Collection[str] | None = None, where: WhereLike = None) -> Iterator[list[Node]]:
        """Go through all nodes, or those that bear one of `labels` and satisfy `where`, in blocks, by id."""
        wanted, condition = require_names("labels", labels), Where.parse(where)
        found = [
            node
            for node in self._nodes(self._source.nodes(None))
            if (wanted is None or not set(wanted).isdisjoint(node.labels))
            and (condition is None or condition.matches(node))
        ]
        found.sort(key=lambda node: node.id)
        return (found[i : i + BLOCK] for i in range(0, len(found), BLOCK))

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Go through all edges, or those of some relations, in blocks, each edge once."""
        wanted = require_names("relations", relations)
        found = [edge for edge in self._everything()[1].values() if wanted is None or edge.relation in wanted]
        found.sort(key=_identity)
        return (found[i : i + BLOCK] for i in range(0, len(found), BLOCK))

    def view(self, where: WhereLike) -> PropertyGraphStoreAdapter:
        """Return the store as far as nodes satisfy `where`; it cannot be written to."""
        other = copy(self)
        other._where = both(self._where, Where.parse(where)) or Where("$and")
        other._is_view = True
        return other

    @property
    def restriction(self) -> Where | None:
        """The condition of the view that this is; `None` where it is none."""
        return self._where

    # -- writing

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those of the same identity; see `GraphStore.upsert`.

        All or none, as far as the property graph itself can: what is malformed is refused before anything is written.

        Raises
        ------
        InvalidInput
            As in the contract.
        StoreError
            On a view, and when the property graph kept the old node or relation in place of the new one.
        """
        self._require_writable()
        with self._writing:
            fresh, links = list(nodes), list(edges)
            ids = {node.id for node in fresh if isinstance(node.id, str)}
            ends = {end for edge in links for end in (edge.source, edge.target)} - ids
            present = [node for node in self.get(list(ends)) if node is not None] if ends else []
            MemoryStore.of([*fresh, *present], links)  # refuses what is malformed
            relations, replaced = self._relations(links)
            known = self._source.nodes([node.id for node in fresh]) if fresh else []
            made = _with_embeddings([encoded(node) for node in fresh], fresh, self._nodes(known), known)
            with self._step(nodes=fresh, edges=links):
                self._source.write(made, relations)
            self._require_kept(fresh, [node_id for node_id, _ in known], links, replaced)

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away, and every edge that touches them; unknown ids are ignored."""
        self._require_writable()
        with self._writing:
            gone = list(dict.fromkeys(require_ids(ids)))
            if gone:
                with self._step(deletes=gone):
                    self._source.delete(gone)

    def attach(self, index: Any) -> None:
        """Keep an index in step with this store; see `Following.attach`. Writes by others do not reach it.

        Raises
        ------
        InvalidInput
            As there.
        StoreError
            When the property graph is none in memory: a write of another cannot be undone where the index fails.
        """
        require_whole(self._is_view)
        with self._source.restoring():
            super().attach(index)

    @contextmanager
    def _step(self, **written: Any) -> Iterator[None]:
        if not self._followers:
            yield
            return
        with self.followed(**written) as stage, self._source.restoring():
            yield
            stage(self)

    def _require_writable(self) -> None:
        if self._where is not None:
            raise StoreError("a view of a store cannot be written to; write to the store itself")

    def _relations(self, edges: Sequence[Edge]) -> tuple[list[Relation], set[tuple[str, str, str]]]:
        """Return the relations that hold new edges and those beside them, and the triples that are there already."""
        if not edges:
            return [], set()
        fresh = {_identity(edge): edge for edge in edges}
        triples = {_triple(edge) for edge in fresh.values()}
        _, held = self._graph(self._source.triplets(list({source for source, _, _ in triples})))
        beside = {identity: edge for identity, edge in held.items() if _triple(edge) in triples}
        ordered = sorted({**beside, **fresh}.values(), key=_identity)
        made = [encoded_edges(list(group)) for _, group in groupby(ordered, key=_triple)]
        return made, {_triple(edge) for edge in beside.values()}

    def _require_kept(
        self, nodes: list[Node], known: list[str], edges: list[Edge], replaced: set[tuple[str, str, str]]
    ) -> None:
        """Read again what was replaced, since stores differ in what they make of an upsert."""
        if not self._source.checked:
            return
        again = [node for node in nodes if node.id in set(known)]
        for node, found in zip(again, self.get([node.id for node in again]), strict=True):
            if found != node:
                raise StoreError(f"node {node.id!r}: {type(self.store).__name__} did not replace it by the new one")
        last = {_identity(edge): edge for edge in edges if _triple(edge) in replaced}
        if last:
            _, held = self._graph(self._source.triplets(list({edge.source for edge in last.values()})))
            for identity, edge in last.items():
                if held.get(identity) != edge:
                    name = type(self.store).__name__
                    raise StoreError(
                        f"edge {edge.source!r} to {edge.target!r}: {name} did not replace it by the new one"
                    )

    # -- what the property graph holds, as graphret's

    def _everything(self) -> tuple[dict[str, Node], dict[tuple[Any, ...], Edge]]:
        nodes = {node.id: node for node in self._nodes(self._source.nodes(None))}
        _, edges = self._graph(self._source.triplets(None))
        return nodes, {key: edge for key, edge in edges.items() if edge.source in nodes and edge.target in nodes}

    def _nodes(self, found: Iterable[tuple[str, LabelledNode]]) -> list[Node]:
        nodes = [decoded(node, node_id, name=self.name_property, text=self.text_property) for node_id, node in found]
        return nodes if self._where is None else [node for node in nodes if self._where.matches(node)]

    def _graph(self, found: Iterable[Found]) -> tuple[dict[str, Node], dict[tuple[Any, ...], Edge]]:
        """Return the nodes and edges of triplets, by identity, as far as they may be read."""
        nodes: dict[str, Node] = {}
        edges: dict[tuple[Any, ...], Edge] = {}
        seen: dict[str, Node | None] = {}

        def one(node_id: str, node: LabelledNode) -> Node | None:
            if node_id not in seen:
                seen[node_id] = next(iter(self._nodes([(node_id, node)])), None)
            return seen[node_id]

        for (source_id, source), relation, (target_id, target) in found:
            left, right = one(source_id, source), one(target_id, target)
            if left is not None and right is not None:
                nodes[left.id], nodes[right.id] = left, right
                edges.update({_identity(edge): edge for edge in decoded_edges(relation, left.id, right.id)})
        return nodes, edges


def _with_embeddings(
    made: list[LabelledNode], nodes: list[Node], known: list[Node], held: list[Named]
) -> list[LabelledNode]:
    """Keep the embeddings of nodes whose name and text stay as they were."""
    embeddings = {node_id: node.embedding for node_id, node in held}
    same = {(node.id, node.name, node.text) for node in known}
    for labelled, node in zip(made, nodes, strict=True):
        if (node.id, node.name, node.text) in same:
            labelled.embedding = embeddings.get(node.id)
    return made


def _triple(edge: Edge) -> tuple[str, str, str]:
    return edge.source, edge.target, edge.relation


def _identity(edge: Edge) -> tuple[Any, ...]:
    return (*_triple(edge), *(edge.properties.get(row, -1) for row in _ROWS))

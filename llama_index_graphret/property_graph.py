"""Any LlamaIndex property graph as a graphret store."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from llama_index.core.graph_stores.simple_labelled import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import (
    TRIPLET_SOURCE_KEY,
    LabelledNode,
    PropertyGraphStore,
    Relation,
)

from graphret.errors import InvalidInput, StoreError
from graphret.schema import GraphSchema
from graphret.stores import GraphStore, MemoryStore
from graphret.stores.base import require_ids
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike, both
from llama_index_graphret.nodes import KEPT
from llama_index_graphret.property_graph_store import (
    MENTIONS,
    GraphNode,
    GraphretPropertyGraphStore,
    from_labelled,
    to_labelled,
)


def from_property_graph_store(
    store: PropertyGraphStore, *, name_property: str | None = None, text_property: str | None = None, **options: Any
) -> GraphStore:
    """Return a LlamaIndex property graph as a graphret store.

    What LlamaIndex's model has no place for (several labels, a name beside a text, weights) is written as one JSON
    property, ``graphret``, of the node or relation. A `PropertyGraphStore` answers only for all nodes or for given
    ones, so that `schema`, `count`, `nodes` and `edges` read the whole graph, and conditions are applied to what was
    read. Whether a node or a relation that is there is replaced or merged is up to the property graph.

    Parameters
    ----------
    store
        Any `PropertyGraphStore`. Of a `Neo4jPropertyGraphStore` only the driver and the database are used: the
        `Neo4jStore` that comes back reads the whole graph, whoever wrote it, in read transactions.
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
    named = {"name_property": name_property, "text_property": text_property}
    if any(kind.__name__ == "Neo4jPropertyGraphStore" for kind in type(store).__mro__):
        return _over_neo4j(store, **named, **options)
    if options:
        raise InvalidInput(f"{next(iter(options))}: not an option for a {type(store).__name__}")
    if isinstance(store, GraphretPropertyGraphStore):
        if any(named.values()):
            raise InvalidInput("name_property, text_property: the nodes of a graphret store have name and text already")
        return store.store
    return PropertyGraphStoreAdapter(store, **named)


def _over_neo4j(
    store: Any,
    *,
    id_property: str | None = None,
    name_property: str | None = None,
    text_property: str | None = None,
    label: str | None = None,
    **options: Any,
) -> GraphStore:
    """Return a `Neo4jStore` on the driver of a `Neo4jPropertyGraphStore`."""
    from graphret.stores.neo4j import FOREIGN, LLAMA_INDEX, Neo4jStore

    options = {"database": getattr(store, "_database", None), **options}
    if any((id_property, name_property, text_property, label)):
        options["layout"] = replace(
            FOREIGN,
            id=id_property or LLAMA_INDEX.id,
            name=tuple(filter(None, (name_property, *FOREIGN.name))),
            text=tuple(filter(None, (text_property, *FOREIGN.text))),
            label=label,
            hidden_labels=LLAMA_INDEX.hidden_labels,
        )
    return Neo4jStore.from_driver(store.client, **options)


class PropertyGraphStoreAdapter:
    """A LlamaIndex property graph behind the contract of `GraphStore`; see `from_property_graph_store`."""

    restriction: Where | None = None

    def __init__(
        self, store: PropertyGraphStore, *, name_property: str | None = None, text_property: str | None = None
    ) -> None:
        self.store = store
        self.name_property = name_property
        self.text_property = text_property

    def schema(self) -> GraphSchema:
        """Return the labels, relations and properties with their counts; the whole graph is read."""
        return self._graph().schema()

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here."""
        wanted = require_ids(ids)
        return self._graph(list(dict.fromkeys(wanted)), edges=False).get(wanted)

    def neighbors(self, ids: Sequence[str], **options: Any) -> list[Edge]:
        """Return the edges that touch the nodes; see `GraphStore.neighbors`, whose options it takes."""
        anchors = list(dict.fromkeys(require_ids(ids)))
        return self._graph(anchors).neighbors(anchors, **options)

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are; the whole graph is read."""
        return self._graph().count()

    def nodes(self, labels: Collection[str] | None = None, where: WhereLike = None) -> Iterator[list[Node]]:
        """Go through all nodes, or those that bear one of `labels` and satisfy `where`, in blocks, by id."""
        return self._graph(edges=False).nodes(labels, where)

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Go through all edges, or those of some relations, in blocks, each edge once."""
        return self._graph().edges(relations)

    def view(self, where: WhereLike) -> PropertyGraphStoreAdapter:
        """Return the store as far as nodes satisfy `where`; it cannot be written to."""
        other = copy(self)
        other.restriction = both(self.restriction, Where.parse(where)) or Where("$and")
        return other

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those of the same identity; what is malformed is refused before anything.

        Raises
        ------
        InvalidInput
            As in the contract.
        StoreError
            On a view.
        """
        self._require_writable()
        fresh, links = list(nodes), list(edges)
        ends = {end for edge in links for end in (edge.source, edge.target) if isinstance(end, str)}
        present = self.get(sorted(ends.difference(node.id for node in fresh if isinstance(node.id, str))))
        MemoryStore.of([*fresh, *filter(None, present)], links)  # refuses what is malformed
        made, relations = [_encoded(node) for node in fresh], self._relations(links)
        if isinstance(self.store, SimplePropertyGraphStore):  # its own method changes no relation that is there
            graph = self.store.graph
            graph.nodes.update({node.id: node for node in made})
            graph.relations.update({_key(one.source_id, one.label, one.target_id): one for one in relations})
            graph.triplets.update((one.source_id, one.label, one.target_id) for one in relations)
            return
        if made:
            self.store.upsert_nodes(made)
        if relations:
            self.store.upsert_relations(relations)

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away, and every edge that touches them; unknown ids are ignored."""
        self._require_writable()
        gone = set(require_ids(ids))
        if isinstance(self.store, SimplePropertyGraphStore):  # its own method takes their neighbours away too
            graph = self.store.graph
            for cut in [one for one in graph.triplets if one[0] in gone or one[2] in gone]:
                graph.relations.pop(_key(*cut), None)
                graph.triplets.discard(cut)
            for node_id in gone:
                graph.nodes.pop(node_id, None)
        elif gone:
            self.store.delete(ids=sorted(gone))

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Take edges away: since a property graph takes nodes alone, their sources go and are written again."""
        self._require_writable()
        gone = {edge.identity for edge in edges}
        nodes = [node for node in self.get(sorted({source for source, *_ in gone})) if node is not None]
        ids = [node.id for node in nodes]
        kept = [edge for edge in self.neighbors(ids) if edge.identity not in gone]
        self.delete(ids)
        self.upsert(nodes, kept)

    def _require_writable(self) -> None:
        if self.restriction is not None:
            raise StoreError("a view of a store cannot be written to; write to the store itself")

    def _relations(self, edges: Sequence[Edge]) -> list[Relation]:
        """Return the relations that hold edges, with those beside them that differ in their rows alone."""
        around = self._graph([edge.source for edge in edges]).edges() if edges else ()
        held = {_triple(edge): dict[tuple[Any, ...], Edge]() for edge in edges}
        for edge in (*(edge for block in around for edge in block), *edges):
            if _triple(edge) in held:
                held[_triple(edge)][edge.properties.get("source_row"), edge.properties.get("target_row")] = edge
        return [_relation(list(beside.values())) for beside in held.values()]

    def _graph(self, ids: list[str] | None = None, *, edges: bool = True) -> MemoryStore:
        """Return the graph, or some nodes and what is one step around them, as far as it may be read."""
        simple = isinstance(self.store, SimplePropertyGraphStore)
        held, triplets = (self._simple if simple else self._any)(ids, edges)
        nodes = {node_id: self._node(node) for node_id, node in held.items()}
        found = [
            edge
            for source, relation, target in triplets
            if source in nodes and target in nodes
            for edge in _edges(relation, nodes[source].id, nodes[target].id)
        ]
        store = MemoryStore.of({node.id: node for node in nodes.values()}.values(), found)
        return store if self.restriction is None else store.view(self.restriction)

    def _any(self, ids: list[str] | None, edges: bool) -> _Read:
        listed = self.store.get() if ids is None else self.store.get(ids=ids) if ids else []
        held = {node.id: node for node in listed}
        found = self.store.get_triplets(ids=list(held) if ids is None else ids) if edges and held else []
        for left, _, right in found:
            held |= {left.id: left, right.id: right}
        return held, [(left.id, relation, right.id) for left, relation, right in found]

    def _simple(self, ids: list[str] | None, edges: bool) -> _Read:
        """Read LlamaIndex's graph in memory, in which a property alone says from which chunk something was extracted.

        That is read as a ``MENTIONS`` edge, which its stores over databases have.
        """
        assert isinstance(self.store, SimplePropertyGraphStore)
        graph = self.store.graph
        held, wanted = graph.nodes, None if ids is None else set(ids)
        found: dict[tuple[str, str, str], Relation | None] = {}
        if edges:
            found = {triple: graph.relations.get(_key(*triple)) for triple in graph.triplets}
            said = [(node.properties.get(TRIPLET_SOURCE_KEY), node_id) for node_id, node in held.items()]
            for one in graph.relations.values():
                chunk, ends = one.properties.get(TRIPLET_SOURCE_KEY), (one.source_id, one.target_id)
                said += [(chunk, end) for end in ends if chunk not in ends]
            for chunk, end in said:
                if isinstance(chunk, str) and chunk != end:
                    found.setdefault((chunk, MENTIONS, end), None)
        if wanted is not None:
            found = {one: relation for one, relation in found.items() if one[0] in wanted or one[2] in wanted}
            wanted.update(end for source, _, target in found for end in (source, target))
        triplets = [
            (source, relation or Relation(label=label, source_id=source, target_id=target), target)
            for (source, label, target), relation in found.items()
        ]
        return {i: held[i] for i in (held if wanted is None else wanted) if i in held}, triplets

    def _node(self, node: LabelledNode) -> Node:
        """Return a node as graphret's: what `_encoded` was given, and any other as it stands."""
        properties = _as_json(node.properties)
        kept = _kept(properties)
        if kept is not None:
            return Node(kept["id"], tuple(kept["labels"]), kept["name"], kept["text"], properties)
        made = from_labelled(node)
        properties = _as_json(made.properties)
        name, text = (str(properties.get(key or "") or "") for key in (self.name_property, self.text_property))
        return replace(made, name=made.name or name, text=made.text or text, properties=properties)


#: Nodes by what the property graph calls them, and the relations between them.
_Read = tuple[dict[str, LabelledNode], list[tuple[str, Relation, str]]]


def _encoded(node: Node) -> LabelledNode:
    """Return a node in LlamaIndex's classes, with what they have no place for as one JSON property."""
    made = to_labelled(node)
    if isinstance(made, GraphNode):
        kept = {"id": node.id, "labels": node.labels, "name": node.name, "text": node.text}
        made.properties[KEPT] = json.dumps(kept, ensure_ascii=False)
    return made


def _relation(edges: Sequence[Edge]) -> Relation:
    """Return edges that differ in their rows alone as one relation, since LlamaIndex's stores hold one."""
    first, *more = edges
    properties = dict(first.properties)
    if more or first.weight != 1.0:
        kept = {"weight": first.weight, "more": [[edge.weight, dict(edge.properties)] for edge in more]}
        properties[KEPT] = json.dumps(kept, ensure_ascii=False)
    return Relation(label=first.relation, source_id=first.source, target_id=first.target, properties=properties)


def _edges(relation: Relation, source: str, target: str) -> list[Edge]:
    """Return what `_relation` was given, and any other relation as one edge."""
    properties = _as_json(relation.properties)
    kept = _kept(properties) or {"weight": getattr(relation, "weight", 1.0), "more": []}
    pairs = [(kept["weight"], properties), *kept["more"]]
    return [Edge(source, relation.label, target, weight, own) for weight, own in pairs]


def _kept(properties: dict[str, Any]) -> dict[str, Any] | None:
    """Take what `_encoded` or `_relation` kept out of the properties; `None` where they kept nothing."""
    try:
        kept = json.loads(properties[KEPT])
        known = bool({"id", "weight"} & kept.keys())
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return kept if known and properties.pop(KEPT) else None


def _as_json(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties as JSON values; what is none is read as its text."""
    values: dict[str, Any] = json.loads(json.dumps(properties, default=str))
    return values


def _triple(edge: Edge) -> tuple[str, str, str]:
    return edge.source, edge.relation, edge.target


def _key(source: str, label: str, target: str) -> str:
    return f"{source}_{label}_{target}"  # as LabelledPropertyGraph makes it

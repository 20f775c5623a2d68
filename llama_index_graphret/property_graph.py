"""Conversion between graphret stores and LlamaIndex property graphs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import Field
from llama_index.core.graph_stores.simple_labelled import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import (
    TRIPLET_SOURCE_KEY,
    ChunkNode,
    EntityNode,
    LabelledNode,
    PropertyGraphStore,
    Relation,
    Triplet,
)
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import VectorStoreQuery

from graphret.cypher import run_checked
from graphret.errors import InvalidInput, QueryRefused
from graphret.nodes import NodeTable
from graphret.schema import GraphSchema
from graphret.search import DenseIndex
from graphret.stores import GraphStore, MemoryStore
from graphret.stores.base import as_cypher
from graphret.stores.neo4j.layout import PropertyNames
from graphret.types import Edge, Node
from llama_index_graphret.filters import to_where
from llama_index_graphret.nodes import EMBEDDING, to_llama_node

#: The relation from a chunk to what was extracted from it, as LlamaIndex's stores over
#: databases name it.
MENTIONS = "MENTIONS"

_INTERNAL = (
    "_node_content",
    "_node_type",
    "doc_id",
    "document_id",
    "ref_doc_id",
    EMBEDDING,
)
_log = logging.getLogger(__name__)


class GraphNode(EntityNode):
    """An entity with its own id, all labels and a text, which `EntityNode` lacks.

    Two films that are both called “King Kong” stay two: ``GraphNode(id_="m1",
    name="King Kong", label="Film")``.
    """

    id_: str = Field(description="The id of the node.")
    text: str = Field(default="", description="What the node says.")
    labels: tuple[str, ...] = Field(
        default=(),
        description="All labels, the primary one first; `label` alone if none.",
    )

    @property
    def id(self) -> str:
        return self.id_


class GraphRelation(Relation):
    """A relation with the weight that graphret ranks by."""

    weight: float = Field(default=1.0, description="The weight of the edge.")


def to_labelled(node: Node) -> LabelledNode:
    """Return a `ChunkNode` for a text without a name, and otherwise a `GraphNode`."""
    properties = dict(node.properties)
    fields: dict[str, Any] = {
        "label": node.label,
        "embedding": properties.pop(EMBEDDING, None),
        "properties": properties,
    }
    if len(node.labels) <= 1 and node.text and not node.name:
        return ChunkNode(id_=node.id, text=node.text, **fields)
    return GraphNode(
        id_=node.id, name=node.name, text=node.text, labels=node.labels, **fields
    )


def from_labelled(node: LabelledNode) -> Node:
    properties = dict(node.properties)
    if node.embedding is not None:
        properties[EMBEDDING] = [float(x) for x in node.embedding]
    labels = (
        node.labels
        if isinstance(node, GraphNode) and node.labels
        else (node.label,)
        if node.label
        else ()
    )
    return Node(
        node.id,
        labels,
        getattr(node, "name", ""),
        getattr(node, "text", ""),
        properties,
    )


class GraphretPropertyGraphStore(PropertyGraphStore):
    """A graphret store as a LlamaIndex `PropertyGraphStore`.

    A `PropertyGraphIndex` and its retrievers can use it.

    Nodes come out as `ChunkNode` and `GraphNode`. ``upsert_nodes`` replaces nodes
    whole. A chunk is joined by ``MENTIONS`` to what was extracted from it, as
    ``Neo4jPropertyGraphStore`` does; LlamaIndex's retrievers do not see these edges,
    graphret's walk them. Conditions are joined by *and*; an empty list of ids finds
    nothing. Embeddings are kept in the property ``embedding``; ``vector_query`` reads
    them into this process when they are first asked for. Awaited methods block, as
    those of LlamaIndex's own stores do.

    Parameters
    ----------
    store
        Any graphret `GraphStore`. On a view everything but writing works as far as the
        view shows.
    """

    supports_vector_queries = True

    def __init__(self, store: GraphStore) -> None:
        if not isinstance(store, GraphStore):
            raise InvalidInput(
                f"store: expected a graphret GraphStore, got {type(store).__name__}"
            )
        self.store = store
        self.supports_structured_queries = as_cypher(store) is not None
        self._vectors: DenseIndex | None = None
        self._schema: GraphSchema | None = None

    @property
    def client(self) -> GraphStore:
        return self.store

    def get(
        self, properties: dict[str, Any] | None = None, ids: list[str] | None = None
    ) -> list[LabelledNode]:
        """Return the nodes with all `properties` and one of `ids`, or all nodes."""
        condition = to_where(properties or None)
        if ids is None:
            return [
                to_labelled(node)
                for block in self.store.nodes(where=condition)
                for node in block
            ]
        return [
            to_labelled(node)
            for node in self._existing(ids)
            if condition is None or condition.matches(node)
        ]

    def get_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """Return the triplets that match all arguments; without arguments, none.

        One of the two nodes has one of the names or ids; one of the nodes, or the
        relation, has all properties.
        """
        if (
            entity_names is None
            and ids is None
            and not properties
            and relation_names is None
        ):
            return []
        ids_by_name = (
            None
            if entity_names is None
            else {node.id for node in self._nodes_named(entity_names)}
        )
        anchors = [
            set(node_ids) for node_ids in (ids, ids_by_name) if node_ids is not None
        ]
        if anchors:
            edges = self.store.neighbors(sorted(anchors[0]), relations=relation_names)
        else:
            edges = [
                edge
                for block in self.store.edges(relations=relation_names)
                for edge in block
            ]
        triplets = self._triplets(
            [
                e
                for e in edges
                if all(
                    e.source in node_ids or e.target in node_ids for node_ids in anchors
                )
            ]
        )
        required = (properties or {}).items()
        return [
            triplet
            for triplet in triplets
            if any(required <= part.properties.items() for part in triplet)
        ]

    def get_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """Return at most `limit` triplets within `depth` steps of nodes, nearest first.

        Both directions count; ``ignore_rels`` and ``MENTIONS`` do not.
        """
        ignored = {MENTIONS, *(ignore_rels or ())}
        relations = [
            name for name in self.get_schema().relation_names if name not in ignored
        ]
        frontier = [from_labelled(node).id for node in graph_nodes]
        visited, edges_by_identity = set[str](), dict[tuple[Any, ...], Edge]()
        for _ in range(depth):
            if not frontier or len(edges_by_identity) >= limit:
                break
            visited.update(frontier)
            edges = self.store.neighbors(frontier, relations=relations, limit=limit)
            edges_by_identity |= {edge.identity: edge for edge in edges}
            reached = dict.fromkeys(
                node_id for edge in edges for node_id in (edge.source, edge.target)
            )
            frontier = [node_id for node_id in reached if node_id not in visited]
        return self._triplets(list(edges_by_identity.values())[:limit])

    def get_llama_nodes(self, node_ids: list[str]) -> list[BaseNode]:
        """Return the nodes that have a text as LlamaIndex's text nodes."""
        return [
            to_llama_node(_bare(node)) for node in self._existing(node_ids) if node.text
        ]

    def upsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Add nodes, or replace those with the same id; the last duplicate counts."""
        fresh = {node.id: node for node in map(from_labelled, nodes)}
        self._write(
            fresh,
            [],
            [
                (node.properties.get(TRIPLET_SOURCE_KEY), node_id)
                for node_id, node in fresh.items()
            ],
        )

    def upsert_relations(self, relations: list[Relation]) -> None:
        """Add relations, or replace those between the same nodes.

        A missing node becomes an entity.
        """
        edges, mentions = list[Edge](), list[tuple[Any, str]]()
        for relation in relations:
            pair, chunk = (
                (relation.source_id, relation.target_id),
                relation.properties.get(TRIPLET_SOURCE_KEY),
            )
            edges.append(
                Edge(
                    pair[0],
                    relation.label,
                    pair[1],
                    getattr(relation, "weight", 1.0),
                    dict(relation.properties),
                )
            )
            mentions += [(chunk, end) for end in pair if chunk not in pair]
        node_ids = sorted({end for edge in edges for end in (edge.source, edge.target)})
        existing = {node.id for node in self._existing(node_ids)}
        self._write(
            {
                end: Node(end, ("entity",), end)
                for end in node_ids
                if end not in existing
            },
            edges,
            mentions,
        )

    def delete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        """Delete nodes by name, id or properties, and relations by name, if any."""
        deleted = (
            {node.id for node in self._nodes_named(entity_names)}
            if entity_names
            else set()
        )
        deleted.update(ids or ())
        if properties:
            deleted.update(
                node.id
                for block in self.store.nodes(where=properties)
                for node in block
            )
        if relation_names:
            self.store.delete_edges(
                [
                    edge
                    for block in self.store.edges(relations=relation_names)
                    for edge in block
                ]
            )
        if deleted:
            self.store.delete(sorted(deleted))
        self._schema = self._vectors = None

    def structured_query(
        self, query: str, param_map: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Run read-only Cypher, and return its rows, with nodes as mappings.

        LlamaIndex does not say whether a person or a model wrote a query, so every
        query must pass the guard; run your own that it refuses with ``client.query``.

        Raises
        ------
        QueryRefused
            If the store does not run Cypher, or the guard or the database refuses this
            query.
        """
        database = as_cypher(self.store)
        if database is None:
            raise QueryRefused(f"{type(self.store).__name__} does not run Cypher")
        rows = run_checked(database, query, param_map or {})
        if rows.truncated:
            _log.warning(
                "structured_query: only the first %s rows were read", len(rows)
            )
        return [
            {name: _plain(value) for name, value in row.items()}
            for row in rows.to_dicts()
        ]

    def vector_query(
        self, query: VectorStoreQuery, **kwargs: Any
    ) -> tuple[list[LabelledNode], list[float]]:
        """Return the nodes nearest to an embedding among the filtered, and cosines."""
        if query.query_embedding is None:
            raise InvalidInput("query: vector_query needs the question's embedding")
        index, where = (
            self._embeddings().with_query("", query.query_embedding),
            to_where(query.filters),
        )
        ranked = index.search("", query.similarity_top_k, where=where)
        pairs = zip(self.store.get(ranked.ids), ranked.scores.tolist(), strict=True)
        scored = [
            (to_labelled(node), score) for node, score in pairs if node is not None
        ]
        return [node for node, _ in scored], [score for _, score in scored]

    def get_schema(self, refresh: bool = False) -> GraphSchema:
        """Return graphret's schema; it is read again on `refresh` or after a write."""
        if refresh or self._schema is None:
            self._schema = self.store.schema()
        return self._schema

    def get_schema_str(self, refresh: bool = False) -> str:
        """Return the schema for a prompt, without LlamaIndex's internal properties."""
        schema = self.get_schema(refresh=refresh)
        shown = {
            label: {
                name: info for name, info in properties.items() if name not in _INTERNAL
            }
            for label, properties in schema.properties.items()
        }
        return replace(schema, properties=shown).text()

    def persist(self, persist_path: str, fs: Any = None) -> None:
        """Write a `MemoryStore` to a local folder; other stores persist themselves."""
        if fs is not None and "file" not in fs.protocol:
            raise InvalidInput(
                f"fs: expected the local file system, got {type(fs).__name__}"
            )
        if (graph := self.store.local_graph()) is not None:
            MemoryStore(graph).save(persist_path)

    def _write(
        self,
        fresh: Mapping[str, Node],
        edges: Sequence[Edge],
        mentioned: Iterable[tuple[Any, str]],
    ) -> None:
        """Write nodes and edges, and edges from existing chunks to their mentions."""
        pairs = sorted(
            {
                (chunk, end)
                for chunk, end in mentioned
                if isinstance(chunk, str) and chunk != end
            }
        )
        existing = {
            *fresh,
            *(node.id for node in self._existing(chunk for chunk, _ in pairs)),
        }
        mentions = [
            Edge(chunk, MENTIONS, end) for chunk, end in pairs if chunk in existing
        ]
        self.store.upsert(fresh.values(), [*mentions, *edges])
        self._schema = self._vectors = None

    def _embeddings(self) -> DenseIndex:
        """Return an index over the nodes' stored embeddings."""
        if self._vectors is None:
            blocks = self.store.nodes(where={EMBEDDING: {"$exists": True}})
            by_id = {node.id: node for block in blocks for node in block}
            table = NodeTable.of(map(_bare, by_id.values()))
            rows = [by_id[node_id].properties[EMBEDDING] for node_id in table.ids]
            self._vectors = DenseIndex.build(
                table, None, vectors=np.asarray(rows, np.float32).reshape(len(rows), -1)
            )
        return self._vectors

    def _existing(self, ids: Iterable[str]) -> list[Node]:
        """Return the nodes that exist."""
        return [
            node
            for node in self.store.get(list(dict.fromkeys(ids)))
            if node is not None
        ]

    def _nodes_named(self, names: Iterable[str]) -> list[Node]:
        """Return the nodes with these names; a node without a name goes by its id."""
        distinct_names = list(dict.fromkeys(names))
        by_id = [node for node in self._existing(distinct_names) if not node.name]
        return [
            *(
                node
                for block in self.store.nodes(where={"name": {"$in": distinct_names}})
                for node in block
            ),
            *by_id,
        ]

    def _triplets(self, edges: Sequence[Edge]) -> list[Triplet]:
        nodes = self._existing(
            end for edge in edges for end in (edge.source, edge.target)
        )
        by_id = {node.id: to_labelled(node) for node in nodes}
        triplets = list[Triplet]()
        for edge in edges:
            if edge.source in by_id and edge.target in by_id:
                about: Any = {
                    "source_id": edge.source,
                    "target_id": edge.target,
                    "properties": dict(edge.properties),
                }
                relation = GraphRelation(
                    label=edge.relation, weight=edge.weight, **about
                )
                triplets.append((by_id[edge.source], relation, by_id[edge.target]))
        return triplets


def from_property_graph_store(
    store: PropertyGraphStore,
    *,
    name_property: PropertyNames | None = None,
    text_property: PropertyNames | None = None,
    id_property: str | None = None,
    label: str | None = None,
    hidden: Sequence[str] = (),
    timeout: float | None = None,
    database: str | None = None,
) -> GraphStore:
    """Return a LlamaIndex property graph as a graphret store.

    Of a `Neo4jPropertyGraphStore` that is a `Neo4jStore` on its driver, which reads the
    whole graph, whoever wrote it, in read transactions. Any other property graph is
    copied into a `MemoryStore`, since it can only list what it holds: write to the
    property graph, and call this again to see what has changed. A chunk leads by
    ``MENTIONS`` to what was extracted from it.

    Parameters
    ----------
    store
        Any `PropertyGraphStore`.
    name_property, text_property
        The properties that are the name and the text of nodes which have none
        themselves: one, several of which the first that a node has counts, or either by
        label. In Neo4j what is not told is chosen, as `Neo4jStore` does.
    id_property, label, hidden, timeout, database
        For Neo4j alone, as `Neo4jStore` has them: ``id_property`` where the id is not
        ``id``, ``label="__Node__"`` to read LlamaIndex's nodes alone where the database
        has others; the database is the property graph's by default.

    Raises
    ------
    InvalidInput
        When `store` is no property graph, or an option is for Neo4j and `store` is not.
    StoreUnavailable, AccessDenied
        When Neo4j cannot be reached or refuses the user.
    """
    if not isinstance(store, PropertyGraphStore):
        raise InvalidInput(
            "store: expected a LlamaIndex PropertyGraphStore, got"
            f" {type(store).__name__}"
        )
    if any(kind.__name__ == "Neo4jPropertyGraphStore" for kind in type(store).__mro__):
        from graphret.stores.neo4j import Neo4jStore

        described: dict[str, Any] = {}
        if name_property or text_property or id_property or label:
            described = {
                "id_property": id_property or "id",
                "name_property": _with_default(name_property, "name"),
                "text_property": _with_default(text_property, "text"),
                "label": label,
            }
        return Neo4jStore.from_driver(
            store.client,
            database=database or getattr(store, "_database", None),
            hidden=hidden,
            timeout=timeout,
            **described,
        )
    for_neo4j = {
        "id_property": id_property,
        "label": label,
        "hidden": hidden,
        "timeout": timeout,
        "database": database,
    }
    for name, value in for_neo4j.items():
        if value:
            raise InvalidInput(f"{name}: not an option for a {type(store).__name__}")
    if isinstance(store, GraphretPropertyGraphStore):
        return store.store
    return _copied(store, name_property, text_property)


def _with_default(names: PropertyNames | None, default: str) -> PropertyNames | None:
    """Return the properties to try: those given, and then LlamaIndex's own."""
    if names is None or isinstance(names, Mapping):
        return names
    return [*_listed(names), default]


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _first_value(node: Node, name_property: PropertyNames | None) -> str:
    """Return the first of the named properties that a node has, as a text."""
    if isinstance(name_property, Mapping):
        keys = [
            key
            for label in node.labels
            for key in _listed(name_property.get(label, ()))
        ]
    else:
        keys = _listed(name_property or ())
    values = (node.properties.get(key) for key in keys)
    return next((str(value) for value in values if value), "")


def _copied(
    store: PropertyGraphStore,
    name: PropertyNames | None,
    text: PropertyNames | None,
) -> GraphStore:
    """Read a whole property graph, without relations to missing nodes."""
    listed = {node.id: node for node in store.get()}
    if isinstance(store, SimplePropertyGraphStore):  # which looks ids up one by one
        triplets = store.graph.get_triplets()
    else:
        triplets = store.get_triplets(ids=list(listed)) if listed else []
    listed |= {
        end.id: end for source, _, target in triplets for end in (source, target)
    }
    nodes, relations = list[LabelledNode](), list[Relation]()
    for node in map(from_labelled, listed.values()):
        properties = _as_json(node.properties)
        named_node = replace(
            node,
            name=node.name or _first_value(node, name),
            text=node.text or _first_value(node, text),
            properties=properties,
        )
        nodes.append(to_labelled(named_node))
    copy = GraphretPropertyGraphStore(MemoryStore())
    copy.upsert_nodes(nodes)
    for source, relation, target in triplets:
        end_ids = {"source_id": source.id, "target_id": target.id}
        relations.append(
            relation.model_copy(
                update={**end_ids, "properties": _as_json(relation.properties)}
            )
        )
    copy.upsert_relations(relations)
    return copy.store


def _as_json(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties as JSON values; anything else becomes its text."""
    values: dict[str, Any] = json.loads(json.dumps(properties, default=str))
    return values


def _plain(value: Any) -> Any:
    """Return a query's value as JSON values, without the embeddings of nodes."""
    if isinstance(value, Node):
        fields = {
            "id": value.id,
            "labels": list(value.labels),
            "name": value.name,
            "text": value.text,
        }
        return {
            **_bare(value).properties,
            **{key: item for key, item in fields.items() if item},
        }
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.to_dict() if isinstance(value, Edge) else value


def _bare(node: Node) -> Node:
    return replace(
        node,
        properties={
            key: value for key, value in node.properties.items() if key != EMBEDDING
        },
    )

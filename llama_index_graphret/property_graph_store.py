"""A graphret store as a LlamaIndex property graph."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.graph_stores.types import (
    TRIPLET_SOURCE_KEY,
    EntityNode,
    LabelledNode,
    Relation,
    Triplet,
)
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import VectorStoreQuery

from graphret._contracts import fulfils, require_direct
from graphret.corpus.items import checked_metadata
from graphret.errors import InvalidInput, QueryRefused
from graphret.schema import GraphSchema
from graphret.search.dense import DenseIndex
from graphret.stores.base import CypherStore, GraphStore, Rows, require_ids, require_names
from graphret.stores.cutting import delete_edges, identity
from graphret.stores.memory import MemoryStore
from graphret.types import Edge, Node
from llama_index_graphret.filters import to_where
from llama_index_graphret.labelled import MENTIONS, from_labelled, from_relation, to_labelled, to_relation
from llama_index_graphret.node_vectors import NodeVectors
from llama_index_graphret.nodes import to_llama_node
from llama_index_graphret.property_graph_awaited import ThreadedPropertyGraphStore
from llama_index_graphret.property_graph_values import around, having, plain, require_local, shown

_log = logging.getLogger(__name__)


class GraphretPropertyGraphStore(ThreadedPropertyGraphStore):
    """A graphret store where LlamaIndex wants a `PropertyGraphStore`: under a `PropertyGraphIndex` and its retrievers.

    Nodes come out as `EntityNode` and `ChunkNode` where these lose nothing, and as `GraphNode`, an entity with an id of
    its own, where they would. An `EntityNode` goes in under the property ``id`` where it has one, and under its name
    otherwise; a relation's end that is no id may be a name that one node alone bears. ``upsert_nodes`` replaces nodes
    whole. Conditions are joined by *and*; an empty list of ids finds nothing, where LlamaIndex's own store in memory
    would return everything.

    Parameters
    ----------
    store
        Any graphret `GraphStore`. On a view everything but writing works as far as the view shows.
    index
        Answers ``vector_query`` in place of the nodes' own embeddings, over the same nodes; it is kept in step with
        what is written here.
    embedding
        The property in which a node's embedding is kept; without one embeddings are dropped.
    mentions
        Whether a chunk is joined by ``MENTIONS`` to what was extracted from it, as ``Neo4jPropertyGraphStore`` does;
        LlamaIndex's retrievers do not see these edges, graphret's walk them.
    checked
        Whether the guard (`graphret.cypher.run_checked`) must find nothing wrong with a structured query; either way it
        runs in a read transaction. Without it never let a model write Cypher.
    timeout, max_rows
        Of a structured query: seconds, and how many rows are read.

    Raises
    ------
    InvalidInput
        When `store` is no graphret store.
    """

    def __init__(
        self,
        store: GraphStore,
        *,
        index: DenseIndex | None = None,
        embedding: str = "embedding",
        mentions: bool = True,
        checked: bool = True,
        timeout: float = 30.0,
        max_rows: int = 1000,
    ) -> None:
        if not fulfils(store, GraphStore):
            raise InvalidInput(f"store: a graphret GraphStore is expected, not {type(store).__name__}")
        require_direct(store)
        self.store = store
        self.index = index
        self.embedding = embedding
        self.mentions = mentions
        self.checked = checked
        self.timeout = timeout
        self.max_rows = max_rows
        self.supports_structured_queries = isinstance(store, CypherStore)
        self.supports_vector_queries = index is not None or bool(embedding)
        self._vectors = NodeVectors(store, embedding) if embedding else None
        self._schema: GraphSchema | None = None

    @property
    def client(self) -> GraphStore:
        """The graphret store."""
        return self.store

    # -- reading

    def get(self, properties: dict[str, Any] | None = None, ids: list[str] | None = None) -> list[LabelledNode]:
        """Return the nodes that have all of `properties` and one of `ids`; all nodes where neither is given."""
        return [self._labelled(node) for node in self._nodes(properties, ids)]

    def get_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """Return the triplets that satisfy everything given, none where nothing is.

        Parameters
        ----------
        entity_names, ids
            One of the ends has one of these names or ids.
        relation_names
            The relation is one of these.
        properties
            One of the ends, or the relation, has all of these; where only these are given, every edge is read.
        """
        if entity_names is None and ids is None and not properties and relation_names is None:
            return []
        named = None if entity_names is None else {node.id for node in self._named(entity_names)}
        given = None if ids is None else set(require_ids(ids))
        anchors = next((found for found in (given, named) if found is not None), None)
        if anchors is not None:
            edges = self.store.neighbors(sorted(anchors), relations=relation_names)
        else:
            edges = [edge for block in self.store.edges(relations=relation_names) for edge in block]
        for wanted in (named, given):
            if wanted is not None:
                edges = [edge for edge in edges if edge.source in wanted or edge.target in wanted]
        ends = self._ends(edges)
        if properties:
            condition = having(properties)
            edges = [
                edge
                for edge in edges
                if all(edge.properties.get(key) == value for key, value in properties.items())
                or any(end in ends and condition.matches(ends[end]) for end in (edge.source, edge.target))
            ]
        return self._triplets(edges, ends)

    def get_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """Return the triplets within `depth` steps of nodes, in either direction.

        The nearest come first, and then those of the nodes that come first; those of one node by falling weight.

        Parameters
        ----------
        limit
            At most this many; ``ignore_rels`` do not count, nor does ``MENTIONS`` if the store makes these edges.
        """
        ignored = set(ignore_rels or ()) | ({MENTIONS} if self.mentions else set())
        frontier = list(dict.fromkeys(from_labelled(node).id for node in graph_nodes))
        seen, found = set(frontier), dict[tuple[Any, ...], Edge]()
        for _ in range(depth):
            missing = limit - len(found)
            if missing <= 0 or not frontier:
                break
            for edge in around(self.store, frontier, ignored, missing + len(found)):
                found.setdefault(identity(edge), edge)
            ends = dict.fromkeys(end for edge in found.values() for end in (edge.source, edge.target))
            frontier = [end for end in ends if end not in seen]
            seen.update(frontier)
        edges = list(found.values())[: max(limit, 0)]
        return self._triplets(edges, self._ends(edges))

    def get_llama_nodes(self, node_ids: list[str]) -> list[BaseNode]:
        """Return the nodes that say something as LlamaIndex's text nodes."""
        return [to_llama_node(self._bare(node)) for node in self._nodes(None, node_ids) if node.text]

    # -- writing

    def upsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Add nodes, or replace those of the same id; of several with one id in `nodes` the last counts."""
        fresh: dict[str, Node] = {}
        for one in nodes:
            node = from_labelled(one, embedding=self.embedding)
            properties = checked_metadata(node.properties, f"node {node.id!r}", "properties", reserved=False)
            fresh[node.id] = replace(node, properties=properties)
        said = [(node.properties.get(TRIPLET_SOURCE_KEY), node_id) for node_id, node in fresh.items()]
        self.store.upsert(fresh.values(), self._mentions(said, fresh))
        if self.index is not None and fresh:
            self.index.upsert(map(self._bare, fresh.values()))
        self._changed()

    def upsert_relations(self, relations: list[Relation]) -> None:
        """Add relations, or replace those between the same nodes; an end that is not there becomes an entity.

        Raises
        ------
        InvalidInput
            When an end is not an id, and several nodes bear it as their name.
        """
        ends, fresh = self._resolved({end for r in relations for end in (r.source_id, r.target_id)})
        edges = []
        for relation in relations:
            edge = from_relation(relation, ends[relation.source_id], ends[relation.target_id])
            what = f"relation {edge.relation!r} of {edge.source!r} to {edge.target!r}"
            edges.append(
                replace(edge, properties=checked_metadata(edge.properties, what, "properties", reserved=False))
            )
        said = []
        for edge in edges:
            chunk = edge.properties.get(TRIPLET_SOURCE_KEY)
            said += [(chunk, end) for end in (edge.source, edge.target) if chunk not in (edge.source, edge.target)]
        self.store.upsert(fresh, [*self._mentions(said), *edges])
        self._changed()

    def delete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        """Take away nodes by name, by id and by properties, and relations by name; unknown ones are ignored."""
        gone = {node.id for node in self._named(entity_names)} if entity_names else set()
        gone.update(require_ids(ids or ()))
        if properties:
            gone.update(node.id for node in self._nodes(properties, None))
        if relation_names:
            edges = (edge for block in self.store.edges(relations=relation_names) for edge in block)
            delete_edges(self.store, edges)
        if gone:
            self.store.delete(sorted(gone))
            if self.index is not None:
                self.index.delete(gone)
        self._changed()

    # -- queries

    def structured_query(self, query: str, param_map: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Run Cypher that only reads, and return its rows; a node is the mapping of its fields and properties.

        LlamaIndex does not say whether a person or a model wrote a query, so that every query passes the guard unless
        the store was told otherwise.

        Raises
        ------
        QueryRefused
            When the store answers no Cypher, or the guard or the database refuses this query.
        QueryTimeout
            When it took longer than `timeout`.
        """
        if not isinstance(self.store, CypherStore):
            raise QueryRefused(f"{type(self.store).__name__} answers no Cypher")
        rows = self._run(query, param_map or {})
        if rows.truncated:
            _log.warning("structured_query: only the first %s rows were read", self.max_rows)
        return [{name: plain(value, self.embedding) for name, value in row.items()} for row in rows.to_dicts()]

    def vector_query(self, query: VectorStoreQuery, **kwargs: Any) -> tuple[list[LabelledNode], list[float]]:
        """Return the nodes nearest to an embedding, and their cosines; filters are obeyed before nodes are counted.

        Raises
        ------
        InvalidInput
            When the store keeps no embeddings, or the query brings none.
        """
        k, where = query.similarity_top_k, to_where(query.filters)
        if query.query_embedding is None:
            if self.index is None or query.query_str is None:
                raise InvalidInput("query: vector_query needs the question's embedding")
            found = self.index.search(query.query_str, k, where=where)
        elif self.index is not None:
            asked = query.query_str or ""
            found = self.index.with_query(asked, query.query_embedding).search(asked, k, where=where)
        elif self._vectors is not None:
            found = self._vectors.search(query.query_embedding, k, where)
        else:
            raise InvalidInput("embedding: the store keeps none")
        scores = dict(zip(found.ids, found.scores.tolist(), strict=True))
        nodes = [node for node in self.store.get(found.ids) if node is not None]
        return [self._labelled(node) for node in nodes], [scores[node.id] for node in nodes]

    def get_schema(self, refresh: bool = False) -> GraphSchema:
        """Return the schema as graphret has it, read again when `refresh` is set or something was written here."""
        if refresh or self._schema is None:
            self._schema = self.store.schema()
        return self._schema

    def get_schema_str(self, refresh: bool = False) -> str:
        """Return the schema for a prompt, without the properties that LlamaIndex keeps of chunks and embeddings."""
        return shown(self.get_schema(refresh=refresh), self.embedding).text()

    # -- on disk

    def persist(self, persist_path: str, fs: Any = None) -> None:
        """Write a `MemoryStore` to the folder `persist_path`; any other store keeps its graph itself.

        Raises
        ------
        InvalidInput
            When `fs` is not this machine's.
        """
        require_local(fs)
        if isinstance(self.store, MemoryStore):
            self.store.save(persist_path)

    @classmethod
    def from_persist_path(cls, persist_path: str, fs: Any = None, **options: Any) -> GraphretPropertyGraphStore:
        """Open what `persist` wrote; `options` are those of the class."""
        require_local(fs)
        return cls(MemoryStore.load(persist_path), **options)

    # -- inside

    def _run(self, query: str, parameters: Mapping[str, Any]) -> Rows:
        assert isinstance(self.store, CypherStore)
        if not self.checked:
            return self.store.query(query, parameters, timeout=self.timeout, max_rows=self.max_rows)
        from graphret.cypher import run_checked

        return run_checked(self.store, query, parameters, timeout=self.timeout, max_rows=self.max_rows)

    def _changed(self) -> None:
        self._schema = None
        if self._vectors is not None:
            self._vectors.forget()

    def _labelled(self, node: Node) -> LabelledNode:
        return to_labelled(node, embedding=self.embedding)

    def _bare(self, node: Node) -> Node:
        properties = {key: value for key, value in node.properties.items() if key != self.embedding}
        return node if len(properties) == len(node.properties) else replace(node, properties=properties)

    def _nodes(self, properties: Mapping[str, Any] | None, ids: Iterable[str] | None) -> list[Node]:
        condition = having(properties) if properties else None
        if ids is None:
            return [node for block in self.store.nodes(where=condition) for node in block]
        found = self.store.get(list(dict.fromkeys(require_ids(ids))))
        return [node for node in found if node is not None and (condition is None or condition.matches(node))]

    def _named(self, names: Collection[str]) -> list[Node]:
        """Return the nodes of names; one that has none goes by its id."""
        require_names("entity_names", names)
        wanted = list(dict.fromkeys(names))
        by_id = [node for node in self.store.get(wanted) if node is not None and not node.name]
        by_name = [node for block in self.store.nodes(where={"name": {"$in": wanted}}) for node in block if node.name]
        return [*by_name, *by_id]

    def _resolved(self, ends: Collection[str]) -> tuple[dict[str, str], list[Node]]:
        """Return for the ends of relations the ids of nodes, and the nodes that are to be made for those not there."""
        wanted = sorted(ends)
        known = {end: end for end, node in zip(wanted, self.store.get(wanted), strict=True) if node is not None}
        absent = [end for end in wanted if end not in known]
        named: dict[str, list[str]] = {}
        for node in self._named(absent) if absent else ():
            named.setdefault(EntityNode(name=node.name).id, []).append(node.id)
            if node.name != EntityNode(name=node.name).id:
                named.setdefault(node.name, []).append(node.id)
        fresh = []
        for end in absent:
            bearers = named.get(end, [])
            if len(bearers) > 1:
                raise InvalidInput(f"relation end {end!r}: the name of {len(bearers)} nodes, give the id of one")
            if not bearers:
                fresh.append(from_labelled(EntityNode(name=end)))
            known[end] = bearers[0] if bearers else end
        return known, fresh

    def _mentions(self, said: Iterable[tuple[Any, str]], fresh: Collection[str] = ()) -> list[Edge]:
        """Return the edges from chunks that are there to what they say."""
        pairs = {(chunk, end) for chunk, end in said if self.mentions and isinstance(chunk, str) and chunk != end}
        absent = sorted({chunk for chunk, _ in pairs} - set(fresh))
        there = {node.id for node in self.store.get(absent) if node is not None} if absent else set()
        return [Edge(chunk, MENTIONS, end) for chunk, end in sorted(pairs) if chunk in there or chunk in fresh]

    def _ends(self, edges: Iterable[Edge]) -> dict[str, Node]:
        ids = list(dict.fromkeys(end for edge in edges for end in (edge.source, edge.target)))
        return {node.id: node for node in self.store.get(ids) if node is not None} if ids else {}

    def _triplets(self, edges: Iterable[Edge], ends: Mapping[str, Node]) -> list[Triplet]:
        made = {node_id: self._labelled(node) for node_id, node in ends.items()}
        return [
            (made[edge.source], to_relation(edge), made[edge.target])
            for edge in edges
            if edge.source in made and edge.target in made
        ]

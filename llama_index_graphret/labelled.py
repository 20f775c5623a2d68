"""The nodes and relations of LlamaIndex's property graphs as graphret's, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, LabelledNode, Relation

from graphret.types import Edge, Node, require_id
from llama_index_graphret.nodes import KEPT

#: The relation from a chunk to what was extracted from it, as LlamaIndex's stores over databases name it.
MENTIONS = "MENTIONS"


class GraphNode(EntityNode):
    """An entity with an id of its own, all its labels and its text, which `EntityNode` has no place for.

    Two films that are both called “King Kong” stay two: ``GraphNode(id_="m1", name="King Kong", label="Film")``.
    """

    id_: str = Field(description="The id of the node.")
    text: str = Field(default="", description="What the node says.")
    labels: tuple[str, ...] = Field(default=(), description="All labels, the primary one first; `label` alone if none.")

    @property
    def id(self) -> str:
        """The id of the node."""
        return self.id_


class GraphRelation(Relation):
    """A relation with the weight that graphret ranks by."""

    weight: float = Field(default=1.0, description="The weight of the edge.")


def to_labelled(node: Node, *, embedding: str = "") -> LabelledNode:
    """Return a graphret node as LlamaIndex has it: an entity, a chunk, or a `GraphNode` where these lose something.

    Parameters
    ----------
    embedding
        The property that holds the embedding; empty where none does.
    """
    properties = dict(node.properties)
    vector = properties.pop(embedding, None) if embedding else None
    own: dict[str, Any] = {"label": node.label, "properties": properties, "embedding": vector}
    if len(node.labels) <= 1:
        if not node.name and node.text:
            return ChunkNode(id_=node.id, text=node.text, **own)
        if not node.text and node.id == EntityNode(name=node.name).id and not _names_itself(properties):
            return EntityNode(name=node.name, **own)
    return GraphNode(id_=node.id, name=node.name, text=node.text, labels=node.labels, **own)


def from_labelled(node: LabelledNode, *, embedding: str = "") -> Node:
    """Return a node of a property graph as graphret's.

    The id of an `EntityNode` is the property ``id`` where it has one, and its name otherwise, as in LlamaIndex.

    Raises
    ------
    InvalidInput
        When the id is empty.
    """
    properties = dict(node.properties)
    node_id = node.id
    if isinstance(node, EntityNode) and node_id == EntityNode(name=node.name).id and not isinstance(node, GraphNode):
        given = properties.get("id")
        if isinstance(given, str) and given:
            node_id = given
            del properties["id"]
    if embedding and node.embedding is not None:
        properties[embedding] = [float(x) for x in node.embedding]
    labels = node.labels if isinstance(node, GraphNode) and node.labels else (node.label,) if node.label else ()
    name, text = getattr(node, "name", ""), getattr(node, "text", "")
    return Node(
        require_id(node_id, f"{type(node).__name__} {str(name or text)[:40]!r}"), labels, name, text, properties
    )


def to_relation(edge: Edge) -> Relation:
    """Return an edge as LlamaIndex has it, with its weight."""
    return GraphRelation(
        label=edge.relation,
        source_id=edge.source,
        target_id=edge.target,
        properties=dict(edge.properties),
        weight=edge.weight,
    )


def from_relation(relation: Relation, source: str | None = None, target: str | None = None) -> Edge:
    """Return a relation as an edge, between other nodes than it names where these are given."""
    weight = relation.weight if isinstance(relation, GraphRelation) else 1.0
    return Edge(
        source or relation.source_id, relation.label, target or relation.target_id, weight, dict(relation.properties)
    )


# In a store that someone else wrote: LlamaIndex's classes alone, the rest as one JSON property.


def encoded(node: Node) -> LabelledNode:
    """Return a node so that any `PropertyGraphStore` keeps it whole; `decoded` gives it back."""
    made = to_labelled(node)
    if isinstance(made, GraphNode) or KEPT in made.properties:
        kept: dict[str, Any] = {"id": node.id, "labels": list(node.labels), "name": node.name, "text": node.text}
        if KEPT in made.properties:
            kept["property"] = made.properties[KEPT]
        made.properties[KEPT] = _json(kept)
    return made


def decoded(
    node: LabelledNode, node_id: str | None = None, *, name: str | None = None, text: str | None = None
) -> Node:
    """Return what `encoded` was given, and any other node as it stands.

    Parameters
    ----------
    node_id
        What its store calls it, where that may differ from ``node.id``.
    name, text
        The properties that are the name and the text of nodes which have none themselves.
    """
    properties = dict(node.properties)
    kept = _kept(properties.get(KEPT))
    if kept is not None:
        del properties[KEPT]
        if "property" in kept:
            properties[KEPT] = kept["property"]
        return Node(kept["id"], tuple(kept["labels"]), kept["name"], kept["text"], properties)
    own_name, own_text = getattr(node, "name", ""), getattr(node, "text", "")
    return Node(
        node_id or node.id,
        (node.label,) if node.label else (),
        own_name or _said(properties, name),
        own_text or _said(properties, text),
        properties,
    )


def encoded_edges(edges: Sequence[Edge]) -> Relation:
    """Return edges that differ in their rows alone as one relation, since LlamaIndex's stores hold one."""
    first, *more = edges
    properties = dict(first.properties)
    if more or first.weight != 1.0 or KEPT in properties:
        kept: dict[str, Any] = {"weight": first.weight}
        if more:
            kept["more"] = [[edge.weight, dict(edge.properties)] for edge in more]
        if KEPT in properties:
            kept["property"] = properties[KEPT]
        properties[KEPT] = _json(kept)
    return Relation(label=first.relation, source_id=first.source, target_id=first.target, properties=properties)


def decoded_edges(relation: Relation, source: str, target: str) -> list[Edge]:
    """Return what `encoded_edges` was given, and any other relation as one edge."""
    properties = dict(relation.properties)
    kept = _kept(properties.get(KEPT), "weight")
    if kept is None:
        return [from_relation(relation, source, target)]
    del properties[KEPT]
    if "property" in kept:
        properties[KEPT] = kept["property"]
    more = [(kept["weight"], properties), *kept.get("more", ())]
    return [Edge(source, relation.label, target, weight, own) for weight, own in more]


def _names_itself(properties: Mapping[str, Any]) -> bool:
    given = properties.get("id")
    return isinstance(given, str) and bool(given)


def _said(properties: Mapping[str, Any], key: str | None) -> str:
    value = properties.get(key) if key else None
    return value if isinstance(value, str) else ""


def _kept(value: Any, needs: str = "id") -> dict[str, Any] | None:
    try:
        kept = json.loads(value)
    except (TypeError, ValueError):
        return None
    return kept if isinstance(kept, dict) and needs in kept else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

"""What LlamaIndex asks of a property graph and is answered, in graphret's terms."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphret.errors import InvalidInput
from graphret.schema import GraphSchema
from graphret.stores.base import GraphStore
from graphret.types import Edge, Node
from graphret.where import Where

_KEPT = ("_node_content", "_node_type", "doc_id", "document_id", "ref_doc_id")
_OWN = ("id", "name", "text", "label")  # fields of a node, which may be properties too


def having(properties: Mapping[str, Any]) -> Where:
    """Return the condition that a node has all of the properties; its own fields count as such."""
    parts: list[Mapping[str, Any]] = [
        {"$or": [{key: value}, {f"properties.{key}": value}]} if key in _OWN else {key: value}
        for key, value in properties.items()
    ]
    condition = Where.parse({"$and": parts})
    assert condition is not None
    return condition


def around(store: GraphStore, frontier: Sequence[str], ignored: Collection[str], limit: int) -> list[Edge]:
    """Return at least `limit` edges of nodes, or all there are: by the order of the nodes, then by falling weight."""
    rank = {node_id: place for place, node_id in enumerate(frontier)}
    per_node = limit
    while True:
        edges = store.neighbors(frontier, limit=per_node)
        kept = [edge for edge in edges if edge.relation not in ignored]
        if len(kept) >= limit or len(kept) == len(edges) or per_node > len(edges):
            break
        per_node *= 8
    last = len(rank)
    order = (min(rank.get(edge.source, last), rank.get(edge.target, last)) for edge in kept)
    return [edge for _, edge in sorted(zip(order, kept, strict=True), key=lambda one: (one[0], -one[1].weight))]


def plain(value: Any, hidden: str = "") -> Any:
    """Return a value of a Cypher query as JSON values, without the property `hidden` of nodes."""
    if isinstance(value, Node):
        own = {"id": value.id, "labels": list(value.labels), "name": value.name, "text": value.text}
        shown = {key: item for key, item in value.properties.items() if key != hidden}
        return {**shown, **{key: item for key, item in own.items() if item}}
    if isinstance(value, Edge):
        return value.to_dict()
    if isinstance(value, (list, tuple)):
        return [plain(item, hidden) for item in value]
    return value


def shown(schema: GraphSchema, embedding: str) -> GraphSchema:
    """Return a schema without what LlamaIndex keeps for itself."""
    hidden = {*_KEPT, embedding}
    properties = {
        label: {name: known for name, known in of_label.items() if name not in hidden}
        for label, of_label in schema.properties.items()
    }
    return replace(schema, properties=properties)


def require_local(fs: Any) -> None:
    """Refuse a file system of LlamaIndex that is not this machine's."""
    if fs is not None and "file" not in (fs.protocol if isinstance(fs.protocol, (list, tuple)) else (fs.protocol,)):
        raise InvalidInput(f"fs: graphret writes to this machine's folders, not through {type(fs).__name__}")

"""What LlamaIndex asks of a property graph and is answered, in graphret's terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphret.errors import InvalidInput
from graphret.types import Edge, Node
from graphret.where import Where

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


def require_local(fs: Any) -> None:
    """Refuse a file system of LlamaIndex that is not this machine's."""
    if fs is not None and "file" not in (fs.protocol if isinstance(fs.protocol, (list, tuple)) else (fs.protocol,)):
        raise InvalidInput(f"fs: graphret writes to this machine's folders, not through {type(fs).__name__}")

"""JSON schemas as language models like them: short, and strict where that is possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

_BY_NAME = ("properties", "$defs")
_IN_ORDER = ("anyOf", "oneOf", "allOf", "prefixItems")


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `schema` without the titles and defaults that generators add and models need not read."""
    return _rewritten(schema, lambda node: {k: v for k, v in node.items() if k not in ("title", "default")})


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return `schema` in the form that endpoints enforce to the letter, or `None` where it has none.

    Strict mode (OpenAI, "Structured outputs") takes an object at the root, and in every object a fixed set of
    properties, all of them required. A value that is valid against the result is valid against `schema`.
    """
    if schema.get("type") != "object" or not _closable(schema):
        return None

    def close(node: dict[str, Any]) -> dict[str, Any]:
        node.pop("default", None)
        if node.get("type") == "object":
            node |= {"additionalProperties": False, "required": list(node["properties"])}
        return node

    return _rewritten(schema, close)


def _rewritten(schema: Mapping[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    node = change(dict(schema))
    for key, value in node.items():
        if key in _BY_NAME:
            node[key] = {name: _rewritten(child, change) for name, child in value.items()}
        elif key in _IN_ORDER:
            node[key] = [_rewritten(child, change) for child in value]
        elif key in ("items", "additionalProperties") and isinstance(value, Mapping):
            node[key] = _rewritten(value, change)
    return node


def _closable(schema: Mapping[str, Any]) -> bool:
    """Whether every object in `schema` lists its properties, and nothing is left to any value at all."""
    if not schema or schema.keys() & {"oneOf", "allOf", "prefixItems"}:
        return False
    if schema.get("type") == "object" and (not schema.get("properties") or schema.get("additionalProperties")):
        return False
    if schema.get("type") == "array" and not schema.get("items"):
        return False
    return all(map(_closable, _parts(schema)))


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in _BY_NAME:
        yield from schema.get(key, {}).values()
    yield from schema.get("anyOf", ())
    if "items" in schema:
        yield schema["items"]

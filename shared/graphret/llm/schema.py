"""JSON schemas as language models like them: short, and strict where that is possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_MAPS = ("properties", "$defs")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties")


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `schema` without the titles and defaults that generators add and models need not read."""
    return _rewrite(schema, lambda node: {k: v for k, v in node.items() if k not in ("title", "default")})


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
            node = {**node, "additionalProperties": False, "required": list(node["properties"])}
        return node

    return _rewrite(schema, close)


def _rewrite(schema: Mapping[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    node = change(dict(schema))
    for key in _MAPS:
        if isinstance(node.get(key), Mapping):
            node[key] = {name: _rewrite(child, change) for name, child in node[key].items()}
    for key in _LISTS:
        if isinstance(node.get(key), list):
            node[key] = [_rewrite(child, change) for child in node[key]]
    for key in _SINGLE:
        if isinstance(node.get(key), Mapping):
            node[key] = _rewrite(node[key], change)
    return node


def _closable(schema: Mapping[str, Any]) -> bool:
    """Whether every object in `schema` lists its properties, and nothing is left to any value at all."""
    if not schema or "oneOf" in schema or "allOf" in schema or "prefixItems" in schema:
        return False
    if schema.get("type") == "object" and (not schema.get("properties") or schema.get("additionalProperties")):
        return False
    if schema.get("type") == "array" and not isinstance(schema.get("items"), Mapping):
        return False
    children = [child for key in _MAPS for child in (schema.get(key) or {}).values()]
    children += [*schema.get("anyOf", ())] + ([schema["items"]] if "items" in schema else [])
    return all(isinstance(child, Mapping) and _closable(child) for child in children)

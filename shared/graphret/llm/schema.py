"""JSON schemas for language models: short, and strict where possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without the titles and defaults that generators add."""
    return _rewritten(
        schema,
        lambda node: {k: v for k, v in node.items() if k not in ("title", "default")},
    )


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema in the form that endpoints enforce; `None` without one.

    Strict mode (OpenAI, "Structured outputs") takes an object at the root, and in every
    object a fixed set of properties, all of them required. A value that is valid
    against the result is valid against `schema`.
    """
    closed = schema.get("type") == "object"

    def close(node: dict[str, Any]) -> dict[str, Any]:
        nonlocal closed
        closed &= bool(node) and not node.keys() & {"oneOf", "allOf", "prefixItems"}
        node.pop("default", None)
        if node.get("type") == "object":
            closed &= bool(node.get("properties")) and not node.get(
                "additionalProperties"
            )
            node |= {
                "additionalProperties": False,
                "required": list(node.get("properties", ())),
            }
        return node

    strict = _rewritten(schema, close)
    return strict if closed else None


def _rewritten(
    schema: Mapping[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    node = change(dict(schema))
    for key, value in node.items():
        if key in ("properties", "$defs"):
            node[key] = {
                name: _rewritten(child, change) for name, child in value.items()
            }
        elif key in ("anyOf", "oneOf", "allOf"):
            node[key] = [_rewritten(child, change) for child in value]
        elif key in ("items", "additionalProperties") and isinstance(value, Mapping):
            node[key] = _rewritten(value, change)
    return node

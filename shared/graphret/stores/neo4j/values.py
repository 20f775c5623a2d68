"""Nodes and edges on their way to Neo4j and back: JSON values in, JSON values out."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from graphret.stores.database import EdgeKey
from graphret.stores.neo4j.layout import ADDED_EDGE, JSON, LABELS, Layout, escaped, quote, unescaped
from graphret.types import Edge, Node
from graphret.validation import edge_words, json_value

_EDGE_FIELDS = ("weight",)


def node_rows(layout: Layout, nodes: Mapping[str, Node]) -> dict[tuple[str, ...], list[list[Any]]]:
    """Lay nodes out as rows of id and properties, by labels; an `InvalidInput` says what Neo4j does not hold."""
    rows: dict[tuple[str, ...], list[list[Any]]] = defaultdict(list)
    for node in nodes.values():
        what = f"node {node.id!r}"
        values = _stored(node.properties, layout.taken(written=True), what)
        for candidates, value in ((layout.name, node.name), (layout.text, node.text)):
            if value or len(candidates) > 1:  # an empty one keeps the next candidate from being read in its place
                values[candidates[0]] = value
        values[layout.id or ""] = node.id
        labels = tuple(dict.fromkeys(node.labels))
        for label in labels:
            quote(label, f"{what}: a label")
        if labels != layout.labels(labels):
            values[LABELS] = list(labels)
        rows[tuple(sorted(labels))].append([node.id, values])
    return rows


def edge_rows(layout: Layout, edges: Mapping[EdgeKey, Edge]) -> dict[str, list[list[Any]]]:
    """Lay edges out as rows of source, target, two rows of tables and properties, by relation."""
    rows: dict[str, list[list[Any]]] = defaultdict(list)
    for (source, target, relation, *parts), edge in edges.items():
        what = f"{edge_words(edge)} ({relation})"
        quote(relation, f"{what}: the relation")
        values = _stored(edge.properties, _EDGE_FIELDS, what)
        if edge.weight != 1.0:
            values["weight"] = float(edge.weight)
        if not layout.own:
            values[ADDED_EDGE] = True
        rows[relation].append([source, target, *parts, values])
    return rows


def _stored(properties: Mapping[str, Any], taken: Sequence[str], what: str) -> dict[str, Any]:
    """Return properties as Neo4j holds them, which has no null, no map and no mixed list."""
    kept: dict[str, Any] = {}
    texts: list[str] = []
    for name, value in properties.items():
        if value is None:
            continue
        key = escaped(name, taken)
        quote(key, f"{what}: the name of a property")
        if _is_held(value):
            kept[key] = value
        else:
            kept[key] = json.dumps(value, ensure_ascii=False)
            texts.append(name)
    return {**kept, JSON: texts} if texts else kept


def _is_held(value: Any) -> bool:
    """Whether Neo4j holds a JSON value: a scalar, or a list of scalars of one kind."""
    if isinstance(value, list | tuple):
        kinds = {float if type(item) is int else type(item) for item in value}
        return len(kinds) <= 1 and not kinds & {list, tuple} and all(map(_is_held, value))
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, str | float)


# -- and back


def node_from(layout: Layout, node_id: str, labels: list[str], values: Mapping[str, Any]) -> Node:
    """Make a node of what a query returned of it."""
    return Node(
        node_id,
        layout.labels(labels, values.get(LABELS)),
        _text_in(values, layout.name),
        _text_in(values, layout.text),
        _loaded(values, layout.taken(written=layout.marker in labels)),
    )


def edge_from(source: str, relation: str, target: str, values: Mapping[str, Any]) -> Edge:
    """Make an edge of what a query returned of it; one without a number as its weight has weight 1."""
    weight = values.get("weight", 1.0)
    weighed = isinstance(weight, int | float) and not isinstance(weight, bool) and math.isfinite(weight)
    properties = _loaded(values, _EDGE_FIELDS if weighed else ())
    return Edge(source, relation, target, float(weight) if weighed else 1.0, properties)


def _text_in(values: Mapping[str, Any], candidates: tuple[str, ...]) -> str:
    """Return the first of the properties that is there as a text, or can be shown as one."""
    for name in candidates:
        value = json_value(values.get(name))
        if isinstance(value, str | int | float):
            return str(value)
    return ""


def _loaded(values: Mapping[str, Any], taken: Sequence[str]) -> dict[str, Any]:
    """Return properties as they were before `_stored`, and what something else stored as JSON values."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if (name := unescaped(key, taken)) is not None and (read := json_value(value)) is not None:
            found[name] = read
    for name in values.get(JSON) or ():
        found[name] = json.loads(found[name])
    return found

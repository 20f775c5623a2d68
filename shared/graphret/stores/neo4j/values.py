"""Nodes and edges on their way to Neo4j and back: JSON values in, JSON values out."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.neo4j.layout import ADDED_EDGE, JSON, LABELS, ROWS, Layout, escaped, quote, unescaped
from graphret.types import Edge, Node
from graphret.validation import checked_nodes, require_edge, require_properties

NESTED = ("refuse", "json")
_EDGE_FIELDS = ("weight",)
_FRACTION = re.compile(r"\.\d+")


#: What is written, grouped by what a query has to name: rows of id and properties by labels, and by relation rows of
#: source, target, two rows of tables and properties.
NodeRows = dict[tuple[str, ...], list[list[Any]]]
EdgeRows = dict[str, list[list[Any]]]


def prepared(layout: Layout, nodes: Iterable[Node], edges: Iterable[Edge], nested: str) -> tuple[NodeRows, EdgeRows]:
    """Check nodes and edges, and lay them out; of edges with the same ends, relation and rows the last one stays.

    Parameters
    ----------
    nested
        ``refuse`` or ``json``: what to do with what Neo4j cannot hold.

    Raises
    ------
    InvalidInput
        When one is malformed, Neo4j cannot hold it, or an id comes twice.
    """
    node_rows: NodeRows = defaultdict(list)
    edge_rows: EdgeRows = defaultdict(list)
    seen = set()
    for node in checked_nodes(nodes):
        if node.id in seen:
            raise InvalidInput(f"node {node.id!r}: the id comes twice")
        seen.add(node.id)
        labels = tuple(sorted(set(node.labels)))
        node_rows[labels].append([node.id, _node_values(layout, node, nested)])
    distinct = {(edge.relation, *(row := _edge_row(layout, edge, nested))[:4]): row for edge in edges}
    for (relation, *_), row in distinct.items():
        edge_rows[relation].append(row)
    return node_rows, edge_rows


def _node_values(layout: Layout, node: Node, nested: str) -> dict[str, Any]:
    what = f"node {node.id!r}"
    require_properties(node.properties, what)
    values = _stored(node.properties, layout.taken(written=True), nested, what)
    for candidates, value in ((layout.name, node.name), (layout.text, node.text)):
        if value or len(candidates) > 1:  # an empty one keeps the next candidate from being read in its place
            values[candidates[0]] = value
    values[layout.id or ""] = node.id
    labels = tuple(dict.fromkeys(node.labels))
    for label in labels:
        quote(label, f"{what}: a label")
        if label in layout.unseen_labels:
            raise InvalidInput(f"{what}: the label {label!r} is for the store's own use")
    return values if labels == layout.labels(labels) else {**values, LABELS: list(labels)}


def _edge_row(layout: Layout, edge: Edge, nested: str) -> list[Any]:
    what = require_edge(edge)
    quote(edge.relation, f"{what}: the relation")
    values = _stored(edge.properties, _EDGE_FIELDS, nested, f"{what} ({edge.relation})")
    rows = [values.get(row, -1) for row in ROWS]
    if edge.weight != 1.0:
        values["weight"] = float(edge.weight)
    if not layout.own:
        values[ADDED_EDGE] = True
    return [edge.source, edge.target, *rows, values]


def _stored(properties: Mapping[str, Any], taken: Sequence[str], nested: str, what: str) -> dict[str, Any]:
    """Return properties as Neo4j holds them, which has no null."""
    kept: dict[str, Any] = {}
    texts: list[str] = []
    for name, value in properties.items():
        if value is None:
            continue
        key = escaped(name, taken)
        quote(key, f"{what}: the name of a property")
        kept[key] = _plain(value)
        if kept[key] is None:
            if nested == "refuse":
                raise InvalidInput(
                    f"{what}: property {name!r} is nested, of several types or beyond 64 bits, which Neo4j cannot "
                    "hold; nested='json' stores such values as JSON text"
                )
            texts.append(name)
            kept[key] = json.dumps(value, ensure_ascii=False)
    return {**kept, JSON: texts} if texts else kept


def _plain(value: Any) -> Any:
    """Return a value that Neo4j holds for this one, `None` where there is none."""
    if isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else None
    if not isinstance(value, list | tuple):
        return None
    kinds = {type(item) for item in value}
    if kinds == {int, float}:
        return [float(item) for item in value]
    items = [_plain(item) for item in value] if len(kinds) <= 1 and kinds <= {str, bool, int, float} else [None]
    return None if None in items else items


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
            return str(value).lower() if isinstance(value, bool) else str(value)
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


def json_value(value: Any) -> Any:
    """Return a value of the driver as a JSON value: what JSON has not as its text, NaN and infinity as null.

    A date or a time is as Cypher's ``toString`` writes it, without the name of its zone.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "iso_format"):  # a duration is a tuple too
        text = _FRACTION.sub(lambda digits: digits[0].rstrip("0").rstrip("."), value.iso_format())
        return text.replace("+00:00", "Z")
    if hasattr(value, "srid"):  # as is a point
        return str(value)
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    return bytes(value).hex() if isinstance(value, bytes | bytearray) else str(value)

"""Nodes and edges on their way to Neo4j and back: JSON values in, JSON values out."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.neo4j.layout import ADDED_EDGE, JSON, LABELS, NULLS, ROWS, Layout, escaped, quote, unescaped
from graphret.types import Edge, Node, require_id
from graphret.validation import require_edge, require_properties

#: Bytes of an id at most: an index of Neo4j holds strings of about 8,000.
LONGEST_ID = 4_000
NESTED = ("refuse", "json")
_EDGE_FIELDS = ("weight",)
_FRACTION, _OFFSET = re.compile(r"\.\d+"), re.compile(r"[+-]\d\d:\d\d$")


@dataclass(slots=True)
class Change:
    """Nodes and edges ready to be written, grouped by what a query has to name.

    `nodes` has rows of id and properties by labels, `edges` rows of source, target, two rows and properties by
    relation.
    """

    nodes: dict[tuple[str, ...], list[list[Any]]] = field(default_factory=lambda: defaultdict(list))
    edges: dict[str, list[list[Any]]] = field(default_factory=lambda: defaultdict(list))


def prepared(layout: Layout, nodes: Iterable[Node], edges: Iterable[Edge], nested: str) -> Change:
    """Check nodes and edges, and lay them out; of edges with the same ends, relation and rows the last one stays.

    Parameters
    ----------
    nested
        ``refuse`` or ``json``: what to do with a map, and with a list of lists, of maps or of several types.

    Raises
    ------
    InvalidInput
        When one is malformed, Neo4j cannot hold it, or an id comes twice.
    """
    change, seen = Change(), set()
    for node in nodes:
        labels, row = _node_row(layout, node, nested)
        if node.id in seen:
            raise InvalidInput(f"node {node.id!r}: the id comes twice")
        seen.add(node.id)
        change.nodes[labels].append(row)
    distinct = {(edge.relation, *(row := _edge_row(layout, edge, nested))[:4]): row for edge in edges}
    for (relation, *_), row in distinct.items():
        change.edges[relation].append(row)
    return change


def _node_row(layout: Layout, node: Node, nested: str) -> tuple[tuple[str, ...], list[Any]]:
    what = f"node {require_id(node.id, 'node')!r}"
    if len(node.id.encode("utf-8", "surrogatepass")) > LONGEST_ID:
        raise InvalidInput(f"node {node.id[:40]!r}…: the id is longer than {LONGEST_ID:,} bytes")
    for name, value in (("name", node.name), ("text", node.text)):
        if not isinstance(value, str):
            raise InvalidInput(f"{what}: the {name} must be a string, not {type(value).__name__}")
    if isinstance(node.labels, str) or not all(isinstance(label, str) for label in node.labels):
        raise InvalidInput(f"{what}: the labels must be a tuple of strings")
    require_properties(node.properties, what)
    values = _stored(node.properties, layout.place, nested, what)
    node_id, *places = layout.written_fields
    for place, candidates, value in zip(places, (layout.name, layout.text), (node.name, node.text), strict=True):
        if value or len(candidates) > 1:  # an empty one keeps the next candidate from being read in its place
            values[place] = value
    values[node_id] = node.id
    labels = tuple(dict.fromkeys(node.labels))
    for label in labels:
        quote(label, f"{what}: a label")
        if label in layout.unseen_labels:
            raise InvalidInput(f"{what}: the label {label!r} is for the store's own use")
    if labels != layout.labels(labels):
        values[LABELS] = list(labels)
    return tuple(sorted(labels)), [node.id, values]


def _edge_row(layout: Layout, edge: Edge, nested: str) -> list[Any]:
    what = require_edge(edge)
    quote(edge.relation, f"{what}: the relation")
    values = _stored(edge.properties, lambda name: escaped(name, _EDGE_FIELDS), nested, f"{what} ({edge.relation})")
    rows = [values.get(row, -1) for row in ROWS]
    if edge.weight != 1.0:
        values["weight"] = float(edge.weight)
    if not layout.own:
        values[ADDED_EDGE] = True
    return [edge.source, edge.target, *rows, values]


def _stored(properties: Mapping[str, Any], place: Callable[[str], str], nested: str, what: str) -> dict[str, Any]:
    """Return properties as Neo4j holds them."""
    kept: dict[str, Any] = {}
    nulls: list[str] = []
    texts: list[str] = []
    for name, value in properties.items():
        key = place(name)
        if len(key) > 1000 or not key.isidentifier():
            quote(key, f"{what}: the name of a property")
        if value is None:
            nulls.append(name)
        elif (plain := _plain(value, f"{what}: property {name!r}")) is not None:
            kept[key] = plain
        elif nested == "refuse":
            raise InvalidInput(
                f"{what}: property {name!r} is nested or of several types, which Neo4j cannot hold; "
                "nested='json' stores such values as JSON text"
            )
        else:
            texts.append(name)
            kept[key] = json.dumps(value, ensure_ascii=False)
    return kept | ({NULLS: nulls} if nulls else {}) | ({JSON: texts} if texts else {})


def _plain(value: Any, what: str) -> Any:
    """Return a value that Neo4j holds for this one, `None` where there is none."""
    if isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return value
        raise InvalidInput(f"{what}: {value} does not fit into 64 bits, which is what Neo4j holds")
    if not isinstance(value, list | tuple):
        return None
    kinds = {type(item) for item in value}
    if kinds == {int, float}:
        return [float(item) for item in value]
    return [_plain(item, what) for item in value] if len(kinds) <= 1 and kinds <= {str, bool, int, float} else None


# -- and back


def node_from(layout: Layout, node_id: str, labels: list[str], values: Mapping[str, Any]) -> Node:
    """Make a node of what a query returned of it."""
    written = layout.marker in labels
    properties = _loaded(values, lambda key: layout.property(key, written=written))
    for key in () if layout.own else layout.fields:  # a list is no name, and would be lost
        if isinstance(values.get(key), list):
            properties[key] = json_value(values[key])
    return Node(
        node_id,
        layout.labels(labels, values.get(LABELS)),
        _text_in(values, layout.name),
        _text_in(values, layout.text),
        properties,
    )


def edge_from(source: str, relation: str, target: str, values: Mapping[str, Any]) -> Edge:
    """Make an edge of what a query returned of it; one without a number as its weight has weight 1."""
    weight = values.get("weight", 1.0)
    weighed = isinstance(weight, int | float) and not isinstance(weight, bool) and math.isfinite(weight)
    properties = _loaded(values, lambda key: unescaped(key, _EDGE_FIELDS if weighed else ()))
    return Edge(source, relation, target, float(weight) if weighed else 1.0, properties)


def _text_in(values: Mapping[str, Any], candidates: tuple[str, ...]) -> str:
    """Return the first of the properties that is there as a text, or can be shown as one."""
    for name in candidates:
        value = json_value(values.get(name))
        if isinstance(value, str):
            return value
        if isinstance(value, int | float):
            return str(value).lower() if isinstance(value, bool) else str(value)
    return ""


def _loaded(values: Mapping[str, Any], name_of: Callable[[str], str | None]) -> dict[str, Any]:
    """Return properties as they were before `_stored`, and what something else stored as JSON values."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if value is not None and (name := name_of(key)) is not None and (read := json_value(value)) is not None:
            found[name] = read
    for name in values.get(JSON) or ():
        if isinstance(found.get(name), str):
            found[name] = json.loads(found[name])
    return found | {name: None for name in values.get(NULLS) or () if name not in found}


def json_value(value: Any) -> Any:
    """Return a value of the driver as a JSON value: what JSON has not as its text, NaN as null.

    A date, a time or a duration is the text that Cypher's ``toString`` makes of it.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if hasattr(value, "iso_format"):  # a duration is a tuple too
        return _temporal_text(value)
    if hasattr(value, "srid"):  # as is a point
        return str(value)
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    return bytes(value).hex() if isinstance(value, bytes | bytearray) else str(value)


def _temporal_text(value: Any) -> str:
    text = str(value.iso_format())
    if not hasattr(value, "hour"):
        return text
    text = _FRACTION.sub(lambda digits: digits[0].rstrip("0").rstrip("."), _OFFSET.sub("", text))
    if (away := value.utcoffset()) is None:
        return text
    minutes = round(away.total_seconds() / 60)  # the driver's text has others where they are below zero
    hours, rest = divmod(abs(minutes), 60)
    offset = f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}" if minutes else "Z"
    zone = getattr(value.tzinfo, "key", None) or getattr(value.tzinfo, "zone", None)
    return f"{text}{offset}" if zone in (None, "UTC") else f"{text}{offset}[{zone}]"

"""Checks of nodes and edges before they are written; `InvalidInput` names the field."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphret.columns import Records, to_json
from graphret.errors import InvalidInput
from graphret.types import ROW_KEYS, Edge, Node, require_id

_SURROGATE = re.compile("[\ud800-\udfff]")
_FRACTION = re.compile(r"\.\d+")


def edge_words(edge: Edge) -> str:
    """Return how messages refer to an edge."""
    return f"edge {edge.source!r} to {edge.target!r}"


def checked_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes, checked except for their properties.

    `property_column` and `require_properties` check those.
    """
    for node in nodes:
        what = f"node {require_id(node.id, 'node')!r}"
        for field in ("id", "name", "text"):
            value = getattr(node, field)
            if not isinstance(value, str) or (
                not value.isascii() and _SURROGATE.search(value)
            ):
                raise InvalidInput(
                    f"{what}: {field}: expected a string without lone surrogates, got"
                    f" {value!r}"
                )
        if isinstance(node.labels, str) or not all(
            isinstance(label, str) for label in node.labels
        ):
            raise InvalidInput(
                f"{what}: labels: expected a tuple of strings, got {node.labels!r}"
            )
        _require_mapping(node.properties, what)
        yield node


def checked_edges(edges: Iterable[Edge]) -> Iterator[Edge]:
    """Yield edges, checked except for properties other than rows."""
    for edge in edges:
        what, weight = edge_words(edge), edge.weight
        require_id(edge.source, what)
        require_id(edge.target, what)
        if not isinstance(edge.relation, str) or not edge.relation:
            raise InvalidInput(
                f"{what}: relation: expected a non-empty string, got {edge.relation!r}"
            )
        if (
            isinstance(weight, bool)
            or not isinstance(weight, int | float)
            or not math.isfinite(weight)
        ):
            raise InvalidInput(
                f"{what}: weight: expected a finite number, got {weight!r}"
            )
        _require_mapping(edge.properties, what)
        for key in ROW_KEYS:
            if key in edge.properties:
                require_row(edge.properties[key], f"{what}: {key}")
        yield edge


def _require_mapping(properties: object, what: str) -> None:
    if not isinstance(properties, Mapping):
        raise InvalidInput(
            f"{what}: properties: expected a mapping, got {type(properties).__name__}"
        )


def require_edge(edge: Edge) -> str:
    """Check all of an edge, and return how messages refer to it."""
    what = edge_words(next(checked_edges([edge])))
    require_properties(edge.properties, what)
    return what


def require_properties(properties: Mapping[str, Any], what: str) -> None:
    """Raise `InvalidInput` for a property that is not a JSON value."""
    for name, value in properties.items():
        if not isinstance(name, str):
            raise InvalidInput(
                f"{what}: property name: expected a string, got {name!r}"
            )
        try:
            to_json(value).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(
                f"{what}: property {name!r}: expected a JSON value: {error}"
            ) from error


def require_row(value: Any, what: str) -> int:
    """Return the number of a row, or raise `InvalidInput`."""
    if (
        isinstance(value, bool)
        or not hasattr(value, "__index__")
        or not 0 <= value < 2**31
    ):
        raise InvalidInput(f"{what}: expected a whole number from 0, got {value!r}")
    return int(value)


def property_column(
    items: Sequence[Node | Edge], properties: Sequence[Mapping[str, Any]]
) -> Records:
    """Return properties as a column; `InvalidInput` names the item and the property."""
    if not any(properties):
        return Records.repeat({}, len(properties))
    try:
        return Records.of(map(dict, properties))
    except InvalidInput:
        for item, item_properties in zip(items, properties, strict=True):
            what = edge_words(item) if isinstance(item, Edge) else f"node {item.id!r}"
            require_properties(item_properties, what)
        raise


def json_value(value: Any) -> Any:
    """Return a value of a database, a table or a file as a JSON value.

    NaN and infinity become null, and nulls in maps are left out; dates and times become
    ISO text, decimals numbers, sets sorted lists, and other types text. Temporal values
    of Neo4j are written as by Cypher's ``toString``, without the name of their zone.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "iso_format"):  # Neo4j's; a duration is a tuple too
        text = _FRACTION.sub(
            lambda digits: digits[0].rstrip("0").rstrip("."), value.iso_format()
        )
        return text.replace("+00:00", "Z")
    # A point of Neo4j is a tuple too.
    if isinstance(value, list | tuple) and not hasattr(value, "srid"):
        return [json_value(item) for item in value]
    if isinstance(value, Mapping):
        return {
            str(key): json_item
            for key, item in value.items()
            if (json_item := json_value(item)) is not None
        }
    if isinstance(value, set | frozenset):
        return sorted(map(json_value, value), key=str)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return json_value(
            int(value) if value == value.to_integral_value() else float(value)
        )
    return bytes(value).hex() if isinstance(value, bytes | bytearray) else str(value)

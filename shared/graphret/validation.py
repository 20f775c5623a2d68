"""Nodes and edges, checked before they are written; an `InvalidInput` names what is
malformed, and what of it.
"""

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
    """What messages call an edge."""
    return f"edge {edge.source!r} to {edge.target!r}"


def checked_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """Go through nodes; their properties are left to `property_column` or
    `require_properties`.
    """
    for node in nodes:
        what = f"node {require_id(node.id, 'node')!r}"
        for field in ("id", "name", "text"):
            value = getattr(node, field)
            if not isinstance(value, str) or (
                not value.isascii() and _SURROGATE.search(value)
            ):
                raise InvalidInput(
                    f"{what}: the {field} must be a string, without lone surrogates"
                )
        if isinstance(node.labels, str) or not all(
            isinstance(label, str) for label in node.labels
        ):
            raise InvalidInput(f"{what}: the labels must be a tuple of strings")
        if not isinstance(node.properties, Mapping):
            raise InvalidInput(f"{what}: the properties must be a mapping")
        yield node


def checked_edges(edges: Iterable[Edge]) -> Iterator[Edge]:
    """Go through edges; their properties, but for the rows, are left as those
    of nodes.
    """
    for edge in edges:
        where, weight = edge_words(edge), edge.weight
        require_id(edge.source, where)
        require_id(edge.target, where)
        if not isinstance(edge.relation, str) or not edge.relation:
            raise InvalidInput(f"{where}: the relation must be a non-empty string")
        if (
            isinstance(weight, bool)
            or not isinstance(weight, int | float)
            or not math.isfinite(weight)
        ):
            raise InvalidInput(
                f"{where}: the weight must be a finite number, not {weight!r}"
            )
        if not isinstance(edge.properties, Mapping):
            raise InvalidInput(f"{where}: the properties must be a mapping")
        for key in ROW_KEYS:
            if key in edge.properties:
                require_row(edge.properties[key], f"{where}: {key}")
        yield edge


def require_edge(edge: Edge) -> str:
    """Return the words for an edge, all of it checked."""
    what = edge_words(next(checked_edges([edge])))
    require_properties(edge.properties, what)
    return what


def require_properties(properties: Mapping[str, Any], what: str) -> None:
    """Raise an `InvalidInput` that names the property which is no JSON value, for any
    store.
    """
    for name, value in properties.items():
        if not isinstance(name, str):
            raise InvalidInput(
                f"{what}: the name of a property must be a string, not {name!r}"
            )
        try:
            to_json(value).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(
                f"{what}: the property {name!r} is not a JSON value: {error}"
            ) from error


def require_row(value: Any, what: str) -> int:
    """Return the number of a row, and raise an `InvalidInput` if it is none."""
    if (
        isinstance(value, bool)
        or not hasattr(value, "__index__")
        or not 0 <= value < 2**31
    ):
        raise InvalidInput(f"{what} must be a whole number from 0, not {value!r}")
    return int(value)


def property_column(
    items: Sequence[Node | Edge], properties: Sequence[Mapping[str, Any]]
) -> Records:
    """Return the properties of nodes or edges as a column; an `InvalidInput` names the
    item and the property.
    """
    if not any(properties):
        return Records.repeat({}, len(properties))
    try:
        return Records.of(map(dict, properties))
    except InvalidInput:
        for item, own in zip(items, properties, strict=True):
            require_properties(
                own, edge_words(item) if isinstance(item, Edge) else f"node {item.id!r}"
            )
        raise


def json_value(value: Any) -> Any:
    """Return what a database, a table or a file holds as a JSON value.

    NaN and infinity are null, and null in a map is left out; dates and times are ISO's
    text, decimals numbers, sets sorted lists, and what JSON lacks its text. A temporal
    value of Neo4j is as Cypher's ``toString`` writes it, without the name of its zone.
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
    if isinstance(value, list | tuple) and not hasattr(value, "srid"):  # as is a point
        return [json_value(item) for item in value]
    if isinstance(value, Mapping):
        return {
            str(key): own
            for key, item in value.items()
            if (own := json_value(item)) is not None
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

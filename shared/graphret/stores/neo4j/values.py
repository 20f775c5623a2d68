"""Properties on their way to Neo4j and back: JSON values in, JSON values out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.neo4j.layout import AT, IN, JSON, NONE, NULLS, Layout, escaped, unescaped
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.temporal import is_unreadable, temporal_text, unreadable_text
from graphret.types import Edge, Node
from graphret.where import PROPERTIES

NESTED = ("refuse", "json")
_EDGE_FIELDS = ("weight",)
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_POINTS = {
    (7203, 2): "CartesianPoint",
    (9157, 3): "CartesianPoint",
    (4326, 2): "WGS84Point",
    (4979, 3): "WGS84Point",
}
_INFINITE = ("-Infinity", "Infinity")
_NUMBERS = {"-Infinity": -math.inf, "Infinity": math.inf}


def stored(
    properties: Mapping[str, Any],
    key: Callable[[str, Any], str | None],
    nested: str,
    what: str,
    *,
    searchable: bool,
    foreign: bool,
) -> dict[str, Any]:
    """Return properties as Neo4j holds them.

    Parameters
    ----------
    key
        Where a property of a name and a value is stored.
    nested
        ``refuse`` or ``json``: what to do with a map, and with a list that holds lists, maps, `None` or several types.
    what
        The node or the edge, for messages.
    searchable
        Whether conditions may look into what is stored as JSON.
    foreign
        Whether the graph is of others: points, and lists of numbers that are not finite, are stored as such.

    Raises
    ------
    InvalidInput
        When a value is not JSON, does not fit into 64 bits, or is nested and may not be.
    """
    kept: dict[str, Any] = {}
    nulls: list[str] = []
    texts: list[str] = []
    for name, value in properties.items():
        where = key(name, value)
        if where is None:
            raise InvalidInput(f"{what}: property {name!r} cannot be stored under this name here")
        if value is None:
            quote(name, f"{what}: the name of a property")
            nulls.append(name)
        elif foreign and (said := _said(value)) is not None:
            kept[where] = said
        elif _plain(value, f"{what}: property {name!r}"):
            kept[where] = list(value) if isinstance(value, tuple) else value
        elif nested == "refuse":
            raise InvalidInput(
                f"{what}: property {name!r} is nested or of several types, which Neo4j cannot hold; "
                "nested='json' stores such values as JSON text"
            )
        else:
            texts.append(name)
            kept[where] = json.dumps(value, ensure_ascii=False)
            if searchable:
                kept.update(_inside(name, value))
    for where in kept:
        if len(where) > 1000 or not where.isidentifier():
            quote(where, f"{what}: the name of a property")
    if nulls:
        kept[NULLS] = nulls
    if texts:
        kept[JSON] = texts
    return kept


def _plain(value: Any, what: str) -> bool:
    """Whether Neo4j holds the value as it is; raises an `InvalidInput` if it is no JSON value."""
    kind = type(value)
    if kind is str or kind is bool or kind is float:
        return True
    if kind is int:
        if _SMALLEST <= value <= _LARGEST:
            return True
        raise InvalidInput(f"{what}: {value} does not fit into 64 bits, which is what Neo4j holds")
    if kind is list or kind is tuple:
        plain = [_plain(v, what) for v in value if v is not None]
        return len(plain) == len(value) and all(plain) and len({type(v) for v in value}) <= 1 and _flat(value)
    if kind is dict or isinstance(value, Mapping):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise InvalidInput(f"{what}: the key {name!r} is not a string")
            if inner is not None:
                _plain(inner, what)
        return False
    raise InvalidInput(f"{what}: {value!r} is not a JSON value")


def _said(value: Any) -> Any:
    """Return what a JSON value was read from that is no JSON; `None` where that cannot be told, or there is nothing."""
    if isinstance(value, list) and any(isinstance(v, float) or v is None for v in value):
        numbers = [math.nan if v is None else _NUMBERS.get(v, v) if isinstance(v, str) else v for v in value]
        return numbers if all(isinstance(v, float) for v in numbers) else None
    return _points(value)


def _points(value: Any) -> Any:
    """Return the point that a map is read from, or a list of them; `None` where it is none."""
    if isinstance(value, list) and value:
        points = [_points(v) if isinstance(v, Mapping) else None for v in value]
        return None if None in points else points
    if not isinstance(value, Mapping) or list(value) not in (["srid", "x", "y"], ["srid", "x", "y", "z"]):
        return None
    srid, *coordinates = value.values()
    kind = _POINTS.get((srid, len(coordinates)))
    if kind is None or not all(isinstance(c, float) and math.isfinite(c) for c in coordinates):
        return None
    from neo4j import spatial

    return getattr(spatial, kind)(coordinates)


def _flat(values: Any) -> bool:
    return not any(isinstance(v, (list, tuple, Mapping)) for v in values)


def _inside(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What conditions may ask of a value that is stored as JSON text, by the name of a hidden property."""
    if value is None:
        if path.startswith(PROPERTIES):
            yield NONE + path, True
    elif isinstance(value, Mapping):
        yield IN + path, ["{}"]  # it is there, and equals nothing that a condition can say
        for name, inner in value.items():
            yield from _inside(f"{path}.{name}", inner)
    elif _plain(value, path):
        yield AT + path, value
    else:
        yield IN + path, [canonical(v) for v in value]


def canonical(value: Any) -> str:
    """Return JSON text that is the same for values that are equal: 1 and 1.0 are."""
    if isinstance(value, float) and value.is_integer() and not math.isinf(value):
        value = int(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(canonical, value))}]"
    if isinstance(value, Mapping):
        return "{}"
    return json.dumps(value)


def loaded(values: Mapping[str, Any], name_of: Callable[[str, Any], str | None]) -> dict[str, Any]:
    """Return properties as they were before `stored`, and what something else stored as JSON values; NaN is none."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if value is None:
            continue
        name = name_of(key, value)
        if name is not None:
            read = json_value(value)
            if read is not None and not (
                name == key and name in found
            ):  # what is stored for it goes first, as in where
                found[name] = read
    for name in values.get(JSON) or ():
        if isinstance(found.get(name), str):
            found[name] = json.loads(found[name])
    for name in values.get(NULLS) or ():
        found.setdefault(name, None)
    return found


def node_from(layout: Layout, node_id: str, labels: list[str], values: Mapping[str, Any]) -> Node:
    """Make a node of what a query returned of it."""
    return Node(
        node_id,
        layout.labels(labels, values.get("graphret_labels")),
        field_of(values, layout.name),
        field_of(values, layout.text),
        loaded(values, layout.property),
    )


def field_of(values: Mapping[str, Any], candidates: tuple[str, ...]) -> str:
    """Return the name or the text of a node with these values: the first of them that is a string or an integer."""
    for name in candidates:
        value = values.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return str(value)
    return ""


def edge_from(source: str, relation: str, target: str, values: Mapping[str, Any]) -> Edge:
    """Make an edge of what a query returned of it; one without a number as its weight has weight 1."""
    weight = values.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not math.isfinite(weight):
        return Edge(source, relation, target, 1.0, loaded(values, lambda key, _: unescaped(key, ())))
    return Edge(source, relation, target, float(weight), loaded(values, edge_property))


def edge_key(name: str, value: Any = None) -> str:
    """Where a property of an edge is stored."""
    return escaped(name, _EDGE_FIELDS)


def edge_property(key: str, value: Any = None) -> str | None:
    """The name of the property of an edge that is stored there."""
    return unescaped(key, _EDGE_FIELDS)


def json_value(value: Any) -> Any:
    """Return a value of the driver as a JSON value, `None` for NaN; conditions take it for what it is read as.

    A date, a time or a duration is the text that Cypher writes, as is an infinite number; bytes are the list of
    integers that they are to Cypher.
    """
    kind = type(value)
    if value is None or kind is str or kind is int or kind is bool:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else _INFINITE[value > 0]
    if hasattr(value, "iso_format"):  # a duration is a tuple too
        return temporal_text(value)
    if hasattr(value, "srid"):  # as is a point
        return {"srid": value.srid, **dict(zip("xyz", map(float, value), strict=False))}
    if isinstance(value, (list, tuple)):
        return [json_value(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): json_value(v) for k, v in value.items()}
    if isinstance(value, (bytes, bytearray)):
        return [byte - 256 if byte > 127 else byte for byte in value]
    return unreadable_text(value) if is_unreadable(value) else str(value)

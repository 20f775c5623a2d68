"""Nodes and edges, checked before they become columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.columns import no_records
from graphret.errors import InvalidInput
from graphret.strings import Records, Strings, to_json
from graphret.types import Edge, Node, require_id

PART_KEYS = ("source_row", "target_row")


def checked_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """Go through nodes; an `InvalidInput` names one that is malformed, and what of it."""
    for node in nodes:
        require_id(node.id, "node")
        for what, value in (("name", node.name), ("text", node.text)):
            if not isinstance(value, str):
                raise InvalidInput(f"node {node.id!r}: the {what} must be a string, not {type(value).__name__}")
        if isinstance(node.labels, str) or not all(isinstance(label, str) for label in node.labels):
            raise InvalidInput(f"node {node.id!r}: the labels must be a tuple of strings")
        if not isinstance(node.properties, Mapping):
            raise InvalidInput(f"node {node.id!r}: the properties must be a mapping")
        yield node


def checked_edges(edges: Iterable[Edge]) -> Iterator[Edge]:
    """Go through edges; an `InvalidInput` names one that is malformed, and what of it."""
    for edge in edges:
        where = f"edge {edge.source!r} to {edge.target!r}"
        if not isinstance(edge.source, str) or not isinstance(edge.target, str):
            raise InvalidInput(f"{where}: the ids of its ends must be strings")
        if not edge.relation or not isinstance(edge.relation, str):
            raise InvalidInput(f"{where}: the relation must be a non-empty string")
        try:
            finite = not isinstance(edge.weight, bool) and math.isfinite(edge.weight) and abs(edge.weight) < _LARGEST
        except (TypeError, OverflowError):
            finite = False
        if not finite:
            raise InvalidInput(f"{where}: the weight must be a finite number below 3.4e38, not {edge.weight!r}")
        if not isinstance(edge.properties, Mapping):
            raise InvalidInput(f"{where}: the properties must be a mapping")
        require_parts(edge.properties, where)
        yield edge


def require_edge(edge: Edge) -> str:
    """Return the words for an edge, and raise an `InvalidInput` if it is malformed; see `checked_edges`.

    Any finite weight may be one here, and properties are read as `require_properties` does.
    """
    where = f"edge {edge.source!r} to {edge.target!r}"
    for end in (edge.source, edge.target):
        require_id(end, where)
    if not isinstance(edge.relation, str) or not edge.relation:
        raise InvalidInput(f"{where}: the relation must be a non-empty string")
    weight = edge.weight
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
        raise InvalidInput(f"{where}: the weight must be a finite number, not {weight!r}")
    require_properties(edge.properties, where)
    require_parts(edge.properties, where)
    return where


def require_properties(properties: Any, what: str) -> None:
    """Raise an `InvalidInput` that names the property which is no JSON value, for any store.

    Names and keys of maps are strings, numbers finite, and maps and lists lie at most `DEEPEST` levels in each other.
    """
    if not isinstance(properties, Mapping):
        raise InvalidInput(f"{what}: the properties must be a mapping")
    for name, value in properties.items():
        if not isinstance(name, str):
            raise InvalidInput(f"{what}: the name of a property must be a string, not {name!r}")
        if type(value) not in _SIMPLE and (problem := _problem(value, DEEPEST)) is not None:
            raise InvalidInput(f"{what}: the property {name!r}: {problem}")


#: So many levels of maps and lists in each other are kept by every store.
DEEPEST = 200
_SIMPLE = {str, int, bool, type(None)}


def _problem(value: Any, levels: int) -> str | None:
    """Say why a value is none of JSON."""
    if isinstance(value, str | int | None):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value!r} is not a finite number"
    if not isinstance(value, Mapping | list | tuple):
        return f"a {type(value).__name__} is not a JSON value"
    if not levels:
        return f"lists and maps lie more than {DEEPEST} levels in each other"
    items: Iterable[Any] = value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                return f"the key {key!r} is not a string"
        items = value.values()
    return next((problem for item in items if (problem := _problem(item, levels - 1)) is not None), None)


_LARGEST = float(np.finfo(np.float32).max)


def require_parts(properties: Mapping[str, Any], where: str) -> None:
    """Raise an `InvalidInput` if the rows that an edge is about are none."""
    for key in PART_KEYS:
        if key in properties:
            require_part(properties[key], f"{where}: {key}")


def require_part(value: Any, what: str) -> int:
    """Return the number of a row, and raise an `InvalidInput` if it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 2**31:
        raise InvalidInput(f"{what} must be a whole number from 0, not {value!r}")
    return int(value)


def refuse_twice(ids: Sequence[str]) -> None:
    """Raise an `InvalidInput` if two neighbours in sorted ids are the same."""
    for one, other in pairwise(ids):
        if one == other:
            raise InvalidInput(f"node {one!r}: the id comes twice")


def refuse_rows_twice(ids: Sequence[str], order: NDArray[np.int64]) -> None:
    """Raise an `InvalidInput` if two neighbours in the order that sorts the ids are the same."""
    for first, second in pairwise(order.tolist()):
        if ids[first] == ids[second]:
            raise InvalidInput(f"ids, row {second:,}: the id {ids[second]!r} comes twice, first in row {first:,}")


def label_set(labels: Any) -> tuple[str, ...]:
    """Return a tuple of labels, and raise an `InvalidInput` if it is none."""
    if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
        raise InvalidInput(f"label_sets: {labels!r} is not a tuple of labels")
    return tuple(labels)


def text_column(what: str, ids: Sequence[str], values: Sequence[str]) -> Strings:
    """Return the names or the texts of nodes as a column; an `InvalidInput` names one that is not text."""
    try:
        return Strings.of(values)
    except InvalidInput:
        for node_id, value in zip(ids, values, strict=True):
            try:
                value.encode()
            except ValueError as error:
                raise InvalidInput(f"node {node_id!r}: the {what} is not text: {error}") from error
        raise


def property_column(items: Sequence[Node] | Sequence[Edge], properties: Sequence[Mapping[str, Any]]) -> Records:
    """Return the properties of nodes or edges as a column; an `InvalidInput` names one that is not JSON."""
    if not any(properties):
        return no_records(len(properties))
    try:
        return Records.of(dict(own) for own in properties)
    except InvalidInput:
        for i, own in enumerate(properties):
            for key, value in own.items():
                try:
                    to_json({key: value}).encode()
                except (TypeError, ValueError, RecursionError) as error:
                    require_properties({key: value}, _name(items[i]))
                    raise InvalidInput(f"{_name(items[i])}: the property {key!r}: {error}") from error
        raise


def _name(item: Node | Edge) -> str:
    return f"node {item.id!r}" if isinstance(item, Node) else f"edge {item.source!r} to {item.target!r}"

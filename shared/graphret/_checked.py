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
            raise InvalidInput(f"{where}: the weight must be a finite number, not {edge.weight!r}")
        if not isinstance(edge.properties, Mapping):
            raise InvalidInput(f"{where}: the properties must be a mapping")
        for key in PART_KEYS:
            if key in edge.properties:
                require_part(edge.properties[key], f"{where}: {key}")
        yield edge


_LARGEST = float(np.finfo(np.float32).max)


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
                    raise InvalidInput(f"{_name(items[i])}: the property {key!r}: {error}") from error
        raise


def _name(item: Node | Edge) -> str:
    return f"node {item.id!r}" if isinstance(item, Node) else f"edge {item.source!r} to {item.target!r}"

"""Columns of edges, checked before they become a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphret._checked import PART_KEYS, require_part
from graphret.edges import NO_PART
from graphret.errors import InvalidInput
from graphret.storage import Records


class EdgeColumns(NamedTuple):
    """What is known of ``m`` edges, ``(m,)`` each."""

    source: NDArray[Any]
    target: NDArray[Any]
    relation: NDArray[Any]
    weight: NDArray[Any]
    source_row: NDArray[Any] | None
    target_row: NDArray[Any] | None
    properties: Records | Sequence[Mapping[str, Any]] | None


def checked_edge_columns(
    n_nodes: int,
    source: ArrayLike,
    target: ArrayLike,
    relation: ArrayLike | None,
    relations: Sequence[str],
    weight: ArrayLike | None,
    source_row: ArrayLike | None,
    target_row: ArrayLike | None,
    properties: Records | Sequence[Mapping[str, Any]] | None,
) -> EdgeColumns:
    """Return the columns as arrays; an `InvalidInput` names the column and the row of what is malformed."""
    for name in relations:
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"relations: {name!r} is not a name")
    if len(set(relations)) < len(relations):
        raise InvalidInput("relations: a name comes twice")
    ends = _integers("source", source, n_nodes, "node")
    m = len(ends)
    others = {
        "target": _integers("target", target, n_nodes, "node"),
        "relation": np.zeros(m, np.int16)
        if relation is None and (relations or not m)
        else _integers("relation", () if relation is None else relation, len(relations), "relation"),
        "weight": np.ones(m, np.float32) if weight is None else np.asarray(weight, dtype=np.float32),
    }
    given = {"source_row": source_row, "target_row": target_row, "edge_properties": properties}
    lengths = {name: len(column) for name, column in others.items()}
    lengths |= {name: len(column) for name, column in given.items() if column is not None}  # type: ignore[arg-type]
    for name, length in lengths.items():
        if length != m:
            raise InvalidInput(f"{name}: {m:,} rows are expected, as many as of source, not {length:,}")
    if (wrong := ~np.isfinite(others["weight"])).any():
        raise InvalidInput(f"weight, row {int(np.argmax(wrong)):,}: a finite number is expected")
    rows = {
        name: None if (column := given[name]) is None else _integers(name, column, 2**31 - 1, "row", least=-1)
        for name in PART_KEYS
    }
    if properties is not None and not isinstance(properties, Records):
        found, properties = split_rows(properties)
        rows |= found
    return EdgeColumns(ends, **others, **rows, properties=properties)


def split_rows(
    properties: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, NDArray[np.int32]], Sequence[Mapping[str, Any]]]:
    """Return the rows that edges are about, if any has one, and the properties without them."""
    found = {}
    for key in PART_KEYS:
        if any(key in own for own in properties):
            parts = [
                require_part(own[key], f"edge_properties, row {i:,}: {key}") if key in own else NO_PART
                for i, own in enumerate(properties)
            ]
            found[key] = np.asarray(parts, dtype=np.int32)
    if found:
        properties = [{k: v for k, v in own.items() if k not in PART_KEYS} for own in properties]
    return found, properties


def _integers(what: str, values: ArrayLike, bound: int, of: str, least: int = 0) -> NDArray[Any]:
    array = np.asarray(values)
    if not array.size:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidInput(f"{what}: integers in one dimension are expected, not {array.dtype} in {array.ndim}")
    if array.min() < least or array.max() >= bound:
        row = int(np.argmax((array < least) | (array >= bound)))
        raise InvalidInput(f"{what}, row {row:,}: there is no {of} {int(array[row]):,} among {bound:,}")
    return array

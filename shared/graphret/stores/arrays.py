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
    double: bool = False,
) -> EdgeColumns:
    """Return the columns as arrays; an `InvalidInput` names the column and the row of what is malformed."""
    for name in relations:
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"relations: {name!r} is not a name")
    if len(set(relations)) < len(relations):
        raise InvalidInput("relations: a name comes twice")
    ends = _integers("source", source, n_nodes, "node")
    m = len(ends)
    if relation is None:
        relation = np.zeros(m if relations else 0, np.int16)
    columns = EdgeColumns(
        ends,
        _integers("target", target, n_nodes, "node"),
        _integers("relation", relation, len(relations), "relation"),
        np.ones(m, np.float32) if weight is None else _numbers("weight", weight, np.float64 if double else np.float32),
        None if source_row is None else _integers("source_row", source_row, 2**31 - 1, "row", least=-1),
        None if target_row is None else _integers("target_row", target_row, 2**31 - 1, "row", least=-1),
        properties,
    )
    for name, column in columns._asdict().items():
        if column is not None and len(column) != m:
            raise InvalidInput(f"{name}: {m:,} rows are expected, as many as of source, not {len(column):,}")
    if properties is None or isinstance(properties, Records):
        return columns
    rows, properties = split_rows(properties)
    return columns._replace(properties=properties, **rows)


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


def _numbers(what: str, values: ArrayLike, kind: type[np.floating[Any]]) -> NDArray[Any]:
    try:
        with np.errstate(over="ignore"):
            numbers: NDArray[Any] = np.asarray(values, dtype=kind)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what}: numbers are expected: {error}") from error
    if (wrong := ~np.isfinite(numbers)).any():
        raise InvalidInput(f"{what}, row {int(np.argmax(wrong)):,}: a finite number is expected")
    return numbers


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

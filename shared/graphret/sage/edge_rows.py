"""Tables of many edges whose properties are written as JSON once, and joined without reading it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.columns import assemble
from graphret.edges import NO_PART, EdgeTable
from graphret.storage import Records


def edge_table(
    n_nodes: int,
    source: NDArray[Any],
    target: NDArray[Any],
    relation: str,
    weight: NDArray[Any],
    parts: tuple[NDArray[Any], NDArray[Any]] | None,
    properties: Sequence[str],
) -> EdgeTable:
    """Return the edges of one relation, in any order; `properties` are JSON objects as text."""
    if not len(source):
        return EdgeTable.empty(n_nodes)
    whole = np.full(len(source), NO_PART, np.int32)
    encoded = [text.encode() for text in properties]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    records = Records(np.frombuffer(b"".join(encoded), np.uint8), offsets)
    return _ordered(
        n_nodes,
        [relation],
        {
            "source": np.asarray(source, np.int32),
            "target": np.asarray(target, np.int32),
            "relation": np.zeros(len(source), np.int16),
            "weight": np.asarray(weight, np.float32),
            "source_part": whole if parts is None else np.asarray(parts[0], np.int32),
            "target_part": whole if parts is None else np.asarray(parts[1], np.int32),
        },
        records,
    )


def join(n_nodes: int, tables: Sequence[EdgeTable]) -> EdgeTable:
    """Join tables over the same nodes, leaving out relations without edges; no property is decoded."""
    filled = [table for table in tables if len(table)]
    if len(filled) < 2:
        return filled[0] if filled else EdgeTable.empty(n_nodes)
    names = sorted({name for table in filled for name in table.relations})
    columns = {
        name: np.concatenate([getattr(table, name) for table in filled])
        for name in ("source", "target", "weight", "source_part", "target_part")
    }
    renumbered = [np.asarray([names.index(name) for name in t.relations], np.int16)[t.relation] for t in filled]
    columns["relation"] = np.concatenate(renumbered)
    records = [t.properties if isinstance(t.properties, Records) else Records.of(t.properties) for t in filled]
    starts = np.concatenate([[0], np.cumsum([len(column.blob) for column in records])])
    offsets = [column.offsets[:-1] + start for column, start in zip(records, starts, strict=False)]
    blob = np.concatenate([column.blob for column in records])
    return _ordered(n_nodes, names, columns, Records(blob, np.concatenate([*offsets, starts[-1:]])))


def _ordered(n_nodes: int, relations: list[str], columns: dict[str, NDArray[Any]], records: Records) -> EdgeTable:
    order = np.lexsort([columns[name] for name in ("target_part", "source_part", "relation", "target", "source")])
    ordered = records if (np.diff(order) == 1).all() else assemble([records], order)
    chosen = {name: column[order] for name, column in columns.items()}
    return EdgeTable(
        n_nodes,
        chosen["source"],
        chosen["target"],
        chosen["relation"],
        relations,
        chosen["weight"],
        chosen["source_part"],
        chosen["target_part"],
        ordered,
    )

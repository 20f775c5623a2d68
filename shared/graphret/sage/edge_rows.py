"""Tables of many edges whose properties are written as JSON once, and joined without reading it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.columns import Records, text_array
from graphret.edges import EdgeTable
from graphret.edges import joined as join

__all__ = ["edge_table", "join"]


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
    records = Records(text_array(properties))
    codes = np.zeros(len(source), np.int16)
    first, second = parts or (None, None)
    return EdgeTable.build(n_nodes, source, target, codes, [relation], weight, first, second, records)

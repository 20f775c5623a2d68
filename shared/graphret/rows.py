"""A row of values, such as a number, as a node that a hit can hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from graphret.types import ROW, Node


def row_node(values: Mapping[str, Any], query: str, rank: int) -> Node:
    """Return a row of values as a node of the label ``Row``; the same row of the same
    query has the same id.
    """
    said = json.dumps([query, rank, values], ensure_ascii=False)
    digest = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:32]
    text = "; ".join(f"{column}: {_said(value)}" for column, value in values.items())
    return Node(f"row:{digest}", (ROW,), "", text, dict(values))


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

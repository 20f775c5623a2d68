"""Turn a row of values, such as a number, into a node for a hit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from graphret.types import ROW, Node


def row_node(values: Mapping[str, Any], query: str, rank: int) -> Node:
    """Return a row of values as a ``Row`` node, with a stable id."""
    content = json.dumps([query, rank, values], ensure_ascii=False)
    digest = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:32]
    text = "; ".join(
        f"{column}: {_value_text(value)}" for column, value in values.items()
    )
    return Node(f"row:{digest}", (ROW,), "", text, dict(values))


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

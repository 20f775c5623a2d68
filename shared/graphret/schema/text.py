"""Names and values as a prompt has them, and how many tokens a text takes."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import Any

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_LENGTH = 100
_VALUE_LENGTH = 40
_LIST_ITEMS = 3
_UNFIT = (
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
    "Zl",
    "Zp",
)  # line breaks, controls, and what turns the direction of writing


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, rather too many than too few: one for every two
    and a half bytes of UTF-8.
    """
    return math.ceil(len(text.encode()) / 2.5)


def quote_name(name: str) -> str | None:
    """Return a label, relation or property as Cypher writes it, `None` if it does not
    fit on a line.
    """
    if (
        not name
        or len(name) > _NAME_LENGTH
        or any(unicodedata.category(c) in _UNFIT for c in name)
    ):
        return None
    return name if _IDENTIFIER.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def quote_value(value: Any) -> str:
    """Return a value from the data as JSON on one line, shortened."""
    if isinstance(value, str):
        clean = " ".join(
            "".join(
                " " if unicodedata.category(c) in _UNFIT else c for c in value
            ).split()
        )
        return json.dumps(
            clean if len(clean) <= _VALUE_LENGTH else clean[: _VALUE_LENGTH - 1] + "…",
            ensure_ascii=False,
        )
    if isinstance(value, (list, tuple)):
        items = [quote_value(v) for v in value[:_LIST_ITEMS]]
        return "[" + ", ".join(items + ["…"] * (len(value) > _LIST_ITEMS)) + "]"
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return quote_value(str(value))

"""Format names and values for a prompt, and estimate the tokens of a text."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_LENGTH = 100
_VALUE_LENGTH = 40
_LIST_ITEMS = 3
# Unicode categories of line breaks, controls and marks of writing direction.
_UNFIT = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")

_TIME = r"[T ]\d{2}:\d{2}(:\d{2})?.*"
#: The formats of dates and times that are stored as text.
_DATE_FORMATS = {
    "YYYY-MM-DD": r"\d{4}-\d{2}-\d{2}",
    "YYYY-MM-DDTHH:MM:SS": rf"\d{{4}}-\d{{2}}-\d{{2}}{_TIME}",
    "YYYY/MM/DD": r"\d{4}/\d{2}/\d{2}",
    "YYYY-MM": r"\d{4}-(0[1-9]|1[0-2])",
    "DD.MM.YYYY": r"\d{2}\.\d{2}\.\d{4}",
    # A day above 12 tells it from the month.
    "MM/DD/YYYY": r"\d{1,2}/(1[3-9]|2\d|3[01])/\d{4}",
    "DD/MM/YYYY": r"(1[3-9]|2\d|3[01])/\d{1,2}/\d{4}",
}


def date_format(values: Sequence[Any]) -> str | None:
    """Return the common format of texts that are all dates, else `None`."""
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) < len(values):
        return None
    return next(
        (
            name
            for name, pattern in _DATE_FORMATS.items()
            if all(re.fullmatch(pattern, text) for text in texts)
        ),
        None,
    )


def estimate_tokens(text: str) -> int:
    """Return a high estimate of a text's tokens: one for 2.5 bytes of UTF-8."""
    return math.ceil(len(text.encode()) / 2.5)


def quote_name(name: str) -> str | None:
    """Return a name quoted for Cypher, `None` if it does not fit on a line."""
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

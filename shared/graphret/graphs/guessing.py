"""The types of text columns, guessed so that nothing is lost: ``007`` stays what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from graphret.errors import InvalidInput
from graphret.graphs.values import json_value
from graphret.strings import members

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]{0,14})\.[0-9]{1,17}([eE][-+]?[0-9]{1,2})?")
_WORDS = {"true": True, "false": False}
_EXACT = 2**53
_INT64 = 2**63


def guess(values: Iterable[str]) -> str:
    """Return the type of a column: ``integer``, ``float``, ``boolean``, or ``string`` where one value is anything else.

    Whole numbers have no sign but a minus, no leading zero and at most 64 bits; other numbers have a point; truth
    values are ``true`` and ``false`` in any case. Empty values say nothing.
    """
    kinds = set()
    for value in values:
        if not value:
            continue
        if _INTEGER.fullmatch(value) and value != "-0" and -_INT64 <= int(value) < _INT64:
            kinds.add("integer" if abs(int(value)) <= _EXACT else "large")
        elif _FLOAT.fullmatch(value):
            kinds.add("float")
        elif value.lower() in _WORDS:
            kinds.add("boolean")
        else:
            return "string"
        if "boolean" in kinds and len(kinds) > 1:
            return "string"
    if kinds <= {"integer", "large"} and kinds:
        return "integer"
    if kinds and kinds <= {"integer", "float"}:
        return "float"
    return "boolean" if kinds == {"boolean"} else "string"


def _json(text: str) -> Any:
    import json

    return json.loads(text, object_pairs_hook=members)


def _truth(text: str) -> bool:
    return _WORDS[text.lower()]


#: How the text of each type is read.
READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": _truth,
    "json": _json,
}


def read_value(text: str, kind: str, where: str) -> Any:
    """Return the value of a text, `None` for an empty one.

    Raises
    ------
    InvalidInput
        If the text is not of the type; the message begins with `where`.
    """
    if not text:
        return None
    try:
        value = READERS[kind](text)
    except (ValueError, KeyError, RecursionError) as error:
        reason = f" ({error})" if kind == "json" else ""
        raise InvalidInput(f"{where}: {text!r} is not of the type {kind}{reason}") from error
    return json_value(value, where)

"""Nodes by their ids: ids as keys, and how a query finds the node of a key."""

from __future__ import annotations

import contextlib
import datetime
import re
import struct
from collections.abc import Sequence
from typing import Any

from graphret.stores.ladybug.catalog import NodeTable
from graphret.stores.ladybug.names import quoted
from graphret.stores.ladybug.texts import own_text, stored

_SIZES = (8, 16, 32, 64, 128)
#: Of types of whole numbers, the least and one more than the greatest.
_WHOLE = {
    "SERIAL": (-(2**63), 2**63),
    **{f"INT{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1)) for bits in _SIZES},
    **{f"UINT{bits}": (0, 2**bits) for bits in _SIZES[:-1]},
}
#: Of these no parameter can be.
_LARGE = ("UINT64", "INT128")
_TIMES = ("TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_SEC", "TIMESTAMP_TZ")
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_UUID = re.compile("-".join(f"[0-9a-f]{{{n}}}" for n in (8, 4, 4, 4, 12)))
_DECIMAL = re.compile(r"DECIMAL\((\d+), 0\)")
_DIGITS = re.compile(r"0|-?[1-9]\d{0,38}", re.ASCII)


def keys_of(table: NodeTable, ids: Sequence[str]) -> list[Any]:
    """Return ids as keys: numbers where the id column can hold them, or offsets where the id is the database's.

    Of another column a key is the id itself, as it is listed. What no node of the table can have is left out.
    """
    if table.id_column is None:
        head = f"{table.number}:"
        return [int(i[len(head) :]) for i in ids if i.startswith(head) and _is_whole(i[len(head) :], 0, 2**63)]
    kind = table.columns[table.id_column]
    if kind in _WHOLE:
        valid = [i for i in ids if _is_whole(i, *_WHOLE[kind])]
        return [int(i) for i in valid] if _is_number(kind) else valid
    return [i for i in ids if _is_valid(i, kind)] if _is_cast(table) else [*ids]


def by_key(table: NodeTable, key: str, variable: str = "n") -> tuple[str, str]:
    """Return how a pattern finds the node of a key by its properties, and the condition by which it does otherwise."""
    if table.id_column is None:
        return "", f"offset(id({variable})) = {key}"
    kind, column = table.columns[table.id_column], quoted(table.id_column)
    if _is_cast(table):  # the index is on what the column holds
        return f"{{{column}: CAST({key} AS {kind})}}", "true"
    if kind == "STRING" or _is_number(kind):
        return f"{{{column}: {key}}}", "true"
    return "", f"{own_text(f'{variable}.{column}', kind)} = {key}"


def match_by_key(table: NodeTable, variable: str = "n") -> str:
    """Return the pattern of the nodes of a table whose key is ``i``, and how they are filtered."""
    properties, condition = by_key(table, "i", variable)
    return f"MATCH ({variable}:{quoted(table.name)} {properties}) WHERE {condition}"


def key_expression(table: NodeTable, variable: str) -> str:
    """Return what a query returns as the key of a node, as `keys_of` gives it."""
    if table.id_column is None:
        return f"offset(id({variable}))"
    kind, value = table.columns[table.id_column], f"{variable}.{quoted(table.id_column)}"
    return value if _is_number(kind) else own_text(value, kind)


def _is_number(kind: str) -> bool:
    """Whether a key is a number."""
    return kind in _WHOLE and kind not in _LARGE


def _is_cast(table: NodeTable) -> bool:
    """Whether the database makes the value of the id column of its text, exactly, and finds that in an index."""
    kind = table.columns[table.id_column or table.key]
    return table.id_column == table.key and kind in (*_LARGE, *_TIMES, "DATE", "UUID")


def cast_text(text: str, kind: str) -> str | None:
    """Return what the database casts to the value of a type of which `json_value` makes a text; `None` if none has it.

    Types of which several values may have one text have none here.
    """
    if kind == "BLOB":
        return next(stored(text, kind), None)
    if kind in ("DOUBLE", "FLOAT"):
        with contextlib.suppress(ValueError, OverflowError):
            number = float(text) if kind == "DOUBLE" else struct.unpack("f", struct.pack("f", float(text)))[0]
            return text if str(number) == text else None
        return None
    if decimal := _DECIMAL.fullmatch(kind):
        valid = _is_whole(text, 1 - 10 ** int(decimal[1]), 10 ** int(decimal[1]))
    elif kind in _WHOLE:
        valid = _is_whole(text, *_WHOLE[kind])
    elif kind == "BOOL":
        valid = text in ("True", "False")
    else:
        valid = kind in ("STRING", "JSON") or (kind in (*_TIMES, "DATE", "UUID") and _is_valid(text, kind))
    return text if valid else None


def _is_valid(text: str, kind: str) -> bool:
    """Whether a text is one that the database makes of a value of a type."""
    if kind == "UUID":
        return _UUID.fullmatch(text) is not None
    if kind == "DATE" and not _DATE.fullmatch(text):
        return False
    if kind in _TIMES and not [*stored(text, kind)]:
        return False
    with contextlib.suppress(ValueError):
        return datetime.datetime.fromisoformat(text) is not None
    return False


def _is_whole(text: str, least: int, above: int) -> bool:
    return _DIGITS.fullmatch(text) is not None and least <= int(text) < above

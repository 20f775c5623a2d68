"""What is inside columns that something else made: members of structures, values of maps, items of lists."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from graphret.stores.ladybug.names import literal
from graphret.stores.ladybug.values import KINDS, text_expression

_LIST = re.compile(r"(.*)\[\d*\]")
_MAP = "MAP(STRING, "
_TYPE = re.compile(r"[A-Z][A-Z0-9_]*([(\[].*)?")


def element(kind: str) -> str | None:
    """Return the type of the items of a list, `None` for another type."""
    found = _LIST.fullmatch(kind)
    return found[1] if found else None


def is_mapping(kind: str) -> bool:
    """Whether values of a type are objects, which equal no operand and have no order."""
    return element(kind) is None and kind.startswith(("STRUCT(", "MAP("))


def comparable(value: str, kind: str) -> tuple[str, str] | None:
    """Return a value as one of the `KINDS` or lists of one, in Cypher, with that; `None` where it is none of these."""
    if kind in KINDS:
        return value, kind
    if element(kind) is not None:
        return (value, kind) if kind.endswith("[]") and kind.rstrip("[]") in KINDS else None
    if kind.startswith("DECIMAL") or kind == "INT128":
        return f"CAST(CAST({value} AS STRING) AS DOUBLE)", "DOUBLE"
    if kind == "UINT64" or (text := text_expression(value, kind)) is None:
        return None
    return text, "STRING"


def inside(value: str, kind: str, path: list[str], parameter: Callable[[Any], str]) -> tuple[str, str, str] | bool:
    """Return whether there is a value at a path in another, that value and its type.

    Returns
    -------
    found
        In Cypher; `False` where the type says that there is nothing, `True` where it does not say.
    """
    there = f"({value} IS NOT NULL)"
    for part in path:
        if kind.startswith(_MAP) and element(kind) is None:
            found, kind = f"map_extract({value}, {parameter(part)})", kind[len(_MAP) : -1]
            value = f"list_any_value({found})"  # of an empty list it may be that of another (0.22)
            there = f"({there} AND size({found}) > 0 AND {value} IS NOT NULL)"
        elif kind.startswith("STRUCT(") and element(kind) is None:
            members = members_of(kind)
            if members is None:
                return True
            if part not in members:
                return False
            value, kind = f"struct_extract({value}, {literal(part)})", members[part]
            there = f"({value} IS NOT NULL)"
        else:
            return kind.startswith(("MAP(", "UNION("))
    return there, value, kind


def members_of(kind: str) -> dict[str, str] | None:
    """Return the types of the members of a structure or a union by their names, `None` where they cannot be read."""
    parts, depth = [""], 0
    for character in kind[kind.index("(") + 1 : -1]:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    named = (part.strip().partition(" ") for part in parts)
    found = {name: kind for name, _, kind in named}
    return found if all(map(_TYPE.fullmatch, found.values())) else None

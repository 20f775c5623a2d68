"""Where the value may lie that a field leads to, in columns that something else made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphret.stores.ladybug.names import literal
from graphret.stores.ladybug.structures import element, is_mapping, members_of

Found = Iterator[tuple[str, str, str]]

#: The type of what lies in a map: of null there the database makes the value of another row (0.22).
UNTOLD = ""


def reached(value: str, kind: str, path: Sequence[str]) -> Found:
    """Go through the values that may be at a path in another: of a union, those of each of its members.

    Yields
    ------
    there, value, kind
        Whether there is one that is not null, and the value, both in Cypher, and its type, which is no union.
    """
    there = f"({value} IS NOT NULL)"
    union = kind.startswith("UNION(") and element(kind) is None
    if kind == UNTOLD or (not path and not union):
        yield there, value, kind
    elif union or is_mapping(kind):
        for also, inner, of_inner in _within(value, kind, path[0] if path else ""):
            for last, found, of_found in reached(inner, of_inner, path if union else path[1:]):
                yield f"({there} AND {also} AND {last})", found, of_found


def _within(value: str, kind: str, part: str) -> Found:
    """What a part of a path leads to, and for a union its members: whether it is there, itself and its type."""
    if kind.startswith("UNION("):
        for tag, of_member in members_of(kind).items():
            yield f"union_tag({value}) = {literal(tag)}", f"union_extract({value}, {literal(tag)})", of_member
    elif kind.startswith("STRUCT("):
        members = members_of(kind)
        if part in members:
            yield "true", f"struct_extract({value}, {literal(part)})", members[part]
    else:
        yield "true", value, UNTOLD


def item(value: str, place: int) -> tuple[str, str]:
    """Return whether an item of a list is there and not null, and that item.

    Where there is none, the database may give that of another list (0.22).
    """
    one = f"list_slice({value}, {place}, {place})"
    return f"list_unique({one}) = 1", f"list_any_value({one})"

"""Where the value may lie that a field leads to, in columns that something else made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graphret.stores.ladybug.keys import cast_text
from graphret.stores.ladybug.names import is_text, literal
from graphret.stores.ladybug.structures import element, entry_of, is_mapping, members_of
from graphret.stores.ladybug.texts import interval_length, length_of, text_expression
from graphret.stores.ladybug.values import FLOATS

Found = Iterator[tuple[str, str, str]]
Parameter = Callable[[Any], str]

#: Several values of these may have one text.
_SHARED = ("INTERVAL", "TIMESTAMP_NS")


def reached(value: str, kind: str, path: Sequence[str], parameter: Parameter) -> Found:
    """Go through the values that may be at a path in another: of a union, those of each of its members.

    Yields
    ------
    there, value, kind
        Whether there is one that is neither null nor NaN, and the value, both in Cypher, and its type, which is no
        union.
    """
    there = f"({value} IS NOT NULL{f' AND {value} = {value}' if kind in FLOATS else ''})"
    union = kind.startswith("UNION(") and element(kind) is None
    if not path and not union:
        yield there, value, kind
    elif union or is_mapping(kind):
        for also, inner, of_inner in _within(value, kind, path[0] if path else "", parameter):
            for last, found, of_found in reached(inner, of_inner, path if union else path[1:], parameter):
                yield f"({there} AND {also} AND {last})", found, of_found


def named(value: str, kind: str, path: Sequence[str], parameter: Parameter) -> Iterator[str]:
    """Return whether a structure or a map has a name for what is at a path, be that null: for each member of unions."""
    for there, inner, of_inner in reached(value, kind, path[:-1], parameter):
        if of_inner.startswith("MAP(") and is_mapping(of_inner):
            key = _key(inner, entry_of(of_inner)[0], path[-1], parameter)
            if key is not None:
                yield f"({there} AND size(map_extract({inner}, {key})) > 0)"
        elif is_mapping(of_inner) and any(_within(inner, of_inner, path[-1], parameter)):
            yield there


def odd_keys(value: str) -> str:
    """Return whether there may be maps in a value with keys that the database does not find as Python does.

    A null, which Ladybug's function `map` lets in, is to its other functions what was in that place before (0.22), and
    NaN equals none. Only as text it tells a null: as nothing, which a value may have in it too.
    """
    return f"regexp_matches(concat({value}, ''), '([{{]|, )(-?nan)?=')"


def _within(value: str, kind: str, part: str, parameter: Parameter) -> Found:
    """What a part of a path leads to, and for a union its members: whether it is there, itself and its type."""
    if kind.startswith("UNION("):
        for tag, of_member in members_of(kind).items():
            yield f"union_tag({value}) = {literal(tag)}", f"union_extract({value}, {literal(tag)})", of_member
    elif kind.startswith("STRUCT("):
        members = members_of(kind)
        if part in members:
            yield "true", f"struct_extract({value}, {literal(part)})", members[part]
    elif kind.startswith("MAP("):
        of_key, of_value = entry_of(kind)
        key = _key(value, of_key, part, parameter)
        if key is not None:
            yield "true", _last(f"map_extract({value}, {key})", of_value), of_value
    elif part in ("offset", "table"):
        place = 1 if part == "table" else 2
        yield "true", f"CAST(split_part(CAST({value} AS STRING), ':', {place}) AS UINT64)", "UINT64"


def _key(value: str, kind: str, part: str, parameter: Parameter) -> str | None:
    """The key of a map of which Python makes a text, in Cypher; `None` if there can be none."""
    if not is_text(part):
        return None
    if kind not in _SHARED and not kind.startswith("UNION("):
        text = cast_text(part, kind)
        return None if text is None else f"CAST({parameter(text)} AS {kind})"
    parts = []
    for there, key, of_key in reached("k", kind, (), parameter):
        if of_key == "INTERVAL":
            if (length := length_of(part)) is not None:
                parts.append(f"({there} AND {interval_length(key)} = CAST('{length}' AS INT128))")
        elif of_key in _SHARED:
            parts.append(f"({there} AND {text_expression(key, of_key)} = {literal(part)})")
        elif (text := cast_text(part, of_key)) is not None:  # functions of items take no parameters
            parts.append(f"({there} AND {key} = CAST({literal(text)} AS {of_key}))")
    return _last(f"list_filter(map_keys({value}), k -> {' OR '.join(parts)})", kind) if parts else None


def _last(items: str, kind: str) -> str:
    """The last item of a list, as Python keeps of several equal keys; null where there is none.

    Not `list_any_value`: where all items are null it makes what another list has (0.22).
    """
    if "STRUCT(" in kind or "UNION(" in kind:  # no list is written: the names in its type may not be parsed
        return f"list_extract({items}, nullif(size({items}), 0))"
    return f"list_extract(nullif({items}, []), -1)"


def item(value: str, place: int) -> tuple[str, str]:
    """Return whether an item of a list is there and not null, and that item.

    Where there is none, the database may give that of another list (0.22).
    """
    one = f"list_slice({value}, {place}, {place})"
    return f"list_unique({one}) = 1", f"list_any_value({one})"

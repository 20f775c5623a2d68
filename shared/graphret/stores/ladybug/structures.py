"""What is inside columns that something else made: members of structures, values of maps, items of lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LIST = re.compile(r"(.*)\[\d*\]", re.DOTALL)
_LISTS = re.compile(r"(\[\d*\])*")
_PLAIN = re.compile(r"[A-Z][A-Z0-9_]*(\(\d+, \d+\))?")


def element(kind: str) -> str | None:
    """Return the type of the items of a list, `None` for another type."""
    found = _LIST.fullmatch(kind)
    return found[1] if found else None


def is_mapping(kind: str) -> bool:
    """Whether values of a type are objects, which equal no operand and have no order."""
    return element(kind) is None and kind.startswith(("STRUCT(", "MAP(", "INTERNAL_ID"))


def members_of(kind: str) -> dict[str, str]:
    """Return the types of the members of a structure or a union by their names.

    The database quotes no names: one in which a type, a comma and another name follow each other is read as two.
    """
    return next(_members(kind, kind.index("(") + 1))[0]


def entry_of(kind: str) -> tuple[str, str]:
    """Return the types of the keys and the values of a map."""
    start = len("MAP(")
    return next((kind[start:end], kind[end + 2 : -1]) for end in _types(kind, start) if kind.startswith(", ", end))


def _members(text: str, at: int) -> Iterator[tuple[dict[str, str], int]]:
    """The members that begin at a place, in each way to read them, and where they end."""
    space = text.find(" ", at)
    while space >= 0:
        name = text[at:space]
        for end in _types(text, space + 1):
            kind = text[space + 1 : end]
            if text.startswith(")", end):
                yield {name: kind}, end + 1
            elif text.startswith(", ", end):
                yield from (({name: kind, **others}, last) for others, last in _members(text, end + 2))
        space = text.find(" ", space + 1)


def _types(text: str, at: int) -> Iterator[int]:
    """Where a type that begins at a place may end."""
    ends: Iterator[int] | list[int]
    if text.startswith(("STRUCT(", "UNION("), at):
        ends = (end for _, end in _members(text, text.index("(", at) + 1))
    elif text.startswith("MAP(", at):
        keys = (key for key in _types(text, at + len("MAP(")) if text.startswith(", ", key))
        ends = (value + 1 for key in keys for value in _types(text, key + 2) if text.startswith(")", value))
    else:
        found = _PLAIN.match(text, at)
        ends = [found.end()] if found else []
    for end in ends:
        if (lists := _LISTS.match(text, end)) is not None:
            yield lists.end()

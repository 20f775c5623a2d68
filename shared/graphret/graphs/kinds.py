"""What kinds of values the properties of a graph have: file formats want to know before the first value is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphret.graphs.rows import json_text

STRING, INTEGER, FLOAT, BOOLEAN, JSON = "string", "integer", "float", "boolean", "json"
SCALARS = (STRING, INTEGER, FLOAT, BOOLEAN)
_LARGEST = 2**63


def kind_of(value: Any) -> str | None:
    """Return the kind of a value, `None` for a missing one.

    It is one of `SCALARS`, ``list of`` one of them, or ``json`` for a map, a list of lists or of several kinds, and a
    whole number of more than 64 bits.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return STRING
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return INTEGER if -_LARGEST <= value < _LARGEST else JSON
    if isinstance(value, float):
        return FLOAT
    if isinstance(value, list | tuple):
        kinds = {kind_of(item) for item in value}
        if not kinds:
            return f"list of {STRING}"
        only = kinds.pop()
        return f"list of {only}" if not kinds and only in SCALARS else JSON
    return JSON


def plain_text(value: Any) -> str:
    """Return a value as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json_text(value)


class Kinds:
    """The kinds of every property, in the order in which they were first seen."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, None]] = {}

    def observe(self, properties: Iterable[Mapping[str, Any]]) -> None:
        """Read the properties of a block."""
        for own in properties:
            for name, value in own.items():
                kind = kind_of(value)
                if kind is not None:
                    self._seen.setdefault(name, {})[kind] = None

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._seen))

    def __getitem__(self, name: str) -> Sequence[str]:
        """The kinds of one property."""
        return sorted(self._seen[name])

    def single(self, name: str) -> str:
        """Return the one scalar kind that holds every value: numbers are ``float``, anything else mixed ``string``."""
        kinds = set(self._seen[name])
        if kinds == {INTEGER, FLOAT}:
            return FLOAT
        only = kinds.pop()
        return only if not kinds and only in SCALARS else STRING

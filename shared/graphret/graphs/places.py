"""Where nodes and edges were read: a file and a line in it, or a position where a file has no lines."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

_PART = re.compile(r"[:,] (?:the |a )?(?:name of a )?(label|property|properties|relation)\b")
_SHOWN = 40
_LISTED = 5


class Places:
    """Where items were read, in words that are made when one is refused.

    Parameters
    ----------
    of
        Returns the place of the item at a position. It is also given what was said of the item, behind its name, and
        may return where the part was read that this is about (`part_of`).
    order
        The positions of the items; as they come by default.
    """

    def __init__(self, of: Callable[[int, str], str], order: NDArray[np.int64] | None = None) -> None:
        self._of = of
        self._order = order

    def at(self, position: int, said: str = "") -> str:
        """Return where an item was read, or the part of it that is spoken of."""
        return self._of(position if self._order is None else int(self._order[position]), said)

    def taken(self, order: NDArray[np.int64]) -> Places:
        """Return the places of the items at positions."""
        return Places(self._of, order if self._order is None else self._order[order])


class Lines:
    """Takes a file and a line, or a row in it, for one item after another: eight bytes each."""

    def __init__(self) -> None:
        self._files: list[str] = []
        self._starts: list[int] = []
        self._lines = array("q")

    def add(self, file: str, line: int) -> None:
        """Remember where the next item was read."""
        if not self._files or self._files[-1] != file:
            self._files.append(file)
            self._starts.append(len(self._lines))
        self._lines.append(line)

    def __getitem__(self, position: int) -> str:
        return place(self._files[bisect_right(self._starts, position) - 1], self._lines[position])

    def places(self) -> Places:
        """Return the places of the items."""
        return Places(lambda position, said: self[position])


def place(file: str, line: int) -> str:
    """Return the words for a line of a file; the rows of a binary file are its lines."""
    return f"{file}, {'row' if file.endswith('.parquet') else 'line'} {line}"


def places_of(found: Iterable[tuple[str, int]]) -> str:
    """Return the words for one or several lines of files, the first few of very many."""
    by_file: dict[str, list[str]] = {}
    for n, (file, line) in enumerate(found):
        if n <= _LISTED:
            by_file.setdefault(file, []).append(str(line) if n < _LISTED else "…")
    return "; ".join(
        f"{file}, lines {', '.join(lines)}" if len(lines) > 1 else f"{file}, line {lines[0]}"
        for file, lines in by_file.items()
    )


def part_of(said: str, kind: str, names: Iterable[str]) -> str | None:
    """Return which of the names a refusal is about.

    Parameters
    ----------
    said
        The words of a store behind the name of a node or an edge, as ``: property 'year' is nested``.
    kind
        ``label``, ``property`` or ``relation``; of another kind there is none.
    """
    found = _PART.match(said)
    if found is None or found[1].replace("properties", "property") != kind:
        return None
    shown = {name: said.find(repr(name)[:_SHOWN], found.end()) for name in names}  # stores cut what is long
    there = [name for name, at in shown.items() if at >= 0]
    return min(there, key=lambda name: (shown[name], -len(name)), default=None)

"""What edges of tables say about rows and columns (SAGE, section 2.1: edge metadata for traversal)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphret.edges import NO_PART
from graphret.nodes import NodeTable
from graphret.text import normalize_name

#: Two columns that share at least this many values, and this share of those of the smaller, can be joined.
MIN_SHARED_VALUES = 2
MIN_SHARED_PART = 0.3

_CACHED = 1 << 14


@dataclass(frozen=True)
class _Columns:
    headers: tuple[str, ...]
    keys: tuple[str, ...]
    values: tuple[frozenset[str], ...]
    all_values: frozenset[str]


@dataclass(frozen=True)
class _Cells:
    first: dict[str, tuple[int, int]]
    padded: tuple[tuple[str, int, int], ...]
    headers: tuple[str, ...]


class TableDetails:
    """Reads the tables among nodes, each once."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._columns = lru_cache(maxsize=_CACHED)(self._read_columns)
        self._cells = lru_cache(maxsize=_CACHED)(self._read_cells)
        self._normalize = lru_cache(maxsize=1 << 18)(normalize_name)

    def joinable(self, left: int, right: int) -> list[list[str]]:
        """Return the columns that two tables can be joined by: the same header, or many values in common.

        Values of digits alone say nothing: ranks and years are the same everywhere.
        """
        a, b = self._columns(left), self._columns(right)
        of_key = {key: header for key, header in zip(reversed(b.keys), reversed(b.headers), strict=True) if key}
        pairs = [[header, of_key[key]] for key, header in zip(a.keys, a.headers, strict=True) if key in of_key]
        if len(a.all_values & b.all_values) >= MIN_SHARED_VALUES:
            for i, mine in enumerate(a.values):
                for j, theirs in enumerate(b.values):
                    shared = len(mine & theirs)
                    if shared < MIN_SHARED_VALUES or shared < MIN_SHARED_PART * min(len(mine), len(theirs)):
                        continue
                    pair = [a.headers[i], b.headers[j]]
                    if pair not in pairs:
                        pairs.append(pair)
        return pairs

    def cell_of(self, table: int, names: Sequence[str]) -> tuple[int, str]:
        """Return the row, counted within the segment, and the column of the first of `names` that a cell says.

        A cell that is the name goes before one that contains it; `NO_PART` and an empty column where none does.
        """
        cells = self._cells(table)
        keys = [self._normalize(name) for name in names]
        for key in keys:
            if key in cells.first:
                row, column = cells.first[key]
                return row, cells.headers[column] if column < len(cells.headers) else ""
        for key in keys:
            for text, row, column in cells.padded:
                if f" {key} " in text:
                    return row, cells.headers[column] if column < len(cells.headers) else ""
        return NO_PART, ""

    def _read_columns(self, position: int) -> _Columns:
        given = self._nodes.properties[position]
        headers = _headers(given)
        keys = tuple(self._normalize(header) for header in headers)
        columns: list[set[str]] = [set() for _ in headers]
        for row in given.get("table_rows") or ():
            for column, cell in zip(columns, row, strict=False):
                key = self._normalize(str(cell))
                if key and not key.replace(" ", "").isnumeric():
                    column.add(key)
        values = tuple(frozenset(column) for column in columns)
        return _Columns(headers, keys, values, frozenset().union(*values))

    def _read_cells(self, position: int) -> _Cells:
        given = self._nodes.properties[position]
        first: dict[str, tuple[int, int]] = {}
        padded = []
        for i, row in enumerate(given.get("table_rows") or ()):
            for j, cell in enumerate(row):
                key = self._normalize(str(cell))
                if key:
                    first.setdefault(key, (i, j))
                    padded.append((f" {key} ", i, j))
        return _Cells(first, tuple(padded), _headers(given))


def _headers(given: Any) -> tuple[str, ...]:
    return tuple(str(header) for header in given.get("table_header") or ())

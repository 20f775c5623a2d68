"""What edges of tables say about rows and columns (SAGE, section 2.1: edge metadata for traversal)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from graphret.edges import NO_PART
from graphret.nodes import NodeTable
from graphret.text import normalize_name

_CACHED = 1 << 14  # tables


class _Table(NamedTuple):
    """The headers of a table by their words, and row and header of the first cell of each text, with spaces around."""

    headers: dict[str, str]
    cells: dict[str, tuple[int, str]]


class TableDetails:
    """Reads the tables among nodes, each once."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._table = lru_cache(maxsize=_CACHED)(self._read)
        self._normalize = lru_cache(maxsize=1 << 18)(normalize_name)

    def joinable(self, left: int, right: int) -> list[list[str]]:
        """Return the columns of the same header in two tables; `graphret.sage.joins` compares their values."""
        ours, theirs = self._table(left).headers, self._table(right).headers
        return [[header, theirs[key]] for key, header in ours.items() if key and key in theirs]

    def cell_of(self, table: int, names: Sequence[str]) -> tuple[int, str]:
        """Return the row, counted within the segment, and the column of the first of `names` that a cell says.

        A cell that is the name goes before one that contains it; `NO_PART` and an empty column where none does.
        """
        cells = self._table(table).cells
        wanted = [f" {self._normalize(name)} " for name in names]
        for name in wanted:
            if name in cells:
                return cells[name]
        return next((at for name in wanted for text, at in cells.items() if name in text), (NO_PART, ""))

    def _read(self, position: int) -> _Table:
        given = self._nodes.properties[position]
        header = [str(one) for one in given.get("table_header") or ()]
        table = _Table({}, {})
        for one in header:
            table.headers.setdefault(self._normalize(one), one)
        for i, row in enumerate(given.get("table_rows") or ()):
            for j, cell in enumerate(row):
                if key := self._normalize(str(cell)):
                    table.cells.setdefault(f" {key} ", (i, header[j] if j < len(header) else ""))
        return table

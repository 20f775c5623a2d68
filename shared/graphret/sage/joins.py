"""Rows of different tables that share the value of a key.

They are found by an index of values: no two rows are ever compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.columns import Records, TextArray, to_json
from graphret.edges import EdgeTable, row_starts
from graphret.nodes import NodeTable
from graphret.sage.codes import Codes
from graphret.sage.names import MAX_NAME_WORDS
from graphret.sage.relinked import Relinked
from graphret.sage.settings import LinkSettings
from graphret.search.analysis import Analyzer
from graphret.splice import ranges
from graphret.stopwords import NAME_STOP_WORDS, is_informative
from graphret.storage import Bundle, Parts
from graphret.text import words as words_of
from graphret.types import Node

#: The relation from a row to the row of another table whose key it says.
JOINS = "JOINS"
#: A column is a key when its different values are at least this share of its cells.
KEY_SHARE = 0.9
#: Two columns that share at least this many values, and this share of those of the
#: smaller, can be joined.
MIN_SHARED_VALUES = 2
MIN_SHARED_PART = 0.3
#: A value in more rows than this joins nothing.
MAX_SHARERS = 1000
#: A value that more key columns have joins nothing, and a row leads to no more rows
#: than this.
MAX_JOINS = 3

_COMMON = re.compile(
    r"yes|no|true|false|none|null|nan?|unknown|other|total|\d+(?:st|nd|rd|th)"
)
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Headers of ids: of what (of the rows themselves where that is left out), and that it
#: is one.
_ID = re.compile(r"(?:(.*) )?(?:id|key|no|nr|number|code)|(.{3,})id")


class _Column(NamedTuple):
    """A column of a table, by its place there."""

    table: str
    place: int
    header: str

    @property
    def text(self) -> str:
        """The column as a text."""
        return f"{self.table}\0{self.place}\0{self.header}"

    @classmethod
    def of(cls, text: str) -> _Column:
        """Return the column that a text stands for."""
        table, place, header = text.split("\0", 2)
        return cls(table, int(place), header)


#: A cell that is not empty: the node that holds it, its row and column there, and the
#: numbers of its column, of its value, 0 where it identifies nothing, and of its text.
CELL = np.dtype(
    [
        ("node", np.int32),
        ("row", np.int32),
        ("column", np.int32),
        ("value", np.int32),
        ("text", np.int32),
    ]
)


def join_links(nodes: NodeTable, settings: LinkSettings | None = None) -> EdgeTable:
    """Return a ``JOINS`` edge for every two rows that share the value of a key.

    The rows are of different tables. A key is a column whose values differ; the other
    column may repeat them, as many orders name one customer. The edge leads to the row
    that the key identifies, between two keys to the later row. It has the two rows; its
    properties are the value, ``name``, and ``columns``, the headers at both ends.
    Numbers join only columns whose headers say that they identify the same:
    ``customer_id`` and ``customer_id``, or ``id`` in a table of customers.
    """
    change = Change.whole(nodes)
    return TableCells().changed(change, settings or LinkSettings())[1].edges


@dataclass(frozen=True, eq=False)
class TableCells:
    """The cells of all tables that are not empty, in the order of their nodes."""

    columns: Codes = field(default_factory=Codes)
    values: Codes = field(default_factory=lambda: Codes([""]))
    texts: Codes = field(default_factory=Codes)
    cells: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, CELL))

    def changed(
        self, change: Change, settings: LinkSettings
    ) -> tuple[TableCells, Relinked]:
        """Return the cells after a change, and the links that it makes anew.

        Only the fresh nodes are read. All links are made anew where the change touches
        a cell, as what is a key depends on all cells.
        """
        nodes = change.moved[self.cells["node"]]
        fresh = zip(change.fresh.tolist(), change.nodes, strict=True)
        made = np.fromiter(
            ((at, *cell) for at, node in fresh for cell in self._cells(node)), CELL
        )
        cells, n_nodes = self.cells.copy(), len(change.after)
        cells["node"] = nodes
        after, edges = replace(self, cells=cells), EdgeTable.empty(n_nodes)
        touched = bool(len(made) or (nodes < 0).any())
        if touched:
            cells = np.concatenate([cells[nodes >= 0], made])
            order = np.argsort(cells["node"], kind="stable")
            after = TableCells(
                self.columns.packed(),
                self.values.packed(),
                self.texts.packed(),
                cells[order],
            )
            edges = after._edges(n_nodes, settings)
        return after, Relinked((JOINS,), np.full(n_nodes, touched), edges)

    def parts(self) -> Parts:
        """The cells as they are saved."""
        parts = Parts({"cells": self.cells})
        for name in ("columns", "values", "texts"):
            parts.add(name, getattr(self, name).parts())
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> TableCells:
        """Open saved cells."""
        columns, values, texts = (
            Codes.from_bundle(bundle.sub(name))
            for name in ("columns", "values", "texts")
        )
        return cls(columns, values, texts, bundle.arrays["cells"])

    def _cells(self, node: Node) -> Iterator[tuple[int, int, int, int]]:
        """Yield the cells of a node, in the order of `CELL`."""
        given = node.properties
        headers = [str(cell) for cell in given.get("table_header") or ()]
        table = str(given.get("source_id") or node.id)
        for row, cells in enumerate(given.get("table_rows") or ()):
            for place, text in enumerate(map(str.strip, map(str, cells))):
                if text:
                    header = headers[place] if place < len(headers) else ""
                    key = _key(text, _subject(header, node.name))
                    column = self.columns.of(_Column(table, place, header).text)
                    yield row, column, self.values.of(key), self.texts.of(text)

    def _edges(self, n_nodes: int, settings: LinkSettings) -> EdgeTable:
        """Return the edges between rows that share the value of a key."""
        cells = _Cells.of(self if settings.join_weight else TableCells())
        is_key = cells.key_columns()
        pairs = _pairs_of_equal_value(cells, is_key)
        pairs = _pairs_between_tables(pairs, cells, is_key)
        pairs = _pairs_of_joinable_columns(pairs, cells)
        pairs = _rarest_pairs_of_each_row(pairs, cells)
        return _edges(pairs, cells, n_nodes, settings.join_weight)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells that identify something, with values, columns and rows as numbers.

    `value`, `column` and `row` are those of each cell, ``(c,)``. By these numbers
    `spellings` are the values as they are first written, `columns` what they stand for,
    `rows` the node and the row in it; `filled` says how many cells of each column are
    not empty, and `distinct` how many different values it has.
    """

    value: NDArray[np.int64]
    column: NDArray[np.int64]
    row: NDArray[np.int64]
    spellings: list[str]
    columns: list[_Column]
    rows: NDArray[np.int64]
    filled: NDArray[np.int64]
    distinct: NDArray[np.int64]

    @classmethod
    def of(cls, known: TableCells) -> _Cells:
        """Number the values, columns and rows of cells without gaps."""
        cells = known.cells
        columns, column = np.unique(cells["column"], return_inverse=True)
        new_row = np.diff(cells["node"], prepend=-1) != 0
        new_row |= np.diff(cells["row"], prepend=-1) != 0
        row = np.cumsum(new_row) - 1
        values, first, value = np.unique(
            cells["value"], return_index=True, return_inverse=True
        )
        tells = cells["value"] > 0
        value, of_value = value[tells], column[tells]
        return cls(
            value=value,
            column=of_value,
            row=row[tells],
            spellings=known.texts.at(cells["text"][first]),
            columns=[*map(_Column.of, known.columns.at(columns))],
            rows=np.stack([cells["node"], cells["row"]], axis=1)[new_row].astype(int),
            filled=np.bincount(column, minlength=len(columns)),
            distinct=_count_distinct(of_value, value, len(columns), len(values)),
        )

    def key_columns(self) -> NDArray[np.bool_]:
        """Return which columns are keys."""
        return (self.distinct > 1) & (self.distinct >= KEY_SHARE * self.filled)


class _Pairs(NamedTuple):
    """Pairs of cells, by their places in `_Cells`: that on the right is of a key."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]

    def at(self, chosen: NDArray[Any]) -> _Pairs:
        """Return some of the pairs."""
        return _Pairs(self.left[chosen], self.right[chosen])


def _pairs_of_equal_value(cells: _Cells, is_key: NDArray[np.bool_]) -> _Pairs:
    """Return each cell with every cell of a key column that has the same value."""
    n_values = len(cells.spellings)
    in_keys = np.flatnonzero(is_key[cells.column])
    in_keys = in_keys[np.argsort(cells.value[in_keys], kind="stable")]
    key_values = cells.value[in_keys]
    n_in_keys = np.bincount(key_values, minlength=n_values)
    n_cells = np.bincount(cells.value, minlength=n_values)
    joins = (n_in_keys <= MAX_JOINS) & (n_cells <= MAX_SHARERS)
    left = np.flatnonzero(joins[cells.value])
    values = cells.value[left]
    right = in_keys[ranges(row_starts(key_values, n_values), values)]
    return _Pairs(np.repeat(left, n_in_keys[values]), right)


def _pairs_between_tables(
    pairs: _Pairs, cells: _Cells, is_key: NDArray[np.bool_]
) -> _Pairs:
    """Return the pairs of different tables; of those of two keys one direction."""
    tables = np.unique([column.table for column in cells.columns], return_inverse=True)
    left, right = cells.column[pairs.left], cells.column[pairs.right]
    differ = tables[1][left] != tables[1][right]
    # two keys find each other twice
    forward = ~is_key[left] | (cells.row[pairs.left] < cells.row[pairs.right])
    return pairs.at(differ & forward)


def _pairs_of_joinable_columns(pairs: _Pairs, cells: _Cells) -> _Pairs:
    """Return the pairs whose two columns share enough values."""
    n_columns, n_values = len(cells.columns), len(cells.spellings)
    joins, join_of_pair = np.unique(
        cells.column[pairs.left] * n_columns + cells.column[pairs.right],
        return_inverse=True,
    )
    values = cells.value[pairs.left]
    shared = _count_distinct(join_of_pair, values, len(joins), n_values)
    smaller = np.minimum(
        cells.distinct[joins // n_columns], cells.distinct[joins % n_columns]
    )
    joinable = (shared >= MIN_SHARED_VALUES) & (shared >= MIN_SHARED_PART * smaller)
    return pairs.at(joinable[join_of_pair])


def _rarest_pairs_of_each_row(pairs: _Pairs, cells: _Cells) -> _Pairs:
    """Return of each row on the left those of its pairs whose values are rarest."""
    n_cells = np.bincount(cells.value, minlength=len(cells.spellings))
    left, right = cells.row[pairs.left], cells.row[pairs.right]
    order = np.lexsort((right, n_cells[cells.value[pairs.left]], left))
    starts = left[order]
    rank = np.arange(len(order)) - np.searchsorted(starts, starts)
    return pairs.at(order[rank < MAX_JOINS])


def _count_distinct(
    group: NDArray[np.int64], value: NDArray[np.int64], n_groups: int, n_values: int
) -> NDArray[np.int64]:
    """Return how many different values each group has."""
    different = np.unique(group * n_values + value)
    return np.bincount(different // n_values, minlength=n_groups)


def _edges(pairs: _Pairs, cells: _Cells, n_nodes: int, weight: float) -> EdgeTable:
    """Return an edge for each pair, from the row on the left to that on the right."""
    source, source_row = cells.rows[cells.row[pairs.left]].T
    target, target_row = cells.rows[cells.row[pairs.right]].T
    properties = [
        to_json(
            {
                "name": cells.spellings[value],
                "columns": [[cells.columns[left].header, cells.columns[right].header]],
            }
        )
        for value, left, right in zip(
            cells.value[pairs.left].tolist(),
            cells.column[pairs.left].tolist(),
            cells.column[pairs.right].tolist(),
            strict=True,
        )
    ]
    return EdgeTable.build(
        n_nodes,
        source,
        target,
        relation=np.zeros(len(source), np.int16),
        relations=[JOINS],
        weight=np.full(len(source), weight),
        source_row=source_row,
        target_row=target_row,
        properties=Records(TextArray.of(properties)),
    )


def _key(cell: str, subject: str) -> str:
    """Return the value of a cell for comparison, a number with what it is of.

    It is empty where the cell identifies nothing.
    """
    # integers end in ".0" where their column has gaps
    words = words_of(cell.removesuffix(".0"))
    if not words or len(words) > MAX_NAME_WORDS:
        return ""
    if all(word.isdigit() for word in words):
        return f"{subject}\0{' '.join(words)}" if subject else ""
    uncommon = [word for word in words if not _COMMON.fullmatch(word)]
    return " ".join(words) if is_informative(uncommon, NAME_STOP_WORDS) else ""


@lru_cache(maxsize=1 << 14)
def _subject(header: str, table: str) -> str:
    """Return what the ids of a column identify.

    That is ``customer`` for ``customer_id``, and for ``id`` of customers.
    """
    match = _ID.fullmatch(" ".join(words_of(_CAMEL_CASE.sub(" ", header))))
    return " ".join(Analyzer()(match[1] or match[2] or table)) if match else ""

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
from graphret.numeric import gathered, ranges, unique
from graphret.sage.codes import Codes
from graphret.sage.facts import NodeFacts
from graphret.sage.names import MAX_NAME_WORDS
from graphret.sage.relinked import Relinked
from graphret.sage.settings import LinkSettings
from graphret.search.analysis import Analyzer
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


#: A cell that is not empty: its row in its node, and the numbers of its column, of its
#: value, 0 where it identifies nothing, and of its text.
CELL = np.dtype([(name, np.int32) for name in ("row", "column", "value", "text")])


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
    facts, settings = NodeFacts().changed(change), settings or LinkSettings()
    return TableCells().changed(change, facts, settings)[1].edges


@dataclass(frozen=True, eq=False)
class TableCells:
    """The cells of all tables that are not empty, in the order of their nodes.

    Parameters
    ----------
    columns, values, texts
        What the cells have numbers for.
    tables, table_of
        Numbers for tables, and that of each column's table, by the column's number.
    cells, nodes
        The cells, and the node that holds each, ``(c,)`` both.
    """

    columns: Codes = field(default_factory=Codes)
    values: Codes = field(default_factory=lambda: Codes([""]))
    texts: Codes = field(default_factory=Codes)
    tables: Codes = field(default_factory=Codes)
    table_of: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    cells: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, CELL))
    nodes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def changed(
        self, change: Change, facts: NodeFacts, settings: LinkSettings
    ) -> tuple[TableCells, Relinked]:
        """Return the cells after a change, and the links that it makes anew.

        Only the fresh tables are read. All links are made anew where the change touches
        a cell, as what is a key depends on all cells. `facts` are those after it.
        """
        tables = change.fresh[facts.is_table[change.fresh]]
        nodes = gathered(change.moved, self.nodes)
        n_cells = list[int]()

        def read() -> Iterator[tuple[int, int, int, int]]:
            for _, node in change.read(tables):
                cells_of_node = [*self._cells(node)]
                n_cells.append(len(cells_of_node))
                yield from cells_of_node

        made = np.fromiter(read(), CELL)
        after, n_nodes = replace(self, nodes=nodes), len(change.after)
        edges = EdgeTable.empty(n_nodes)
        touched = bool(len(made) or (nodes < 0).any())
        if touched:
            cells = np.concatenate([self.cells, made])
            holding = np.repeat(tables, n_cells).astype(np.int32)
            nodes = np.concatenate([nodes, holding])
            order = np.argsort(nodes, kind="stable")
            order = order[nodes[order] >= 0]
            after = replace(
                self,
                columns=self.columns.packed(),
                values=self.values.packed(),
                texts=self.texts.packed(),
                table_of=self._table_of_each(),
                cells=cells[order],
                nodes=nodes[order],
            )
            edges = after._edges(n_nodes, settings)
        return after, Relinked((JOINS,), np.full(n_nodes, touched), edges)

    def parts(self) -> Parts:
        """The cells as they are saved."""
        parts = Parts({"cells": self.cells, "nodes": self.nodes})
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
        cells, nodes = (bundle.arrays[name] for name in ("cells", "nodes"))
        known = cls(columns, values, texts, cells=cells, nodes=nodes)
        return replace(known, table_of=known._table_of_each())

    def _table_of_each(self) -> NDArray[np.int32]:
        """Return the number of each column's table, after new columns came."""
        new = self.columns.at(np.arange(len(self.table_of), len(self.columns)))
        tables = self.tables.of_each(_Column.of(text).table for text in new)
        return np.append(self.table_of, np.asarray(tables, np.int32))

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
        source, source_row = cells.rows[cells.row[pairs.left]].T
        target, target_row = cells.rows[cells.row[pairs.right]].T
        return EdgeTable.build(
            n_nodes,
            source,
            target,
            relation=np.zeros(len(source), np.int16),
            relations=[JOINS],
            weight=np.full(len(source), settings.join_weight),
            source_row=source_row,
            target_row=target_row,
            properties=Records(TextArray.of(self._about(pairs, cells))),
        )

    def _about(self, pairs: _Pairs, cells: _Cells) -> Iterator[str]:
        """Yield what the edge of each pair tells: the value, and both headers."""
        spellings = self.texts.at(cells.texts[cells.value[pairs.left]])
        left_columns, right_columns = (
            map(_Column.of, self.columns.at(cells.columns[cells.column[side]]))
            for side in (pairs.left, pairs.right)
        )
        for spelling, left, right in zip(
            spellings, left_columns, right_columns, strict=True
        ):
            yield to_json({"name": spelling, "columns": [[left.header, right.header]]})


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells that identify something, with values, columns and rows as numbers.

    `value`, `column` and `row` are those of each cell, ``(c,)``. By these numbers
    `texts` and `columns` are what they have numbers for in `TableCells`: the value as
    it is first written, and the column; `tables` are the tables of the columns, and
    `rows` the node and the row in it. `filled` says how many cells of each column are
    not empty, and `distinct` how many different values it has.
    """

    value: NDArray[np.int64]
    column: NDArray[np.int64]
    row: NDArray[np.int64]
    texts: NDArray[np.int32]
    columns: NDArray[np.int32]
    tables: NDArray[np.int32]
    rows: NDArray[np.int64]
    filled: NDArray[np.int64]
    distinct: NDArray[np.int64]

    @classmethod
    def of(cls, known: TableCells) -> _Cells:
        """Number the values, columns and rows of cells without gaps."""
        cells = known.cells
        columns, column = np.unique(cells["column"], return_inverse=True)
        new_row = np.diff(known.nodes, prepend=-1) != 0
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
            texts=cells["text"][first],
            columns=columns,
            tables=known.table_of[columns],
            rows=np.stack([known.nodes, cells["row"]], axis=1)[new_row].astype(int),
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
    n_values = len(cells.texts)
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
    left, right = cells.column[pairs.left], cells.column[pairs.right]
    differ = cells.tables[left] != cells.tables[right]
    # two keys find each other twice
    forward = ~is_key[left] | (cells.row[pairs.left] < cells.row[pairs.right])
    return pairs.at(differ & forward)


def _pairs_of_joinable_columns(pairs: _Pairs, cells: _Cells) -> _Pairs:
    """Return the pairs whose two columns share enough values."""
    n_columns, n_values = len(cells.columns), len(cells.texts)
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
    n_cells = np.bincount(cells.value, minlength=len(cells.texts))
    left, right = cells.row[pairs.left], cells.row[pairs.right]
    order = np.lexsort((right, n_cells[cells.value[pairs.left]], left))
    starts = left[order]
    rank = np.arange(len(order)) - np.searchsorted(starts, starts)
    return pairs.at(order[rank < MAX_JOINS])


def _count_distinct(
    group: NDArray[np.int64], value: NDArray[np.int64], n_groups: int, n_values: int
) -> NDArray[np.int64]:
    """Return how many different values each group has."""
    different = unique(group * n_values + value)
    return np.bincount(different // n_values, minlength=n_groups)


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

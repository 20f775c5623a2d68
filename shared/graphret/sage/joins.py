"""Rows of different tables that share the value of a key, by an index of values: no two rows are ever compared.

Beyond the SAGE paper, as are the links by names.
"""

from __future__ import annotations

import re

import numpy as np

from graphret._edge_order import ranges, row_starts
from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.sage.edge_rows import edge_table
from graphret.sage.links import LinkSettings, speaks
from graphret.search.analysis import Analyzer
from graphret.strings import to_json
from graphret.text import words as words_of

#: The relation from a row to the row of another table whose key it says.
JOINS = "JOINS"

_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Headers of ids: of what (of the table's own rows where that is left out), and that it is one.
_ID = re.compile(r"(?:(.*) )?(?:id|key|no|nr|number|code)|(.{3,})id")
#: Words that identify nothing.
_COMMON = re.compile(
    r"yes|no|true|false|none|null|nan?|unknown|other|total|\d+(?:st|nd|rd|th)|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|"
    r"sat(?:ur)?|sun)(?:day)?|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_analyzer = Analyzer()


def join_links(nodes: NodeTable, settings: LinkSettings | None = None) -> EdgeTable:
    """Return a ``JOINS`` edge for every two rows of different tables that share the value of a key.

    A key is a column whose values differ; the other column may repeat them, as many orders name one customer. The edge
    leads to the row that the key identifies, between two keys to the later row. Its parts are the rows, its properties
    the value, ``name``, and ``columns``, the headers at both ends. Numbers join only columns whose headers say that
    they identify the same: ``customer_id`` and ``customer_id``, or ``id`` in a table of customers.
    """
    settings = settings or LinkSettings()
    cells = _Cells(nodes, settings.max_name_words)
    value, column, row = np.asarray(cells.found, dtype=np.int64).reshape(-1, 3).T
    if not len(value) or not settings.join_weight:
        return EdgeTable.empty(len(nodes))
    n, n_columns = len(cells.spelled), len(cells.columns)
    distinct = np.bincount(np.unique(column * n + value) // n, minlength=n_columns)
    is_key = (distinct > 1) & (distinct >= settings.key_share * np.asarray(cells.filled))
    keys = np.flatnonzero(is_key[column])
    keys = keys[np.argsort(value[keys], kind="stable")]
    owners, bearers = (np.bincount(value[at], minlength=n) for at in (keys, slice(None)))
    fits = (owners > 0) & (owners <= settings.max_joins) & (bearers <= settings.max_sharers)
    left = np.flatnonzero(fits[value])
    right = keys[ranges(row_starts(value[keys], n), value[left])]
    left = np.repeat(left, owners[value[left]])

    table = np.unique([name for name, _, _ in cells.columns], return_inverse=True)[1]
    kept = table[column[left]] != table[column[right]]
    kept &= ~is_key[column[left]] | (row[left] < row[right])  # two keys find each other twice
    left, right = left[kept], right[kept]
    pair, which = np.unique(column[left] * n_columns + column[right], return_inverse=True)
    shared = np.bincount(np.unique(which * n + value[left]) // n, minlength=len(pair))
    fewest = np.minimum(distinct[pair // n_columns], distinct[pair % n_columns])
    kept = ((shared > 1) & (shared >= settings.min_joined * fewest))[which]
    left, right = left[kept], right[kept]

    order = np.lexsort((row[right], bearers[value[left]], row[left]))  # of each row the rarest values first
    left, right = left[order], right[order]
    first = np.sort(np.unique(row[left] * len(cells.rows) + row[right], return_index=True)[1])
    first = first[np.arange(len(first)) - np.searchsorted(row[left[first]], row[left[first]]) < settings.max_joins]
    left, right = left[first], right[first]
    (source, source_part), (target, target_part) = (np.asarray(cells.rows)[row[end]].T for end in (left, right))
    headers = [header for _, _, header in cells.columns]
    properties = [
        to_json({"name": cells.spelled[v], "columns": [[headers[i], headers[j]]]})
        for v, i, j in zip(value[left].tolist(), column[left].tolist(), column[right].tolist(), strict=True)
    ]
    weight = np.full(len(left), settings.join_weight)
    return edge_table(len(nodes), source, target, JOINS, weight, (source_part, target_part), properties)


class _Cells:
    """The cells of all tables that can join."""

    def __init__(self, nodes: NodeTable, max_words: int) -> None:
        self.found: list[int] = []  # value, column and row of each
        self.spelled: list[str] = []  # each value as it is first written
        self.columns: dict[tuple[str, int, str], int] = {}  # by table, place and header
        self.filled: list[int] = []  # cells of each column that are not empty
        self.rows: list[tuple[int, int]] = []  # node and part of each
        values: dict[str, int] = {}
        subjects: list[str] = []
        for position, given in enumerate(nodes.properties):
            header = [str(cell) for cell in given.get("table_header") or ()]
            table = str(given.get("source_id") or nodes.ids[position])
            for part, row in enumerate(given.get("table_rows") or ()):
                for nth, cell in enumerate(map(str, row)):
                    name = header[nth] if nth < len(header) else ""
                    column = self.columns.setdefault((table, nth, name), len(self.columns))
                    if column == len(subjects):
                        subjects.append(_subject(name, nodes.names[position]))
                        self.filled.append(0)
                    self.filled[column] += bool(cell.strip())
                    key = _key(cell, subjects[column], max_words)
                    if key:
                        value = values.setdefault(key, len(values))
                        if value == len(self.spelled):
                            self.spelled.append(cell.strip())
                        self.found += (value, column, len(self.rows))
                self.rows.append((position, part))


def _key(cell: str, subject: str, max_words: int) -> str:
    """Return the value of a cell for comparison, empty where it identifies nothing; numbers with what they are of."""
    words = words_of(cell.removesuffix(".0"))  # so are integers written in a column that has gaps
    if not words or len(words) > max_words:
        return ""
    if all(word.isdigit() for word in words):
        return f"{subject}\0{' '.join(words)}" if subject else ""
    return " ".join(words) if speaks([word for word in words if not _COMMON.fullmatch(word)]) else ""


def _subject(header: str, table: str) -> str:
    """Return what the ids of a column identify: ``customer`` for ``customer_id``, and for ``id`` of customers."""
    found = _ID.fullmatch(" ".join(words_of(_CAMEL_CASE.sub(" ", header))))
    return " ".join(_analyzer(found[1] or found[2] or table)) if found else ""

"""Rows of different tables that share the value of a key, by an index of values: no two
rows are ever compared.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from graphret.columns import Records, text_array, to_json
from graphret.edges import EdgeTable, ranges, row_starts
from graphret.nodes import NodeTable
from graphret.sage.names import MAX_NAME_WORDS, is_informative
from graphret.sage.settings import LinkSettings
from graphret.search.analysis import Analyzer
from graphret.text import words as words_of

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


def join_links(nodes: NodeTable, settings: LinkSettings | None = None) -> EdgeTable:
    """Return a ``JOINS`` edge for every two rows of different tables that share the
    value of a key.

    A key is a column whose values differ; the other column may repeat them, as many
    orders name one customer. The edge leads to the row that the key identifies, between
    two keys to the later row. Its parts are the rows, its properties the value,
    ``name``, and ``columns``, the headers at both ends. Numbers join only columns whose
    headers say that they identify the same: ``customer_id`` and ``customer_id``, or
    ``id`` in a table of customers.
    """
    settings = settings or LinkSettings()
    values: dict[str, int] = {}
    spelled: list[str] = []
    columns: dict[tuple[str, int, str], int] = {}  # by table, place and header
    rows: dict[tuple[int, int], int] = {}  # by node and part
    found = array("q")
    for key, cell, place, at in _cells(nodes) if settings.join_weight else ():
        found.append(values.setdefault(key, len(values)))
        found.extend(
            (columns.setdefault(place, len(columns)), rows.setdefault(at, len(rows)))
        )
        spelled += [cell] * (len(values) - len(spelled))
    cells = np.asarray(found).reshape(-1, 3)
    filled = np.bincount(cells[:, 1])
    value, column, row = cells[cells[:, 0] != values.get("", -1)].T
    n, width = len(values), len(columns)
    distinct = np.bincount(np.unique(column * n + value) // n, minlength=width)
    is_key = (distinct > 1) & (distinct >= KEY_SHARE * filled)
    keys = np.flatnonzero(is_key[column])
    keys = keys[np.argsort(value[keys], kind="stable")]
    owners, bearers = (
        np.bincount(value[at], minlength=n) for at in (keys, slice(None))
    )
    left = np.flatnonzero(((owners <= MAX_JOINS) & (bearers <= MAX_SHARERS))[value])
    right = keys[ranges(row_starts(value[keys], n), value[left])]
    left = np.repeat(left, owners[value[left]])

    table = np.unique([name for name, _, _ in columns], return_inverse=True)[1]
    kept = table[column[left]] != table[column[right]]
    kept &= ~is_key[column[left]] | (
        row[left] < row[right]
    )  # two keys find each other twice
    left, right = left[kept], right[kept]
    pair, which = np.unique(column[left] * width + column[right], return_inverse=True)
    shared = np.bincount(np.unique(which * n + value[left]) // n, minlength=len(pair))
    fewer = np.minimum(distinct[pair // width], distinct[pair % width])
    kept = ((shared >= MIN_SHARED_VALUES) & (shared >= MIN_SHARED_PART * fewer))[which]
    left, right = left[kept], right[kept]

    order = np.lexsort(
        (row[right], bearers[value[left]], row[left])
    )  # of each row the rarest values first
    start = row[left[order]]
    order = order[np.arange(len(order)) - np.searchsorted(start, start) < MAX_JOINS]
    left, right = left[order], right[order]
    headers, places = (
        [header for _, _, header in columns],
        np.asarray(list(rows), dtype=np.int64).reshape(-1, 2),
    )
    said = zip(
        *(codes.tolist() for codes in (value[left], column[left], column[right])),
        strict=True,
    )
    properties = [
        to_json({"name": spelled[v], "columns": [[headers[i], headers[j]]]})
        for v, i, j in said
    ]
    (source, source_row), (target, target_row) = (
        places[row[end]].T for end in (left, right)
    )
    weight = np.full(len(left), settings.join_weight)
    codes, records = np.zeros(len(left), np.int16), Records(text_array(properties))
    return EdgeTable.build(
        len(nodes),
        source,
        target,
        codes,
        [JOINS],
        weight,
        source_row,
        target_row,
        records,
    )


def _cells(
    nodes: NodeTable,
) -> Iterator[tuple[str, str, tuple[str, int, str], tuple[int, int]]]:
    """Yield of every cell that is not empty its value for comparison, its text, its
    column and its row.
    """
    for position, (title, given) in enumerate(
        zip(nodes.names, nodes.properties, strict=True)
    ):
        header = [str(cell) for cell in given.get("table_header") or ()]
        table = str(given.get("source_id") or nodes.ids[position])
        for part, row in enumerate(given.get("table_rows") or ()):
            for nth, cell in enumerate(map(str.strip, map(str, row))):
                if cell:
                    name = header[nth] if nth < len(header) else ""
                    key = _key(cell, _subject(name, title))
                    yield key, cell, (table, nth, name), (position, part)


def _key(cell: str, subject: str) -> str:
    """Return the value of a cell for comparison, empty where it identifies nothing;
    numbers with what they are of.
    """
    words = words_of(
        cell.removesuffix(".0")
    )  # so are integers written in a column that has gaps
    if not words or len(words) > MAX_NAME_WORDS:
        return ""
    if all(word.isdigit() for word in words):
        return f"{subject}\0{' '.join(words)}" if subject else ""
    return (
        " ".join(words)
        if is_informative([word for word in words if not _COMMON.fullmatch(word)])
        else ""
    )


@lru_cache(maxsize=1 << 14)
def _subject(header: str, table: str) -> str:
    """Return what the ids of a column identify: ``customer`` for ``customer_id``, and
    for ``id`` of customers.
    """
    found = _ID.fullmatch(" ".join(words_of(_CAMEL_CASE.sub(" ", header))))
    return " ".join(Analyzer()(found[1] or found[2] or table)) if found else ""

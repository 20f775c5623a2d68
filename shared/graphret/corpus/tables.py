"""Read tables in text, with the place of every row: delimited values and Markdown."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import mode
from typing import Any, NamedTuple

from graphret.corpus.markdown import outside_code
from graphret.corpus.names import file_of
from graphret.errors import InvalidInput

_CSV = re.compile(r"\.(?:csv|tsv)$", re.IGNORECASE)
_PIPE_TABLE = re.compile(
    r"""^(?=.*\|) (?P<header>.*)\n
    (?P<rule>[ \t]*(?:\|[ \t]*)?:?-+:?[^\S\n]*(?:\|[ \t]*:?-+:?[^\S\n]*)*(?:\|[^\S\n]*)?)(?:\n|\Z)
    (?P<rows>(?:(?=.*\|).*(?:\n|\Z))*)""",
    re.MULTILINE | re.VERBOSE,
)
_EXCEL_DELIMITER = re.compile(r'\ufeff?"?sep=(.)"?\s*\Z', re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*(?:"|\Z)')
_LONGEST_CELL = 2**31 - 1  # what fits a C long everywhere
_CELL_END = re.compile(r"(?<!\\)\|")


class TextTable(NamedTuple):
    """A table, its place in the text, and where each of its rows ends there."""

    start: int
    end: int
    header: list[str]
    rows: list[list[str]]
    row_ends: list[int]


def is_delimited(metadata: Mapping[str, Any]) -> bool:
    """Whether the metadata of a document or chunk name a file of delimited values."""
    return _CSV.search(file_of(metadata)) is not None


def is_tabbed(metadata: Mapping[str, Any]) -> bool:
    """Whether the metadata of a document or chunk name a file of tab-separated values."""
    return file_of(metadata).lower().endswith(".tsv")


def delimited(
    text: str, *, exact: bool = False, tabs: bool = False, literal_quotes: bool = False
) -> list[TextTable]:
    """Return the table in delimited values, or none.

    The first line names the columns, unless LlamaIndex's CSV reader joined the rows by
    a comma and a space, which loses the header and the quotes of cells.

    Parameters
    ----------
    exact
        Whether the first line always names the columns, rows keep their lengths, and an
        unclosed quote raises `InvalidInput`.
    tabs
        Whether tabs separate the cells, as in ``.tsv`` files. Otherwise Excel's line
        ``sep=;`` names the delimiter, or it is the most frequent one of ``,;\\t|``
        outside quotes in the first line.
    literal_quotes
        Whether quotes are ordinary characters.
    """
    lines = [*io.StringIO(text, newline="")]
    starts = [0, *accumulate(map(len, lines))]
    delimiter, above = _delimiter(lines, tabs)
    reader = csv.reader(
        (line.removeprefix("\ufeff") for line in lines[above:]),
        delimiter=delimiter,
        skipinitialspace=not tabs,
        strict=exact,
        quoting=csv.QUOTE_NONE if literal_quotes else csv.QUOTE_MINIMAL,
    )
    # The limit holds for the whole process; never lower it.
    csv.field_size_limit(max(csv.field_size_limit(), min(len(text), _LONGEST_CELL)))
    rows: list[list[str]] = []
    row_ends: list[int] = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(cells)
                last = above + reader.line_num - 1
                row_ends.append(starts[last] + len(lines[last].rstrip()))
    except csv.Error as error:
        raise InvalidInput(f"line {above + reader.line_num}: {error}") from error
    if not rows:
        return []
    joined = (
        not exact
        and delimiter == ","
        and ',"' not in text
        and 2 * text.count(", ") > text.count(",")
    )
    if joined:
        header = [f"column {i + 1}" for i in range(mode(map(len, rows)))]
    else:
        header = [*map(str.strip, rows.pop(0))]
        del row_ends[0]
    if not exact:
        rows = [fitted(cells, len(header), ", ") for cells in rows]
    return [TextTable(0, len(text), header, rows, row_ends)]


def _delimiter(lines: Sequence[str], tabs: bool) -> tuple[str, int]:
    """Return the delimiter of cells, and the number of lines above the table."""
    at = next((i for i, line in enumerate(lines) if line.strip("\ufeff \t\r\n")), 0)
    first = lines[at] if lines else ""
    if declared := _EXCEL_DELIMITER.match(first):
        return declared[1], at + 1
    bare = _QUOTED.sub("", first)
    return "\t" if tabs else max(",;\t|", key=bare.count), at


def keyed(texts: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of texts that are one row each, in ``key: value`` lines.

    The header has the keys that all texts share.
    """
    keys = [
        dict.fromkeys(
            line.partition(":")[0] for line in text.split("\n") if ":" in line
        )
        for text in texts
    ]
    header = [key for key in keys[0] if all(key in text_keys for text_keys in keys)]
    key_at = re.compile(rf"^({'|'.join(map(re.escape, header))}):", re.MULTILINE)
    parts = [key_at.split(text) if header else [] for text in texts]
    rows = [
        dict(zip(row_parts[1::2], row_parts[2::2], strict=True)) for row_parts in parts
    ]
    return [key.strip() for key in header], [
        [row[key].strip() for key in header] for row in rows
    ]


def pipe_tables(text: str) -> list[TextTable]:
    """Return the pipe tables of Markdown in a text, in order, except in fenced code."""
    tables: list[TextTable] = []
    for match in _PIPE_TABLE.finditer(outside_code(text) if "|" in text else ""):
        header, lines = (
            _cells(match["header"]),
            [*io.StringIO(match["rows"], newline="\n")],
        )
        if len(_cells(match["rule"])) == len(header):
            rows = [fitted(_cells(line), len(header), " | ") for line in lines]
            starts = accumulate(map(len, lines), initial=match.start("rows"))
            row_ends = [
                start + len(line.rstrip())
                for start, line in zip(starts, lines, strict=False)
            ]
            end = match.start() + len(match[0].removesuffix("\n"))
            tables.append(TextTable(match.start(), end, header, rows, row_ends))
    return tables


def fitted(cells: Sequence[str], width: int, joint: str) -> list[str]:
    """Return exactly `width` cells: padded, or with the surplus joined into the last.

    Empty cells at the end of the surplus are dropped.
    """
    row = list(cells)
    while len(row) > width and not row[-1].strip():
        row.pop()
    last = width - 1
    return [*row[:last], joint.join(row[last:]), *[""] * (last - len(row))]


def _cells(line: str) -> list[str]:
    """Return the cells of a line of a pipe table."""
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(inner)]

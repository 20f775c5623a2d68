"""Tables as text, with the place of every row: delimited values, and pipe tables of
Markdown.
"""

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
_CELL_END = re.compile(r"(?<!\\)\|")


class TextTable(NamedTuple):
    """A table and its place in the text, and where each of its rows ends in that."""

    start: int
    end: int
    header: list[str]
    rows: list[list[str]]
    ends: list[int]


def is_delimited(metadata: Mapping[str, Any]) -> bool:
    """Whether the metadata of a document or chunk say that its file is one of delimited
    values.
    """
    return _CSV.search(file_of(metadata)) is not None


def delimited(text: str, *, exact: bool = False) -> list[TextTable]:
    """Return the table that delimited values are, cut at that of ``,;\\t|`` which the
    first line has most of.

    That line names the columns, unless LlamaIndex's reader of CSV joined the rows by a
    comma and a space, by which they lose their header and the quotes of their cells.
    With `exact` it does, rows are not fitted to it, and a quote that is never closed is
    an `InvalidInput`.
    """
    lines = [*io.StringIO(text, newline="")]
    starts = [0, *accumulate(map(len, lines))]
    first = next((line for line in lines if line.strip()), "")
    reader = csv.reader(
        lines,
        delimiter=max(",;\t|", key=first.count),
        skipinitialspace=True,
        strict=exact,
    )
    rows: list[list[str]] = []
    ends: list[int] = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(cells)
                last = reader.line_num - 1
                ends.append(starts[last] + len(lines[last].rstrip()))
    except csv.Error as error:
        raise InvalidInput(f"line {reader.line_num}: {error}") from error
    if not rows:
        return []
    joined = not exact and ',"' not in text and 2 * text.count(", ") > text.count(",")
    width = mode(map(len, rows)) if joined else len(rows[0])
    header, above = (
        ([f"column {i + 1}" for i in range(width)], 0)
        if joined
        else ([*map(str.strip, rows[0])], 1)
    )
    rows = (
        rows[above:]
        if exact
        else [_fitted(cells, width, ", ") for cells in rows[above:]]
    )
    return [TextTable(0, len(text), header, rows, ends[above:])]


def keyed(texts: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of texts that are a row each, a cell a line:
    ``key: value``; all have all keys.
    """
    keys = [
        dict.fromkeys(
            line.partition(":")[0] for line in text.split("\n") if ":" in line
        )
        for text in texts
    ]
    header = [key for key in keys[0] if all(key in own for own in keys)]
    key_at = re.compile(rf"^({'|'.join(map(re.escape, header))}):", re.MULTILINE)
    parts = [key_at.split(text) if header else [] for text in texts]
    rows = [dict(zip(own[1::2], own[2::2], strict=True)) for own in parts]
    return [key.strip() for key in header], [
        [row[key].strip() for key in header] for row in rows
    ]


def pipe_tables(text: str) -> list[TextTable]:
    """Return the pipe tables of Markdown in a text, in order, but for those in fenced
    code.
    """
    found: list[TextTable] = []
    for match in _PIPE_TABLE.finditer(outside_code(text) if "|" in text else ""):
        header, lines = (
            _cells(match["header"]),
            [*io.StringIO(match["rows"], newline="\n")],
        )
        if len(_cells(match["rule"])) == len(header):
            rows = [_fitted(_cells(line), len(header), " | ") for line in lines]
            starts = accumulate(map(len, lines), initial=match.start("rows"))
            ends = [
                start + len(line.rstrip())
                for start, line in zip(starts, lines, strict=False)
            ]
            found.append(
                TextTable(
                    match.start(),
                    match.start() + len(match[0].removesuffix("\n")),
                    header,
                    rows,
                    ends,
                )
            )
    return found


def _fitted(cells: Sequence[str], width: int, joint: str) -> list[str]:
    """Return as many cells as there are columns: filled up, or with the surplus in the
    last one.
    """
    last = width - 1
    return [*cells[:last], joint.join(cells[last:]), *[""] * (last - len(cells))]


def _cells(line: str) -> list[str]:
    """Return the cells of a line of a pipe table."""
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(inner)]

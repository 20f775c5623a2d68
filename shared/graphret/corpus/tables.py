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
_EXCEL_DELIMITER = re.compile(r'\ufeff?"?sep=(.)"?\s*\Z', re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*(?:"|\Z)')
_LONGEST_CELL = 2**31 - 1  # what fits a C long everywhere
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


def is_tabbed(metadata: Mapping[str, Any]) -> bool:
    """Whether the metadata of a document or chunk say that tabs part the values of its
    file.
    """
    return file_of(metadata).lower().endswith(".tsv")


def delimited(
    text: str, *, exact: bool = False, tabs: bool = False, literal_quotes: bool = False
) -> list[TextTable]:
    """Return the table that delimited values are.

    The first line names the columns, unless LlamaIndex's reader of CSV joined the rows
    by a comma and a space, by which they lose their header and the quotes of their
    cells.

    Parameters
    ----------
    exact
        Whether the first line always names the columns, rows stay as long as they are,
        and a quote that is never closed is an `InvalidInput`.
    tabs
        Whether tabs part the cells, as in ``.tsv`` files. Otherwise Excel's line
        ``sep=;`` says what does, or that of ``,;\\t|`` which the first line has most of
        outside quotes.
    literal_quotes
        Whether quotes are characters of the cells like others.
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
    # The limit is one of the process; it is never made less.
    csv.field_size_limit(max(csv.field_size_limit(), min(len(text), _LONGEST_CELL)))
    rows: list[list[str]] = []
    ends: list[int] = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(cells)
                last = above + reader.line_num - 1
                ends.append(starts[last] + len(lines[last].rstrip()))
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
        del ends[0]
    if not exact:
        rows = [fitted(cells, len(header), ", ") for cells in rows]
    return [TextTable(0, len(text), header, rows, ends)]


def _delimiter(lines: Sequence[str], tabs: bool) -> tuple[str, int]:
    """Return what parts the cells of lines, and how many of them stand above the
    table.
    """
    at = next((i for i, line in enumerate(lines) if line.strip("\ufeff \t\r\n")), 0)
    first = lines[at] if lines else ""
    if said := _EXCEL_DELIMITER.match(first):
        return said[1], at + 1
    bare = _QUOTED.sub("", first)
    return "\t" if tabs else max(",;\t|", key=bare.count), at


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
            rows = [fitted(_cells(line), len(header), " | ") for line in lines]
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


def fitted(cells: Sequence[str], width: int, joint: str) -> list[str]:
    """Return as many cells as there are columns: filled up, or with the surplus, but
    for empty cells at its end, in the last one.
    """
    kept = list(cells)
    while len(kept) > width and not kept[-1].strip():
        kept.pop()
    last = width - 1
    return [*kept[:last], joint.join(kept[last:]), *[""] * (last - len(kept))]


def _cells(line: str) -> list[str]:
    """Return the cells of a line of a pipe table."""
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(inner)]

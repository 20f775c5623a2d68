"""Delimited text becomes a header and rows."""

from __future__ import annotations

import csv
import io
import re

from graphret.errors import InvalidInput

_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 50
_YEAR = re.compile(r"(1[5-9]|20)\d\d")


def parse_delimited(text: str, where: str, delimiter: str | None = None) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of comma- or otherwise separated values.

    Parameters
    ----------
    text
        The content of a file.
    where
        What to call it in an error.
    delimiter
        What separates cells; if `None`, that of comma, semicolon, tab and bar which cuts most of the first lines into
        the same number of cells, two at least.

    Raises
    ------
    InvalidInput
        If there is no line, or one has another number of cells than the header; the message names it.
    """
    if delimiter is None:
        delimiter = sniff(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    starts: list[int] = []
    line = 1
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append(row)
                starts.append(line)
            line = reader.line_num + 1
    except csv.Error as error:
        raise InvalidInput(f"{where}, line {line}: {error}") from error
    if not rows:
        raise InvalidInput(f"{where}: no header: the file is empty")
    if has_header(rows):
        header, rows, starts = [cell.strip() for cell in rows[0]], rows[1:], starts[1:]
    else:
        header = [f"column {i + 1}" for i in range(len(rows[0]))]
    for start, row in zip(starts, rows, strict=True):
        if len(row) != len(header):
            raise InvalidInput(f"{where}, line {start}: {len(row)} cells, and the header has {len(header)}")
    return header, rows


def has_header(rows: list[list[str]]) -> bool:
    """Whether the first row names columns: it does unless it has a number, not a year, on top of a column of them."""
    return not any(
        is_number(name)
        and not _YEAR.fullmatch(name.strip())
        and all(is_number(row[i]) or not row[i].strip() for row in rows[1:] if i < len(row))
        for i, name in enumerate(rows[0])
        if len(rows) > 1
    )


def sniff(text: str) -> str:
    """Return what separates the cells: that of comma, semicolon, tab and bar which cuts most lines alike."""
    lines = text.split("\n", _SAMPLE_LINES)[:_SAMPLE_LINES]

    def regularity(delimiter: str) -> tuple[float, int]:
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if any(cell.strip() for cell in row)]
        if not widths or widths[0] < 2:
            return (0.0, 0)
        return (sum(width == widths[0] for width in widths) / len(widths), widths[0])

    best = max(_DELIMITERS, key=regularity)
    return best if regularity(best)[1] else ","


def is_number(cell: str) -> bool:
    """Whether a cell is a number, with thousands or a percent sign as people write them."""
    try:
        float(cell.replace(",", "").strip().rstrip("%"))
    except ValueError:
        return False
    return True

"""Tables as text, with the place of every row: delimited values, and pipe tables of Markdown."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from graphret.corpus.names import file_of, outside_code
from graphret.errors import InvalidInput

_DELIMITERS = ",;\t|"
_CSV = re.compile(r"\.(?:csv|tsv)$", re.IGNORECASE)
_SAMPLE_LINES = 50
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?\s*$")
_CELL_END = re.compile(r"(?<!\\)\|")


class Row(NamedTuple):
    """A row and its place in the text, without the end of its line."""

    start: int
    end: int
    cells: list[str]


class TextTable(NamedTuple):
    """A table and its place in the text; the header is empty where the text has none."""

    start: int
    end: int
    header: list[str]
    rows: list[Row]


def is_delimited(metadata: Mapping[str, Any]) -> bool:
    """Whether the metadata of a document or chunk say that its file is one of delimited values."""
    return _CSV.search(file_of(metadata)) is not None


def delimited_rows(text: str, *, strict: bool = False) -> list[Row]:
    """Return the rows of delimited values that are not blank.

    They are cut at that of comma, semicolon, tab and bar which cuts most lines alike. With `strict`, a quote that is
    never closed is an `InvalidInput`.
    """
    lines = [*io.StringIO(text, newline="")]
    ends = [0, *accumulate(map(len, lines))]

    def regularity(delimiter: str) -> tuple[float, int]:
        widths = [len(row) for row in csv.reader(lines[:_SAMPLE_LINES], delimiter=delimiter) if row]
        return (widths.count(widths[0]) / len(widths), widths[0]) if widths and widths[0] > 1 else (0.0, 0)

    reader = csv.reader(lines, delimiter=max(_DELIMITERS, key=regularity), skipinitialspace=True, strict=strict)
    rows, line = [], 0
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                piece = text[ends[line] : ends[reader.line_num]].rstrip()
                rows.append(Row(ends[line], ends[line] + len(piece), cells))
            line = reader.line_num
    except csv.Error as error:
        raise InvalidInput(f"line {line + 1}: {error}") from error
    return rows


def delimited(text: str, header: Sequence[str] = ()) -> TextTable | None:
    """Return the table of delimited values that a text is, or a piece of one; `None` where it is none.

    The first line names the columns, unless `header` does, since the text is a later piece, or LlamaIndex's reader of
    CSV joined the rows by a comma and a space: they have lost the quotes of their cells and their header, and a row of
    too many cells is folded so that numbers stand in the columns of numbers.
    """
    rows = delimited_rows(text)
    widths = Counter(len(row.cells) for row in rows)
    width = len(header) or max(widths, key=lambda n: (widths[n], n), default=0)
    if width < 2 or not rows:
        return None
    first = [cell.strip() for cell in rows[0].cells]
    if not header:
        joined = ',"' not in text and 2 * text.count(", ") > text.count(",")
        header = column_names(width) if joined or len(first) != width else first
    if first == list(header):
        rows = rows[1:]
    full = [row.cells for row in rows if len(row.cells) == width]
    numeric = [all(_is_number(cells[i]) or not cells[i].strip() for cells in full) for i in range(width)]
    fitted = [row._replace(cells=_fitted(row.cells, numeric, row is rows[-1])) for row in rows if len(row.cells) > 1]
    return TextTable(0, len(text), list(header), fitted)


def column_names(width: int) -> list[str]:
    """Return names for the columns of a table without a header."""
    return [f"column {i + 1}" for i in range(width)]


def _fitted(cells: list[str], numeric: Sequence[bool], last: bool) -> list[str]:
    """Return as many cells as there are columns: folded where there are more, filled up where a row is cut off."""
    extra = len(cells) - len(numeric)
    if extra <= 0:
        return [*cells, *[""] * -extra] if last else [*[""] * -extra, *cells]

    def agreement(row: Sequence[str]) -> int:
        return sum(not cell.strip() or _is_number(cell) == number for cell, number in zip(row, numeric, strict=True))

    folded = ([*cells[:i], ", ".join(cells[i : i + extra + 1]), *cells[i + extra + 1 :]] for i in range(len(numeric)))
    return max(folded, key=agreement)


def _is_number(cell: str) -> bool:
    """Whether a cell is a number, with thousands or a percent sign as people write them."""
    try:
        float(cell.replace(",", "").strip().rstrip("%"))
    except ValueError:
        return False
    return True


def keyed(texts: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of texts that are a row each, a cell a line: ``key: value``.

    A key is what every text has in front of a colon; a line without one continues the cell above it.
    """
    keys = [[line.partition(":")[0] for line in text.split("\n") if ":" in line] for text in texts]
    header = list(dict.fromkeys(key for key in keys[0] if all(key in own for own in keys)))
    key_at = re.compile(rf"^({'|'.join(map(re.escape, header))}):", re.MULTILINE)
    rows = []
    for parts in (key_at.split(text)[1:] for text in texts) if header else ():
        cells = dict(zip(parts[-2::-2], parts[::-2], strict=True))  # of a key that comes again, what it has first
        rows.append([cells[key].strip() for key in header])
    return [key.strip() for key in header], rows


def pipe_tables(text: str, headers: Iterable[Sequence[str]] = ()) -> list[TextTable]:
    """Return the pipe tables of Markdown in a text, in order, but for those in fenced code.

    `headers` are those of the source's tables: rows at the beginning of the text that fit one continue its table. A row
    is filled up to the width of the header; what it has beyond that goes into its last cell.
    """
    lines = outside_code(text).split("\n") if "|" in text else []
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    found: list[TextTable] = []
    number = 0
    while number < len(lines):
        first, begun = number, _header_at(lines, number, headers)
        if begun is None:
            number += 1
            continue
        header, taken = begun
        number += taken
        rows, last = [], len(header) - 1
        while number < len(lines) and "|" in lines[number]:
            cells = _cells(lines[number])
            cells = [*cells[:last], " | ".join(cells[last:]), *[""] * (last - len(cells))]
            rows.append(Row(starts[number], starts[number] + len(lines[number].rstrip()), cells[: last + 1]))
            number += 1
        found.append(TextTable(starts[first], starts[number] - 1, list(header) if any(header) else [], rows))
    return found


def _header_at(lines: Sequence[str], number: int, headers: Iterable[Sequence[str]]) -> tuple[Sequence[str], int] | None:
    """Return the header of the table that begins at a line, and how many lines it takes; `None` where none begins."""
    line = lines[number]
    if "|" not in line:
        return None
    cells, below = _cells(line), lines[number + 1] if number + 1 < len(lines) else ""
    if _RULE.match(below) and len(_cells(below)) == len(cells):
        return cells, 2
    if number == 0 and line.lstrip().startswith("|"):  # the rest of a table of an earlier piece
        return next((one for one in headers if len(one) == len(cells)), [""] * len(cells)), 0
    return None


def _cells(line: str) -> list[str]:
    """Return the cells of a line of a pipe table."""
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(inner)]

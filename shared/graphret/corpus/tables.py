"""Tables as text: files of delimited values, and tables in a text with the place of every row, of four kinds."""

from __future__ import annotations

import csv
import html
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphret.errors import InvalidInput

_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 50
_YEAR = re.compile(r"(1[5-9]|20)\d\d")
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_CELL_END = re.compile(r"(?<!\\)\|")
_HTML_TABLE = re.compile(r"<table\b.*?(?:</table>|\Z)", re.DOTALL | re.IGNORECASE)
_HTML_ROW = re.compile(r"<tr\b.*?(?=<tr\b|</tr>|</table>|\Z)", re.DOTALL | re.IGNORECASE)
_HTML_CELL = re.compile(r"<t([hd])\b[^>]*>(.*?)(?=<t[hd]\b|</t[hd]>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")


class Row(NamedTuple):
    """A row and its place in the text."""

    start: int
    end: int
    cells: list[str]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table and its place in the text; the header is empty where the text has none."""

    start: int
    end: int
    header: list[str]
    rows: list[Row]


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


def delimited(text: str, header: Sequence[str] | None = None, *, joined_header: bool = False) -> TextTable | None:
    """Return the table of delimited values that a text is, or a piece of one; `None` where it is none.

    Rows that a reader joined by a comma and a space have lost the quotes of their cells: a row of too many cells is
    folded so that numbers stand in the columns of numbers.

    Parameters
    ----------
    header
        The names of the columns, where the text is a later piece; a first line that repeats them is no row.
    joined_header
        Whether joined rows begin with their header, which cannot be told from a row.
    """
    lines = _delimited_lines(text, sniff(text))
    widths = Counter(len(row.cells) for row in lines)
    width = len(header) if header else max(widths, key=lambda n: (widths[n], n), default=0)
    if width < 2 or not lines:
        return None
    full = [row.cells for row in lines if len(row.cells) == width]
    first = [cell.strip() for cell in lines[0].cells]
    joined = '"' not in text and not re.search(r",\S", text)
    if header is None and len(first) == width and (joined_header if joined else has_header(full)):
        header = first
    if first == list(header or ()):
        lines, full = lines[1:], full[1:]
    numbers = [all(is_number(cells[i]) or not cells[i].strip() for cells in full) for i in range(width)]
    rows = [
        Row(row.start, row.end, _fitted(row.cells, width, numbers, last=row is lines[-1]))
        for row in lines
        if len(row.cells) > 1
    ]
    return TextTable(0, len(text), list(header or (f"column {i + 1}" for i in range(width))), rows)


def keyed(texts: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of texts that are a row each, a cell a line: ``key: value``.

    A key is what every text has in front of a colon; a line without one continues the cell above it.
    """
    split = [[line.partition(":") for line in text.split("\n")] for text in texts]
    common = set.intersection(*({key for key, colon, _ in lines if colon} for lines in split)) if split else set()
    header = list(dict.fromkeys(key for key, _, _ in split[0] if key in common)) if split else []
    rows = []
    for lines in split:
        cells: dict[str, str] = {}
        last = ""
        for key, colon, value in lines:
            if colon and key in common and key not in cells:
                cells[key] = value.strip()
                last = key
            elif last:
                cells[last] = f"{cells[last]}\n{key}{colon}{value}".strip()
        rows.append([cells.get(key, "") for key in header])
    return [key.strip() for key in header], rows


def tables_in(text: str, headers: Iterable[Sequence[str]] = ()) -> list[TextTable]:
    """Return the pipe tables of Markdown and the tables of HTML in a text, in order.

    Parameters
    ----------
    headers
        The headers of the source's tables: rows at the beginning of the text that fit one continue its table.
    """
    found = _pipe_tables(text, list(headers)) if "|" in text else []
    for match in _HTML_TABLE.finditer(text):
        rows = [Row(row.start(), row.end(), _html_cells(row[0])) for row in _HTML_ROW.finditer(text, *match.span())]
        rows = [row for row in rows if row.cells]
        if rows:
            named = "<th" in text[rows[0].start : rows[0].end].lower()
            header = rows[0].cells if named else []
            width = max(len(row.cells) for row in rows)
            kept = [Row(row.start, row.end, _padded(row.cells, width)) for row in rows[named:]]
            found.append(TextTable(match.start(), match.end(), _padded(header, width) if header else [], kept))
    return sorted(found, key=lambda table: table.start)


def pipe_cells(line: str) -> list[str]:
    """Return the cells of a line of a pipe table."""
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(inner)]


def is_pipe_header(line: str, below: str) -> bool:
    """Whether a line is the header of a pipe table, which the line below it rules."""
    return "|" in line and _RULE.match(below) is not None and len(pipe_cells(line)) == len(pipe_cells(below))


def _pipe_tables(text: str, headers: list[Sequence[str]]) -> list[TextTable]:
    found: list[TextTable] = []
    lines = list(_lines(text))
    fence, number = "", 0
    header: list[str] | None = None
    while number < len(lines):
        start, end = lines[number]
        line = text[start:end]
        mark = _FENCE.match(line)
        if mark:
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        rows: list[Row] = []
        first = number
        if fence or mark or "|" not in line:
            number += 1
            continue
        if number + 1 < len(lines) and is_pipe_header(line, text[slice(*lines[number + 1])]):
            header, number = pipe_cells(line), number + 2
        elif number == 0 and line.lstrip().startswith("|"):  # the rest of a table that began in an earlier piece
            cells = pipe_cells(line)
            header = next((list(one) for one in headers if len(one) == len(cells)), [""] * len(cells))
        else:
            number += 1
            continue
        while number < len(lines) and "|" in text[slice(*lines[number])]:
            cells = pipe_cells(text[slice(*lines[number])])
            rows.append(Row(*lines[number], _padded(cells, len(header))))
            number += 1
        found.append(TextTable(lines[first][0], lines[number - 1][1], header if any(header) else [], rows))
    return found


def _lines(text: str) -> Iterable[tuple[int, int]]:
    start = 0
    for line in text.split("\n"):
        yield start, start + len(line.rstrip("\r"))
        start += len(line) + 1


def _delimited_lines(text: str, delimiter: str) -> list[Row]:
    """Return the rows of a text by csv, each with its place; blank lines are none."""
    lines = text.splitlines(keepends=True)
    ends = [0]
    for line in lines:
        ends.append(ends[-1] + len(line))
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    rows, begun = [], 0
    for cells in reader:
        if any(cell.strip() for cell in cells):
            rows.append(Row(ends[begun], ends[reader.line_num], cells))
        begun = reader.line_num
    return rows


def _fitted(cells: list[str], width: int, numbers: Sequence[bool], *, last: bool) -> list[str]:
    """Return as many cells as the header has: folded where there are more, filled up where a piece of a row is."""
    extra = len(cells) - width
    if extra <= 0:
        return _padded(cells, width) if last or extra == 0 else [""] * -extra + cells

    def folded(at: int) -> list[str]:
        return [*cells[:at], ", ".join(cells[at : at + extra + 1]), *cells[at + extra + 1 :]]

    return max(map(folded, range(width)), key=lambda row: sum(map(_agrees, row, numbers)))


def _agrees(cell: str, number: bool) -> bool:
    return not cell.strip() or is_number(cell) == number


def _padded(cells: Sequence[str], width: int) -> list[str]:
    return [*cells, *[""] * (width - len(cells))][:width]


def _html_cells(row: str) -> list[str]:
    return [" ".join(html.unescape(_TAG.sub(" ", cell)).split()) for _, cell in _HTML_CELL.findall(row)]

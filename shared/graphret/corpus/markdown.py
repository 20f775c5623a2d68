"""A Markdown file becomes a document of its text, and a table of each of its pipe tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphret.corpus.items import Document, Table
from graphret.errors import InvalidInput

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_CELL_END = re.compile(r"(?<!\\)\|")


def parse_markdown(
    text: str, name: str, metadata: Mapping[str, Any], where: str = "markdown"
) -> Iterator[Document | Table]:
    """Yield the document, if it has text besides its tables, and the tables, in order.

    The title is the first heading of the highest level in use, or `name`. A table's section is the path of headings
    that it stands under, without the title ("Results > 2019"); its section text is the paragraph before it.

    Parameters
    ----------
    text
        The content of a file.
    name
        The title of a file without headings.
    metadata
        What becomes the metadata of each item.
    where
        What to call the file in an error.

    Raises
    ------
    InvalidInput
        If a row of a table has more cells than its header; the message names the line. A shorter row is filled up, as
        Markdown has it.
    """
    page = _Page()
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        number = page.take(lines, number, where)
    title = page.title or name
    body = "\n".join(page.body).strip("\n")
    if body.strip():
        yield _named(where, Document, text=body, title=title, metadata=metadata)
    for table in page.tables:
        section = " > ".join(table.path[1:] if table.path[:1] == (title,) else table.path)
        values = {"header": table.header, "rows": table.rows, "section_text": table.before}
        yield _named(f"{where}, line {table.line}", Table, title=title, section=section, metadata=metadata, **values)


@dataclass(slots=True)
class _Found:
    line: int
    path: tuple[str, ...]
    before: str
    header: list[str]
    rows: list[list[str]]


@dataclass(slots=True)
class _Page:
    """What has been read: text without tables, the tables, and the headings above the current line."""

    body: list[str] = field(default_factory=list)
    tables: list[_Found] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    title: str = ""
    title_level: int = 7
    fence: str = ""

    def take(self, lines: list[str], number: int, where: str) -> int:
        """Read what begins at a line, and return the number of the next line."""
        line = lines[number].rstrip("\r")
        fence = _FENCE.match(line)
        if self.fence:
            if fence and fence[1].startswith(self.fence):
                self.fence = ""
        elif fence:
            self.fence = fence[1]
        elif heading := _HEADING.match(line):
            self._enter(len(heading[1]), heading[2])
        elif number + 1 < len(lines) and line.strip():
            below = lines[number + 1].rstrip("\r")
            if "|" in line and _RULE.match(below) and len(_cells(line)) == len(_cells(below)):
                return self._take_table(lines, number, where)
            underline = _UNDERLINE.match(below)
            if underline and (number == 0 or not lines[number - 1].strip()) and line[:1] not in "-*+>|":
                self._enter(1 if underline[1][0] == "=" else 2, line.strip())
        self.body.append(line)
        return number + 1

    def _enter(self, level: int, heading: str) -> None:
        self.headings = [(depth, text) for depth, text in self.headings if depth < level]
        self.headings.append((level, heading))
        if level < self.title_level and heading:
            self.title, self.title_level = heading, level

    def _take_table(self, lines: list[str], number: int, where: str) -> int:
        header = _cells(lines[number])
        found = _Found(number + 1, tuple(text for _, text in self.headings), self._paragraph_before(), header, [])
        number += 2
        while number < len(lines) and "|" in lines[number]:
            cells = _cells(lines[number])
            if len(cells) > len(header):
                raise InvalidInput(
                    f"{where}, line {number + 1}: {len(cells)} cells, and the header of the table has {len(header)}"
                )
            found.rows.append(cells + [""] * (len(header) - len(cells)))
            number += 1
        self.tables.append(found)
        return number

    def _paragraph_before(self) -> str:
        paragraph: list[str] = []
        for line in reversed(self.body):
            if not line.strip() and not paragraph:
                continue
            if not line.strip() or _HEADING.match(line):
                break
            paragraph.append(line.strip())
        return " ".join(reversed(paragraph))


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(inner)]


def _named(where: str, kind: Any, **values: Any) -> Any:
    try:
        return kind(**values)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error

"""A text with headings and tables becomes a document, and a table of each of its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphret.corpus.items import Document, Table
from graphret.corpus.names import headings, section_at, title_among
from graphret.corpus.text_tables import pipe_cells, tables_in
from graphret.errors import InvalidInput


def parse_markdown(
    text: str, name: str, metadata: Mapping[str, Any], where: str = "markdown", *, title: str = ""
) -> Iterator[Document | Table]:
    """Yield the document, if it has text besides its tables, and the tables, in order.

    A table's section is the path of headings that it stands under, without the title ("Results > 2019"); its section
    text is the paragraph before it.

    Parameters
    ----------
    text
        The content of a file: Markdown, with or without HTML.
    name
        The title of a text without one.
    metadata
        What becomes the metadata of each item.
    where
        What to call the file in an error.
    title
        The title, where it is known; otherwise it is looked for among the headings.

    Raises
    ------
    InvalidInput
        If a row of a pipe table has more cells than its header; the message names the line. A shorter row is filled
        up, as Markdown has it.
    """
    found = headings(text)
    title = title or title_among([found]) or name
    tables = [table for table in tables_in(text) if table.header]
    body, end = [], 0
    for table in tables:
        body.append(text[end : table.start])
        end = table.end
        for row in table.rows:
            cells = pipe_cells(text[row.start : row.end]) if text[table.start] != "<" else row.cells
            if len(cells) > len(table.header):
                raise InvalidInput(
                    f"{where}, line {_line(text, row.start)}: {len(cells)} cells, and the header of the table has "
                    f"{len(table.header)}"
                )
    body.append(text[end:])
    rest = "".join(body).strip("\r\n")
    if rest.strip():
        yield _named(where, Document, text=rest, title=title, metadata=metadata)
    for table in tables:
        section = section_at(found, table.start, table.end, title)
        before = text[: table.start].rstrip().rsplit("\n\n", 1)[-1].rsplit("\r\n\r\n", 1)[-1]
        told = " ".join(before.split()) if table.start and not headings(before) and "|" not in before else ""
        values = {"header": table.header, "rows": [row.cells for row in table.rows], "section_text": told}
        line = _line(text, table.start)
        yield _named(f"{where}, line {line}", Table, title=title, section=section, metadata=metadata, **values)


def _line(text: str, start: int) -> int:
    return text.count("\n", 0, start) + 1


def _named(where: str, kind: Any, **values: Any) -> Any:
    try:
        return kind(**values)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error

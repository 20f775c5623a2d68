"""Whole documents that a framework's loader read become items: text, and the tables in it, whoever read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from graphret.corpus.chunks import is_delimited
from graphret.corpus.items import Document, Item, Table
from graphret.corpus.names import file_of, given_name, headings, section_at, stem_of, title_among
from graphret.corpus.tables import delimited, keyed, pipe_cells, tables_in
from graphret.errors import InvalidInput


class Loaded(NamedTuple):
    """What a loader made: a text, its metadata, its id where it has one, and what to call it in an error."""

    text: str
    metadata: Mapping[str, Any]
    id: str = ""
    where: str = "document"


def to_items(documents: Iterable[Loaded], *, metadata: bool = True) -> list[Item]:
    """Return the items that whole documents are: a table of a file of delimited values, else a document and its tables.

    Documents of LangChain's ``CSVLoader``, one a row, become one table. A title is found as `graphret.corpus.names` has
    it. Tables in a document have its id with ``/table-0`` and so on behind it.

    Parameters
    ----------
    metadata
        Whether items keep the metadata, which must be JSON values then.

    Raises
    ------
    InvalidInput
        When a document is malformed; the message names it.
    """
    items: list[Item] = []
    rows: dict[str, list[Loaded]] = {}
    for document in documents:
        if is_delimited(document.metadata) and isinstance(document.metadata.get("row"), int):
            rows.setdefault(file_of(document.metadata), []).append(document)
        else:
            items += _items_of(document, document.metadata if metadata else {})
    return [*items, *(_table_of(file, documents) for file, documents in rows.items())]


def _items_of(document: Loaded, kept: Mapping[str, Any]) -> list[Item]:
    text, given, id_ = document.text, document.metadata, document.id
    stem, title = stem_of(file_of(given)), given_name(given)
    table = delimited(text, joined_header="extension" in given) if is_delimited(given) else None
    if table is not None:
        cells = [row.cells for row in table.rows]
        return [Table(table.header, cells, id_, title=title or stem, metadata=kept)]
    found = list(parse_markdown(text, stem, kept, document.where, title=title))
    tables = [one for one in found if isinstance(one, Table)]
    if not tables:
        return [Document(text, id_, title or title_among([headings(text)]) or stem, kept)]
    numbered = [replace(one, id=f"{id_}/table-{n}") for n, one in enumerate(tables)] if id_ else tables
    return [*(replace(one, id=id_) for one in found if isinstance(one, Document)), *numbered]


def _table_of(file: str, documents: list[Loaded]) -> Table:
    documents.sort(key=lambda document: document.metadata["row"])
    header, rows = keyed([document.text for document in documents])
    metadata = {key: value for key, value in documents[0].metadata.items() if key != "row"}
    return Table(header, rows, file, title=given_name(metadata) or stem_of(file), metadata=metadata)


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

"""Files, objects, and the documents that a framework's loader made become a `Corpus`."""

from __future__ import annotations

import json
import logging
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from graphret.corpus.items import Corpus, Document, Item, Record, Table
from graphret.corpus.names import file_of, given_name, headings, section_at, stem_of, title_among
from graphret.corpus.tables import delimited, delimited_rows, is_delimited, keyed, pipe_tables
from graphret.errors import InvalidInput
from graphret.types import Edge
from graphret.validation import require_edge

Parsed: TypeAlias = Item | Edge
_T = TypeVar("_T")

_log = logging.getLogger(__name__)
_TYPES = (".jsonl", ".csv", ".tsv", ".md", ".markdown", ".txt")
_TABLE = re.compile(r"/table-\d+$")


class Loaded(NamedTuple):
    """A whole document: its text, its metadata, its id where it has one, and what to call it in an error."""

    text: str
    metadata: Mapping[str, Any]
    id: str = ""
    where: str = "document"


def read(sources: object) -> Corpus:
    """Read files, folders and objects.

    Parameters
    ----------
    sources
        One source or a list of them, each of

        - a file: ``.jsonl`` (a document, table, record or edge a line), ``.csv`` and ``.tsv`` (a table, whose first
          line names the columns), ``.md`` and ``.txt`` (a document, and the tables in it); UTF-8, with or without a
          byte order mark
        - a folder: the files of these types in it and below, in order of their paths; files of other types, but for
          hidden ones, are counted in a warning of the logger ``graphret.corpus.readers``
        - a `Document`, `Table`, `Record`, `Edge` or `Corpus`, or a mapping in one of the shapes of JSON Lines
        - a LlamaIndex ``Document`` or ``TextNode``, a LangChain ``Document``

        The id of a file's document or table is its path below the folder that was given, ``notes/a.md``, or its name
        where the file itself was given; of a table in Markdown it is ``notes/a.md/table-0``. The lines of ``.jsonl``
        have their own ids.

    Returns
    -------
    Corpus
        The items in the order of their sources, and the edges; empty where the sources are.

    Raises
    ------
    InvalidInput
        If a file is missing or of no known type, or something in it is malformed; the message names the file, and the
        line of JSON Lines or the row of a table. If a folder has no file that is read, or two items have the same id.
    """
    found = list(_read(sources))
    items = to_items(one for one in found if not isinstance(one, Edge))
    return Corpus(tuple(items), tuple(one for one in found if isinstance(one, Edge)))


def to_items(sources: Iterable[Loaded | Item], *, metadata: bool = True) -> list[Item]:
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
    rows: dict[str, list[Loaded]] = defaultdict(list)
    for source in sources:
        if not isinstance(source, Loaded):
            items.append(source)
        elif is_delimited(source.metadata) and isinstance(source.metadata.get("row"), int):
            rows[file_of(source.metadata)].append(source)
        else:
            items += _items_of(source, source.metadata if metadata else {})
    for file, documents in rows.items():
        documents.sort(key=lambda document: document.metadata["row"])
        given = {key: value for key, value in documents[0].metadata.items() if key != "row"}
        header, cells = keyed([document.text for document in documents])
        items.append(Table(header, cells, file, title=given_name(given) or stem_of(file), metadata=given))
    return items


def parse_item(value: Mapping[str, Any], where: str = "item") -> Parsed:
    """Make a document, table, record or edge of a mapping in one of the shapes of JSON Lines.

    Raises
    ------
    InvalidInput
        If the mapping has none of the shapes, or a key that its shape lacks.
    """
    given = {key: one for key, one in value.items() if one is not None}
    if {"source", "relation", "target"} <= value.keys():
        edge = _make(Edge, where, **given)
        _make(require_edge, where, edge=edge)
        return edge
    if isinstance(given.get("id"), int):
        given["id"] = str(given["id"])
    if value.keys() & {"header", "rows"}:
        return _make(Table, where, **given)
    if value.keys() & {"labels", "properties"}:
        return _make(Record, where, **given)
    if "text" in value:
        return _make(Document, where, **given)
    raise InvalidInput(
        f"{where}: a document has 'text', a table 'header' and 'rows', a record 'labels' or 'properties', an edge "
        f"'source', 'relation' and 'target'; this has {', '.join(map(repr, value)) or 'nothing'}"
    )


def file_id(item: str) -> str:
    """Return the id of the document that a table was read from, and any other id as it is."""
    return _TABLE.sub("", item)


def _items_of(document: Loaded, metadata: Mapping[str, Any]) -> list[Item]:
    """Return a table of delimited values, or the text of a document and the tables in it.

    A table's section is the path of headings that it stands under, without the title ("Results > 2019"); its section
    text is the paragraph before it.
    """
    text, given, id_, where = document
    title, stem = given_name(given), stem_of(file_of(given))
    if is_delimited(given) and (whole := delimited(text)) is not None:
        rows = [row.cells for row in whole.rows]
        return [_make(Table, where, header=whole.header, rows=rows, id=id_, title=title or stem, metadata=metadata)]
    found = headings(text)
    title = title or title_among([found]) or stem
    tables = [table for table in pipe_tables(text) if table.header]
    items: list[Item] = []
    rest, end = "", 0
    for number, table in enumerate(tables):
        rest, end = rest + text[end : table.start], table.end
        before = re.split(r"\n\s*\n", text[: table.start].rstrip())[-1]
        values = {
            "header": table.header,
            "rows": [row.cells for row in table.rows],
            "id": f"{id_}/table-{number}" if id_ else "",
            "section": section_at(found, table.start, table.end, title),
            "section_text": "" if headings(before) or "|" in before else " ".join(before.split()),
        }
        items.append(_make(Table, where, title=title, metadata=metadata, **values))
    rest = (rest + text[end:]).strip("\r\n") if tables else text
    if rest.strip() or not tables:
        items.insert(0, _make(Document, where, text=rest, id=id_, title=title, metadata=metadata))
    return items


def _read(source: Any) -> Iterator[Loaded | Parsed]:
    if isinstance(source, (Document, Table, Record, Edge)):
        yield source
    elif isinstance(source, Corpus):
        yield from (*source.items, *source.edges)
    elif isinstance(source, (str, os.PathLike)):
        yield from _read_path(Path(source))
    elif isinstance(source, Mapping):
        yield parse_item(source)
    elif hasattr(source, "page_content"):
        yield Loaded(source.page_content, source.metadata, source.id or "", f"LangChain document {source.id!r}")
    elif hasattr(source, "get_content") and hasattr(source, "node_id"):
        text = source.get_content(metadata_mode="none")
        yield Loaded(text, source.metadata, source.node_id, f"LlamaIndex document {source.node_id!r}")
    elif isinstance(source, Iterable):
        for part in source:
            yield from _read(part)
    else:
        raise InvalidInput(f"cannot read a {type(source).__name__}: give paths, items or documents of a framework")


def _read_path(path: Path) -> Iterator[Loaded | Parsed]:
    if path.is_file():
        yield from _read_file(path, path.name)
        return
    if not path.is_dir():
        raise InvalidInput(f"{path}: no such file or folder")
    files = {file.relative_to(path): file for file in sorted(path.rglob("*")) if file.is_file()}
    seen = {below: file for below, file in files.items() if not any(part.startswith(".") for part in below.parts)}
    others = [file.name for file in seen.values() if file.suffix.lower() not in _TYPES]
    if others:
        _log.warning(
            f"{path}: {len(others):,} files of other types are not read, such as {others[0]}. "
            "LlamaIndex reads many: graphret.read(SimpleDirectoryReader(folder).load_data())"
        )
    if len(others) == len(seen):
        raise InvalidInput(f"{path}: holds no file of a type that is read: {', '.join(_TYPES)}")
    for below, file in seen.items():
        if file.suffix.lower() in _TYPES:
            yield from _read_file(file, below.as_posix())


def _read_file(path: Path, id_: str) -> Iterator[Loaded | Parsed]:
    suffix, metadata = path.suffix.lower(), {"file_name": path.name}
    if suffix not in _TYPES:
        raise InvalidInput(f"{path}: unknown file type {suffix!r}; known are {', '.join(_TYPES)}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: not UTF-8 ({error})") from error
    if suffix in (".csv", ".tsv"):
        header, *rows = [row.cells for row in _make(delimited_rows, str(path), text=text, strict=True)] or [[]]
        values = {"header": [name.strip() for name in header], "rows": rows, "title": stem_of(path.name)}
        yield _make(Table, str(path), id=id_, metadata=metadata, **values)
    elif suffix == ".jsonl":
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield _parse_line(line, f"{path}, line {number}")
    else:
        yield Loaded(text, metadata, id_, str(path))


def _parse_line(line: str, where: str) -> Parsed:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise InvalidInput(f"{where}: an object is expected, not {type(value).__name__}")
    return parse_item(value, where)


def _make(kind: Callable[..., _T], where: str, **values: Any) -> _T:
    try:
        return kind(**values)
    except TypeError as error:  # a field is missing or unknown
        raise InvalidInput(f"{where}: {error}; put anything else in 'metadata' or 'properties'") from error
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error

"""Files, objects, and the documents that a framework's loader made become a
`Corpus`.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphret.corpus.items import Corpus, Document, Item, Record, Table
from graphret.corpus.names import (
    file_of,
    given_name,
    headings,
    section_at,
    stem_of,
    title_among,
)
from graphret.corpus.tables import delimited, is_delimited, pipe_tables
from graphret.errors import InvalidInput
from graphret.types import Edge

_log = logging.getLogger(__name__)
_TYPES = (".jsonl", ".csv", ".tsv", ".md", ".markdown", ".txt")
_TABLE = re.compile(r"/table-\d+$")
#: Which key of a mapping tells what it is, the first that is there.
_KINDS = {
    "relation": Edge,
    "header": Table,
    "rows": Table,
    "labels": Record,
    "properties": Record,
    "text": Document,
}


def read(sources: object) -> Corpus:
    """Read files, folders and objects.

    Parameters
    ----------
    sources
        One source or a list of them, each of

        - a file: ``.jsonl`` (a document, table, record or edge a line), ``.csv`` and
          ``.tsv`` (a table, whose first line names the columns), ``.md`` and ``.txt``
          (a document, and the tables in it); UTF-8
        - a folder: the files of these types in it and below, in order of their paths;
          files of other types, but for hidden ones, are counted in a warning of the
          logger ``graphret.corpus.readers``
        - a `Document`, `Table`, `Record`, `Edge` or `Corpus`, or a mapping in one of
          the shapes of JSON Lines
        - a LlamaIndex ``Document`` or ``TextNode``, a LangChain ``Document``

    Returns
    -------
    Corpus
        The items and the edges in the order of their sources. The id of a file's
        document or table is its path below the folder that was given, ``notes/a.md``,
        or its name; of a table in Markdown it is ``notes/a.md/table-0``.

    Raises
    ------
    InvalidInput
        If a file is missing or of no known type, or something in it is malformed; the
        message names the file, and the line of JSON Lines or the row of a table. If a
        folder has no file that is read.
    """
    found = list(_read(sources))
    items = tuple(one for one in found if not isinstance(one, Edge))
    return Corpus(items, tuple(one for one in found if isinstance(one, Edge)))


def file_id(item: str) -> str:
    """Return the id of the document that a table was read from, and any other id as it
    is.
    """
    return _TABLE.sub("", item)


def items_of(
    text: str, given: Mapping[str, Any], id_: str = "", *, kept: bool = True
) -> Iterator[Item]:
    """Make a document of a text and tables of those in it; a file of delimited values
    is nothing but a table.

    A title is found as `graphret.corpus.names` has it. A table's section is the path of
    headings that it stands under, without the title ("Results > 2019"); its section
    text is the paragraph before it. The metadata that are given become those of the
    items, unless `kept` is false.
    """
    metadata = given if kept else {}
    values = (
        is_delimited(given) and "row" not in given
    )  # one row of them, as LangChain's CSVLoader has it, is a text
    tables, above = (
        (delimited(text), []) if values else (pipe_tables(text), headings(text))
    )
    title = given_name(given) or title_among(above) or stem_of(file_of(given))
    ends = [0, *(table.end for table in tables)]
    rest = (
        "".join(
            text[end : table.start] for end, table in zip(ends, tables, strict=False)
        )
        + text[ends[-1] :]
    )
    if rest.strip() or not tables:
        yield Document(rest.strip("\r\n") if tables else text, id_, title, metadata)
    for number, table in enumerate(tables):
        before = re.split(r"\n\s*\n", text[: table.start].rstrip())[-1]
        own_id = f"{id_}/table-{number}" if id_ and not values else id_
        section = section_at(above, table.start, table.end, title)
        around = "" if headings(before) or "|" in before else " ".join(before.split())
        yield Table(
            table.header, table.rows, own_id, title, section, around, metadata=metadata
        )


def _parsed(value: Any) -> Item | Edge:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"an object is expected, not {type(value).__name__}")
    kind: Any = next((kind for key, kind in _KINDS.items() if key in value), None)
    if kind is None:
        raise InvalidInput(f"it has none of the keys {', '.join(_KINDS)}")
    given = {
        key: str(one) if key == "id" else one
        for key, one in value.items()
        if one is not None
    }
    made: Item | Edge = kind(**given)
    return made


def _read(source: Any) -> Iterator[Item | Edge]:
    if isinstance(source, (Document, Table, Record, Edge)):
        yield source
    elif isinstance(source, Corpus):
        yield from (*source.items, *source.edges)
    elif isinstance(source, (str, os.PathLike)):
        for file, id_ in _files(Path(source)):
            with _errors_name(str(file)):
                yield from _read_file(file, id_)
    elif isinstance(source, Mapping):
        with _errors_name(f"item {source.get('id', '')!r}"):
            yield _parsed(source)
    elif hasattr(source, "page_content"):
        with _errors_name(f"document {source.id!r}"):
            yield from items_of(source.page_content, source.metadata, source.id or "")
    elif hasattr(source, "get_content") and hasattr(source, "node_id"):
        with _errors_name(f"document {source.node_id!r}"):
            yield from items_of(
                source.get_content(metadata_mode="none"),
                source.metadata,
                source.node_id,
            )
    elif isinstance(source, Iterable):
        for part in source:
            yield from _read(part)
    else:
        raise InvalidInput(
            f"cannot read a {type(source).__name__}: give paths, items or documents of"
            " a framework"
        )


def _files(path: Path) -> list[tuple[Path, str]]:
    """Return a file, or those of a folder that are read, each with its id."""
    if not path.is_dir():
        return [(path, path.name)]
    files = [
        (file, file.relative_to(path).as_posix())
        for file in sorted(path.rglob("*"))
        if file.is_file()
    ]
    seen = [(file, id_) for file, id_ in files if "/." not in f"/{id_}"]
    known = [(file, id_) for file, id_ in seen if file.suffix.lower() in _TYPES]
    if others := [file.name for file, _ in seen if file.suffix.lower() not in _TYPES]:
        _log.warning(
            f"{path}: {len(others):,} files of other types are not read, such as"
            f" {others[0]}. LlamaIndex reads many:"
            " graphret.read(SimpleDirectoryReader(folder).load_data())"
        )
    if not known:
        raise InvalidInput(
            f"{path}: holds no file of a type that is read: {', '.join(_TYPES)}"
        )
    return known


def _read_file(path: Path, id_: str) -> Iterator[Item | Edge]:
    suffix, metadata = path.suffix.lower(), {"file_name": path.name}
    if suffix not in _TYPES:
        raise InvalidInput(
            f"unknown file type {suffix!r}; known are {', '.join(_TYPES)}"
        )
    text = path.read_text(encoding="utf-8-sig")
    if suffix in (".csv", ".tsv"):
        for table in delimited(text, exact=True):
            yield Table(
                table.header, table.rows, id_, stem_of(path.name), metadata=metadata
            )
    elif suffix == ".jsonl":
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                with _errors_name(f"line {number}"):
                    yield _parsed(json.loads(line))
    else:
        yield from items_of(text, metadata, id_)


@contextmanager
def _errors_name(where: str) -> Iterator[None]:
    """Make every error about what is read an `InvalidInput` that says where it is."""
    try:
        yield
    except (TypeError, ValueError, RecursionError, FileNotFoundError) as error:
        raise InvalidInput(f"{where}: {error}") from error

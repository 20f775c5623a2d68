"""Files, objects and the documents of a framework's loader become a `Corpus`."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeAlias

from graphret.corpus.items import Corpus, Document, Item, Record, Table
from graphret.corpus.markdown import headings, section_at, title_among
from graphret.corpus.names import (
    file_of,
    given_name,
    stem_of,
)
from graphret.corpus.tables import delimited, is_delimited, pipe_tables
from graphret.errors import InvalidInput
from graphret.types import Edge

_log = logging.getLogger(__name__)
_TABLE = re.compile(r"/table-\d+$")

Reader: TypeAlias = Callable[[Path, str], Iterable[Item | Edge]]
"""Reads the file at a path; the id is that which a document of it should have."""

#: The entry points by which an installed package registers readers.
READERS_GROUP = "graphret.readers"

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
          (a document, and the tables in it), all in UTF-8; or of a type that
          `register_reader` added
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
    parts = list(_read(sources))
    items = tuple(part for part in parts if not isinstance(part, Edge))
    return Corpus(items, tuple(part for part in parts if isinstance(part, Edge)))


def register_reader(suffix: str, reader: Reader) -> None:
    """Make `read` and ``graphret build`` read files of a type.

    The reader takes the place of an earlier one. For the command line an installed
    package declares its readers as entry points, which are imported when a file of
    their type is read::

        [project.entry-points."graphret.readers"]
        ".html" = "my_package.readers:read_html"

    Parameters
    ----------
    suffix
        The end of the files' names with its dot, such as ``".html"``; case is ignored.
    reader
        Called with the path of a file and the id that its document should have. It
        yields documents, tables, records and edges. A `ValueError`, `TypeError` or
        `FileNotFoundError` that it raises becomes an `InvalidInput` that names the
        file.

    Raises
    ------
    InvalidInput
        If the suffix is not one.
    """
    if not re.fullmatch(r"\.[^./\\]+", suffix):
        raise InvalidInput(f"expected a suffix such as '.html', got {suffix!r}")
    _READERS[suffix.lower()] = reader


def file_id(item: str) -> str:
    """Return the id of the file that a table was read from; any other id as it is."""
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
    # One row of them, as LangChain's CSVLoader has it, is a text.
    values = is_delimited(given) and "row" not in given
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
        before = _paragraph_before(text[ends[number] : table.start])
        own_id = f"{id_}/table-{number}" if id_ and not values else id_
        section = section_at(above, table.start, table.end, title)
        around = "" if headings(before) or "|" in before else " ".join(before.split())
        yield Table(
            table.header, table.rows, own_id, title, section, around, metadata=metadata
        )


def _paragraph_before(text: str) -> str:
    """Return the last paragraph of what stands between two tables."""
    lines = text.rstrip().split("\n")
    blank = (at for at in range(len(lines) - 1, -1, -1) if not lines[at].strip())
    return "\n".join(lines[next(blank, -1) + 1 :])


def _parsed(value: Any) -> Item | Edge:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"expected an object, got {type(value).__name__}")
    kind: Any = next((kind for key, kind in _KINDS.items() if key in value), None)
    if kind is None:
        raise InvalidInput(f"it has none of the keys {', '.join(_KINDS)}")
    arguments = {
        key: str(argument) if key == "id" else argument
        for key, argument in value.items()
        if argument is not None
    }
    part: Item | Edge = kind(**arguments)
    return part


def _read(source: Any) -> Iterator[Item | Edge]:
    if isinstance(source, (Document, Table, Record, Edge)):
        yield source
    elif isinstance(source, Corpus):
        yield from (*source.items, *source.edges)
    elif isinstance(source, (str, os.PathLike)):
        for file, id_ in _files(Path(source)):
            with _errors_name(str(file)):
                yield from _reader_of(file)(file, id_)
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
    # No hidden file, nor one in a hidden folder.
    seen = [(file, id_) for file, id_ in files if "/." not in f"/{id_}"]
    types = _types()
    readable = [(file, id_) for file, id_ in seen if file.suffix.lower() in types]
    if others := [file.name for file, _ in seen if file.suffix.lower() not in types]:
        _log.warning(
            f"{path}: {len(others):,} files of other types are not read, such as"
            f" {others[0]}. LlamaIndex reads many:"
            " graphret.read(SimpleDirectoryReader(folder).load_data())"
        )
    if not readable:
        raise InvalidInput(
            f"{path}: holds no file of a type that is read: {', '.join(types)}"
        )
    return readable


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")


def _about(path: Path) -> dict[str, Any]:
    return {"file_name": path.name}


def _read_json_lines(path: Path, id_: str) -> Iterator[Item | Edge]:
    for number, line in enumerate(_text_of(path).split("\n"), 1):
        if line.strip():
            with _errors_name(f"line {number}"):
                yield _parsed(json.loads(line))


def _read_delimited(path: Path, id_: str) -> Iterator[Item]:
    title = stem_of(path.name)
    for table in delimited(_text_of(path), exact=True):
        yield Table(table.header, table.rows, id_, title, metadata=_about(path))


def _read_text(path: Path, id_: str) -> Iterator[Item]:
    return items_of(_text_of(path), _about(path), id_)


#: The readers by the suffixes of what they read, in lower case.
_READERS: dict[str, Reader] = {
    ".jsonl": _read_json_lines,
    ".csv": _read_delimited,
    ".tsv": _read_delimited,
    ".md": _read_text,
    ".markdown": _read_text,
    ".txt": _read_text,
}


def _types() -> list[str]:
    """Return the suffixes that are read, of installed packages last."""
    return [*dict.fromkeys([*_READERS, *_installed()])]


def _reader_of(file: Path) -> Reader:
    suffix = file.suffix.lower()
    if suffix not in _READERS:
        if suffix not in _installed():
            raise InvalidInput(
                f"unknown file type {suffix!r}; known are {', '.join(_types())}"
            )
        reader: Reader = _installed()[suffix].load()
        register_reader(suffix, reader)
    return _READERS[suffix]


@cache
def _installed() -> dict[str, EntryPoint]:
    """Return the readers that installed packages declare, by suffix."""
    points = entry_points(group=READERS_GROUP)
    return {point.name.lower(): point for point in points}


@contextmanager
def _errors_name(where: str) -> Iterator[None]:
    """Make every error about what is read an `InvalidInput` that says where it is."""
    try:
        yield
    except (TypeError, ValueError, RecursionError, FileNotFoundError) as error:
        raise InvalidInput(f"{where}: {error}") from error

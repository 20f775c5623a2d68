"""Read files, objects and the documents of a framework's loader into a `Corpus`."""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from graphret.corpus.files import TO_MARKDOWN, FileOptions, text_of
from graphret.corpus.items import Corpus, Document, Item, Record, Table
from graphret.corpus.markdown import headings, section_at, title_among
from graphret.corpus.names import (
    file_of,
    given_name,
    stem_of,
    title_of_pdf,
)
from graphret.corpus.tables import (
    TextTable,
    delimited,
    fitted,
    is_delimited,
    is_tabbed,
    pipe_tables,
)
from graphret.errors import GraphretError, InvalidInput, MissingDependency
from graphret.types import Edge

_log = logging.getLogger(__name__)
_TABLE = re.compile(r"/table-\d+$")
_SUFFIX = re.compile(r"\.[^./\\]+")

Reader: TypeAlias = Callable[[Path, str], Iterable[Item | Edge]]
"""Reads the file at a path; the id is the one that its document should have."""

_FileReader: TypeAlias = Callable[[Path, str, FileOptions], Iterable[Item | Edge]]

#: The entry points by which an installed package registers readers.
READERS_GROUP = "graphret.readers"

#: The kind of a mapping by the first of these keys that it has.
_KINDS = {
    "relation": Edge,
    "header": Table,
    "rows": Table,
    "labels": Record,
    "properties": Record,
    "text": Document,
}


def read(
    sources: object,
    *,
    encoding: str | None = None,
    literal_quotes: bool = False,
    strict: bool = False,
) -> Corpus:
    """Read files, folders and objects.

    Parameters
    ----------
    sources
        One source or a list of them, each of

        - a file: ``.jsonl`` (a document, table, record or edge a line), ``.csv`` and
          ``.tsv`` (a table, whose first line names the columns), ``.md``, ``.txt``,
          ``.html``, ``.rst`` and ``.ipynb`` (a document, and the tables in it); or of
          a type that `register_reader` added
        - a folder: the files of these types in it and below, in order of their paths;
          files of other types, except hidden ones, are counted in a warning of the
          logger ``graphret.corpus.readers``
        - a `Document`, `Table`, `Record`, `Edge` or `Corpus`, or a mapping in one of
          the shapes of JSON Lines
        - a LlamaIndex ``Document`` or ``TextNode``, a LangChain ``Document``
    encoding
        The encoding of all text files. By default each is UTF-8, or in the encoding
        that is detected, which a warning names.
    literal_quotes
        Whether quotes in ``.csv`` and ``.tsv`` are ordinary characters.
    strict
        Whether an unreadable file is an error, and a row with more or fewer cells than
        its table. Otherwise the file is skipped, and the row padded or its surplus
        joined in its last cell; warnings of the logger ``graphret.corpus`` name and
        count both.

    Returns
    -------
    Corpus
        The items and the edges in the order of their sources, and the files that were
        skipped. The id of a file's document or table is its path below the given
        folder, ``notes/a.md``, or its name; the whole path where two files would have
        one id. A table in Markdown has the id ``notes/a.md/table-0``.

    Raises
    ------
    InvalidInput
        If a file is missing, no file can be read, or with `strict` any cannot; the
        message names the file, and the line of JSON Lines or the row of a table. If a
        folder has no file of a known type.
    MissingDependency
        If the extra ``files`` is not installed and every file needs it, or with
        `strict` any does.
    """
    listed = [*_flat(sources)]
    options = FileOptions(encoding, literal_quotes, strict)
    parts, failed = _parts_and_failures(listed, options)
    if failed and len(failed) == len(listed):
        raise failed[0]
    for error in failed:
        _log.warning(f"skipped {error}")
    if failed:
        _log.warning(f"{len(failed):,} of {len(listed):,} files were skipped")
    items = tuple(part for part in parts if not isinstance(part, Edge))
    edges = tuple(part for part in parts if isinstance(part, Edge))
    return Corpus(items, edges, tuple(map(str, failed)))


def _parts_and_failures(
    listed: Sequence[Any], options: FileOptions
) -> tuple[list[Item | Edge], list[GraphretError]]:
    """Return the items and edges of files and objects, and the errors of files."""
    ids = Counter(source.id for source in listed if isinstance(source, _File))
    parts: list[Item | Edge] = []
    failed: list[GraphretError] = []
    for source in listed:
        if not isinstance(source, _File):
            parts += _parts_of(source)
            continue
        id_ = source.id if ids[source.id] == 1 else source.path.as_posix()
        try:
            parts += _parts_of_file(source.path, id_, options)
        except (InvalidInput, MissingDependency) as error:
            if options.strict or not source.path.is_file():
                raise
            failed.append(error)
    return parts, failed


def register_reader(suffix: str, reader: Reader) -> None:
    """Make `read` and ``graphret build`` read files of a type.

    The reader replaces an earlier one. For the command line an installed package
    declares its readers as entry points, which are imported when a file of their type
    is read::

        [project.entry-points."graphret.readers"]
        ".html" = "my_package.readers:read_html"

    Parameters
    ----------
    suffix
        The end of the files' names with its dot, such as ``".html"``; case is ignored.
    reader
        Called with the path of a file and the id that its document should have. It
        yields documents, tables, records and edges. A `ValueError`, `TypeError` or
        `OSError` that it raises becomes an `InvalidInput` that names the file.

    Raises
    ------
    InvalidInput
        If the suffix is not one.
    """
    if not _SUFFIX.fullmatch(suffix):
        raise InvalidInput(f"expected a suffix such as '.html', got {suffix!r}")
    _READERS[suffix.lower()] = lambda path, id_, options: reader(path, id_)


def file_id(item: str) -> str:
    """Return the id of the file that a table was read from, or any other id as is."""
    return _TABLE.sub("", item)


def items_of(
    text: str, metadata: Mapping[str, Any], id_: str = "", *, keep_metadata: bool = True
) -> Iterator[Item]:
    """Yield the document of a text and the tables in it.

    A file of delimited values is a table alone. `graphret.corpus.names` finds the
    title. A table's section is the path of headings above it, without the title
    ("Results > 2019"); its section text is the paragraph before it. The items get the
    metadata if `keep_metadata`.
    """
    kept_metadata = metadata if keep_metadata else {}
    # A single row, as LangChain's CSVLoader makes it, is a text.
    values = is_delimited(metadata) and "row" not in metadata
    tables, above = (
        (delimited(text, tabs=is_tabbed(metadata)), [])
        if values
        else (pipe_tables(text), headings(text))
    )
    file = file_of(metadata)
    title = (
        given_name(metadata)
        or title_among(above)
        or stem_of(file)
        or title_of_pdf(file, text)
    )
    table_ends = [0, *(table.end for table in tables)]
    pieces = (
        text[end : table.start] for end, table in zip(table_ends, tables, strict=False)
    )
    outside = "".join(pieces) + text[table_ends[-1] :]
    if outside.strip() or not tables:
        yield Document(
            outside.strip("\r\n") if tables else text, id_, title, kept_metadata
        )
    for number, table in enumerate(tables):
        before = _last_paragraph(text[table_ends[number] : table.start])
        table_id = f"{id_}/table-{number}" if id_ and not values else id_
        section = section_at(above, table.start, table.end, title)
        around = "" if headings(before) or "|" in before else " ".join(before.split())
        yield Table(
            table.header,
            table.rows,
            table_id,
            title,
            section,
            around,
            metadata=kept_metadata,
        )


def _last_paragraph(text: str) -> str:
    """Return the last paragraph of a text."""
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


class _File(NamedTuple):
    """A file to read, and the id of its document."""

    path: Path
    id: str


def _flat(source: Any) -> Iterator[Any]:
    """Yield the sources in nested lists, with paths as their files."""
    of_framework = hasattr(source, "page_content") or hasattr(source, "get_content")
    if isinstance(source, (str, os.PathLike)):
        yield from (_File(*file) for file in _files(Path(source)))
    elif isinstance(source, Iterable) and not (
        of_framework or isinstance(source, Mapping | Corpus)
    ):
        for part in source:
            yield from _flat(part)
    else:
        yield source


def _parts_of_file(path: Path, id_: str, options: FileOptions) -> list[Item | Edge]:
    with _errors_name(str(path)):
        return [*_reader_of(path)(path, id_, options)]


def _parts_of(source: Any) -> Iterator[Item | Edge]:
    """Yield the items and edges of an object."""
    if isinstance(source, (Document, Table, Record, Edge)):
        yield source
    elif isinstance(source, Corpus):
        yield from (*source.items, *source.edges)
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
    else:
        raise InvalidInput(
            "expected paths, items or documents of a framework, got"
            f" {type(source).__name__}"
        )


def _files(path: Path) -> list[tuple[Path, str]]:
    """Return a file, or the readable files of a folder, each with its id."""
    if not path.is_dir():
        return [(path, path.name)]
    files = [
        (file, file.relative_to(path).as_posix())
        for file in sorted(path.rglob("*"))
        if file.is_file()
    ]
    # No hidden file, nor one in a hidden folder.
    visible = [(file, id_) for file, id_ in files if "/." not in f"/{id_}"]
    types = _types()
    readable = [(file, id_) for file, id_ in visible if file.suffix.lower() in types]
    unread = [file.name for file, _ in visible if file.suffix.lower() not in types]
    if unread:
        _log.warning(
            f"{path}: {len(unread):,} files of other types are not read, such as"
            f" {unread[0]}. LlamaIndex reads many:"
            " graphret.read(SimpleDirectoryReader(folder).load_data())"
        )
    if not readable:
        raise InvalidInput(
            f"{path}: expected files of the types {', '.join(types)}, got none"
        )
    return readable


def _about(path: Path) -> dict[str, Any]:
    return {"file_name": path.name}


def _read_json_lines(
    path: Path, id_: str, options: FileOptions
) -> Iterator[Item | Edge]:
    for number, line in enumerate(text_of(path, options).split("\n"), 1):
        if line.strip():
            with _errors_name(f"line {number}"):
                yield _parsed(json.loads(line))


def _read_delimited(path: Path, id_: str, options: FileOptions) -> Iterator[Item]:
    title = stem_of(path.name)
    tables = delimited(
        text_of(path, options),
        exact=True,
        tabs=is_tabbed(_about(path)),
        literal_quotes=options.literal_quotes,
    )
    for table in tables:
        rows = table.rows if options.strict else _even(table, path)
        yield Table(table.header, rows, id_, title, metadata=_about(path))


def _even(table: TextTable, path: Path) -> list[list[str]]:
    """Return rows with a cell a column; a warning counts those of other lengths."""
    width = len(table.header)
    ragged = [n for n, row in enumerate(table.rows, 1) if len(row) != width]
    if ragged:
        first = len(table.rows[ragged[0] - 1])
        _log.warning(
            f"{path}: {len(ragged):,} of {len(table.rows):,} rows do not have {width}"
            f" cells as the header has; the first is row {ragged[0]} with {first}."
            " Missing cells are empty, the last one holds the surplus"
        )
    return [fitted(row, width, ", ") for row in table.rows]


def _read_text(path: Path, id_: str, options: FileOptions) -> Iterator[Item]:
    return items_of(text_of(path, options), _about(path), id_)


def _read_as_markdown(path: Path, id_: str, options: FileOptions) -> Iterator[Item]:
    text = TO_MARKDOWN[path.suffix.lower()](text_of(path, options))
    return items_of(text, _about(path), id_)


#: The readers by the suffixes of their files, in lower case.
_BUILT_IN: dict[str, _FileReader] = {
    ".jsonl": _read_json_lines,
    ".csv": _read_delimited,
    ".tsv": _read_delimited,
    ".md": _read_text,
    ".markdown": _read_text,
    ".txt": _read_text,
    **dict.fromkeys(TO_MARKDOWN, _read_as_markdown),
}
#: The registered readers, which take precedence.
_READERS: dict[str, _FileReader] = {}


def _types() -> list[str]:
    """Return the suffixes of readable files, those of installed packages last."""
    return [*dict.fromkeys([*_BUILT_IN, *_READERS, *_installed()])]


def _reader_of(file: Path) -> _FileReader:
    suffix = file.suffix.lower()
    if suffix not in _READERS and suffix in _installed():
        register_reader(suffix, _installed()[suffix].load())
    reader = _READERS.get(suffix, _BUILT_IN.get(suffix))
    if reader is None:
        raise InvalidInput(
            f"expected a file of type {', '.join(_types())}, got {suffix!r}"
        )
    return reader


@cache
def _installed() -> dict[str, EntryPoint]:
    """Return the readers that installed packages declare, by suffix."""
    points = entry_points(group=READERS_GROUP)
    return {point.name.lower(): point for point in points}


@contextmanager
def _errors_name(where: str) -> Iterator[None]:
    """Turn errors of reading into `InvalidInput` that names the place."""
    try:
        yield
    except (TypeError, ValueError, RecursionError, OSError) as error:
        raise InvalidInput(f"{where}: {error}") from error

"""Files and objects become a `Corpus`."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from graphret.corpus.documents import Loaded, parse_markdown, to_items
from graphret.corpus.items import Corpus, Document, Item, Record, Table, check_edge
from graphret.corpus.names import stem_of
from graphret.corpus.tables import parse_delimited
from graphret.errors import InvalidInput
from graphret.storage import GENERATION
from graphret.types import Edge

Parsed: TypeAlias = "Item | Edge"
_T = TypeVar("_T")

_log = logging.getLogger(__name__)
_TABLE_OF_FILE = re.compile(r"(.+\.(?:md|markdown))/table-\d+", re.IGNORECASE | re.DOTALL)
_TABLE_FIELDS = {field.name for field in fields(Table)}
_SHAPES = (
    "a document has 'text', a table 'header' and 'rows', a record 'labels' or 'properties', "
    "an edge 'source', 'relation' and 'target'"
)


def read(sources: object) -> Corpus:
    """Read files, folders and objects.

    Parameters
    ----------
    sources
        One source or a list of them, each of

        - a file: ``.jsonl`` (a document, table, record or edge a line), ``.csv`` and ``.tsv`` (a table), ``.md`` (a
          document, and its tables), ``.txt`` (a document); UTF-8, with or without a byte order mark
        - a folder: the files of these types in it and below, in order of their paths; files of other types are counted
          in a warning of the logger ``graphret.corpus.readers``, but for hidden ones and graphs that graphret wrote
        - a `Document`, `Table`, `Record`, `Edge` or `Corpus`, or a mapping in one of the shapes of JSON Lines
        - a pandas ``DataFrame`` (a table), a LlamaIndex ``Document`` or ``TextNode``, a LangChain ``Document``

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
        If a file is missing or of no known type, or something in it is malformed; the message names the file, and of
        JSON Lines and delimited values the line. If a folder has no file that is read, or two items have the same id.
    """
    items: list[Item] = []
    edges: list[Edge] = []
    for is_loaded, group in groupby(_read(sources), key=lambda parsed: isinstance(parsed, Loaded)):
        for parsed in to_items(group) if is_loaded else group:  # type: ignore[arg-type]
            (edges if isinstance(parsed, Edge) else items).append(parsed)  # type: ignore[arg-type]
    return Corpus(tuple(items), tuple(edges))


def parse_item(value: Mapping[str, Any], where: str = "item") -> Parsed:
    """Make a document, table, record or edge of a mapping in one of the shapes of JSON Lines.

    Raises
    ------
    InvalidInput
        If the mapping has none of the shapes, or a key that its shape lacks.
    """
    given = {key: one for key, one in value.items() if one is not None}
    if {"source", "relation", "target"} <= value.keys():
        return check_edge(_make(Edge, {"properties": {}, **value}, where), where)
    if isinstance(given.get("id"), int):
        given["id"] = str(given["id"])
    if "header" in value or "rows" in value:
        return _make(Table, given, where)
    if "labels" in value or "properties" in value:
        return _make(Record, given, where)
    if "text" in value:
        return _make(Document, given, where)
    raise InvalidInput(
        f"{where}: none of the known shapes ({_SHAPES}): it has {', '.join(map(repr, value)) or 'nothing'}"
    )


def file_id(item: str) -> str:
    """Return the id of the Markdown file that a table was read from, and any other id as it is."""
    found = _TABLE_OF_FILE.fullmatch(item)
    return found[1] if found else item


def _read(source: object) -> Iterator[Parsed | Loaded]:
    if isinstance(source, (Document, Table, Record, Edge)):
        yield source
    elif isinstance(source, Corpus):
        yield from source.items
        yield from source.edges
    elif isinstance(source, (str, os.PathLike)):
        yield from _read_path(Path(source))
    elif isinstance(source, Mapping):
        yield parse_item(source)
    elif _is_frame(source):
        yield _of_frame(source)
    elif hasattr(source, "page_content") or (hasattr(source, "get_content") and hasattr(source, "metadata")):
        yield _of_framework(source)
    elif isinstance(source, Iterable):
        for part in source:
            yield from _read(part)
    else:
        raise InvalidInput(
            f"cannot read a {type(source).__name__}: give paths, items, documents of a framework or tables"
        )


def _read_path(path: Path) -> Iterator[Parsed]:
    if path.is_dir():
        known, skipped = _files_in(path)
        if not known:
            more = f"; {_not_read(skipped)}" if skipped else ""
            raise InvalidInput(f"{path}: holds no file of a type that is read: {', '.join(_PARSERS)}{more}")
        if skipped:
            _log.warning("%s: %s", path, _not_read(skipped))
        for file in known:
            yield from _read_file(file, file.relative_to(path).as_posix())
    elif path.is_file():
        yield from _read_file(path, path.name)
    else:
        raise InvalidInput(f"{path}: no such file or folder")


def _files_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the files of a folder that are read, and those that are not; hidden ones and graphs are neither."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    graphs = {path.parent.parent for path in found if GENERATION.fullmatch(path.parent.name)}
    files: tuple[list[Path], list[Path]] = [], []
    for path in found:
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and graphs.isdisjoint(path.parents):
            files[path.suffix.lower() not in _PARSERS].append(path)
    return files


def _not_read(files: list[Path]) -> str:
    types = ", ".join(sorted({file.suffix.lower() or "no type" for file in files}))
    return (
        f"{len(files):,} files of other types are not read ({types}), such as {files[0].name}. LlamaIndex reads "
        "many: graphret.read(SimpleDirectoryReader(folder).load_data())"
    )


def _read_file(path: Path, id_: str) -> Iterator[Parsed]:
    parser = _PARSERS.get(path.suffix.lower())
    if parser is None:
        raise InvalidInput(f"{path}: unknown file type {path.suffix!r}; known are {', '.join(_PARSERS)}")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: not UTF-8 ({error})") from error
    yield from parser(text, path, id_)


def _parse_json_lines(text: str, path: Path, _: str) -> Iterator[Parsed]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{where}: not JSON ({error})") from error
        if not isinstance(value, dict):
            raise InvalidInput(f"{where}: an object is expected, not {type(value).__name__}")
        yield parse_item(value, where)


def _parse_text(text: str, path: Path, id_: str) -> Iterator[Parsed]:
    values = {"text": text, "id": id_, "title": stem_of(path.name), "metadata": {"file_name": path.name}}
    yield _make(Document, values, str(path))


def _parse_markdown(text: str, path: Path, id_: str) -> Iterator[Parsed]:
    tables = 0
    for item in parse_markdown(text, stem_of(path.name), {"file_name": path.name}, str(path)):
        is_table = isinstance(item, Table)
        yield replace(item, id=f"{id_}/table-{tables}" if is_table else id_)
        tables += is_table


def _parse_delimited(text: str, path: Path, id_: str) -> Iterator[Parsed]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else None
    header, rows = parse_delimited(text, str(path), delimiter)
    values = {
        "header": header,
        "rows": rows,
        "id": id_,
        "title": stem_of(path.name),
        "metadata": {"file_name": path.name},
    }
    yield _make(Table, values, str(path))


_PARSERS: dict[str, Callable[[str, Path, str], Iterator[Parsed]]] = {
    ".jsonl": _parse_json_lines,
    ".csv": _parse_delimited,
    ".tsv": _parse_delimited,
    ".md": _parse_markdown,
    ".markdown": _parse_markdown,
    ".txt": _parse_text,
}


def _is_frame(source: object) -> bool:
    return all(hasattr(source, name) for name in ("columns", "itertuples", "attrs"))


def _of_frame(frame: Any) -> Table:
    """Make a table of a pandas frame, whose ``attrs`` may give it an id, a title and so on."""
    header = [str(name) for name in frame.columns]
    missing = frame.isna().to_numpy()
    rows = [
        ["" if gone else str(cell) for cell, gone in zip(row, mask, strict=True)]
        for row, mask in zip(frame.itertuples(index=False, name=None), missing, strict=True)
    ]
    attrs = {key: value for key, value in frame.attrs.items() if key in _TABLE_FIELDS - {"header", "rows"}}
    return _make(Table, {"header": header, "rows": rows, **attrs}, "data frame")


def _of_framework(document: Any) -> Loaded:
    """Return a document of LangChain, or a document or node of LlamaIndex."""
    if hasattr(document, "page_content"):
        kind, text, id_ = "LangChain document", document.page_content, getattr(document, "id", None)
    else:
        kind, id_ = "LlamaIndex document", getattr(document, "id_", None)
        try:
            text = document.get_content(metadata_mode="none")
        except TypeError:
            text = document.get_content()
    if not isinstance(text, str):
        raise InvalidInput(f"{kind} {id_!r}: its text is a string, not {type(text).__name__}")
    return Loaded(text, dict(document.metadata or {}), str(id_ or ""), f"{kind} {id_!r}" if id_ else kind)


def _make(kind: Callable[..., _T], values: Mapping[str, Any], where: str) -> _T:
    try:
        return kind(**values)
    except TypeError as error:  # a field is missing or unknown
        raise InvalidInput(f"{where}: {error}; put anything else in 'metadata' or 'properties'") from error
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error

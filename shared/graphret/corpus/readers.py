"""Files and objects become a `Corpus`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from graphret.corpus.items import Corpus, Document, Item, Record, Table, check_edge
from graphret.corpus.markdown import parse_markdown
from graphret.corpus.tabular import parse_delimited
from graphret.errors import InvalidInput
from graphret.strings import members
from graphret.types import Edge

Parsed: TypeAlias = "Item | Edge"
_T = TypeVar("_T")

_DOCUMENT_KEYS = {"id", "title", "text", "metadata"}
_TABLE_KEYS = {field.name for field in fields(Table) if field.init}
_RECORD_KEYS = {"id", "labels", "name", "properties", "text"}
_EDGE_KEYS = {"source", "relation", "target", "weight", "properties"}
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
        - a folder: the files of these types in it and below, in order of their paths
        - a `Document`, `Table`, `Record`, `Edge` or `Corpus`, or a mapping in one of the shapes of JSON Lines
        - a pandas ``DataFrame`` (a table), a LlamaIndex ``Document`` or ``TextNode``, a LangChain ``Document``

    Returns
    -------
    Corpus
        The items in the order of their sources, and the edges; empty where the sources are.

    Raises
    ------
    InvalidInput
        If a file is missing or of no known type, or something in it is malformed; the message names file and line.
    """
    items: list[Item] = []
    edges: list[Edge] = []
    for parsed in _read(sources):
        if isinstance(parsed, Edge):
            edges.append(parsed)
        else:
            items.append(parsed)
    return Corpus(tuple(items), tuple(edges))


def parse_item(value: Mapping[str, Any], where: str = "item") -> Parsed:
    """Make a document, table, record or edge of a mapping in one of the shapes of JSON Lines.

    Raises
    ------
    InvalidInput
        If the mapping has none of the shapes, or a key that its shape lacks.
    """
    if {"source", "relation", "target"} <= value.keys():
        _check_keys(value, _EDGE_KEYS, "an edge", where)
        return check_edge(Edge(**{"properties": {}, **value}), where)
    values = {key: value[key] for key in value if value[key] is not None}
    if "id" in values:
        values["id"] = _id(values["id"], where)
    if "header" in value or "rows" in value:
        _check_keys(value, _TABLE_KEYS, "a table", where)
        _require(value, ("header", "rows"), "a table", where)
        return _make(Table, values, where)
    if "labels" in value or "properties" in value:
        _check_keys(value, _RECORD_KEYS, "a record", where)
        return _make(Record, values, where)
    if "text" in value:
        _check_keys(value, _DOCUMENT_KEYS, "a document", where)
        _require(value, ("text",), "a document", where)
        return _make(Document, values, where)
    raise InvalidInput(
        f"{where}: none of the known shapes ({_SHAPES}): it has {', '.join(map(repr, value)) or 'nothing'}"
    )


def _read(source: object) -> Iterator[Parsed]:
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
    elif hasattr(source, "page_content"):
        yield _of_langchain(source)
    elif hasattr(source, "get_content") and hasattr(source, "metadata"):
        yield _of_llama_index(source)
    elif isinstance(source, Iterable):
        for part in source:
            yield from _read(part)
    else:
        raise InvalidInput(
            f"cannot read a {type(source).__name__}: give paths, items, documents of a framework or tables"
        )


def _read_path(path: Path) -> Iterator[Parsed]:
    if path.is_dir():
        for file in sorted(p for p in path.rglob("*") if p.is_file() and p.suffix.lower() in _PARSERS):
            if not any(part.startswith(".") for part in file.relative_to(path).parts):
                yield from _read_file(file)
    elif path.is_file():
        yield from _read_file(path)
    else:
        raise InvalidInput(f"{path}: no such file or folder")


def _read_file(path: Path) -> Iterator[Parsed]:
    parser = _PARSERS.get(path.suffix.lower())
    if parser is None:
        raise InvalidInput(f"{path}: unknown file type {path.suffix!r}; known are {', '.join(_PARSERS)}")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InvalidInput(f"{path}, line {line}: not UTF-8 ({error.reason})") from error
    yield from parser(text, path)


def _parse_json_lines(text: str, path: Path) -> Iterator[Parsed]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            value = json.loads(line, object_pairs_hook=members)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{where}: not JSON ({error})") from error
        if not isinstance(value, dict):
            raise InvalidInput(f"{where}: an object is expected, not {type(value).__name__}")
        yield parse_item(value, where)


def _parse_text(text: str, path: Path) -> Iterator[Parsed]:
    yield _make(Document, {"text": text, "title": path.stem, "metadata": {"file_name": path.name}}, str(path))


def _parse_markdown(text: str, path: Path) -> Iterator[Parsed]:
    yield from parse_markdown(text, path.stem, {"file_name": path.name}, str(path))


def _parse_delimited(text: str, path: Path) -> Iterator[Parsed]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else None
    header, rows = parse_delimited(text, str(path), delimiter)
    values = {"header": header, "rows": rows, "title": path.stem, "metadata": {"file_name": path.name}}
    yield _make(Table, values, str(path))


_PARSERS: dict[str, Callable[[str, Path], Iterator[Parsed]]] = {
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
    attrs = {key: value for key, value in frame.attrs.items() if key in _TABLE_KEYS - {"header", "rows"}}
    return _make(Table, {"header": header, "rows": rows, **attrs}, "data frame")


def _of_langchain(document: Any) -> Document:
    return _of_framework(document.page_content, getattr(document, "id", None), document.metadata, "LangChain document")


def _of_llama_index(node: Any) -> Document:
    try:
        text = node.get_content(metadata_mode="none")
    except TypeError:
        text = node.get_content()
    return _of_framework(text, getattr(node, "id_", None), node.metadata, "LlamaIndex document")


def _of_framework(text: object, id_: object, metadata: Any, kind: str) -> Document:
    given = dict(metadata or {})
    title = given.get("title")
    values = {"text": text, "metadata": given, "title": title if isinstance(title, str) else ""}
    return _make(Document, values | ({"id": str(id_)} if id_ else {}), f"{kind} {id_!r}" if id_ else kind)


def _make(kind: Callable[..., _T], values: Mapping[str, Any], where: str) -> _T:
    try:
        return kind(**values)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error


def _id(value: object, where: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value:
        return value
    raise InvalidInput(f"{where}: 'id' is a non-empty string, not {value!r}")


def _require(value: Mapping[str, Any], names: Iterable[str], kind: str, where: str) -> None:
    for name in names:
        if value.get(name) is None:
            raise InvalidInput(f"{where}: {kind} needs {name!r}")


def _check_keys(value: Mapping[str, Any], known: set[str], kind: str, where: str) -> None:
    for key in value:
        if key not in known:
            raise InvalidInput(
                f"{where}: {kind} has no {key!r}, only {', '.join(sorted(known))}; put anything else in "
                f"{'properties' if 'properties' in known else 'metadata'!r}"
            )

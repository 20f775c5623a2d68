"""What a user hands in: documents, tables, records, and edges between them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphret.errors import InvalidInput
from graphret.types import Edge, require_id

_RESERVED_PREFIXES = ("chunk_", "table_")
_RESERVED = ("source_id", "extracted")
_TEXT_KEYS = ("description", "text", "abstract", "summary", "details", "content", "body")
_LONG_WORDS = 8


@dataclass(frozen=True, slots=True)
class Document:
    """A text with a title.

    Parameters
    ----------
    text
        The text, kept as it is.
    id
        Unique in the corpus; made from title and text where missing.
    title
        What people call it.
    metadata
        JSON values by name; they become properties of every chunk.

    Raises
    ------
    InvalidInput
        If a field is not what it should be; the message names the document and the field.
    """

    text: str
    id: str = ""
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        what = _what("document", self.id, self.title)
        _require_strings(what, text=self.text, title=self.title)
        _settle(self, "doc", (self.title, self.text), metadata=checked_metadata(self.metadata, what))


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its surroundings.

    Parameters
    ----------
    header
        The names of the columns, at least one.
    rows
        The cells, as many a row as the header has. Cells become strings, a missing one the empty string.
    id
        Unique in the corpus; made from title, section and cells where missing.
    title, section, section_text, introduction
        The page or file that the table stands in, the heading above it, and the text around it.
    column_descriptions
        What columns hold, by their names.
    metadata
        JSON values by name; they become properties of every segment.

    Raises
    ------
    InvalidInput
        If a row is ragged, there is no header, or a field is not what it should be.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    id: str = ""
    title: str = ""
    section: str = ""
    section_text: str = ""
    introduction: str = ""
    column_descriptions: Mapping[str, str] = field(default_factory=dict, hash=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        what = _what("table", self.id, self.title)
        names = ("title", "section", "section_text", "introduction")
        _require_strings(what, **{name: getattr(self, name) for name in names})
        header = _cells(self.header, f"{what}: header")
        if not header:
            raise InvalidInput(f"{what}: 'header' names no column")
        if not isinstance(self.rows, Iterable):
            raise InvalidInput(f"{what}: 'rows' is a list of rows, not {_kind(self.rows)}")
        rows = tuple(_cells(row, f"{what}: row {number}") for number, row in enumerate(self.rows))
        for number, row in enumerate(rows):
            if len(row) != len(header):
                raise InvalidInput(f"{what}: row {number} has {len(row)} cells, and the header {len(header)}")
        if unknown := self.column_descriptions.keys() - set(header):
            raise InvalidInput(f"{what}: 'column_descriptions' has {min(unknown)!r}, which is no column")
        content = self.title, self.section, header, rows
        metadata = checked_metadata(self.metadata, what)
        _settle(self, "table", content, header=header, rows=rows, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Record:
    """An object with labels and properties: a product, a paper, a gene.

    Parameters
    ----------
    id
        Unique in the corpus; made from the rest where missing.
    labels
        Its kinds, the first the primary one.
    name
        What people call it.
    properties
        JSON values by name.
    text
        What it says; where empty it is put together from the properties: a description and the like first, then
        every other string of eight words or more.

    Raises
    ------
    InvalidInput
        If a field is not what it should be; the message names the record and the field.
    """

    id: str = ""
    labels: Sequence[str] = ("Record",)
    name: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict, hash=False)
    text: str = ""

    def __post_init__(self) -> None:
        what = _what("record", self.id, self.name)
        _require_strings(what, name=self.name, text=self.text)
        labels = () if isinstance(self.labels, str) else tuple(self.labels)
        if not labels or not all(isinstance(label, str) and label for label in labels):
            raise InvalidInput(f"{what}: 'labels' is a list of one or more non-empty strings, not {self.labels!r}")
        properties = checked_metadata(self.properties, what, "properties")
        content = labels, self.name, properties, self.text
        _settle(self, "record", content, labels=labels, properties=properties, text=self.text or _text_of(properties))


Item: TypeAlias = Document | Table | Record


@dataclass(frozen=True, slots=True)
class Corpus:
    """Items, and the edges between them that their owner stated.

    An edge may name an item or one of the nodes made from it (``"doc#2"``), in this corpus or in a graph that the
    corpus is added to.

    Raises
    ------
    InvalidInput
        If two items have the same id, or an edge lacks one of its names.
    """

    items: tuple[Item, ...] = ()
    edges: tuple[Edge, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", check_items(self.items))
        object.__setattr__(self, "edges", tuple(self.edges))
        for number, edge in enumerate(self.edges):
            check_edge(edge, f"edge {number}")

    def __len__(self) -> int:
        return len(self.items)

    @property
    def documents(self) -> list[Document]:
        """The items that are documents."""
        return [item for item in self.items if isinstance(item, Document)]

    @property
    def tables(self) -> list[Table]:
        """The items that are tables."""
        return [item for item in self.items if isinstance(item, Table)]

    @property
    def records(self) -> list[Record]:
        """The items that are records."""
        return [item for item in self.items if isinstance(item, Record)]


def check_items(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the items as a tuple if each is one and no two share an id, and raise `InvalidInput` if not."""
    checked = tuple(items)
    seen: set[str] = set()
    for number, item in enumerate(checked):
        if not isinstance(item, (Document, Table, Record)):
            raise InvalidInput(f"item {number}: graphret's Document, Table or Record is expected, not {_foreign(item)}")
        if item.id in seen:
            raise InvalidInput(
                f"two items have the id {item.id!r}: give each its own, of the same content too; of files of one path "
                "in several folders, read the folder above them"
            )
        seen.add(item.id)
    return checked


def check_edge(edge: object, what: str) -> Edge:
    """Return the edge if it is one whose names are non-empty strings, and raise `InvalidInput` if not."""
    if not isinstance(edge, Edge):
        raise InvalidInput(f"{what}: an Edge is expected, not {_kind(edge)}")
    for name in ("source", "relation", "target"):
        value = getattr(edge, name)
        if not isinstance(value, str) or not value:
            raise InvalidInput(f"{what}: {name!r} is a non-empty string, not {value!r}")
    if not isinstance(edge.weight, (int, float)) or not math.isfinite(edge.weight):
        raise InvalidInput(f"{what}: 'weight' is a finite number, not {edge.weight!r}")
    checked_metadata(edge.properties, what, "properties", reserved=False)
    return edge


def checked_metadata(metadata: object, what: str, name: str = "metadata", *, reserved: bool = True) -> dict[str, Any]:
    """Return a copy of a mapping of JSON values, and raise `InvalidInput` that names the field if it is not one.

    With `reserved`, the names that graphret itself gives to the properties of nodes are refused.
    """
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"{what}: {name!r} is a mapping, not {_kind(metadata)}")
    for key in metadata if reserved else ():
        if key in _RESERVED or str(key).startswith(_RESERVED_PREFIXES):
            raise InvalidInput(f"{what}: the key {key!r} of {name!r} is reserved for graphret; rename it")
    copy = _json(metadata, f"{what}: {name}")
    assert isinstance(copy, dict)
    return copy


def _json(value: Any, where: str) -> Any:
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, (list, tuple)):
        return [_json(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InvalidInput(f"{where}: the key {key!r} is not a string")
        return {key: _json(v, f"{where}.{key}") for key, v in value.items()}
    raise InvalidInput(f"{where} is not a JSON value: {value!r} ({_kind(value)})")


def _cells(row: object, where: str) -> tuple[str, ...]:
    """Return cells as strings, what is missing as the empty one."""
    if isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable):
        raise InvalidInput(f"{where} is a list of cells, not {_kind(row)}")
    cells = tuple(row)
    for i, cell in enumerate(cells):
        if isinstance(cell, (list, tuple, set, Mapping)):
            raise InvalidInput(f"{where}, column {i}: a cell is a string, a number or nothing, not {_kind(cell)}")
    return tuple("" if cell is None or cell != cell else str(cell) for cell in cells)  # NaN is not itself


def _settle(item: Item, prefix: str, content: Any, **fields: Any) -> None:
    """Put checked fields in place, and an id made from the content where there is none."""
    for name, value in fields.items():
        object.__setattr__(item, name, value)
    if not item.id:
        data = json.dumps(content, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode()
        object.__setattr__(item, "id", f"{prefix}-{hashlib.blake2b(data, digest_size=8).hexdigest()}")
    else:
        require_id(item.id, "document" if prefix == "doc" else prefix)


def _text_of(properties: Mapping[str, Any]) -> str:
    """Return what a record says: a description and the like first, then its other long strings."""
    told = sorted(properties, key=lambda key: _TEXT_KEYS.index(key) if key in _TEXT_KEYS else len(_TEXT_KEYS))
    parts = [
        part.strip()
        for key in told
        for part in (properties[key] if isinstance(properties[key], list) else [properties[key]])
        if isinstance(part, str) and (key in _TEXT_KEYS or len(part.split()) >= _LONG_WORDS)
    ]
    return "\n".join(dict.fromkeys(filter(None, parts)))


def _require_strings(what: str, **fields: object) -> None:
    for name, value in fields.items():
        if not isinstance(value, str):
            raise InvalidInput(f"{what}: {name!r} is a string, not {_kind(value)}")


def _what(kind: str, id_: object, title: object) -> str:
    return f"{kind} {id_!r}" if id_ else f"{kind} titled {title!r}" if title else kind


def _foreign(value: object) -> str:
    """Return what a value of a framework is, and what takes it."""
    home = type(value).__module__.split(".")[0]
    adapters = {"langchain_core": "langchain_graphret.SageGraph", "llama_index": "llama_index_graphret.SageGraph"}
    if home not in adapters:
        return _kind(value)
    return f"{home}'s {_kind(value)}: {adapters[home]} takes it, and graphret.read makes items of it"


def _kind(value: object) -> str:
    return type(value).__name__

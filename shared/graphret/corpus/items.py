"""What a user hands in: documents, tables, records, and edges between them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphret.errors import InvalidInput
from graphret.types import Edge, require_id
from graphret.validation import require_edge, require_properties

_RESERVED, _RESERVED_PREFIXES = ("source_id", "extracted"), ("chunk_", "table_")
_TEXT_KEYS = ("description", "text", "abstract", "summary", "details", "content", "body")
_LONG_WORDS = 8


@dataclass(frozen=True, slots=True)
class Document:
    """A text with a title; an `InvalidInput` names a field that is not what it should be.

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
    """

    text: str
    id: str = ""
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        metadata = checked_metadata(self.metadata, _called(self))
        _settle(self, ("text", "title"), (self.title, self.text), metadata=metadata)


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its surroundings; an `InvalidInput` names a ragged row, or a field that is not what it should be.

    Parameters
    ----------
    header, rows
        The names of the columns, at least one, and the cells, as many a row. Cells become strings, a missing one the
        empty string.
    id
        Unique in the corpus; made from title, section and cells where missing.
    title, section, section_text, introduction
        The page or file that the table stands in, the heading above it, and the text around it.
    column_descriptions
        What columns hold, by their names.
    metadata
        JSON values by name; they become properties of every segment.
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
        what = _called(self)
        header, *rows = (_cells(row, what) for row in (self.header, *_listed(self.rows, f"{what}: 'rows'")))
        if not header:
            raise InvalidInput(f"{what}: 'header' names no column")
        for number, row in enumerate(rows):
            if len(row) != len(header):
                raise InvalidInput(f"{what}: row {number} has {len(row)} cells, and the header {len(header)}")
        strings, metadata = ("title", "section", "section_text", "introduction"), checked_metadata(self.metadata, what)
        content = self.title, self.section, header, rows
        _settle(self, strings, content, header=header, rows=tuple(rows), metadata=metadata)


@dataclass(frozen=True, slots=True)
class Record:
    """An object with labels and properties: a product, a gene; an `InvalidInput` names a field that is malformed.

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
        What it says; where empty it is put together from the properties: the description, summary and the like, and
        every other string of eight words or more.
    """

    id: str = ""
    labels: Sequence[str] = ("Record",)
    name: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict, hash=False)
    text: str = ""

    def __post_init__(self) -> None:
        what = _called(self)
        labels = tuple(_listed(self.labels, f"{what}: 'labels'"))
        if not labels or not all(isinstance(label, str) and label for label in labels):
            raise InvalidInput(f"{what}: 'labels' is a list of one or more non-empty strings, not {self.labels!r}")
        properties = checked_metadata(self.properties, what, "properties")
        content, text = (labels, self.name, properties, self.text), self.text or _text_of(properties)
        _settle(self, ("name", "text"), content, labels=labels, properties=properties, text=text)


Item: TypeAlias = Document | Table | Record


@dataclass(frozen=True, slots=True)
class Corpus:
    """Items, and the edges between them that their owner stated.

    An edge may name an item or one of the nodes made from it (``"doc#2"``), in this corpus or in a graph that the
    corpus is added to.
    """

    items: tuple[Item, ...] = ()
    edges: tuple[Edge, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(self.items))
        object.__setattr__(self, "edges", tuple(self.edges))
        for item in self.items:
            if not isinstance(item, Item):
                raise InvalidInput(f"{type(item)!r} is no Document, Table or Record: graphret.read makes these")
        for edge in self.edges:
            require_edge(edge)


def checked_metadata(metadata: Any, what: str, name: str = "metadata", *, reserved: bool = True) -> dict[str, Any]:
    """Return a mapping of JSON values as a dictionary, and raise `InvalidInput` that names the field if it is not one.

    With `reserved`, the names that graphret itself gives to the properties of nodes are refused.
    """
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"{what}: {name!r} is a mapping, not {type(metadata).__name__}")
    require_properties(metadata, f"{what}: {name}")
    for key in metadata if reserved else ():
        if key in _RESERVED or key.startswith(_RESERVED_PREFIXES):
            raise InvalidInput(f"{what}: the key {key!r} of {name!r} is reserved for graphret; rename it")
    return {key: list(value) if isinstance(value, tuple) else value for key, value in metadata.items()}


def _called(item: Item) -> str:
    """Return what messages call an item."""
    return f"{type(item).__name__.lower()} {item.id or getattr(item, 'title', '')!r}"


def _listed(values: Any, what: str) -> Iterable[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidInput(f"{what} is a list, not {type(values).__name__}")
    return values


def _cells(row: object, what: str) -> tuple[str, ...]:
    """Return the cells of a row or a header as strings, what is missing as the empty one."""
    return tuple("" if cell is None or cell != cell else str(cell) for cell in _listed(row, f"{what}: a row"))


def _settle(item: Item, strings: Iterable[str], content: Any, **fields: Any) -> None:
    """Put checked fields in place, and an id made from the content where there is none."""
    for name in strings:
        if not isinstance(value := getattr(item, name), str):
            raise InvalidInput(f"{_called(item)}: {name!r} is a string, not {type(value).__name__}")
    if item.id:
        require_id(item.id, _called(item))
    else:
        data = json.dumps(content, separators=(",", ":"), sort_keys=True).encode()
        prefix = "doc" if isinstance(item, Document) else type(item).__name__.lower()
        fields["id"] = f"{prefix}-{hashlib.blake2b(data, digest_size=8).hexdigest()}"
    for name, value in fields.items():
        object.__setattr__(item, name, value)


def _text_of(properties: Mapping[str, Any]) -> str:
    """Return what a record says: its description and the like, and its other long strings."""
    values = (
        (key, part) for key, value in properties.items() for part in (value if isinstance(value, list) else [value])
    )
    parts = ((key, part.strip()) for key, part in values if isinstance(part, str))
    return "\n".join(part for key, part in parts if key in _TEXT_KEYS or len(part.split()) >= _LONG_WORDS)

"""What a user hands in: documents, tables, records, and edges between them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from decimal import Decimal
from typing import Any, TypeAlias

from graphret.errors import InvalidInput
from graphret.types import Edge, require_id

_RESERVED_PREFIXES = ("chunk_", "table_")
_RESERVED = ("source_id", "extracted")
_TEXT_KEYS = ("description", "text", "abstract", "summary", "details", "content", "body")
_LONG_WORDS = 8
_QUOTE = 60
_PREFIX = {"document": "doc"}


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
    made_id: bool = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        what = _what("document", self.id, self.title)
        _require_strings(what, text=self.text, title=self.title)
        object.__setattr__(self, "metadata", checked_metadata(self.metadata, what))
        _settle_id(self, "document", self.title, self.text)


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
    made_id: bool = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        what = _what("table", self.id, self.title)
        names = ("title", "section", "section_text", "introduction")
        _require_strings(what, **{name: getattr(self, name) for name in names})
        header = _checked_row(self.header, what, "header")
        if not header:
            raise InvalidInput(f"{what}: 'header' names no column")
        _require_unicode("".join(header), f"{what}: 'header'")
        object.__setattr__(self, "header", header)
        object.__setattr__(self, "rows", _checked_rows(self.rows, header, what))
        object.__setattr__(self, "column_descriptions", _checked_columns(self.column_descriptions, header, what))
        object.__setattr__(self, "metadata", checked_metadata(self.metadata, what))
        _settle_id(self, "table", self.title, self.section, header, self.rows)


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
    made_id: bool = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        what = _what("record", self.id, self.name)
        _require_strings(what, name=self.name, text=self.text)
        labels = self.labels
        if isinstance(labels, str) or not isinstance(labels, Sequence):
            raise InvalidInput(f"{what}: 'labels' is a list of strings, not {_kind(labels)}")
        if not labels or not all(isinstance(label, str) and label for label in labels):
            raise InvalidInput(f"{what}: 'labels' is a list of one or more non-empty strings, not {list(labels)!r}")
        object.__setattr__(self, "labels", tuple(labels))
        object.__setattr__(self, "properties", checked_metadata(self.properties, what, "properties"))
        _settle_id(self, "record", self.labels, self.name, self.properties, self.text)
        object.__setattr__(self, "text", self.text or _text_of(self.properties))


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
    seen: dict[str, Item] = {}
    for number, item in enumerate(checked):
        if not isinstance(item, (Document, Table, Record)):
            raise InvalidInput(f"item {number}: graphret's Document, Table or Record is expected, not {_foreign(item)}")
        earlier = seen.setdefault(item.id, item)
        if len(seen) == number + 1:
            continue
        if item.made_id and earlier.made_id:
            about = getattr(item, "title", "") or getattr(item, "name", "") or getattr(item, "text", "")[:_QUOTE]
            raise InvalidInput(f"the same content occurs twice ({about!r}, id {item.id!r}): give each its own 'id'")
        raise InvalidInput(f"the id {item.id!r} is borne by two items of the corpus")
    return checked


def check_edge(edge: object, what: str) -> Edge:
    """Return the edge if it is one whose names are non-empty strings, and raise `InvalidInput` if not."""
    if not isinstance(edge, Edge):
        raise InvalidInput(f"{what}: an Edge is expected, not {_kind(edge)}")
    require_id(edge.source, f"{what}, 'source'")
    require_id(edge.target, f"{what}, 'target'")
    if not isinstance(edge.relation, str) or not edge.relation:
        raise InvalidInput(f"{what}: 'relation' is a non-empty string, not {edge.relation!r}")
    if isinstance(edge.weight, bool) or not isinstance(edge.weight, (int, float)) or not math.isfinite(edge.weight):
        raise InvalidInput(f"{what}: 'weight' is a finite number, not {edge.weight!r}")
    checked_metadata(edge.properties, what, "properties", reserved=False)
    return edge


def checked_metadata(metadata: object, what: str, name: str = "metadata", *, reserved: bool = True) -> dict[str, Any]:
    """Return a copy of a mapping of JSON values, and raise `InvalidInput` that names the field if it is not one.

    With `reserved`, the names that graphret itself gives to the properties of nodes are refused.
    """
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"{what}: {name!r} is a mapping, not {_kind(metadata)}")
    copy: dict[str, Any] = {}
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise InvalidInput(f"{what}: {name!r} has the key {key!r}, which is not a string")
        if reserved and (key in _RESERVED or key.startswith(_RESERVED_PREFIXES)):
            raise InvalidInput(f"{what}: the key {key!r} of {name!r} is reserved for graphret; rename it")
        _require_unicode(key, f"{what}: a key of {name!r}")
        copy[key] = _json(value, f"{what}: {name}.{key}")
    return copy


def _json(value: Any, where: str) -> Any:
    if isinstance(value, str):
        _require_unicode(value, where)
        return value
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (list, tuple)):
        return [_json(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _json(v, f"{where}.{key}") for key, v in value.items()}
    raise InvalidInput(f"{where} is not a JSON value: {value!r} ({_kind(value)})")


def _checked_rows(rows: object, header: tuple[str, ...], what: str) -> tuple[tuple[str, ...], ...]:
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable):
        raise InvalidInput(f"{what}: 'rows' is a list of rows, not {_kind(rows)}")
    checked = tuple(_checked_row(row, what, f"row {number}") for number, row in enumerate(rows))
    for number, row in enumerate(checked):
        if len(row) != len(header):
            raise InvalidInput(f"{what}: row {number} has {len(row)} cells, and the header {len(header)}")
        _require_unicode("".join(row), f"{what}: row {number}")
    return checked


def _checked_row(row: object, what: str, name: str) -> tuple[str, ...]:
    if isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable):
        raise InvalidInput(f"{what}: {name} is a list of cells, not {_kind(row)}")
    return tuple([v if type(v) is str else _cell(v, f"{what}: {name}, column {i}") for i, v in enumerate(row)])


def _cell(value: object, where: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (str, int, float, Decimal, date, time)):
        return str(value)
    raise InvalidInput(f"{where}: a cell is a string, a number or nothing, not {_kind(value)}")


def _checked_columns(columns: object, header: tuple[str, ...], what: str) -> dict[str, str]:
    if not isinstance(columns, Mapping):
        raise InvalidInput(f"{what}: 'column_descriptions' is a mapping, not {_kind(columns)}")
    for name, text in columns.items():
        if name not in header:
            raise InvalidInput(f"{what}: 'column_descriptions' has {name!r}, which is no column")
        if not isinstance(text, str):
            raise InvalidInput(f"{what}: the description of the column {name!r} is not a string")
    return dict(columns)


def _settle_id(item: Item, kind: str, *content: Any) -> None:
    if item.id is None or item.id == "":
        data = json.dumps(content, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode()
        object.__setattr__(item, "id", f"{_PREFIX.get(kind, kind)}-{hashlib.blake2b(data, digest_size=8).hexdigest()}")
        object.__setattr__(item, "made_id", True)
    else:
        _require_unicode(require_id(item.id, kind), f"{kind}: the id {item.id!r}")


def _text_of(properties: Mapping[str, Any]) -> str:
    parts = [part for key in _TEXT_KEYS for part in _strings(properties.get(key))]
    parts += [
        part
        for key, value in properties.items()
        if key not in _TEXT_KEYS
        for part in _strings(value)
        if len(part.split()) >= _LONG_WORDS
    ]
    return "\n".join(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _strings(value: Any) -> list[str]:
    return [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, str)]


def _require_strings(what: str, **fields: object) -> None:
    for name, value in fields.items():
        if not isinstance(value, str):
            raise InvalidInput(f"{what}: {name!r} is a string, not {_kind(value)}")
        _require_unicode(value, f"{what}: {name!r}")


def _require_unicode(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{where} has half a surrogate pair at {error.start}, which is no text") from error


def _what(kind: str, id_: object, title: object) -> str:
    return f"{kind} {id_!r}" if id_ else f"{kind} titled {title!r}" if title else kind


def _foreign(value: object) -> str:
    """Return what a value of another library is, and what takes it."""
    home = type(value).__module__.split(".")[0]
    remedy = {
        "langchain_core": "langchain_graphret.SageGraph takes it, and ",
        "llama_index": "llama_index_graphret.SageGraph takes it, and ",
    }
    known = home in remedy or home == "pandas"
    return f"{home}'s {_kind(value)}" + (f": {remedy.get(home, '')}graphret.read makes items of it" if known else "")


def _kind(value: object) -> str:
    return type(value).__name__

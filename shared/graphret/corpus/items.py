"""A user's documents, tables, records and edges, and the nodes made from them.

The i-th chunk of a `Document` is the node ``"{id}#{i}"`` with the label ``Document``, a
segment of a `Table` likewise with ``Table``; a `Record` is a node with its own id and
labels. Besides the user's properties and those of `graphret.corpus.metadata`, nodes
have ``title``, ``source_id`` and ``chunk_index``; a chunk ``chunk_start`` and
``chunk_end``; a segment ``table_header``, ``table_rows``, ``table_row_start``,
``table_row_end``, and where they are known ``section``, ``section_text``,
``introduction`` and ``column_descriptions``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, pairwise
from typing import Any, TypeAlias

from graphret.corpus.chunkers import Chunker, SentenceChunker, Span
from graphret.corpus.names import given_name
from graphret.errors import InvalidInput
from graphret.executors import LOCAL, Executor, batched
from graphret.types import Edge, Node, require_id
from graphret.validation import require_edge, require_properties

#: Fewest rows of a segment, where the table has them, and most (SAGE, section 2.1 A 2).
MIN_SEGMENT_ROWS, MAX_SEGMENT_ROWS = 5, 10
_RESERVED, _RESERVED_PREFIXES = ("source_id", "extracted"), ("chunk_", "table_")
_TEXT_KEYS = (
    "description",
    "text",
    "abstract",
    "summary",
    "details",
    "content",
    "body",
)
_LONG_WORDS = 8
_FIELDS = ("title", "section", "section_text", "introduction", "column_descriptions")


@dataclass(frozen=True, slots=True)
class Document:
    """A text with a title; an `InvalidInput` names a malformed field.

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
        _settle(
            self,
            (self.title, self.text),
            metadata=checked_metadata(self.metadata, _described(self)),
        )


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its surroundings; an `InvalidInput` names a malformed field or row.

    Parameters
    ----------
    header, rows
        The names of the columns, at least one, and as many cells in each row. Cells
        become strings, missing ones the empty string.
    id
        Unique in the corpus; made from title, section and cells where missing.
    title, section, section_text, introduction
        The page or file of the table, the heading above it, and the text around it.
    column_descriptions
        What the columns hold, by their names.
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
        what = _described(self)
        header, *rows = (
            _cells(row, what)
            for row in (self.header, *_listed(self.rows, f"{what}: 'rows'"))
        )
        if not header:
            raise InvalidInput(f"{what}: 'header' names no column")
        for number, row in enumerate(rows, 1):
            if len(row) != len(header):
                raise InvalidInput(
                    f"{what}: row {number} has {len(row)} cells, and the header"
                    f" {len(header)}"
                )
        content, metadata = (
            (self.title, self.section, header, rows),
            checked_metadata(self.metadata, what),
        )
        _settle(self, content, header=header, rows=tuple(rows), metadata=metadata)


@dataclass(frozen=True, slots=True)
class Record:
    """An object such as a product or a gene; an `InvalidInput` names a malformed field.

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
        Its text; where empty, one is made from the properties: the description, the
        summary and the like, and every other string of eight words or more.
    """

    id: str = ""
    labels: Sequence[str] = ("Record",)
    name: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict, hash=False)
    text: str = ""

    def __post_init__(self) -> None:
        what = _described(self)
        labels = tuple(_listed(self.labels, f"{what}: 'labels'"))
        if not labels or not all(isinstance(label, str) and label for label in labels):
            raise InvalidInput(
                f"{what}: 'labels': expected one or more non-empty strings, got"
                f" {self.labels!r}"
            )
        properties = checked_metadata(self.properties, what, "properties")
        content, text = (
            (labels, self.name, properties, self.text),
            self.text or _text_of(properties),
        )
        _settle(self, content, labels=labels, properties=properties, text=text)


Item: TypeAlias = Document | Table | Record


@dataclass(frozen=True, slots=True)
class Corpus:
    """Items, and the user's edges between them.

    An edge may name an item or one of the nodes made from it (``"doc#2"``), in this
    corpus or in a graph that the corpus is added to. Iterating over a corpus yields its
    items.

    Parameters
    ----------
    skipped
        Files that could not be read, each as its path and why.
    """

    items: tuple[Item, ...] = ()
    edges: tuple[Edge, ...] = ()
    skipped: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def filter(self, keep: Callable[[Item], bool]) -> Corpus:
        """Return the corpus of the items that `keep` accepts, without other edges.

        Examples
        --------
        >>> corpus = Corpus((Document("a", title="A"), Document("b", title="B")))
        >>> [item.title for item in corpus.filter(lambda item: item.title == "A")]
        ['A']
        """
        items = tuple(item for item in self.items if keep(item))
        removed = {item.id for item in self.items} - {item.id for item in items}
        edges = tuple(
            edge
            for edge in self.edges
            if not removed & {edge.source, edge.target}
            and not removed & {_item_of(edge.source), _item_of(edge.target)}
        )
        return replace(self, items=items, edges=edges)


def _item_of(node_id: str) -> str:
    """Return the item's id in a chunk's: ``doc`` in ``doc#2``."""
    return node_id.rpartition("#")[0]


def checked_metadata(
    metadata: Any, what: str, name: str = "metadata", *, reserved: bool = True
) -> dict[str, Any]:
    """Return a mapping of JSON values as a dictionary, or raise `InvalidInput`.

    With `reserved`, the property names that graphret itself uses are refused.
    """
    if not isinstance(metadata, Mapping):
        raise InvalidInput(
            f"{what}: {name!r}: expected a mapping, got {type(metadata).__name__}"
        )
    require_properties(metadata, f"{what}: {name}")
    for key in metadata if reserved else ():
        if is_reserved(key):
            raise InvalidInput(
                f"{what}: the key {key!r} of {name!r} is reserved for graphret;"
                " rename it"
            )
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in metadata.items()
    }


def is_reserved(key: str) -> bool:
    """Whether graphret itself uses a property, to note how an item was split."""
    return key in _RESERVED or key.startswith(_RESERVED_PREFIXES)


def _described(item: Item) -> str:
    """Return how messages refer to an item."""
    return f"{type(item).__name__.lower()} {item.id or getattr(item, 'title', '')!r}"


def _listed(values: Any, what: str) -> Iterable[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidInput(f"{what}: expected a list, got {type(values).__name__}")
    return values


def _cells(row: object, what: str) -> tuple[str, ...]:
    """Return the cells of a row or header as strings, missing ones as empty strings."""
    return tuple(
        "" if cell is None or cell != cell else str(cell)
        for cell in _listed(row, f"{what}: a row")
    )


def _settle(item: Item, content: Any, **checked: Any) -> None:
    """Check string fields, set the checked ones, and make a missing id from content."""
    for item_field in fields(item):
        value = getattr(item, item_field.name)
        if item_field.type == "str" and not isinstance(value, str):
            raise InvalidInput(
                f"{_described(item)}: {item_field.name!r}: expected a string, got"
                f" {type(value).__name__}"
            )
    if item.id:
        require_id(item.id, _described(item))
    else:
        data = json.dumps(content, separators=(",", ":"), sort_keys=True).encode()
        prefix = "doc" if isinstance(item, Document) else type(item).__name__.lower()
        checked["id"] = f"{prefix}-{hashlib.blake2b(data, digest_size=8).hexdigest()}"
    for name, value in checked.items():
        object.__setattr__(item, name, value)


def _text_of(properties: Mapping[str, Any]) -> str:
    """Return a record's text: its description and the like, and other long strings."""
    values = (
        (key, part)
        for key, value in properties.items()
        for part in (value if isinstance(value, list) else [value])
    )
    parts = ((key, part.strip()) for key, part in values if isinstance(part, str))
    return "\n".join(
        part
        for key, part in parts
        if key in _TEXT_KEYS or len(part.split()) >= _LONG_WORDS
    )


# -- nodes


def to_nodes(
    items: Corpus | Iterable[Item],
    *,
    chunker: Chunker | None = SentenceChunker(),
    rows_per_segment: int = MAX_SEGMENT_ROWS,
    balance: bool = True,
    executor: Executor = LOCAL,
) -> list[Node]:
    """Turn items into nodes, in order; two with one id raise `InvalidInput`.

    Parameters
    ----------
    chunker
        What cuts documents; `None` for one node a document, with the document's id.
    rows_per_segment
        Rows of a table segment, 5 to 10.
    balance
        Whether a last segment of fewer than 5 rows shares with the one before it. If
        not, row r is in segment ``r // rows_per_segment``.
    executor
        Where documents are cut, block by block.
    """
    listed = (items if isinstance(items, Corpus) else Corpus(tuple(items))).items
    if not MIN_SEGMENT_ROWS <= rows_per_segment <= MAX_SEGMENT_ROWS:
        raise InvalidInput(
            f"rows_per_segment: expected 5 to 10, got {rows_per_segment!r}"
        )
    documents = [item for item in listed if isinstance(item, Document)]
    texts, gpu = [document.text for document in documents], hasattr(chunker, "encoder")
    whole_texts = ([(0, len(text))] for text in texts)
    spans = (
        chain(*executor.map(chunker.spans, batched(texts), gpu=gpu))
        if chunker
        else whole_texts
    )
    nodes: dict[str, Node] = {}
    for item in listed:
        if isinstance(item, Table):
            item_nodes = _segments(item, rows_per_segment, balance)
        elif isinstance(item, Document):
            item_nodes = _chunks(item, next(spans), numbered=bool(chunker))
        elif isinstance(item, Record):
            properties = _set_properties(item.properties)
            name = item.name or given_name(properties)
            item_nodes = [
                Node(item.id, tuple(item.labels), name, item.text, properties)
            ]
        else:
            raise InvalidInput(
                "expected a Document, Table or Record, as graphret.read makes them,"
                f" got {type(item)!r}"
            )
        for node in item_nodes:
            if node.id in nodes:
                raise InvalidInput(
                    f"two items or chunks of them have the id {node.id!r}: give each"
                    " item its own"
                )
            nodes[node.id] = node
    return [*nodes.values()]


def to_edges(
    edges: Iterable[Edge],
    nodes: Iterable[Node],
    held: Callable[[Collection[str]], Mapping[str, str]] = lambda _: {},
) -> list[Edge]:
    """Return edges between items as edges between their nodes.

    An end that names a node stays; one that names a document or table becomes its first
    chunk or segment. `held` returns the nodes of other names, those that it knows, of a
    graph that the nodes are added to. Any other end raises `InvalidInput`.
    """
    listed = list(edges)
    for edge in listed:
        require_edge(edge)
    node_by_name: dict[str, str] = {}
    for node in nodes:
        node_by_name.setdefault(node.properties.get("source_id", node.id), node.id)
        node_by_name[node.id] = node.id
    ends = {end for edge in listed for end in (edge.source, edge.target)}
    if others := ends - node_by_name.keys():
        node_by_name |= held(others)
    node_edges = []
    for edge in listed:
        if missing := {edge.source, edge.target} - node_by_name.keys():
            relation = f"{edge.source!r} -{edge.relation}-> {edge.target!r}"
            raise InvalidInput(
                f"edge {relation}: there is no node or item {min(missing)!r}"
            )
        source, target = node_by_name[edge.source], node_by_name[edge.target]
        node_edges.append(replace(edge, source=source, target=target))
    return node_edges


def _chunks(
    document: Document, spans: Sequence[Span], *, numbered: bool
) -> Iterable[Node]:
    properties = _set_properties({"title": document.title, **document.metadata})
    for i, (start, end) in enumerate(spans or [(0, len(document.text))]):
        place = {
            "source_id": document.id,
            "chunk_index": i,
            "chunk_start": start,
            "chunk_end": end,
        }
        id_ = f"{document.id}#{i}" if numbered else document.id
        yield Node(
            id_,
            ("Document",),
            document.title or given_name(properties),
            document.text[start:end],
            properties | place,
        )


def _segments(table: Table, size: int, balance: bool) -> Iterable[Node]:
    """Yield the segments of a table; one without rows has one empty segment."""
    properties = _set_properties(
        {**{name: getattr(table, name) for name in _FIELDS}, **table.metadata}
    )
    about = [table.title, table.section, table.introduction]
    about += [f"{name}: {text}" for name, text in table.column_descriptions.items()]
    n_rows = len(table.rows)
    starts = [*range(0, n_rows, size)] or [0]
    if balance and len(starts) > 1 and n_rows - starts[-1] < MIN_SEGMENT_ROWS:
        shared = n_rows - starts[-2]
        starts[-1:] = (
            [] if shared <= MAX_SEGMENT_ROWS else [starts[-2] + (shared + 1) // 2]
        )
    for i, (start, end) in enumerate(pairwise([*starts, n_rows])):
        rows = [list(row) for row in table.rows[start:end]]
        place = {
            "source_id": table.id,
            "chunk_index": i,
            "table_header": list(table.header),
            "table_rows": rows,
        }
        span = {"table_row_start": start, "table_row_end": end}
        lines = [*about, *(" | ".join(cells) for cells in (table.header, *rows))]
        text = "\n".join(" ".join(line.split()) for line in lines if line)
        yield Node(
            f"{table.id}#{i}",
            ("Table",),
            table.title or given_name(properties),
            text,
            properties | place | span,
        )


def _set_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return a user's properties without empty ones among those that graphret reads."""
    return {
        key: value
        for key, value in properties.items()
        if value or key not in (*_FIELDS, "entities", "aliases")
    }

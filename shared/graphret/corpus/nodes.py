"""Items become nodes: documents in chunks, tables in segments, records as they are.

What every node of a corpus looks like, for whoever reads it:

=============  =====================  ===================  =====================================================
made from      id                     labels               properties besides the user's own
=============  =====================  ===================  =====================================================
`Document`     ``"{id}#{i}"``         ``("Document",)``    title, source_id, chunk_index, chunk_start, chunk_end
`Table`        ``"{id}#{i}"``         ``("Table",)``       title, section, section_text, introduction,
                                                           source_id, chunk_index, table_header, table_rows,
                                                           table_row_start, table_row_end, column_descriptions
`Record`       ``"{id}"``             the record's         none
=============  =====================  ===================  =====================================================

and on all of them what `graphret.corpus.metadata.Metadata` knows: topic, entities, events, summary, description,
relationships; a field that the user gave is left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from graphret.corpus.chunkers import Chunker, SentenceChunker
from graphret.corpus.heuristics import HeuristicMetadata
from graphret.corpus.items import Corpus, Document, Item, Record, Table, check_items
from graphret.corpus.metadata import MetadataExtractor, describe
from graphret.corpus.sentences import Span
from graphret.errors import InvalidInput
from graphret.types import Edge, Node

MIN_SEGMENT_ROWS = 5
"""Fewest rows of a segment, where the table has them (SAGE, section 2.1 A 2)."""

MAX_SEGMENT_ROWS = 10
"""Most rows of a segment (SAGE, section 2.1 A 2)."""

_DEFAULT_CHUNKER = SentenceChunker()
_DEFAULT_METADATA = HeuristicMetadata()
_TEXT_FIELDS = ("title", "topic", "summary", "description", "section", "section_text", "introduction")
_LIST_FIELDS = ("entities", "aliases", "events")


def to_nodes(
    items: Corpus | Iterable[Item],
    *,
    chunker: Chunker | None = _DEFAULT_CHUNKER,
    rows_per_segment: int = MAX_SEGMENT_ROWS,
    balance: bool = True,
    metadata: MetadataExtractor | None = _DEFAULT_METADATA,
) -> list[Node]:
    """Turn items into nodes, in their order.

    Parameters
    ----------
    items
        A corpus, or documents, tables and records.
    chunker
        What cuts documents; `None` for one node a document, with the document's id.
    rows_per_segment
        Rows of a table segment, 5 to 10.
    balance
        Whether a last segment of fewer than 5 rows shares with the one before it. If not, row r is in segment
        ``r // rows_per_segment``.
    metadata
        What finds topics, entities and the like; `None` to leave the nodes without. A model that is awaited is run
        afterwards: ``await adescribe(to_nodes(items, metadata=None), extractor)``.

    Raises
    ------
    InvalidInput
        If two items or nodes have the same id, or a metadata field that graphret reads is of another kind.
    """
    checked = items.items if isinstance(items, Corpus) else check_items(items)
    if not MIN_SEGMENT_ROWS <= rows_per_segment <= MAX_SEGMENT_ROWS:
        raise InvalidInput(f"'rows_per_segment' is from 5 to 10, not {rows_per_segment!r}")
    documents = [item for item in checked if isinstance(item, Document)]
    spans = iter(chunker.spans([document.text for document in documents]) if chunker else [])
    nodes: list[Node] = []
    for item in checked:
        if isinstance(item, Document):
            nodes += _chunks(item, next(spans)) if chunker else [_whole(item)]
        elif isinstance(item, Table):
            nodes += _segments(item, rows_per_segment, balance)
        else:
            nodes.append(_record(item))
    _refuse_duplicates(nodes)
    return describe(nodes, metadata) if metadata else nodes


def to_edges(edges: Iterable[Edge], nodes: Iterable[Node], known: Collection[str] = ()) -> list[Edge]:
    """Return edges between items as edges between their nodes.

    An end that names a node stays; one that names a document or table becomes its first chunk or segment; one in
    `known`, the ids of a graph that the nodes are added to, stays.

    Raises
    ------
    InvalidInput
        If an end is none of these.
    """
    ends: dict[str, str] = {}
    firsts: dict[str, str] = {}
    for node in nodes:
        ends[node.id] = node.id
        if "source_id" in node.properties:
            firsts.setdefault(node.properties["source_id"], node.id)
    ends = firsts | ends

    def end_of(edge: Edge, id_: str, name: str) -> str:
        if id_ in ends:
            return ends[id_]
        if id_ in known:
            return id_
        raise InvalidInput(f"edge {edge.source!r} -{edge.relation}-> {edge.target!r}: no node or item is its {name!r}")

    return [
        Edge(end_of(e, e.source, "source"), e.relation, end_of(e, e.target, "target"), e.weight, e.properties)
        for e in edges
    ]


def segment_rows(n_rows: int, size: int = MAX_SEGMENT_ROWS, *, balance: bool = True) -> list[Span]:
    """Return the segments of a table as ``(first row, last row + 1)``; a table without rows has one, empty.

    With `balance`, every segment has 5 to 10 rows if the table has 5 or more.
    """
    segments = [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)] or [(0, 0)]
    if balance and len(segments) > 1 and n_rows - segments[-1][0] < MIN_SEGMENT_ROWS:
        start = segments[-2][0]
        half = (n_rows - start + 1) // 2
        shared = (
            [(start, n_rows)] if n_rows - start <= MAX_SEGMENT_ROWS else [(start, start + half), (start + half, n_rows)]
        )
        segments[-2:] = shared
    return segments


def linearize(table: Table, rows: Sequence[Sequence[str]] | None = None) -> str:
    """Return a table, or some of its rows, as text: title, section, introduction, columns, header, rows."""
    lines = [table.title, table.section, table.introduction]
    lines += [f"{name}: {text}" for name, text in table.column_descriptions.items()]
    lines += [" | ".join(cells) for cells in (table.header, *(table.rows if rows is None else rows))]
    return "\n".join(" ".join(line.split()) for line in lines if line)


def _chunks(document: Document, spans: Sequence[Span]) -> list[Node]:
    spans = spans or [(0, len(document.text))]
    return [_chunk(document, f"{document.id}#{i}", i, start, end) for i, (start, end) in enumerate(spans)]


def _whole(document: Document) -> Node:
    return _chunk(document, document.id, 0, 0, len(document.text))


def _chunk(document: Document, id_: str, index: int, start: int, end: int) -> Node:
    given = _given(document, f"document {document.id!r}", "metadata")
    properties = {
        "title": document.title,
        **given,
        "source_id": document.id,
        "chunk_index": index,
        "chunk_start": start,
        "chunk_end": end,
    }
    return Node(id_, ("Document",), document.title or properties["title"], document.text[start:end], properties)


def _segments(table: Table, size: int, balance: bool) -> list[Node]:
    given = {
        "title": table.title,
        "section": table.section,
        "section_text": table.section_text,
        "introduction": table.introduction,
        "column_descriptions": dict(table.column_descriptions),
        **_given(table, f"table {table.id!r}", "metadata"),
    }
    nodes = []
    for i, (start, end) in enumerate(segment_rows(len(table.rows), size, balance=balance)):
        rows = table.rows[start:end]
        properties = {
            **given,
            "source_id": table.id,
            "chunk_index": i,
            "table_header": list(table.header),
            "table_rows": [list(row) for row in rows],
            "table_row_start": start,
            "table_row_end": end,
        }
        name = table.title or given["title"]
        nodes.append(Node(f"{table.id}#{i}", ("Table",), name, linearize(table, rows), properties))
    return nodes


def _record(record: Record) -> Node:
    properties = _given(record, f"record {record.id!r}", "properties")
    called = (record.name, properties.get("title"), properties.get("name"))
    name = next((value for value in called if isinstance(value, str) and value), "")
    return Node(record.id, tuple(record.labels), name, record.text, properties)


def _given(item: Item, what: str, name: str) -> dict[str, Any]:
    """Return the user's own properties, with the fields that graphret reads in the form it reads them."""
    properties = item.properties if isinstance(item, Record) else item.metadata
    # Loaders write null for what they do not know.
    given = {k: v for k, v in properties.items() if v is not None or k not in (*_TEXT_FIELDS, *_LIST_FIELDS)}
    strict = not isinstance(item, Record)
    for key in _TEXT_FIELDS if strict else ():
        if not isinstance(given.get(key, ""), str):
            raise InvalidInput(f"{what}: {name}.{key} is a string, not {type(given[key]).__name__}")
    for key in _LIST_FIELDS if strict else _LIST_FIELDS[:2]:
        value = given.get(key, [])
        if isinstance(value, str):
            given[key] = [value]
        elif not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            raise InvalidInput(f"{what}: {name}.{key} is a list of strings, not {value!r}")
    return given


def _refuse_duplicates(nodes: Iterable[Node]) -> None:
    seen: set[str] = set()
    for node in nodes:
        if node.id in seen:
            raise InvalidInput(
                f"two nodes have the id {node.id!r}: an item has the id that a chunk of another is given"
            )
        seen.add(node.id)

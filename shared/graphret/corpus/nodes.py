"""Items become nodes: documents in chunks, tables in segments, records as they are.

The i-th chunk of a `Document` is the node ``"{id}#{i}"`` with the label ``Document``, a segment of a `Table` likewise
with ``Table``; a `Record` is a node with its own id and labels. Besides what the user gave, and what is found out by
`graphret.corpus.metadata`, they have these properties: ``title``, ``source_id``, ``chunk_index``; a chunk
``chunk_start`` and ``chunk_end``; a segment ``table_header``, ``table_rows``, ``table_row_start``, ``table_row_end``,
and what is known of ``section``, ``section_text``, ``introduction`` and ``column_descriptions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from graphret.corpus.chunkers import Chunker, SentenceChunker, Span
from graphret.corpus.items import Corpus, Document, Item, Table
from graphret.corpus.names import given_name
from graphret.errors import InvalidInput
from graphret.types import Edge, Node

#: Fewest rows of a segment, where the table has them, and most (SAGE, section 2.1 A 2).
MIN_SEGMENT_ROWS, MAX_SEGMENT_ROWS = 5, 10
_FIELDS = ("title", "section", "section_text", "introduction", "column_descriptions")


def to_nodes(
    items: Corpus | Iterable[Item],
    *,
    chunker: Chunker | None = SentenceChunker(),  # noqa: B008 -- it holds no state
    rows_per_segment: int = MAX_SEGMENT_ROWS,
    balance: bool = True,
) -> list[Node]:
    """Turn items into nodes, in their order; two of one id are an `InvalidInput`.

    Parameters
    ----------
    chunker
        What cuts documents; `None` for one node a document, with the document's id.
    rows_per_segment
        Rows of a table segment, 5 to 10.
    balance
        Whether a last segment of fewer than 5 rows shares with the one before it. If not, row r is in segment
        ``r // rows_per_segment``.
    """
    listed = (items if isinstance(items, Corpus) else Corpus(tuple(items))).items
    if not MIN_SEGMENT_ROWS <= rows_per_segment <= MAX_SEGMENT_ROWS:
        raise InvalidInput(f"'rows_per_segment' is from 5 to 10, not {rows_per_segment!r}")
    documents = [item for item in listed if isinstance(item, Document)]
    whole = [[(0, len(document.text))] for document in documents]
    spans = iter(chunker.spans([document.text for document in documents]) if chunker else whole)
    nodes: dict[str, Node] = {}
    for item in listed:
        if isinstance(item, Table):
            made = _segments(item, segment_rows(len(item.rows), rows_per_segment, balance=balance))
        elif isinstance(item, Document):
            made = _chunks(item, next(spans), numbered=bool(chunker))
        else:
            given = _given(item.properties)
            made = [Node(item.id, tuple(item.labels), item.name or given_name(given), item.text, given)]
        for node in made:
            if node.id in nodes:
                raise InvalidInput(f"two items or chunks of them have the id {node.id!r}: give each item its own")
            nodes[node.id] = node
    return [*nodes.values()]


def to_edges(edges: Iterable[Edge], nodes: Iterable[Node], known: Iterable[str] = ()) -> list[Edge]:
    """Return edges between items as edges between their nodes.

    An end that names a node stays; one that names a document or table becomes its first chunk or segment; one in
    `known`, the ids of a graph that the nodes are added to, stays. Any other end is an `InvalidInput`.
    """
    ends: dict[str, str] = {}
    for node in nodes:
        ends.setdefault(node.properties.get("source_id", node.id), node.id)
        ends[node.id] = node.id
    ends = {id_: id_ for id_ in known} | ends
    made = []
    for edge in edges:
        if missing := {edge.source, edge.target} - ends.keys():
            relation = f"{edge.source!r} -{edge.relation}-> {edge.target!r}"
            raise InvalidInput(f"edge {relation}: there is no node or item {min(missing)!r}")
        made.append(replace(edge, source=ends[edge.source], target=ends[edge.target]))
    return made


def segment_rows(n_rows: int, size: int = MAX_SEGMENT_ROWS, *, balance: bool = True) -> list[Span]:
    """Return the segments of a table as ``(first row, last row + 1)``; a table without rows has one, empty.

    With `balance`, every segment has 5 to 10 rows if the table has 5 or more.
    """
    starts = [*range(0, n_rows, size)] or [0]
    if balance and len(starts) > 1 and n_rows - starts[-1] < MIN_SEGMENT_ROWS:
        shared = n_rows - starts[-2]
        starts[-1:] = [] if shared <= MAX_SEGMENT_ROWS else [starts[-2] + (shared + 1) // 2]
    return [*pairwise([*starts, n_rows])]


def linearize(table: Table, rows: Sequence[Sequence[str]] | None = None) -> str:
    """Return a table, or some of its rows, as text: title, section, introduction, columns, header, rows."""
    lines = [table.title, table.section, table.introduction]
    lines += [f"{name}: {text}" for name, text in table.column_descriptions.items()]
    lines += [" | ".join(cells) for cells in (table.header, *(table.rows if rows is None else rows))]
    return "\n".join(" ".join(line.split()) for line in lines if line)


def _chunks(document: Document, spans: Sequence[Span], *, numbered: bool) -> Iterable[Node]:
    given = _given({"title": document.title, **document.metadata})
    for i, (start, end) in enumerate(spans or [(0, len(document.text))]):
        place = {"source_id": document.id, "chunk_index": i, "chunk_start": start, "chunk_end": end}
        id_ = f"{document.id}#{i}" if numbered else document.id
        yield Node(id_, ("Document",), document.title or given_name(given), document.text[start:end], given | place)


def _segments(table: Table, spans: Sequence[Span]) -> Iterable[Node]:
    given = _given({**{name: getattr(table, name) for name in _FIELDS}, **table.metadata})
    for i, (start, end) in enumerate(spans):
        rows = [list(row) for row in table.rows[start:end]]
        place = {"source_id": table.id, "chunk_index": i, "table_header": list(table.header), "table_rows": rows}
        span = {"table_row_start": start, "table_row_end": end}
        name, text = table.title or given_name(given), linearize(table, rows)
        yield Node(f"{table.id}#{i}", ("Table",), name, text, given | place | span)


def _given(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that a user gave, those that graphret reads only where they are set."""
    return {key: value for key, value in properties.items() if value or key not in (*_FIELDS, "entities", "aliases")}

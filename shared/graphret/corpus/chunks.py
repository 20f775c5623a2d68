"""Chunks that somebody else cut: each gets back what its source knows, a name, its section, the rows of its tables.

Loaders and splitters leave a text and some metadata. The title stands in the first chunk, the header of a table too,
and a row may be cut in two. Here the chunks of one source are put side by side, and each is told what it has lost; its
id, its text and its metadata stay as they are.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from graphret.corpus.names import (
    file_of,
    given_name,
    given_section,
    headings,
    section_at,
    section_of_path,
    stem_of,
    title_among,
    title_of_paths,
)
from graphret.corpus.tables import TextTable, delimited, keyed, tables_in
from graphret.types import Node

#: The property that lists which others say where a chunk stands or were derived by `from_chunks`: no user gave these.
DERIVED = "chunk_derived"
#: Those that whoever made the node knows: what it was made from, and where in that it begins.
PLACE = ("source_id", "chunk_start")
#: The ``source_id`` of before, of a page or a row whose source is the whole file, or of one of several in a file.
DOCUMENT = "chunk_document"

_CSV = re.compile(r"\.(?:csv|tsv)$", re.IGNORECASE)
_CSV_TYPES = ("text/csv", "text/tab-separated-values")


class _Stretch(NamedTuple):
    """A text as far as it is known: the chunks in it, each with its start; one chunk alone where places are unknown."""

    text: str
    chunks: list[tuple[int, int]]


@dataclass(slots=True)
class _Rows:
    """The rows of a table that a chunk has, how many are above them, and the chunk's text around the table."""

    header: list[str]
    rows: list[list[str]]
    above: int = 0
    context: str = ""


def from_chunks(nodes: Iterable[Node]) -> list[Node]:
    """Return chunks with what their source knows: its name, their section, and the rows of the tables in them.

    Chunks are of one source when their metadata name the same file or address and no other title, or else when their
    ``source_id`` is the same; ``chunk_start`` says where each begins in it. They may come in any order. Where places
    are known, a chunk knows the headings above it, and a row that was cut in two is whole, in the chunk that has most
    of it. Where they are not, a chunk knows the headings and rows in it, and the header that the first one has.

    What is derived is listed in the property ``chunk_derived``; a name or a property that a node has already stays.
    Nodes with ``table_rows`` of their own are left as they are.
    """
    listed = [without_derived(node) for node in nodes]
    sources: dict[tuple[str, ...], list[int]] = {}
    for i, node in enumerate(listed):
        if "table_rows" not in node.properties:
            sources.setdefault(source_of(node), []).append(i)
    ids = [{listed[i].properties.get("source_id") for i in members} for members in sources.values()]
    held = Counter(one for own in ids for one in own)
    for (key, members), own in zip(sources.items(), ids, strict=True):
        clear = len(own) == 1 and held[next(iter(own))] == 1
        told = _told([listed[i] for i in members], key, None if clear else " ".join(key[1:]).strip())
        for i, node in zip(members, told, strict=True):
            listed[i] = node
    return listed


def placed(node: Node, source: str | None, start: int | None) -> Node:
    """Return a chunk that knows what it was made from and where in that it begins, as far as it does not say so."""
    place = {key: value for key, value in zip(PLACE, (source, start), strict=True) if value is not None}
    place = {key: value for key, value in place.items() if key not in node.properties}
    return replace(node, properties={**node.properties, **place, DERIVED: [*place]}) if place else node


def source_of(node: Node) -> tuple[str, ...]:
    """Return what tells the source of a chunk from others: a file or address, else its ``source_id``, else itself.

    A file with several titles, or several records (LangChain's ``seq_num``), is as many sources.
    """
    given, source = node.properties, node.properties.get(DOCUMENT, node.properties.get("source_id"))
    if file := file_of(given):
        return ("file", file, given_name(given), *([str(given["seq_num"])] if "seq_num" in given else []))
    return ("source", source) if isinstance(source, str) else ("node", node.id)


def without_derived(node: Node) -> Node:
    """Return a node as it was before `from_chunks`."""
    derived = node.properties.get(DERIVED)
    if not derived:
        return node
    properties = dict(node.properties)
    if DOCUMENT in derived:
        properties["source_id"] = properties[DOCUMENT]
    place = [key for key in derived if key in PLACE]
    gone = {*derived, DERIVED} - {*place}
    properties = {key: value for key, value in properties.items() if key not in gone}
    labels = ("Document",) if "table_rows" in gone and node.labels == ("Table",) else node.labels
    name = "" if "name" in derived else node.name
    return replace(node, name=name, labels=labels, properties=properties | ({DERIVED: place} if place else {}))


def _told(nodes: Sequence[Node], key: tuple[str, ...], source: str | None) -> list[Node]:
    """Return the chunks of one source, each with what it lost; `source` is its id where the chunks do not have one."""
    given = [node.properties for node in nodes]
    file = key[1] if key[0] == "file" and len(key) < 4 else ""
    sections = [given_section(properties) for properties in given]
    title = stem_of(file)
    if is_delimited(given[0]):
        tables = _delimited_rows(nodes)
    else:
        stretches = _stretches(nodes)
        found = [headings(stretch.text) for stretch in stretches]
        title = title_of_paths([properties.get("header_path") for properties in given]) or title_among(found) or title
        for (_, chunks), above in zip(stretches, found, strict=True):
            for i, start in chunks:
                here = section_at(above, start, start + len(nodes[i].text), title)
                sections[i] = sections[i] or here or section_of_path(given[i].get("header_path"), title)
        tables = _marked_up_rows(nodes, stretches)
    order = sorted(range(len(nodes)), key=lambda i: _place(nodes[i]))
    places = {i: number for number, i in enumerate(order)} if len(nodes) > 1 else {}
    return [
        _with(node, given_name(node.properties) or title, sections[i], places.get(i), tables.get(i), source)
        for i, node in enumerate(nodes)
    ]


def _place(node: Node) -> tuple[int, ...]:
    """Return what orders the chunks of a source: page, row, then where each begins."""
    label = str(node.properties.get("page_label", ""))
    page = int(label) if label.isdecimal() else number_of(node, "page")
    return page, number_of(node, "row"), number_of(node, "chunk_start")


def _with(node: Node, name: str, section: str, order: int | None, table: _Rows | None, source: str | None) -> Node:
    known: dict[str, Any] = {"section": section or None, "chunk_index": order}
    given = dict(node.properties)
    if source and "source_id" in given:
        known[DOCUMENT], given["source_id"] = given["source_id"], source
    labels = node.labels
    if table is not None:
        known["table_header"], known["table_rows"] = table.header, table.rows
        known["table_row_start"], known["table_row_end"] = table.above, table.above + len(table.rows)
        known["table_context"] = table.context or None
        if not table.context and labels == ("Document",):
            labels = ("Table",)
    known = {key: value for key, value in known.items() if value is not None and key not in given}
    named = [] if node.name or not name else ["name"]
    if not known and not named:
        return node
    properties = {**given, **known, DERIVED: [*given.get(DERIVED, ()), *known, *named]}
    return replace(node, name=node.name or name, labels=labels, properties=properties)


def is_delimited(metadata: Mapping[str, Any]) -> bool:
    """Whether the metadata of a document or chunk say that its file is one of delimited values."""
    return _CSV.search(file_of(metadata)) is not None or metadata.get("file_type") in _CSV_TYPES


def number_of(node: Node, key: str) -> int:
    """Return a whole number among the properties, 0 where there is none."""
    value = node.properties.get(key)
    return value if isinstance(value, int) else 0


# -- texts


def _stretches(nodes: Sequence[Node]) -> list[_Stretch]:
    """Return the texts that chunks are cut from, as far as their places allow to put them together."""
    documents: dict[Any, list[int]] = {}
    for i, node in enumerate(nodes):
        given = node.properties
        is_placed = isinstance(given.get("chunk_start"), int)
        where = (given.get("source_id"), given.get("page"), given.get("row")) if is_placed else i
        documents.setdefault(str(where), []).append(i)
    stretches = []
    for members in documents.values():
        joined = _joined(nodes, members) if len(members) > 1 else None
        stretches += [joined] if joined else [_Stretch(nodes[i].text, [(i, 0)]) for i in members]
    return stretches


def _joined(nodes: Sequence[Node], members: Sequence[int]) -> _Stretch | None:
    """Return the text that chunks overlap to; `None` where their places contradict each other."""
    starts = sorted((int(nodes[i].properties["chunk_start"]), i) for i in members)
    separator = "," if is_delimited(nodes[members[0]].properties) else "|"
    counts = Counter(n for i in members for line in nodes[i].text.split("\n") if (n := line.count(separator)))
    width = counts.most_common(1)[0][0] if counts else 0
    first, text = starts[0][0], ""
    for start, i in starts:
        own, at = nodes[i].text, start - first
        if gap := max(0, at - len(text)):
            line = text[text.rfind("\n") + 1 :]
            text += _cut_off(line, own, separator, width) if gap == 1 else "\n" * gap
        if not own.startswith(text[at : at + len(own)]):
            return None
        text += own[len(text) - at :]
    return _Stretch(text, [(i, start - first) for start, i in starts])


def _cut_off(line: str, after: str, separator: str, width: int) -> str:
    """Return the one white space that a splitter cut off behind a line: its end, or a space in a row or a sentence."""
    if separator == "," or separator in line:
        return " " if line.count(separator) < width else "\n"
    return " " if after[:1].isalnum() or after[:1] in "`([*_" else "\n"


# -- tables


def _delimited_rows(nodes: Sequence[Node]) -> dict[int, _Rows]:
    """Return the rows of each chunk of a file of delimited values."""
    if all(isinstance(node.properties.get("row"), int) for node in nodes):  # LangChain's CSVLoader: one document a row
        names, cells = keyed([node.text for node in nodes])
        return {i: _Rows(names, [row], nodes[i].properties["row"]) for i, row in enumerate(cells) if names}
    found: dict[int, _Rows] = {}
    header: list[str] | None = None
    above = 0
    for stretch in _stretches(nodes):
        # LlamaIndex's CSVReader keeps the header and writes the extension; its PandasCSVReader does neither.
        table = delimited(stretch.text, header, joined_header="extension" in nodes[0].properties)
        if table is not None:
            header = table.header
            found |= _shared_out(nodes, stretch, [table], above)
            above += len(table.rows)
    return found


def _marked_up_rows(nodes: Sequence[Node], stretches: Sequence[_Stretch]) -> dict[int, _Rows]:
    """Return the rows of each chunk that holds a pipe table or a table of HTML, or a piece of one."""
    found: dict[int, _Rows] = {}
    headers: list[list[str]] = []
    for stretch in stretches:
        tables = tables_in(stretch.text, headers)
        headers += [table.header for table in tables if table.header]
        found |= _shared_out(nodes, stretch, tables, 0)
    return found


def _shared_out(nodes: Sequence[Node], stretch: _Stretch, tables: Sequence[TextTable], above: int) -> dict[int, _Rows]:
    """Return for each chunk of a text the rows that it has most of, of the table of which it has most rows."""
    starts = [start for _, start in stretch.chunks]
    mine: dict[int, list[tuple[int, int]]] = {}
    for t, table in enumerate(tables):
        for r, row in enumerate(table.rows):
            best, at = 0, -1
            n = bisect_left(starts, row.end) - 1
            while (
                n >= 0
                and (
                    share := min(row.end, starts[n] + len(nodes[stretch.chunks[n][0]].text)) - max(row.start, starts[n])
                )
                > 0
            ):
                best, at = max((best, at), (share, n), key=lambda one: (one[0], -one[1]))
                n -= 1
            if at >= 0:
                mine.setdefault(at, []).append((t, r))
    return {
        stretch.chunks[n][0]: _rows_of(nodes[stretch.chunks[n][0]].text, starts[n], tables, rows, above)
        for n, rows in mine.items()
    }


def _rows_of(text: str, start: int, tables: Sequence[TextTable], rows: Sequence[tuple[int, int]], above: int) -> _Rows:
    chosen = Counter(t for t, _ in rows).most_common(1)[0][0]
    table, kept = tables[chosen], [r for t, r in rows if t == chosen]
    around = text[: max(0, table.start - start)] + "\n" + text[max(0, table.end - start) :]
    header = table.header or [f"column {c + 1}" for c in range(len(table.rows[0].cells))]
    context = around.strip() if any(map(str.isalnum, around)) else ""
    return _Rows(header, [table.rows[r].cells for r in kept], above + kept[0], context)

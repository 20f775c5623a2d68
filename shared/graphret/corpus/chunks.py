"""Chunks that somebody else cut: each gets back what its source knows, a name, its section, the rows of its tables.

Loaders and splitters leave a text and some metadata. The title stands in the first chunk, the header of a table too,
and a row may be cut in two. Here the chunks of one source are put side by side, and each is told what it has lost; its
id, its text and its metadata stay as they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import mode
from typing import Any, NamedTuple

from graphret.corpus.names import file_of, given_name, given_section, headings, section_at, stem_of, title_among
from graphret.corpus.tables import TextTable, column_names, delimited, is_delimited, keyed, pipe_tables
from graphret.types import Node

#: The property that lists which others say where a chunk stands or were derived by `from_chunks`: no user gave these.
DERIVED = "chunk_derived"
#: Those that whoever made the node knows: what it was made from, and where in that it begins.
PLACE = ("source_id", "chunk_start")
#: The ``source_id`` of before, of a page or a row whose source is the whole file, or of one of several in a file.
DOCUMENT = "chunk_document"


class _Stretch(NamedTuple):
    """A text as far as it is known, and the chunks in it with their starts; one alone where places are unknown."""

    text: str
    chunks: list[tuple[int, int]]


def from_chunks(nodes: Iterable[Node]) -> list[Node]:
    """Return chunks with what their source knows: its name, their section, and the rows of the tables in them.

    Chunks are of one source when their metadata name the same file or address and no other title, or else when their
    ``source_id`` is the same; ``chunk_start`` says where each begins in it. They may come in any order. Where places
    are known, a chunk knows the headings above it, and a row that was cut in two is whole, in the chunk that has its
    end. Where they are not, a chunk knows the headings and rows in it, and the header that the first one has.

    What is derived is listed in the property ``chunk_derived``; a name or a property that a node has already stays.
    Nodes with ``table_rows`` of their own are left as they are.
    """
    listed = [without_derived(node) for node in nodes]
    sources: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, node in enumerate(listed):
        if "table_rows" not in node.properties:
            sources[source_of(node)].append(i)
    ids = {key: {listed[i].properties.get("source_id") for i in members} for key, members in sources.items()}
    shared = Counter(one for own in ids.values() for one in own)
    for key, members in sources.items():
        one_id = len(ids[key]) == 1 and shared[next(iter(ids[key]))] == 1
        found = _found([listed[i] for i in members], key)
        for i, known in zip(members, found, strict=True):
            listed[i] = _derived(listed[i], known, "" if one_id else " ".join(key[1:]).strip())
    return listed


def placed(node: Node, source: str | None, start: int | None) -> Node:
    """Return a chunk that knows what it was made from and where in that it begins, as far as it does not say so."""
    known = zip(PLACE, (source, start), strict=True)
    place = {key: value for key, value in known if value is not None and key not in node.properties}
    return replace(node, properties={**node.properties, **place, DERIVED: [*place]}) if place else node


def source_of(node: Node) -> tuple[str, ...]:
    """Return what tells the source of a chunk from others: a file or address, else its ``source_id``, else itself.

    A file with several titles, or several records (LangChain's ``seq_num``), is as many sources.
    """
    given = node.properties
    if file := file_of(given):
        return ("file", file, given_name(given), *([str(given["seq_num"])] if "seq_num" in given else []))
    source = given.get(DOCUMENT, given.get("source_id"))
    return ("source", source) if isinstance(source, str) else ("node", node.id)


def without_derived(node: Node) -> Node:
    """Return a node as it was before `from_chunks`."""
    derived = node.properties.get(DERIVED)
    if not derived:
        return node
    place = [key for key in derived if key in PLACE]
    gone = {*derived, DERIVED} - {*place}
    properties = {key: value for key, value in node.properties.items() if key not in gone}
    if DOCUMENT in derived:
        properties["source_id"] = node.properties[DOCUMENT]
    if place:
        properties[DERIVED] = place
    labels = ("Document",) if "table_rows" in gone and node.labels == ("Table",) else node.labels
    return replace(node, name="" if "name" in derived else node.name, labels=labels, properties=properties)


def number_of(node: Node, key: str) -> int:
    """Return a whole number among the properties, 0 where there is none."""
    value = node.properties.get(key)
    return value if isinstance(value, int) else 0


def _derived(node: Node, found: Mapping[str, Any], source: str) -> Node:
    """Return a chunk with what was found out; `source` is its id where the chunks of the source do not have one."""
    given, labels = dict(node.properties), node.labels
    known = {key: value for key, value in found.items() if value not in (None, "") and key not in given}
    name = node.name or known.pop("name", "")
    known.pop("name", None)
    if source and "source_id" in given:
        known[DOCUMENT], given["source_id"] = given["source_id"], source
    if "table_rows" in known and "table_context" not in known and labels == ("Document",):
        labels = ("Table",)
    filled = [*known, *(["name"] if name != node.name else [])]
    properties = {**given, **known, DERIVED: [*given.get(DERIVED, ()), *filled]} if filled else given
    return replace(node, name=name, labels=labels, properties=properties)


def _found(nodes: Sequence[Node], key: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return for each chunk of a source its name, its section, its number, and the table in it."""
    title = stem_of(key[1]) if key[0] == "file" and len(key) < 4 else ""
    sections = [given_section(node.properties) for node in nodes]
    stretches = _stretches(nodes)
    if not is_delimited(nodes[0].properties):
        pieces = [headings(stretch.text) for stretch in stretches]
        title = title_among(pieces) or title
        for (_, chunks), above in zip(stretches, pieces, strict=True):
            for i, start in chunks:
                sections[i] = sections[i] or section_at(above, start, start + len(nodes[i].text), title)
    tables = _tables(nodes, stretches)
    order = sorted(range(len(nodes)), key=lambda i: _place(nodes[i]))
    places: dict[int, int] = {i: number for number, i in enumerate(order)} if len(nodes) > 1 else {}
    return [
        {
            "section": sections[i],
            "chunk_index": places.get(i),
            **tables.get(i, {}),
            "name": given_name(node.properties) or title,
        }
        for i, node in enumerate(nodes)
    ]


def _place(node: Node) -> tuple[int, ...]:
    """Return what orders the chunks of a source: page, row, then where each begins."""
    label = str(node.properties.get("page_label", ""))
    page = int(label) if label.isdecimal() else number_of(node, "page")
    return page, number_of(node, "row"), number_of(node, "chunk_start")


def _stretches(nodes: Sequence[Node]) -> list[_Stretch]:
    """Return the texts that chunks are cut from, as far as their places allow to put them together."""
    documents: dict[str, list[int]] = defaultdict(list)
    for i, node in enumerate(nodes):
        given = node.properties
        where = [given.get(key) for key in ("source_id", "page", "row")] if "chunk_start" in given else i
        documents[str(where)].append(i)
    stretches: list[_Stretch] = []
    for members in documents.values():
        joined = _joined(nodes, members) if len(members) > 1 else None
        stretches += [joined] if joined else [_Stretch(nodes[i].text, [(i, 0)]) for i in members]
    return stretches


def _joined(nodes: Sequence[Node], members: Sequence[int]) -> _Stretch | None:
    """Return the text that chunks overlap to; `None` where their places contradict each other.

    Of a single character that a splitter cut off between two, it is guessed whether it was the end of a line.
    """
    starts = sorted((number_of(nodes[i], "chunk_start"), i) for i in members)
    bar = "," if is_delimited(nodes[members[0]].properties) else "|"
    full_row = mode([n for i in members for line in nodes[i].text.split("\n") if (n := line.count(bar))] or [1])
    first, text = starts[0][0], ""
    for start, i in starts:
        own, at = nodes[i].text, start - first
        if (gap := at - len(text)) > 0:
            bars = text[text.rfind("\n") + 1 :].count(bar)
            ends_line = gap > 1 or (bars >= full_row if bars else own[:1] in "#|>-+<~")
            text += "\n" * gap if ends_line else " "
        if not own.startswith(text[at : at + len(own)]):
            return None
        text += own[len(text) - at :]
    return _Stretch(text, [(i, start - first) for start, i in starts])


def _tables(nodes: Sequence[Node], stretches: Sequence[_Stretch]) -> dict[int, dict[str, Any]]:
    """Return the table of each chunk that holds one, or a piece of one."""
    values = is_delimited(nodes[0].properties)
    if values and all(isinstance(node.properties.get("row"), int) for node in nodes):  # LangChain's CSVLoader
        header, cells = keyed([node.text for node in nodes])
        return {i: _table(header, [row], number_of(nodes[i], "row")) for i, row in enumerate(cells) if header}
    found: dict[int, dict[str, Any]] = {}
    headers: list[list[str]] = []
    above = 0
    for stretch in stretches:
        if values:
            table = delimited(stretch.text, headers[0] if headers else ())
            tables = [table] if table else []
        else:
            tables = pipe_tables(stretch.text, headers)
        headers += [table.header for table in tables if table.header]
        found |= _by_chunk(nodes, stretch, tables, above)
        above += sum(len(table.rows) for table in tables) if values else 0
    return found


def _by_chunk(
    nodes: Sequence[Node], stretch: _Stretch, tables: Sequence[TextTable], above: int
) -> dict[int, dict[str, Any]]:
    """Return for each chunk of a text the rows that it has the end of, of the table of which it has most rows."""
    ends = [start + len(nodes[i].text) for i, start in stretch.chunks]
    rows: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for t, table in enumerate(tables):
        for r, row in enumerate(table.rows):
            rows[min(bisect_left(ends, row.end), len(ends) - 1)].append((t, r))
    found = {}
    for at, own in rows.items():
        i, start = stretch.chunks[at]
        most = mode(t for t, _ in own)
        table, kept = tables[most], [r for t, r in own if t == most]
        text = nodes[i].text
        around = f"{text[: max(0, table.start - start)]}\n{text[max(0, table.end - start) :]}".strip()
        header = table.header or column_names(len(table.rows[0].cells))
        found[i] = _table(header, [table.rows[r].cells for r in kept], above + kept[0], around)
    return found


def _table(header: list[str], rows: list[list[str]], above: int, around: str = "") -> dict[str, Any]:
    """Return the properties of a chunk that holds rows of a table, with so many rows above, and text around it."""
    table = {"table_header": header, "table_rows": rows, "table_row_start": above, "table_row_end": above + len(rows)}
    return {**table, "table_context": around} if any(map(str.isalnum, around)) else table

"""Chunks that somebody else cut: each gets back what its source knows, a name, its
section, the rows of its tables.

The title stands in the first chunk, the header of a table too, and a row may be cut in
two. Here the chunks of a source are put together, and each is told what it has lost;
its id, its text and its metadata stay as they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import mode
from typing import Any

from graphret.corpus.markdown import headings, section_at, title_among
from graphret.corpus.metadata import filled, without
from graphret.corpus.names import (
    file_of,
    given_heading,
    given_section,
    given_title,
    name_on_page,
    stem_of,
    title_of_pdf,
)
from graphret.corpus.tables import (
    TextTable,
    delimited,
    is_delimited,
    is_tabbed,
    keyed,
    pipe_tables,
)
from graphret.types import Node

#: The property that lists which others say where a chunk stands or were derived by
#: `from_chunks`: no user gave these.
DERIVED = "chunk_derived"
#: Those that whoever made the node knows: what it was made from, and where in that it
#: begins.
PLACE = ("source_id", "chunk_start")
#: The ``source_id`` of before, of a page or a row whose source is the whole file, or of
#: one of several in a file.
DOCUMENT = "chunk_document"


def from_chunks(nodes: Iterable[Node]) -> list[Node]:
    """Return chunks with what their source knows: its name, their section, and the rows
    of the tables in them.

    Chunks are of one source when their metadata name the same file or address and no
    other title, or else when their ``source_id`` is the same. Where ``chunk_start``
    says where each begins in it, they may come in any order; where it does not, they
    follow each other as they come. A row that was cut in two is whole, in the chunk
    that has its end.

    What is derived is listed in the property ``chunk_derived``; a name or a property
    that a node has already stays. Nodes with ``table_rows`` of their own are left as
    they are.
    """
    listed = [without_derived(node) for node in nodes]
    sources: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, node in enumerate(listed):
        if "table_rows" not in node.properties:
            sources[source_of(node)].append(i)
    ids = {
        key: {listed[i].properties.get("source_id") for i in members}
        for key, members in sources.items()
    }
    shared = Counter(one for own in ids.values() for one in own)
    for key, members in sources.items():
        source = (
            " ".join(key[1:]).strip()
            if sum(shared[one] for one in ids[key]) > 1
            else ""
        )
        first = {_document(listed[i]): i for i in reversed(members)}
        members.sort(
            key=lambda i: (
                _page(listed[i]),
                first[_document(listed[i])],
                number_of(listed[i], "chunk_start"),
            )
        )
        for i, (name, found) in zip(
            members, _known([listed[i] for i in members], key), strict=True
        ):
            node = listed[i]
            if source and "source_id" in node.properties:
                found[DOCUMENT] = node.properties["source_id"]
                node = replace(
                    node, properties={**node.properties, "source_id": source}
                )
            if (
                "table_rows" in found
                and "table_context" not in found
                and node.labels == ("Document",)
            ):
                node = replace(node, labels=("Table",))
            listed[i] = filled(node, found, name, DERIVED)
    return listed


def placed(node: Node, source: str | None, start: int | None) -> Node:
    """Return a chunk that knows what it was made from and where in that it begins, as
    far as it does not say so.
    """
    known = zip(PLACE, (source, start), strict=True)
    place = {
        key: value
        for key, value in known
        if value is not None and key not in node.properties
    }
    return (
        replace(node, properties={**node.properties, **place, DERIVED: [*place]})
        if place
        else node
    )


def source_of(node: Node) -> tuple[str, ...]:
    """Return what tells the source of a chunk: a file with its title or record, else
    its ``source_id``, else itself.
    """
    given = node.properties
    if file := file_of(given):
        return (
            "file",
            file,
            given_title(given),
            *([str(given["seq_num"])] if "seq_num" in given else []),
        )
    source = given.get(DOCUMENT, given.get("source_id"))
    return ("source", source) if isinstance(source, str) else ("node", node.id)


def without_derived(node: Node) -> Node:
    """Return a node as it was before `from_chunks`."""
    given = node.properties
    derived = given.get(DERIVED, ())
    bare = without(node, DERIVED, PLACE)
    if bare.name == given_heading(given):  # it may be one of many of its page
        bare = replace(bare, name="")
    place = (
        {DERIVED: kept} if (kept := [key for key in derived if key in PLACE]) else {}
    )
    place |= {"source_id": given[DOCUMENT]} if DOCUMENT in derived else {}
    labels = (
        ("Document",)
        if "table_rows" in derived and node.labels == ("Table",)
        else node.labels
    )
    return replace(bare, labels=labels, properties={**bare.properties, **place})


def number_of(node: Node, key: str) -> int:
    """Return a whole number among the properties, 0 where there is none."""
    value = node.properties.get(key)
    return value if isinstance(value, int) else 0


def _page(node: Node) -> int:
    """Return what orders the documents of a source: their page, or row."""
    label = str(node.properties.get("page_label", ""))
    return (
        int(label)
        if label.isdecimal()
        else number_of(node, "page") or number_of(node, "row")
    )


def _document(node: Node) -> tuple[str, ...]:
    """Return what tells the document that the place of a chunk is in: the whole source,
    or a page or row of it.
    """
    return tuple(str(node.properties.get(key)) for key in ("source_id", "page", "row"))


def _known(
    nodes: Sequence[Node], key: tuple[str, ...]
) -> list[tuple[str, dict[str, Any]]]:
    """Return for each chunk of a source, in order, its name, and its section, its
    number and the table in it.
    """
    title = stem_of(key[1]) if key[0] == "file" and len(key) < 4 else ""
    values = is_delimited(nodes[0].properties)
    if values and all(
        isinstance(node.properties.get("row"), int) for node in nodes
    ):  # LangChain's CSVLoader
        header, rows = keyed([node.text for node in nodes])
        found = [
            _table(header, [row], number_of(node, "row"))
            for row, node in zip(rows, nodes, strict=True)
        ]
    else:
        text, starts = _joined(nodes, "," if values else "|")
        spans = [
            (start, start + len(node.text))
            for start, node in zip(starts, nodes, strict=True)
        ]
        above = [] if values else headings(text)
        title = (
            title_among(above)
            or _first_heading(nodes)
            or title
            or title_of_pdf(key[1], text)
        )
        tabs = is_tabbed(nodes[0].properties)
        tables = delimited(text, tabs=tabs) if values else pipe_tables(text)
        found = _by_chunk(nodes, spans, tables)
        for own, span in zip(found, spans, strict=True):
            own["section"] = section_at(above, *span, title)
    for number, (own, node) in enumerate(zip(found, nodes, strict=True)):
        own["section"] = given_section(node.properties) or own.get("section")
        own["chunk_index"] = number if len(nodes) > 1 else None
    names = [
        given_title(node.properties)
        or name_on_page(title, given_heading(node.properties))
        for node in nodes
    ]
    return [*zip(names, found, strict=True)]


def _first_heading(nodes: Iterable[Node]) -> str:
    """Return the first heading of the first level that a splitter took out of the text
    of chunks.
    """
    return next(filter(None, (given_heading(node.properties) for node in nodes)), "")


def _joined(nodes: Sequence[Node], bar: str) -> tuple[str, list[int]]:
    """Return the text of a source, and where each of its chunks begins in it.

    A chunk without a place, or whose place contradicts those before it, comes behind
    them. Of a single character that a splitter cut off between two, it is guessed
    whether it was the end of a line.
    """
    full_row = mode(
        [
            n
            for node in nodes
            for line in node.text.split("\n")
            if (n := line.count(bar))
        ]
        or [1]
    )
    text, starts, document, base = "", [], None, 0
    for node in nodes:
        own, known = node.text, "chunk_start" in node.properties
        at = base + number_of(node, "chunk_start") if known else len(text) + 1
        if (of := _document(node)) != document:
            text += "\n\n" if text else ""
            document, base, at = (
                of,
                len(text) - number_of(node, "chunk_start"),
                len(text),
            )
        if not own.startswith(text[at : at + len(own)]):
            at = len(text) + 1
        if (gap := at - len(text)) > 0:
            bars = text[text.rfind("\n") + 1 :].count(bar)
            ends_line = gap > 1 or (
                bars >= full_row if bars else not known or own[:1] in "#|>-+<~"
            )
            text += "\n" * gap if ends_line else " "
        text += own[len(text) - at :]
        starts.append(at)
    return text, starts


def _by_chunk(
    nodes: Sequence[Node], spans: Sequence[tuple[int, int]], tables: Sequence[TextTable]
) -> list[dict[str, Any]]:
    """Return for each chunk of a text the rows that it has the end of, of the table of
    which it has most rows.
    """
    ends = [end for _, end in spans]
    rows: list[list[tuple[int, int]]] = [[] for _ in nodes]
    for t, table in enumerate(tables):
        for r, end in enumerate(table.ends):
            rows[min(bisect_left(ends, end), len(ends) - 1)].append((t, r))
    found: list[dict[str, Any]] = []
    for node, (start, _), own in zip(nodes, spans, rows, strict=True):
        if not own:
            found.append({})
            continue
        most = mode(t for t, _ in own)
        table, kept = tables[most], [r for t, r in own if t == most]
        before = node.text[: max(0, table.start - start)]
        after = node.text[max(0, table.end - start) :]
        around = f"{before}\n{after}".strip()
        found.append(
            _table(table.header, [table.rows[r] for r in kept], kept[0], around)
        )
    return found


def _table(
    header: list[str], rows: list[list[str]], above: int, around: str = ""
) -> dict[str, Any]:
    """Return the properties of a chunk that holds rows of a table, with so many rows
    above, and text around it.
    """
    table = {
        "table_header": header,
        "table_rows": rows,
        "table_row_start": above,
        "table_row_end": above + len(rows),
    }
    return (
        {**table, "table_context": around} if any(map(str.isalnum, around)) else table
    )

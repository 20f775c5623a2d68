"""Restore for chunks of another splitter what it lost: name, section and table rows.

The title is in the first chunk only, as is the header of a table, and a row may be cut
in two. So the chunks of a source are put together, and each gets its name, its section
and its rows as properties; its id, text and metadata stay as they are.
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

#: The property that lists those that give a chunk's place or were derived by
#: `from_chunks`, as against the user's.
DERIVED = "chunk_derived"
#: The properties that the maker of a node knows: its source, and where in that it
#: begins.
PLACE = ("source_id", "chunk_start")
#: The former ``source_id`` of a page or a row whose source is the whole file, or of one
#: of several sources in a file.
DOCUMENT = "chunk_document"


def from_chunks(nodes: Iterable[Node]) -> list[Node]:
    """Return chunks with the name of their source, their section and their table rows.

    Chunks are of one source when their metadata name the same file or address and no
    other title, or else when their ``source_id`` is the same. With ``chunk_start`` they
    may come in any order; without it they are taken in the given order. A row that was
    cut in two is restored in the chunk that has its end.

    The property ``chunk_derived`` lists what was derived; existing names and properties
    stay. Nodes with ``table_rows`` of their own are left as they are.
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
    uses = Counter(id_ for source_ids in ids.values() for id_ in source_ids)
    for key, members in sources.items():
        source = (
            " ".join(key[1:]).strip() if sum(uses[id_] for id_ in ids[key]) > 1 else ""
        )
        first = {_document(listed[i]): i for i in reversed(members)}
        members.sort(
            key=lambda i: (
                _page(listed[i]),
                first[_document(listed[i])],
                number_of(listed[i], "chunk_start"),
            )
        )
        derived = _names_and_properties([listed[i] for i in members], key)
        for i, (name, properties) in zip(members, derived, strict=True):
            node = listed[i]
            if source and "source_id" in node.properties:
                properties[DOCUMENT] = node.properties["source_id"]
                node = replace(
                    node, properties={**node.properties, "source_id": source}
                )
            if (
                "table_rows" in properties
                and "table_context" not in properties
                and node.labels == ("Document",)
            ):
                node = replace(node, labels=("Table",))
            listed[i] = filled(node, properties, name, DERIVED)
    return listed


def placed(node: Node, source: str | None, start: int | None) -> Node:
    """Return a chunk with its source and its start in that, where they are missing."""
    place = {
        key: value
        for key, value in zip(PLACE, (source, start), strict=True)
        if value is not None and key not in node.properties
    }
    return (
        replace(node, properties={**node.properties, **place, DERIVED: [*place]})
        if place
        else node
    )


def source_of(node: Node) -> tuple[str, ...]:
    """Return the key of a chunk's source: file and title, ``source_id``, or node id."""
    properties = node.properties
    if file := file_of(properties):
        return (
            "file",
            file,
            given_title(properties),
            *([str(properties["seq_num"])] if "seq_num" in properties else []),
        )
    source = properties.get(DOCUMENT, properties.get("source_id"))
    return ("source", source) if isinstance(source, str) else ("node", node.id)


def without_derived(node: Node) -> Node:
    """Return a node as it was before `from_chunks`."""
    properties = node.properties
    derived = properties.get(DERIVED, ())
    bare = without(node, DERIVED, PLACE)
    # The heading may be one of many of its page.
    if bare.name == given_heading(properties):
        bare = replace(bare, name="")
    place_keys = [key for key in derived if key in PLACE]
    place = {DERIVED: place_keys} if place_keys else {}
    place |= {"source_id": properties[DOCUMENT]} if DOCUMENT in derived else {}
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
    """Return the page or row by which the documents of a source are ordered."""
    label = str(node.properties.get("page_label", ""))
    return (
        int(label)
        if label.isdecimal()
        else number_of(node, "page") or number_of(node, "row")
    )


def _document(node: Node) -> tuple[str, ...]:
    """Return the key of a chunk's document: the source, or a page or row of it."""
    return tuple(str(node.properties.get(key)) for key in ("source_id", "page", "row"))


def _names_and_properties(
    nodes: Sequence[Node], key: tuple[str, ...]
) -> list[tuple[str, dict[str, Any]]]:
    """Return the name of each chunk of a source, and its section, number and table."""
    title = stem_of(key[1]) if key[0] == "file" and len(key) < 4 else ""
    values = is_delimited(nodes[0].properties)
    # LangChain's CSVLoader
    if values and all(isinstance(node.properties.get("row"), int) for node in nodes):
        header, rows = keyed([node.text for node in nodes])
        derived = [
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
        derived = _by_chunk(nodes, spans, tables)
        for properties, span in zip(derived, spans, strict=True):
            properties["section"] = section_at(above, *span, title)
    for number, (properties, node) in enumerate(zip(derived, nodes, strict=True)):
        section = given_section(node.properties) or properties.get("section")
        properties["section"] = section
        properties["chunk_index"] = number if len(nodes) > 1 else None
    names = [
        given_title(node.properties)
        or name_on_page(title, given_heading(node.properties))
        for node in nodes
    ]
    return [*zip(names, derived, strict=True)]


def _first_heading(nodes: Iterable[Node]) -> str:
    """Return the first top-level heading that a splitter moved out of the texts."""
    return next(filter(None, (given_heading(node.properties) for node in nodes)), "")


def _joined(nodes: Sequence[Node], bar: str) -> tuple[str, list[int]]:
    """Return the text of a source, and where each of its chunks begins in it.

    A chunk without a place, or whose place contradicts earlier ones, follows them.
    Whether a single character that a splitter dropped between two chunks was a line end
    is guessed.
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
        chunk, has_start = node.text, "chunk_start" in node.properties
        at = base + number_of(node, "chunk_start") if has_start else len(text) + 1
        if (of := _document(node)) != document:
            text += "\n\n" if text else ""
            document, base, at = (
                of,
                len(text) - number_of(node, "chunk_start"),
                len(text),
            )
        if not chunk.startswith(text[at : at + len(chunk)]):
            at = len(text) + 1
        if (gap := at - len(text)) > 0:
            bars = text[text.rfind("\n") + 1 :].count(bar)
            ends_line = gap > 1 or (
                bars >= full_row if bars else not has_start or chunk[:1] in "#|>-+<~"
            )
            text += "\n" * gap if ends_line else " "
        text += chunk[len(text) - at :]
        starts.append(at)
    return text, starts


def _by_chunk(
    nodes: Sequence[Node], spans: Sequence[tuple[int, int]], tables: Sequence[TextTable]
) -> list[dict[str, Any]]:
    """Return the table properties of each chunk: the rows that end in it.

    Of several tables in a chunk the one with the most rows counts.
    """
    chunk_ends = [end for _, end in spans]
    rows_by_chunk: list[list[tuple[int, int]]] = [[] for _ in nodes]
    for t, table in enumerate(tables):
        for r, end in enumerate(table.row_ends):
            chunk = min(bisect_left(chunk_ends, end), len(chunk_ends) - 1)
            rows_by_chunk[chunk].append((t, r))
    properties: list[dict[str, Any]] = []
    for node, (start, _), chunk_rows in zip(nodes, spans, rows_by_chunk, strict=True):
        if not chunk_rows:
            properties.append({})
            continue
        most = mode(t for t, _ in chunk_rows)
        table, numbers = tables[most], [r for t, r in chunk_rows if t == most]
        before = node.text[: max(0, table.start - start)]
        after = node.text[max(0, table.end - start) :]
        around = f"{before}\n{after}".strip()
        rows = [table.rows[r] for r in numbers]
        properties.append(_table(table.header, rows, numbers[0], around))
    return properties


def _table(
    header: list[str], rows: list[list[str]], above: int, around: str = ""
) -> dict[str, Any]:
    """Return the properties of a chunk with rows of a table, and text around them."""
    table = {
        "table_header": header,
        "table_rows": rows,
        "table_row_start": above,
        "table_row_end": above + len(rows),
    }
    return (
        {**table, "table_context": around} if any(map(str.isalnum, around)) else table
    )

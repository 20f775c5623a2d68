"""Which chunks of a graph are out of date, since their document has changed."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence

from graphret.corpus.chunks import source_of, without_derived
from graphret.nodes import NodeTable
from graphret.sage.facts import NodeFacts
from graphret.types import Node

_log = logging.getLogger(__name__)
_UNITS = ("page", "page_label", "row")

_Document = tuple[str, ...]


def outdated(fresh: Sequence[Node], nodes: NodeTable, facts: NodeFacts) -> set[str]:
    """Return the ids of the nodes whose document has a newer version in `fresh`.

    `facts` say which of the nodes may be of one document with a fresh one.

    Chunks are of one document when they have the same ``source_id`` (LlamaIndex's
    ``ref_doc_id``), or their metadata name the same file or address (LangChain's
    ``source``). It has changed when a fresh chunk stands where another one stood: on
    the same page or row and, where both know where they begin, at the same place or
    over a text that is another.
    """
    of_document: dict[_Document, list[Node]] = defaultdict(list)
    for node in fresh:
        for document in _documents_of(node):
            of_document[document].append(node)
    known: dict[_Document, list[Node]] = defaultdict(list)
    for node in nodes.at(facts.of_documents({name for _, name, *_ in of_document})):
        for document in _documents_of(node):
            if document in of_document:
                known[document].append(node)
    gone: set[str] = set()
    for document, old in known.items():
        if _has_changed(of_document[document], old):
            left = {node.id for node in old} - {node.id for node in fresh}
            gone |= left
            _log.info(f"{document[1]} has changed: {len(left):,} chunks of it go")
    return gone


def _documents_of(node: Node) -> Iterator[_Document]:
    """Yield by what the document of a chunk is known: its id, its file."""
    bare = without_derived(node)
    source_id = bare.properties.get("source_id")
    if isinstance(source_id, str):
        yield "id", source_id
    if (source := source_of(bare))[0] == "file":
        yield source


def _has_changed(fresh: Sequence[Node], old: Sequence[Node]) -> bool:
    before = {node.id: node for node in old}
    new = [node for node in fresh if node.id not in before]
    if not new:
        # One chunk with its old id is that chunk edited; several are a document cut
        # anew, into chunks of the old ids.
        return len(fresh) > 1 and any(
            before[node.id].text != node.text for node in fresh
        )
    of_unit: dict[tuple[str, ...], list[Node]] = defaultdict(list)
    for node in old:
        of_unit[_unit(node)].append(node)
    return any(
        _takes_place(node, other) for node in new for other in of_unit[_unit(node)]
    )


def _unit(node: Node) -> tuple[str, ...]:
    """Return the page or row that a chunk stands on."""
    return tuple(str(node.properties.get(key)) for key in _UNITS)


def _takes_place(node: Node, other: Node) -> bool:
    """Return whether a chunk stands where one of a same-named document did."""
    start, begun = (one.properties.get("chunk_start") for one in (node, other))
    if not isinstance(start, int) or not isinstance(begun, int) or start == begun:
        return True
    first, last = (
        max(start, begun),
        min(start + len(node.text), begun + len(other.text)),
    )
    if first >= last:
        return False
    return (
        node.text[first - start : last - start]
        != other.text[first - begun : last - begun]
    )

"""Nodes and hits become LangChain documents, and come back.

A document of a passage has its text; that of any other node says its name, properties
and neighbours (`graphret.content.NodeContent`). It has the node's id, and as metadata
the properties that the user gave. What graphret has to say is one entry of the
metadata, ``metadata["graphret"]``, in plain JSON values: ``name``, ``labels``,
``properties`` (what graphret knows), ``text`` (the node's own, where the document's is
another), and of a hit ``id``, ``score``, ``relevance``, ``evidence`` and ``fill``,
where it only fills a place. The last four are of one question: documents of one node
are equal whatever they are, so that `MultiQueryRetriever` and its like, which drop
equal documents, take a node that two questions find for one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import Document

from graphret import corpus
from graphret.corpus.chunks import DERIVED, placed
from graphret.corpus.items import checked_metadata
from graphret.corpus.metadata import EXTRACTED
from graphret.corpus.names import file_of, given_name
from graphret.corpus.temporal import TEMPORAL, as_given, with_iso_text
from graphret.errors import InvalidInput
from graphret.sage import SageGraph
from graphret.stores.base import GraphStore
from graphret.types import Evidence, Hit, Node

#: The entry of a document's metadata that holds what graphret has to say; a node's
#: property of this name is hidden.
KEY = "graphret"

_OF_QUESTION = ("score", "relevance", "evidence", "fill")
_FIELDS = frozenset({"id", *_OF_QUESTION, "name", "labels", "properties", "text"})
_PLACE = ("chunk_", "table_")


class Block(dict[str, Any]):
    """What graphret has to say of a hit: a plain dictionary but that what differs by
    question makes none unequal.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        left, right = (
            {key: one[key] for key in one if key not in _OF_QUESTION}
            for one in (self, other)
        )
        return left == right

    def __ne__(self, other: object) -> bool:
        return not self == other


def to_document(item: Node | Hit, content: str | None = None) -> Document:
    """Return a node, or a hit with its score and evidence, as a LangChain document.

    Parameters
    ----------
    content
        The document's text, as `graphret.content.NodeContent` makes it; by default the
        node's own, or its name where it has none.
    """
    node = item.node if isinstance(item, Hit) else item
    given, _ = _sorted_out(node.properties)
    shown = node.text or node.name if content is None else content
    block = block_of(item)
    if shown != node.text:
        # else the node would not come back as it is
        block["text"] = node.text
    return Document(shown, id=node.id, metadata={**given, KEY: block})


def block_of(item: Node | Hit) -> Block:
    """Return what graphret has to say of a node or a hit, as plain JSON values."""
    node, block = (
        (item.node, Block(id=item.id)) if isinstance(item, Hit) else (item, Block())
    )
    if isinstance(item, Hit):
        block["score"] = float(item.score)
        if item.relevance is not None:
            block["relevance"] = float(item.relevance)
        block["evidence"] = [plain(evidence.to_dict()) for evidence in item.evidence]
        if item.fill:
            block["fill"] = True
    block |= {"name": node.name, "labels": list(node.labels)}
    if derived := _sorted_out(node.properties)[1]:
        block["properties"] = derived
    return block


def from_document(document: Document, *, strict: bool = True) -> Node:
    """Return a LangChain document as a node; the inverse of `to_document`.

    The id is the document's, or else made from title and text, as everywhere in
    graphret. Dates and times become ISO's text, which filters compare.

    Parameters
    ----------
    strict
        Whether metadata that is not JSON is refused; otherwise values that are not
        become strings.

    Raises
    ------
    InvalidInput
        When the metadata is not JSON, or has a ``graphret`` entry that graphret did not
        write.
    """
    block, what = (
        _block(document),
        f"document {document.id or document.page_content[:40]!r}",
    )
    given = {key: value for key, value in document.metadata.items() if key != KEY}
    known = with_iso_text(given) | block.get("properties", {})
    properties: dict[str, Any] = (
        checked_metadata(known, what, reserved=False) if strict else plain(known)
    )
    return Node(
        document.id or block.get("id") or made_id(document),
        tuple(block.get("labels", ("Document",))),
        block.get("name", given_name(properties)),
        block.get("text", document.page_content),
        properties,
    )


def evidence_of(document: Document) -> list[Evidence]:
    """Return the evidence in a document's metadata as objects, whose ``str`` reads
    well; none where there is none.
    """
    return [Evidence(**evidence) for evidence in _block(document).get("evidence", ())]


def made_id(document: Document) -> str:
    """Return the id that graphret gives to a document which has none."""
    title = document.metadata.get("title")
    return corpus.Document(
        document.page_content, title=title if isinstance(title, str) else ""
    ).id


def known_nodes(
    documents: Sequence[Document], graph: SageGraph | None
) -> list[Node | None]:
    """Return the node of a graph that each document is, `None` for those that the graph
    does not know.

    A document is the node that has its id, or that was made of a document without an id
    and with the same title and text. Vector stores give ids of their own to documents
    that have none, so the latter is what joins a store and a graph that were built of
    the same documents.
    """
    if graph is None:
        return [None] * len(documents)
    found: list[Node | None] = []
    nodes = graph.nodes
    for document in documents:
        block = document.metadata.get(KEY)
        stated = [
            document.id,
            block.get("id") if isinstance(block, dict) else None,
            made_id(document),
        ]
        places = [
            int(place)
            for place in nodes.find([str(one) for one in stated if one])
            if place >= 0
        ]
        found.append(nodes[places[0]] if places else None)
    return found


def stored_nodes(documents: Sequence[Document], store: GraphStore) -> list[Node | None]:
    """Return the node of a store that each document is, `None` for those that are none.

    A document is the node that has its id, or the id in its metadata.
    """
    stated = [
        [
            str(one)
            for one in (
                document.metadata.get("id"),
                dict(document.metadata.get(KEY) or {}).get("id"),
                document.id,
            )
            if one
        ]
        for document in documents
    ]
    ids = list(dict.fromkeys(one for some in stated for one in some))
    known = {node.id: node for node in store.get(ids) if node is not None}
    return [next((known[one] for one in some if one in known), None) for some in stated]


def from_chunk(document: Document) -> Node:
    """Return a document as a node that knows its source and where in that it begins, as
    far as its metadata say it.

    The source is the file or address in the metadata, or else the document itself. What
    an earlier retrieval said of the document is left out.
    """
    _block(document)
    given = {key: value for key, value in document.metadata.items() if key != KEY}
    node = from_document(
        Document(document.page_content, id=document.id, metadata=given)
    )
    start = given.get("start_index")
    return placed(
        node,
        file_of(given) or node.id,
        start if isinstance(start, int) and start >= 0 else None,
    )


def plain(value: Any) -> Any:
    """Return a value in plain JSON types, which survive a checkpointer."""
    return json.loads(json.dumps(value, default=_as_json))


def _as_json(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, (set, frozenset)) else str(value)


def _block(document: Document) -> dict[str, Any]:
    block = document.metadata.get(KEY, {})
    if not isinstance(block, Mapping) or not block.keys() <= _FIELDS:
        raise InvalidInput(
            f"document {document.id!r}: metadata[{KEY!r}] is reserved for graphret;"
            " rename it"
        )
    return dict(block)


def _sorted_out(properties: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tell what the user gave from what graphret added."""
    listed = [properties.get(name) for name in (EXTRACTED, DERIVED)]
    filled = {
        key
        for keys in listed
        if isinstance(keys, list)
        for key in keys
        if isinstance(key, str)
    }
    # the name stands for the node's: a property called so is the user's
    added = {*filled, EXTRACTED, DERIVED} - {"name"} if filled else set()
    if "source_id" in properties and DERIVED not in properties:
        added.add("source_id")
        added.update(
            key
            for key in properties
            if key.startswith(_PLACE) or (key == "title" and not properties[key])
        )
    added.discard(TEMPORAL)
    known = {key: plain(value) for key, value in properties.items() if key != KEY}
    given = {key: value for key, value in known.items() if key not in added}
    return as_given(given), {key: known[key] for key in known if key in added}

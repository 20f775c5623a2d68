"""Conversion between nodes or hits and LangChain documents.

The document of a passage has its text; that of any other node has its name, properties
and neighbours (`graphret.content.NodeContent`). It has the node's id, and the user's
properties as metadata. graphret's own data is one entry of the metadata,
``metadata["graphret"]``, in plain JSON values: ``name``, ``labels``, ``properties``
(graphret's own), ``text`` (the node's, if the document's is different), and for a hit
``id``, ``score``, ``relevance``, ``evidence``, and ``fill`` if it only fills a place.
The last four belong to one question and do not count when documents are compared:
`MultiQueryRetriever` and others drop equal documents, and so keep a node once that two
questions find.
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

#: The metadata entry of graphret's data; a node's property of this name is hidden.
KEY = "graphret"

_OF_QUESTION = ("score", "relevance", "evidence", "fill")
_FIELDS = frozenset({"id", *_OF_QUESTION, "name", "labels", "properties", "text"})
_PLACE = ("chunk_", "table_")


class Block(dict[str, Any]):
    """graphret's entry of a hit, a dictionary that compares without question fields."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        left, right = (
            {key: block[key] for key in block if key not in _OF_QUESTION}
            for block in (self, other)
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
    metadata, _ = _split_properties(node.properties)
    text = node.text or node.name if content is None else content
    block = block_of(item)
    if text != node.text:
        # so that the node can be restored unchanged
        block["text"] = node.text
    return Document(text, id=node.id, metadata={**metadata, KEY: block})


def block_of(item: Node | Hit) -> Block:
    """Return graphret's metadata entry for a node or a hit, as plain JSON values."""
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
    if derived := _split_properties(node.properties)[1]:
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
        If the metadata is not JSON, or has a ``graphret`` entry that graphret did not
        write.
    """
    block, what = (
        _block(document),
        f"document {document.id or document.page_content[:40]!r}",
    )
    metadata = {key: value for key, value in document.metadata.items() if key != KEY}
    combined = with_iso_text(metadata) | block.get("properties", {})
    properties: dict[str, Any] = (
        checked_metadata(combined, what, reserved=False) if strict else plain(combined)
    )
    return Node(
        document.id or block.get("id") or made_id(document),
        tuple(block.get("labels", ("Document",))),
        block.get("name", given_name(properties)),
        block.get("text", document.page_content),
        properties,
    )


def evidence_of(document: Document) -> list[Evidence]:
    """Return the evidence in a document's metadata as objects with a good `str`."""
    return [Evidence(**evidence) for evidence in _block(document).get("evidence", ())]


def made_id(document: Document) -> str:
    """Return the id that graphret gives to a document without one."""
    title = document.metadata.get("title")
    return corpus.Document(
        document.page_content, title=title if isinstance(title, str) else ""
    ).id


def known_nodes(
    documents: Sequence[Document], graph: SageGraph | None
) -> list[Node | None]:
    """Return each document's node in a graph, or `None` if the graph has none.

    It is the node with the document's id, or the one made from a document without an id
    but with the same title and text. Vector stores assign their own ids to documents
    without one, so the latter joins a store and a graph that were built from the same
    documents.
    """
    if graph is None:
        return [None] * len(documents)
    matches: list[Node | None] = []
    nodes = graph.nodes
    for document in documents:
        block = document.metadata.get(KEY)
        candidate_ids = [
            document.id,
            block.get("id") if isinstance(block, dict) else None,
            made_id(document),
        ]
        places = [
            int(place)
            for place in nodes.find(
                [str(node_id) for node_id in candidate_ids if node_id]
            )
            if place >= 0
        ]
        matches.append(nodes[places[0]] if places else None)
    return matches


def stored_nodes(documents: Sequence[Document], store: GraphStore) -> list[Node | None]:
    """Return each document's node in a store, or `None` if the store has none.

    It is the node with the document's id, or with the id in its metadata.
    """
    candidate_ids = [
        [
            str(node_id)
            for node_id in (
                document.metadata.get("id"),
                dict(document.metadata.get(KEY) or {}).get("id"),
                document.id,
            )
            if node_id
        ]
        for document in documents
    ]
    ids = list(
        dict.fromkeys(node_id for candidates in candidate_ids for node_id in candidates)
    )
    by_id = {node.id: node for node in store.get(ids) if node is not None}
    return [
        next((by_id[node_id] for node_id in candidates if node_id in by_id), None)
        for candidates in candidate_ids
    ]


def from_chunk(document: Document) -> Node:
    """Return a document as a node with its source and its place in it, if known.

    The source is the file or address in the metadata, or else the document itself. The
    evidence of an earlier retrieval is left out.
    """
    _block(document)
    metadata = {key: value for key, value in document.metadata.items() if key != KEY}
    node = from_document(
        Document(document.page_content, id=document.id, metadata=metadata)
    )
    start = metadata.get("start_index")
    return placed(
        node,
        file_of(metadata) or node.id,
        start if isinstance(start, int) and start >= 0 else None,
    )


def plain(value: Any) -> Any:
    """Return a value in plain JSON types, which a checkpointer can store."""
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


def _split_properties(
    properties: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the user's properties, and those that graphret added."""
    listed = [properties.get(name) for name in (EXTRACTED, DERIVED)]
    derived = {
        key
        for keys in listed
        if isinstance(keys, list)
        for key in keys
        if isinstance(key, str)
    }
    # in these lists "name" means the node's name: a property called so is the user's
    added = {*derived, EXTRACTED, DERIVED} - {"name"} if derived else set()
    if "source_id" in properties and DERIVED not in properties:
        added.add("source_id")
        added.update(
            key
            for key in properties
            if key.startswith(_PLACE) or (key == "title" and not properties[key])
        )
    added.discard(TEMPORAL)
    plain_properties = {
        key: plain(value) for key, value in properties.items() if key != KEY
    }
    user_properties = {
        key: value for key, value in plain_properties.items() if key not in added
    }
    return as_given(user_properties), {
        key: plain_properties[key] for key in plain_properties if key in added
    }

"""Lossless conversion between LlamaIndex nodes and graphret nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.schema import Node as MediaNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node

from graphret.corpus.chunks import placed
from graphret.corpus.items import checked_metadata
from graphret.corpus.metadata import EXTRACTED
from graphret.corpus.names import given_name
from graphret.corpus.temporal import as_given, with_iso_text
from graphret.types import Node, require_id

#: The metadata key under which a LlamaIndex node stores what graphret knows of it, as
#: JSON; it is not shown to the LLM or the embedding model.
STORED = "graphret"
#: The property under which a graphret node stores its original LlamaIndex node, except
#: for its id, text and embedding.
ORIGIN = "llama_index"
#: The property in which nodes of a property graph keep their embedding.
EMBEDDING = "embedding"
#: LlamaIndex's classes of nodes, by the name that they have in JSON.
CLASSES: dict[str, type[BaseNode]] = {
    kind.class_name(): kind
    for kind in (TextNode, IndexNode, ImageNode, MediaNode, Document, ImageDocument)
}

_INTERNAL = frozenset(
    {
        "source_id",
        EXTRACTED,
        "section_text",
        "introduction",
        "column_descriptions",
        ORIGIN,
        STORED,
    }
)
_INTERNAL_PREFIXES = ("chunk_", "table_")
_STATED_IN_TEXT = ("title", "section")  # of a table
_CONTENT = (  # where LlamaIndex's property graphs keep the rest of a chunk
    "_node_content"
)


def to_llama_node(node: Node, content: str | None = None) -> BaseNode:
    """Return a graphret node as a LlamaIndex node of the same id and text.

    A node that came from LlamaIndex, or that LlamaIndex put into a property graph,
    comes back as it was, with the same hash, LLM text and embedding text; what graphret
    found out about it since stays in the graph. Any other becomes a `TextNode` whose
    metadata are the properties that the user gave, and whose text is the name where
    there is none; what graphret made is kept beside them as one JSON string, excluded
    from both texts, so that `from_llama_node` gives the same node. The embedding is the
    property ``embedding``, if there is one. `content` is the text instead, as
    `graphret.content.NodeContent` makes it; properties that it says are excluded from
    both texts.
    """
    origin = node.properties.get(ORIGIN)
    if not isinstance(origin, Mapping) or origin.get("class_name") not in CLASSES:
        if not isinstance(node.properties.get(_CONTENT), str):
            return _text_node(node, content)
        chunk = metadata_dict_to_node(dict(node.properties))
        chunk.set_content(node.text)
        return chunk
    kind = CLASSES[origin["class_name"]]
    text = {"text": node.text} if issubclass(kind, TextNode) else {}
    metadata = as_given(origin.get("metadata", {}))
    return kind.from_dict({**text, **origin, "metadata": metadata, "id_": node.id})


def from_llama_node(node: BaseNode) -> Node:
    """Return a LlamaIndex node as a graphret node, which `to_llama_node` reverses.

    The metadata become properties, so that filters find them, dates and times as ISO's
    text; the source document's id becomes ``source_id``. The name is the title in the
    metadata; `graphret.corpus.from_chunks` finds out what else the source knows. The
    embedding, bytes and the object inside an `IndexNode` are left out.
    """
    node_id = require_id(node.node_id, "LlamaIndex node")
    metadata = with_iso_text(node.metadata)
    properties = checked_metadata(metadata, f"node {node_id!r}", reserved=False)
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    if (stored := _stored(node)) is not None:
        own_properties = {
            key: value for key, value in properties.items() if key != STORED
        } | stored["properties"]
        converted = Node(
            node_id,
            tuple(stored["labels"]),
            stored["name"],
            stored.get("text", text),
            own_properties,
        )
        return (
            converted
            if _text_node(converted, text) == node
            else replace(
                converted,
                properties={**own_properties, ORIGIN: _origin(node, converted.text)},
            )
        )
    converted = Node(
        node_id,
        ("Document",),
        given_name(properties),
        text,
        {**properties, ORIGIN: _origin(node, text)},
    )
    start = getattr(node, "start_char_idx", None)
    return placed(converted, node.ref_doc_id, start if node.ref_doc_id else None)


def source_of(node: Node) -> RelatedNodeInfo | None:
    """Return a node's source document (with its hash) if it came from LlamaIndex."""
    origin = node.properties.get(ORIGIN)
    related = origin.get("relationships") if isinstance(origin, Mapping) else None
    source = related.get(NodeRelationship.SOURCE.value) if related else None
    return RelatedNodeInfo.from_dict(source) if isinstance(source, dict) else None


def _to_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)


def _text_node(node: Node, content: str | None = None) -> TextNode:
    properties = dict(node.properties)
    vector = (
        properties.pop(EMBEDDING)
        if isinstance(properties.get(EMBEDDING), list)
        else None
    )
    internal = _INTERNAL.union(properties.get(EXTRACTED, ()))
    metadata = {
        key: value
        for key, value in properties.items()
        if key not in internal
        and not key.startswith(_INTERNAL_PREFIXES)
        and value is not None
        and value != ""
    }
    hidden = {key: value for key, value in properties.items() if key not in metadata}
    stored: dict[str, Any] = {
        "labels": list(node.labels),
        "name": node.name,
        "properties": hidden,
    }
    # retrievers that compare texts would take all entities without one for the same
    text = node.text or node.name if content is None else content
    if text != node.text:
        stored["text"] = node.text
    in_table = _STATED_IN_TEXT if "table_rows" in properties else ()
    in_text = [
        key
        for key in metadata
        if node.is_row or (text != node.text and f"\n{key}: " in text)
    ]
    excluded = [STORED, *(key for key in in_table if key in metadata), *in_text]
    source, start, end = (
        properties.get(key) for key in ("source_id", "chunk_start", "chunk_end")
    )
    relations = {}
    if isinstance(source, str) and source:
        relations[NodeRelationship.SOURCE] = RelatedNodeInfo(
            node_id=source, node_type=ObjectType.DOCUMENT
        )
    return TextNode(
        id_=node.id,
        text=text,
        embedding=vector,
        metadata={**metadata, STORED: _to_json(stored)},
        excluded_llm_metadata_keys=excluded,
        excluded_embed_metadata_keys=list(excluded),
        relationships=relations,
        start_char_idx=start if isinstance(start, int) else None,
        end_char_idx=end if isinstance(end, int) else None,
    )


def _origin(node: BaseNode, text: str) -> dict[str, Any]:
    """Return what restores a node, except for its id, its embedding and this text."""
    left_out = {"id_", "embedding", "obj"} | (
        {"text"} if getattr(node, "text", None) == text else set()
    )
    data: dict[str, Any] = node.model_dump(
        mode="json", exclude_defaults=True, exclude=left_out
    )
    if node.metadata:
        data["metadata"] = with_iso_text(node.metadata)
    data["class_name"] = next(
        name
        for base in type(node).__mro__
        for name, node_class in CLASSES.items()
        if base is node_class
    )
    return data


def _stored(node: BaseNode) -> dict[str, Any] | None:
    """Return what graphret stored in a node's metadata, if the entry is graphret's."""
    try:
        stored = json.loads(node.metadata[STORED])
    except (TypeError, ValueError, KeyError):
        return None
    return stored if isinstance(stored, dict) and "labels" in stored else None

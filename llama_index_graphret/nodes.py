"""Nodes both ways, losing nothing: LlamaIndex nodes as graphret nodes, and graphret
nodes as LlamaIndex nodes.
"""

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

#: The metadata key under which a LlamaIndex node keeps what graphret knows of it, as
#: JSON; neither the LLM nor the embedding model is shown it.
KEPT = "graphret"
#: The property under which a graphret node keeps the LlamaIndex node that it was, but
#: for its id, text and embedding.
ORIGIN = "llama_index"
#: The property in which nodes of a property graph keep their embedding.
EMBEDDING = "embedding"
#: LlamaIndex's classes of nodes, by the name that they have in JSON.
CLASSES: dict[str, type[BaseNode]] = {
    kind.class_name(): kind
    for kind in (TextNode, IndexNode, ImageNode, MediaNode, Document, ImageDocument)
}

_MADE = frozenset(
    {
        "source_id",
        EXTRACTED,
        "section_text",
        "introduction",
        "column_descriptions",
        ORIGIN,
        KEPT,
    }
)
_MADE_PREFIXES = ("chunk_", "table_")
_SAID_IN_TEXT = ("title", "section")  # of a table
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
    """Return a LlamaIndex node as a graphret node, so that `to_llama_node` gives it
    back.

    The metadata become properties, so that filters find them, dates and times as ISO's
    text; the source document's id becomes ``source_id``. The name is the title in the
    metadata; `graphret.corpus.from_chunks` finds out what else the source knows. The
    embedding, bytes and the object inside an `IndexNode` are left out.
    """
    node_id = require_id(node.node_id, "LlamaIndex node")
    metadata = with_iso_text(node.metadata)
    properties = checked_metadata(metadata, f"node {node_id!r}", reserved=False)
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    if (kept := _kept(node)) is not None:
        own = {key: value for key, value in properties.items() if key != KEPT} | kept[
            "properties"
        ]
        made = Node(
            node_id, tuple(kept["labels"]), kept["name"], kept.get("text", text), own
        )
        return (
            made
            if _text_node(made, text) == node
            else replace(made, properties={**own, ORIGIN: _origin(node, made.text)})
        )
    made = Node(
        node_id,
        ("Document",),
        given_name(properties),
        text,
        {**properties, ORIGIN: _origin(node, text)},
    )
    start = getattr(node, "start_char_idx", None)
    return placed(made, node.ref_doc_id, start if node.ref_doc_id else None)


def source_of(node: Node) -> RelatedNodeInfo | None:
    """Return what a graphret node that came from LlamaIndex knows of its document:
    among it, the hash.
    """
    origin = node.properties.get(ORIGIN)
    related = origin.get("relationships") if isinstance(origin, Mapping) else None
    source = related.get(NodeRelationship.SOURCE.value) if related else None
    return RelatedNodeInfo.from_dict(source) if isinstance(source, dict) else None


def _to_json(kept: Mapping[str, Any]) -> str:
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"), default=dict)


def _text_node(node: Node, content: str | None = None) -> TextNode:
    given = dict(node.properties)
    vector = given.pop(EMBEDDING) if isinstance(given.get(EMBEDDING), list) else None
    made = _MADE.union(given.get(EXTRACTED, ()))
    shown = {
        key: value
        for key, value in given.items()
        if key not in made
        and not key.startswith(_MADE_PREFIXES)
        and value is not None
        and value != ""
    }
    rest = {key: value for key, value in given.items() if key not in shown}
    kept: dict[str, Any] = {
        "labels": list(node.labels),
        "name": node.name,
        "properties": rest,
    }
    # without a text retrievers that compare texts take all entities for one
    text = node.text or node.name if content is None else content
    if text != node.text:
        kept["text"] = node.text
    in_table = _SAID_IN_TEXT if "table_rows" in given else ()
    said = [
        key
        for key in shown
        if node.is_row or (text != node.text and f"\n{key}: " in text)
    ]
    excluded = [KEPT, *(key for key in in_table if key in shown), *said]
    source, start, end = (
        given.get(key) for key in ("source_id", "chunk_start", "chunk_end")
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
        metadata={**shown, KEPT: _to_json(kept)},
        excluded_llm_metadata_keys=excluded,
        excluded_embed_metadata_keys=list(excluded),
        relationships=relations,
        start_char_idx=start if isinstance(start, int) else None,
        end_char_idx=end if isinstance(end, int) else None,
    )


def _origin(node: BaseNode, text: str) -> dict[str, Any]:
    """Return what makes a node again, but for its id, its embedding and this text."""
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
        for name, known in CLASSES.items()
        if base is known
    )
    return data


def _kept(node: BaseNode) -> dict[str, Any] | None:
    """Return what graphret keeps in a node's metadata; the entry may be somebody
    else's.
    """
    try:
        kept = json.loads(node.metadata[KEPT])
    except (TypeError, ValueError, KeyError):
        return None
    return kept if isinstance(kept, dict) and "labels" in kept else None

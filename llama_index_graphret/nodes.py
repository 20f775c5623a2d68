"""Nodes both ways, losing nothing: LlamaIndex nodes as graphret nodes, and graphret nodes as LlamaIndex nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
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
from graphret.corpus.items import Document as Text
from graphret.corpus.items import Item, Record, Table, checked_metadata
from graphret.corpus.metadata import EXTRACTED
from graphret.corpus.names import given_name
from graphret.corpus.nodes import linearize
from graphret.errors import InvalidInput
from graphret.types import Node, require_id

#: The metadata key under which a LlamaIndex node keeps what graphret knows of it, as JSON; neither the LLM nor the
#: embedding model is shown it.
KEPT = "graphret"
#: The property under which a graphret node keeps what LlamaIndex knows of it.
ORIGIN = "llama_index"

_CLASSES: dict[str, type[BaseNode]] = {
    kind.class_name(): kind for kind in (TextNode, IndexNode, ImageNode, MediaNode, Document, ImageDocument)
}
_MADE = frozenset({"source_id", EXTRACTED, "section_text", "introduction", "column_descriptions", ORIGIN, KEPT})
_MADE_PREFIXES = ("chunk_", "table_")
_MEDIA = ("text_resource", "image_resource", "audio_resource", "video_resource")
_SAID_IN_TEXT = ("title", "section")  # of a table
_CONTENT = "_node_content"  # where LlamaIndex's property graphs keep the rest of a chunk
_EMBEDDING = "embedding"  # where they keep embeddings


def to_llama_node(node: Node) -> BaseNode:
    """Return a graphret node as a LlamaIndex node of the same id and text.

    A node that came from LlamaIndex, or that LlamaIndex put into a property graph, comes back as it was: class,
    metadata and their order, relationships, templates and excluded keys, and so with the same hash, LLM text and
    embedding text; what graphret found out about it since stays in the graph. Any other becomes a `TextNode` whose
    metadata are the properties that the user gave, and whose text is the name where there is none; what graphret made
    is kept beside them as one JSON string, excluded from both texts, so that `from_llama_node` gives the same node.

    The embedding is not part of a graphret node, and so `None`, unless it is the property ``embedding``.
    """
    origin = node.properties.get(ORIGIN)
    if isinstance(origin, Mapping) and origin.get("class") in _CLASSES:
        return _restored(node, origin)
    return _chunk(node) or _text_node(node)


def from_llama_node(node: BaseNode) -> Node:
    """Return a LlamaIndex node as a graphret node, so that `to_llama_node` gives it back.

    The metadata become properties, so that filters find them; the source document's id becomes ``source_id``. The name
    is the title in the metadata; `graphret.corpus.from_chunks` finds out what else the source knows. An object inside
    an `IndexNode` that cannot be written as JSON, and the embedding, are left out.

    Raises
    ------
    InvalidInput
        When the metadata hold what is not JSON; the message names the node and the key.
    """
    node_id = require_id(node.node_id, "LlamaIndex node")
    metadata = checked_metadata(node.metadata, f"node {node_id!r}", reserved=False)
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    kept = _kept(metadata.get(KEPT))
    if kept is not None:
        own = {key: value for key, value in metadata.items() if key != KEPT}
        text = kept.get("text", text)
        if kept.get(_EMBEDDING):
            own[_EMBEDDING] = node.embedding
        made = Node(node_id, tuple(kept["labels"]), kept["name"], text, {**own, **kept["properties"]})
        if _same(_text_node(made), node):
            return made
        return Node(made.id, made.labels, made.name, text, {**made.properties, ORIGIN: _origin(node, made.properties)})
    start = getattr(node, "start_char_idx", None)
    return placed(
        Node(node_id, ("Document",), given_name(metadata), text, {**metadata, ORIGIN: _origin(node, metadata)}),
        node.ref_doc_id,
        start if node.ref_doc_id else None,
    )


def outline(node: BaseNode) -> Node:
    """Return a LlamaIndex node as a graphret node, without its metadata where graphret cannot hold them."""
    try:
        return from_llama_node(node)
    except InvalidInput:
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        return Node(require_id(node.node_id, "LlamaIndex node"), ("Document",), "", text)


def to_llama_document(item: Item) -> Document:
    """Return a graphret document, table or record as a LlamaIndex document, for ingestion pipelines.

    `SageNodeParser` cuts it as graphret itself would: a table by rows, a document by sentences.
    """
    if isinstance(item, Table):
        text, metadata, kind = linearize(item), dict(item.metadata), "table"
        values: dict[str, Any] = {"header": list(item.header), "rows": [list(row) for row in item.rows]}
        for name in ("title", "section", "section_text", "introduction"):
            values[name] = getattr(item, name)
        values["column_descriptions"] = dict(item.column_descriptions)
        metadata = {"title": item.title, **metadata} if item.title else metadata
        excluded = [KEPT, *_SAID_IN_TEXT]
    elif isinstance(item, Record):
        text, metadata, kind = item.text, dict(item.properties), "record"
        values = {"labels": list(item.labels), "name": item.name}
        excluded = [KEPT]
    else:
        text, metadata, kind = item.text, dict(item.metadata), "document"
        metadata = {"title": item.title, **metadata} if item.title else metadata
        values, excluded = {"title": item.title}, [KEPT]
    metadata[KEPT] = _json({"item": kind, **values})
    return Document(
        id_=item.id,
        text=text,
        metadata=metadata,
        excluded_llm_metadata_keys=excluded,
        excluded_embed_metadata_keys=list(excluded),
    )


def item_of(document: BaseNode) -> Item | None:
    """Return the item that `to_llama_document` was given, without its metadata; `None` for any other document."""
    try:
        values = json.loads(document.metadata[KEPT])
        kind = values.pop("item")
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if kind == "table":
        return Table(id=document.node_id, **values)
    text = document.get_content(metadata_mode=MetadataMode.NONE)
    if kind == "record":
        return Record(id=document.node_id, text=text, **values)
    return Text(text, id=document.node_id, **values)


def _chunk(node: Node) -> BaseNode | None:
    """Return the node that LlamaIndex kept in a property graph, `None` where it kept none."""
    if not isinstance(node.properties.get(_CONTENT), str):
        return None
    try:
        found = metadata_dict_to_node(dict(node.properties))
    except (ValueError, TypeError, KeyError):
        return None
    if found.node_id != node.id:
        return None
    found.set_content(node.text)
    return found


def _text_node(node: Node) -> TextNode:
    made = set(node.properties.get(EXTRACTED, ()))
    vector = node.properties.get(_EMBEDDING)
    embedded = isinstance(vector, list) and bool(vector) and all(type(x) is float for x in vector)
    is_table = "table_rows" in node.properties
    shown: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in node.properties.items():
        if embedded and key == _EMBEDDING:
            continue
        hidden = key in _MADE or key in made or key.startswith(_MADE_PREFIXES) or value is None or value == ""
        (rest if hidden else shown)[key] = value
    excluded = [KEPT, *(key for key in _SAID_IN_TEXT if is_table and key in shown)]
    source = node.properties.get("source_id")
    start, end = node.properties.get("chunk_start"), node.properties.get("chunk_end")
    relations = {}
    if isinstance(source, str) and source:
        relations[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=source, node_type=ObjectType.DOCUMENT)
    kept: dict[str, Any] = {"labels": list(node.labels), "name": node.name, "properties": rest}
    if not node.text and node.name:  # else retrievers that compare texts take all entities for one
        kept["text"] = ""
    if embedded:
        kept[_EMBEDDING] = True
    return TextNode(
        id_=node.id,
        text=node.text or node.name,
        embedding=vector if embedded else None,
        metadata={**shown, KEPT: _json(kept)},
        excluded_llm_metadata_keys=excluded,
        excluded_embed_metadata_keys=list(excluded),
        relationships=relations,
        start_char_idx=start if isinstance(start, int) else None,
        end_char_idx=end if isinstance(end, int) else None,
    )


def _origin(node: BaseNode, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `_restored` needs besides id, text and properties."""
    kind = type(node)
    name = next((name for base in kind.__mro__ for name, known in _CLASSES.items() if base is known), "TextNode")
    data = _dumped(node)
    origin: dict[str, Any] = {
        "class": name,
        "keys": list(node.metadata),
        "data": {key: value for key, value in data.items() if value != _defaults(name).get(key, value is None)},
    }
    lost = (key for key in node.metadata if key == ORIGIN or repr(properties.get(key)) != repr(node.metadata[key]))
    hidden = {key: node.metadata[key] for key in lost}
    if hidden:
        origin["hidden"] = checked_metadata(hidden, f"node {node.node_id!r}", reserved=False)
    return origin


def _restored(node: Node, origin: Mapping[str, Any]) -> BaseNode:
    kind = _CLASSES[origin["class"]]
    known = {**node.properties, **origin.get("hidden", {})}
    data = {**origin.get("data", {}), "id_": node.id, "metadata": {key: known[key] for key in origin["keys"]}}
    if issubclass(kind, TextNode):
        data["text"] = node.text
    elif node.text or "text_resource" in data:
        data["text_resource"] = {**(data.get("text_resource") or {}), "text": node.text}
    return kind.from_dict(data)


def _dumped(node: BaseNode) -> dict[str, Any]:
    if isinstance(node, IndexNode) and node.obj is not None:
        try:
            data = node.to_dict()
        except ValueError:
            node = node.model_copy(update={"obj": None})
    data = node.model_dump(mode="json")
    for name in ("id_", "embedding", "metadata", "text", "class_name"):
        data.pop(name, None)
    for name in _MEDIA:
        if isinstance(data.get(name), dict):
            binary = getattr(node, name).data  # LlamaIndex leaves it out of its dump
            whole = {**data[name], "data": binary.decode("ascii") if binary else None}
            data[name] = {k: v for k, v in whole.items() if v is not None and (name, k) != ("text_resource", "text")}
    return data


@cache
def _defaults(name: str) -> dict[str, Any]:
    kind = _CLASSES[name]
    blank = kind(index_id="-", id_="-") if issubclass(kind, IndexNode) else kind(id_="-")
    data = blank.model_dump(mode="json")
    data.pop("index_id", None)
    return data


def _same(made: BaseNode, given: BaseNode) -> bool:
    return (
        type(given) is TextNode
        and made.hash == given.hash
        and {**_dumped(made), "metadata": list(made.metadata)} == {**_dumped(given), "metadata": list(given.metadata)}
    )


def _kept(value: Any) -> dict[str, Any] | None:
    try:
        kept = json.loads(value)
        if isinstance(kept["name"], str) and isinstance(kept["properties"], dict):
            return {**kept, "labels": [str(label) for label in kept["labels"]]}
    except (TypeError, ValueError, KeyError):
        pass
    return None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def require_nodes(nodes: Any, what: str = "nodes") -> list[BaseNode]:
    """Return a list of LlamaIndex nodes; an `InvalidInput` names the first that is none."""
    listed = list(nodes)
    for number, node in enumerate(listed):
        if not isinstance(node, BaseNode):
            raise InvalidInput(f"{what}: number {number} is a {type(node).__name__}, not a LlamaIndex node")
    return listed

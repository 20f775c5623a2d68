"""Nodes go both ways without loss, and documents are cut into them."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.schema import (
    ImageNode,
    IndexNode,
    MediaResource,
    MetadataMode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.schema import Node as MediaNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from graphret import Document, Table
from graphret.corpus import HeuristicMetadata, describe, to_nodes
from graphret.errors import InvalidInput
from graphret.types import Node
from llama_index_graphret import SageNodeParser, from_llama_node, to_llama_node

#: Metadata of names that mean something to graphret, with values of all kinds.
ODD: dict[str, Any] = {
    "title": "",
    "name": ["x", None],
    "source_id": "s",
    "chunk_index": 0.5,
    "table_rows": [["a"]],
    "extracted": {"n": True},
    "label": None,
    "a.b": 2**40,
    "ü": "",
}


def same(one: Any, other: Any) -> None:
    """Two LlamaIndex nodes are alike in everything that LlamaIndex looks at."""
    assert type(one) is type(other)
    assert one == other
    assert one.hash == other.hash
    for mode in MetadataMode:
        assert one.get_content(metadata_mode=mode) == other.get_content(metadata_mode=mode)


@pytest.mark.parametrize(
    "node",
    [
        TextNode(id_="empty"),
        TextNode(text="ü", id_="odd", metadata=ODD),
        TextNode(text="x", id_="made", metadata={"llama_index": {"class_name": "TextNode"}}),
        TextNode(
            text="told",
            id_="full",
            metadata={"page": 3},
            excluded_llm_metadata_keys=["page"],
            relationships={
                NodeRelationship.SOURCE: RelatedNodeInfo(
                    node_id="d", node_type=ObjectType.DOCUMENT, metadata=ODD, hash="h"
                ),
                NodeRelationship.NEXT: RelatedNodeInfo(node_id="n"),
            },
            metadata_template="{key}={value}",
            text_template="{content} ({metadata_str})",
            start_char_idx=7,
        ),
        LlamaDocument(text="x", id_="d", metadata={"a": [1]}),
        ImageNode(text="caption", image_url="http://example.org/y.png", id_="i"),
        IndexNode(text="q", index_id="other", id_="z", obj=TextNode(text="inner", id_="in")),
        MediaNode(
            id_="m", text_resource=MediaResource(text="t"), image_resource=MediaResource(url="http://a.org/c.png")
        ),
    ],
    ids=lambda node: f"{type(node).__name__}-{node.node_id}",
)
def test_a_node_of_llama_index_comes_back_as_it_was(node: Any) -> None:
    same(to_llama_node(from_llama_node(node)), node)


@pytest.mark.parametrize("properties", [{}, ODD | {"extracted": ["topic"], "topic": "towns"}])
@pytest.mark.parametrize(("name", "text"), [("", ""), ("Bonn", ""), ("", "It lies on the Rhine."), ("Bonn", "It.")])
def test_a_graphret_node_comes_back_as_it_was(name: str, text: str, properties: dict[str, Any]) -> None:
    node = Node("a", ("City", "Place"), name, text, properties)
    assert from_llama_node(to_llama_node(node)) == node


def test_a_vector_store_s_flat_metadata_keep_a_table_segment() -> None:
    table = Table(["City", "Year"], [["Bonn", "1949"]], id="t", title="Capitals", section="Germany")
    [node] = describe(to_nodes([table]), HeuristicMetadata())
    flat = node_to_metadata_dict(to_llama_node(node), flat_metadata=True)
    assert from_llama_node(metadata_dict_to_node(flat)) == node


def test_what_graphret_made_is_in_no_text_of_a_node() -> None:
    document = Document("Bonn was the capital. It lies on the Rhine.", id="d", title="Bonn", metadata={"year": 1949})
    [node] = describe(to_nodes([document]), HeuristicMetadata())
    made = to_llama_node(node)
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert made.get_content(metadata_mode=mode) == f"title: Bonn\nyear: 1949\n\n{document.text}"
    assert made.ref_doc_id == "d"
    assert (made.start_char_idx, made.end_char_idx) == (0, len(document.text))


def test_metadata_that_are_no_json_are_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"node 'a'.*metadata.*'when'"):
        from_llama_node(TextNode(text="x", id_="a", metadata={"when": object()}))


# -- the parser


ROWS = "\n".join(f"| Team {i} | Park {i} | {1900 + i} |" for i in range(12))
PAGE = f"""# Ballparks

Ballparks are fields for baseball. Each of them has a story of its own.

## Teams

These are the teams.

| Team | Park | Opened |
| --- | --- | --- |
{ROWS}

## After

The story goes on here. It is a long one.
"""


def relation(node: Any, name: str) -> str | None:
    found = node.relationships.get(NodeRelationship[name])
    return None if found is None else found.node_id


def test_a_document_with_a_table_is_cut_into_text_and_rows() -> None:
    document = LlamaDocument(text=PAGE, id_="page", metadata={"lang": "en", "when": 3})
    nodes = SageNodeParser().get_nodes_from_documents([document])
    assert [node.node_id for node in nodes] == ["page#0", "page/table-0#0", "page/table-0#1"]
    assert all(relation(node, "SOURCE") == "page" for node in nodes)
    assert all(node.relationships[NodeRelationship.SOURCE].hash == document.hash for node in nodes)  # type: ignore[union-attr]
    assert [relation(node, "NEXT") for node in nodes] == ["page/table-0#0", "page/table-0#1", None]
    assert [relation(node, "PREVIOUS") for node in nodes] == [None, "page#0", "page/table-0#0"]
    assert all((node.metadata["lang"], node.metadata["when"]) == ("en", 3) for node in nodes)
    text, first, second = nodes
    assert "Team 1 " not in text.get_content()
    assert "Team 0 | Park 0 | 1900" in first.get_content()
    assert "Team 11 | Park 11 | 1911" in second.get_content()
    segment = from_llama_node(first)
    assert segment.labels == ("Table",)
    assert segment.properties["table_header"] == ["Team", "Park", "Opened"]
    assert segment.properties["section"] == "Teams"
    assert len(segment.properties["table_rows"]) == 6

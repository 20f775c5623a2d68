"""Nodes go both ways without loss."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
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

from graphret import Document, Record, Table
from graphret.corpus import to_nodes
from graphret.errors import InvalidInput
from graphret.types import Node
from llama_index_graphret import from_llama_node, to_llama_document, to_llama_node
from llama_index_graphret.nodes import item_of

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
keys = st.sampled_from(
    ["title", "year", "name", "source_id", "chunk_index", "table_rows", "extracted", "label", "llama_index", "a.b", "ü"]
)
metadata = st.dictionaries(keys, values, max_size=5)
related = st.builds(
    RelatedNodeInfo,
    node_id=texts.filter(bool),
    node_type=st.sampled_from([None, ObjectType.DOCUMENT, ObjectType.TEXT]),
    metadata=metadata,
    hash=st.none() | texts,
)
text_nodes = st.builds(
    TextNode,
    id_=texts.filter(bool),
    text=texts,
    metadata=metadata,
    excluded_llm_metadata_keys=st.lists(keys, max_size=2),
    excluded_embed_metadata_keys=st.lists(keys, max_size=2),
    relationships=st.dictionaries(
        st.sampled_from([NodeRelationship.SOURCE, NodeRelationship.NEXT, NodeRelationship.PARENT]), related, max_size=2
    ),
    metadata_template=st.sampled_from(["{key}: {value}", "{key}={value}"]),
    text_template=st.sampled_from(["{metadata_str}\n\n{content}", "{content} ({metadata_str})"]),
    start_char_idx=st.none() | st.integers(0, 99),
)


def same(one: Any, other: Any) -> None:
    """Two LlamaIndex nodes are alike in everything that LlamaIndex looks at."""
    assert type(one) is type(other)
    assert one == other
    assert one.hash == other.hash
    for mode in MetadataMode:
        assert one.get_content(metadata_mode=mode) == other.get_content(metadata_mode=mode)


@given(text_nodes)
def test_a_text_node_comes_back_as_it_was(node: TextNode) -> None:
    same(to_llama_node(from_llama_node(node)), node)


@pytest.mark.parametrize(
    "node",
    [
        LlamaDocument(text="x", id_="d", metadata={"a": [1]}),
        LlamaDocument(id_="empty"),
        ImageNode(text="caption", image_url="http://example.org/y.png", id_="i"),
        IndexNode(text="q", index_id="other", id_="z", obj=TextNode(text="inner", id_="in")),
        IndexNode(text="q", index_id="other", id_="z"),
        MediaNode(
            id_="m",
            text_resource=MediaResource(text="t"),
            image_resource=MediaResource(url="http://example.org/c.png"),
        ),
    ],
    ids=lambda node: f"{type(node).__name__}-{node.node_id}",
)
def test_other_classes_come_back_as_they_were(node: Any) -> None:
    same(to_llama_node(from_llama_node(node)), node)


@given(
    st.builds(
        Node,
        id=texts.filter(bool),
        labels=st.lists(texts.filter(bool), min_size=1, max_size=2).map(tuple),
        name=texts,
        text=texts,
        properties=st.dictionaries(
            keys.filter(lambda key: key not in ("llama_index", "extracted")), values, max_size=5
        ),
    )
)
def test_a_graphret_node_comes_back_as_it_was(node: Node) -> None:
    assert from_llama_node(to_llama_node(node)) == node


def test_a_vector_store_s_flat_metadata_keep_a_table_segment() -> None:
    table = Table(["City", "Year"], [["Bonn", "1949"]], id="t", title="Capitals", section="Germany")
    [node] = to_nodes([table])
    flat = node_to_metadata_dict(to_llama_node(node), flat_metadata=True)
    assert from_llama_node(metadata_dict_to_node(flat)) == node


def test_what_graphret_made_is_in_no_text_of_a_node() -> None:
    document = Document("Bonn was the capital. It lies on the Rhine.", id="d", title="Bonn", metadata={"year": 1949})
    [node] = to_nodes([document])
    made = to_llama_node(node)
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert made.get_content(metadata_mode=mode) == f"title: Bonn\nyear: 1949\n\n{document.text}"
    assert made.ref_doc_id == "d"
    assert (made.start_char_idx, made.end_char_idx) == (0, len(document.text))


def test_metadata_that_are_no_json_are_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"node 'a'.*metadata.*'when'"):
        from_llama_node(TextNode(text="x", id_="a", metadata={"when": object()}))


@pytest.mark.parametrize(
    "item",
    [
        Document("Some text.", id="d", title="T", metadata={"year": 1}),
        Table(["a"], [["1"]], id="t", title="T", section="S", column_descriptions={"a": "letters"}),
        Record(id="r", labels=["Gene"], name="TP53", properties={"n": 1}, text="A gene."),
    ],
    ids=["document", "table", "record"],
)
def test_an_item_survives_as_a_llama_index_document(item: Any) -> None:
    back = item_of(to_llama_document(item))
    plain = type(item)(**{**{f: getattr(item, f) for f in item.__dataclass_fields__}, **_bare(item)})
    assert back == plain


def _bare(item: Any) -> dict[str, Any]:
    return {"properties": {}} if isinstance(item, Record) else {"metadata": {}}

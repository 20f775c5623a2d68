"""Documents and nodes, both ways; evidence in plain JSON; filter dictionaries."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from graphret.errors import InvalidInput
from graphret.types import Evidence, Hit, Node
from graphret.where import Where
from langchain_graphret import KEY, SageGraph, evidence_of, from_document, to_document, to_hit, to_where

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    SCALARS | TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)
PROPERTY = (
    st.sampled_from(["title", "name", "source_id", "chunk_index", "table_rows", "extracted", "topic", "id"]) | TEXT
)
PROPERTIES = st.dictionaries(PROPERTY.filter(lambda key: key != KEY), JSON, max_size=5)
NODES = st.builds(
    Node,
    id=TEXT.filter(bool),
    labels=st.lists(TEXT.filter(bool), max_size=3).map(tuple),
    name=TEXT,
    text=TEXT,
    properties=PROPERTIES,
)
EVIDENCE = st.builds(
    Evidence,
    kind=st.sampled_from(["seed", "neighbor", "rank", "fill"]),
    source=st.none() | TEXT,
    relation=st.none() | TEXT,
    weight=st.none() | st.floats(0, 1),
    rank=st.none() | st.integers(1, 99),
    retriever=st.none() | TEXT,
    properties=st.dictionaries(TEXT, JSON, max_size=2),
)


@settings(max_examples=20)
@given(NODES, st.floats(-10, 10), st.lists(EVIDENCE, max_size=2))
def test_a_node_and_a_hit_come_back_from_their_documents(node: Node, score: float, evidence: list[Evidence]) -> None:
    hit = Hit(node, score, tuple(evidence))
    document = to_document(hit)
    assert (document.id, document.page_content) == (node.id, node.text or node.name)
    assert from_document(document) == from_document(to_document(node)) == node
    assert to_hit(document) == hit
    assert evidence_of(document) == evidence


@settings(max_examples=20)
@given(TEXT.filter(bool), TEXT.filter(bool), PROPERTIES)
def test_a_document_comes_back_from_its_node(text: str, id_: str, metadata: dict[str, Any]) -> None:
    if "source_id" in metadata or "extracted" in metadata:
        return  # what graphret's own corpora add, and take away again
    back = to_document(from_document(Document(text, id=id_, metadata=metadata)))
    assert back.metadata.pop(KEY)
    assert back == Document(text, id=id_, metadata=metadata)


def test_what_is_not_plain_json_becomes_so() -> None:
    evidence = Evidence("neighbor", weight=np.float32(0.5), properties={"rows": (1, np.int64(2)), "at": np.arange(2)})
    document = to_document(
        Hit(Node("a", properties={"size": np.float32(2.0), "tags": ("x",)}), np.float32(1.5), (evidence,))
    )
    assert document.metadata["size"] == 2.0
    assert document.metadata["tags"] == ["x"]
    block = document.metadata[KEY]
    assert block["score"] == 1.5
    assert block["evidence"] == [{"kind": "neighbor", "weight": 0.5, "properties": {"rows": [1, 2], "at": [0, 1]}}]
    json.dumps(document.metadata)


def test_a_users_own_entry_of_the_reserved_name_is_refused() -> None:
    document = Document("x", id="a", metadata={KEY: {"mine": 1}})
    for read in (from_document, evidence_of, lambda one: SageGraph.from_documents([one], None)):
        with pytest.raises(InvalidInput, match="reserved for graphret"):
            read(document)


def test_metadata_that_is_not_json_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"document 'a'.*'when'|document 'a'.*when"):
        from_document(Document("x", id="a", metadata={"when": object()}))
    assert from_document(Document("x", id="a", metadata={"when": {1}}), strict=False).properties == {"when": [1]}


# -- filters


NODE = Node("a", ("Table",), "Emma", "text", {"year": 1999, "lang": "en", "tags": ["x", "y"], "at": {"city": "Bath"}})


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"year": 1999, "lang": "de"}, False),
        ({"year": {"$between": [1990, 1999]}}, True),
        ({"year": {"$between": (1990, 1998)}}, False),
        ({"year": {"$between": [1990, 1999], "$ne": 1999}}, False),
        ({"$or": [{"year": 1}, {"year": {"$between": [1999, 1999]}}]}, True),
        ({"$not": {"year": {"$between": [1999, 1999]}}}, False),
        ({"$not": [{"year": 1}, {"lang": "en"}]}, False),
        ({"$not": [{"year": 1}, {"lang": "de"}]}, True),
        ({"label": "Table"}, True),
        (Where("$eq", "year", 1999), True),
    ],
)
def test_a_filter_means_what_it_says(condition: Any, expected: bool) -> None:
    where = to_where(condition)
    assert where is not None
    assert where.matches(NODE) is expected


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ({"lang": {"$like": "e%"}}, r"\$like"),
        ({"year": {"$between": [1, 2, 3]}}, r"\$between on 'year'"),
        ({"$or": {"year": 1}}, r"\$or"),
        ("year = 1999", "where"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(condition: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        to_where(condition)

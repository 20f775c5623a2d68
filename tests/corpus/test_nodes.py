"""Items become nodes in the shape that the rest of graphret reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphret.corpus import (
    Corpus,
    Document,
    HeuristicMetadata,
    Metadata,
    MetadataExtractor,
    Record,
    SentenceChunker,
    Table,
    adescribe,
    describe,
    segment_rows,
    to_edges,
    to_nodes,
    without_extracted,
)
from graphret.errors import InvalidInput, ModelError
from graphret.types import Edge, Node

TEXT = "The first sentence is here. The second sentence is here."


class Fixed(MetadataExtractor):
    """Knows the same of every node."""

    corpus_wide = False

    def __init__(self, **fields: Any) -> None:
        self.metadata = Metadata(**fields)

    def extract(self, nodes: Sequence[Node]) -> list[Metadata]:
        return [self.metadata for _ in nodes]


def test_the_chunks_of_a_document() -> None:
    document = Document(TEXT, id="d", title="T", metadata={"year": 1999})
    nodes = to_nodes([document], chunker=SentenceChunker(0, 30), metadata=None)
    assert [node.id for node in nodes] == ["d#0", "d#1"]
    assert [node.text for node in nodes] == ["The first sentence is here.", "The second sentence is here."]
    assert nodes[1].labels == ("Document",)
    assert nodes[1].name == "T"
    assert nodes[1].properties == {
        "title": "T",
        "year": 1999,
        "source_id": "d",
        "chunk_index": 1,
        "chunk_start": 28,
        "chunk_end": 56,
    }


def test_a_document_that_is_not_cut_keeps_its_id() -> None:
    (node,) = to_nodes([Document(TEXT, id="d")], chunker=None, metadata=None)
    assert (node.id, node.text, node.properties["chunk_end"]) == ("d", TEXT, len(TEXT))


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_document_is_not_lost(text: str) -> None:
    assert [node.id for node in to_nodes([Document(text, id="d", title="T")])] == ["d#0"]


def test_the_segments_of_a_table() -> None:
    table = Table(
        ["City", "People"],
        [[f"C{i}", str(i)] for i in range(12)],
        id="t",
        title="Cities",
        section="Large ones",
        introduction="Where people\nlive.",
        column_descriptions={"People": "inhabitants"},
        metadata={"lang": "en"},
    )
    first, second = to_nodes([table], metadata=None)
    assert (first.id, second.id, second.labels, second.name) == ("t#0", "t#1", ("Table",), "Cities")
    assert second.text.split("\n")[:5] == [
        "Cities",
        "Large ones",
        "Where people live.",
        "People: inhabitants",
        "City | People",
    ]
    assert second.text.endswith("\nC11 | 11")
    assert second.properties == {
        "title": "Cities",
        "section": "Large ones",
        "section_text": "",
        "introduction": "Where people\nlive.",
        "column_descriptions": {"People": "inhabitants"},
        "lang": "en",
        "source_id": "t",
        "chunk_index": 1,
        "table_header": ["City", "People"],
        "table_rows": [[f"C{i}", str(i)] for i in range(6, 12)],
        "table_row_start": 6,
        "table_row_end": 12,
    }


@given(st.integers(0, 200), st.integers(5, 10))
def test_balanced_segments_hold_five_to_ten_rows_each_row_once(n_rows: int, size: int) -> None:
    segments = segment_rows(n_rows, size)
    assert [row for start, end in segments for row in range(start, end)] == list(range(n_rows))
    for start, end in segments:
        assert end - start <= 10
        assert end - start >= 5 or (n_rows < 5 and len(segments) == 1)


@given(st.integers(1, 200))
def test_plain_segments_hold_row_over_ten(n_rows: int) -> None:
    for i, (start, end) in enumerate(segment_rows(n_rows, balance=False)):
        assert {row // 10 for row in range(start, end)} == {i}


@pytest.mark.parametrize("rows", [4, 11])
def test_rows_of_a_segment_are_five_to_ten(rows: int) -> None:
    with pytest.raises(InvalidInput, match="rows_per_segment"):
        to_nodes([], rows_per_segment=rows)


def test_a_record_stays_as_it_is() -> None:
    record = Record("r", ("Gene", "Thing"), "BRCA1", {"description": "A gene.", "source": "x"})
    (node,) = to_nodes([record], metadata=None)
    assert node == Node("r", ("Gene", "Thing"), "BRCA1", "A gene.", {"description": "A gene.", "source": "x"})
    (named,) = to_nodes([Record("r", properties={"title": "From properties"})], metadata=None)
    assert named.name == "From properties"


def test_what_the_user_gave_wins() -> None:
    given = {"topic": "mine", "entities": "One", "aliases": ["Other"]}
    extractor = Fixed(topic="found", entities=("Two",), summary="found", title="found")
    (node,) = to_nodes([Document(TEXT, title="T", metadata=given)], metadata=extractor)
    assert {key: node.properties.get(key) for key in ("topic", "entities", "aliases", "summary", "title")} == {
        "topic": "mine",
        "entities": ["One"],
        "aliases": ["Other"],
        "summary": "found",
        "title": "T",
    }
    assert node.properties["extracted"] == ["summary"]


@pytest.mark.parametrize(
    "metadata", [{"title": 1}, {"topic": ["a"]}, {"entities": [1]}, {"aliases": {"a": 1}}, {"events": 3}]
)
def test_metadata_that_graphret_reads_is_of_its_kind(metadata: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=rf"document 'd': metadata\.{next(iter(metadata))} is a"):
        to_nodes([Document("x", id="d", metadata=metadata)])


def test_a_record_may_have_any_events() -> None:
    (node,) = to_nodes([Record("r", properties={"events": [{"year": 1}]})])
    assert node.properties["events"] == [{"year": 1}]


async def test_metadata_can_be_found_anew() -> None:
    (bare,) = to_nodes([Document(TEXT, id="d", metadata={"topic": "mine"})], metadata=None)
    (first,) = describe([bare], Fixed(title="One", summary="one", topic="one"))
    assert (first.name, first.properties["summary"], first.properties["topic"]) == ("One", "one", "mine")
    (second,) = await adescribe([first], Fixed(title="Two"))
    assert (second.name, "summary" in second.properties, second.properties["topic"]) == ("Two", False, "mine")
    assert without_extracted(second) == bare


def test_an_extractor_that_answers_for_some_nodes_only() -> None:
    class Short(Fixed):
        def extract(self, nodes: Sequence[Node]) -> list[Metadata]:
            return []

    with pytest.raises(ModelError, match="0 of 1"):
        to_nodes([Document("x")], metadata=Short())


def test_ids_of_nodes_do_not_clash() -> None:
    with pytest.raises(InvalidInput, match="'d#0'"):
        to_nodes([Document("x", id="d"), Record("d#0")])


def test_edges_between_items_become_edges_between_nodes() -> None:
    items = [Document(TEXT, id="d"), Table(["a"], [["1"]], id="t"), Record("r")]
    edges = [Edge("d", "cites", "t"), Edge("d#1", "about", "r", 0.5, {"a": 1}), Edge("r", "in", "old")]
    corpus = Corpus(tuple(items), tuple(edges))
    nodes = to_nodes(corpus, chunker=SentenceChunker(0, 30))
    assert to_edges(corpus.edges, nodes, known={"old"}) == [
        Edge("d#0", "cites", "t#0"),
        Edge("d#1", "about", "r", 0.5, {"a": 1}),
        Edge("r", "in", "old"),
    ]
    with pytest.raises(InvalidInput, match=r"'r' -in-> 'old'.*'target'"):
        to_edges(corpus.edges, nodes)


def test_items_keep_their_order() -> None:
    items = [Record("b"), Document("x", id="c"), Table(["a"], [], id="a"), Document("y", id="d")]
    assert [node.id for node in to_nodes(items, metadata=HeuristicMetadata())] == ["b", "c#0", "a#0", "d#0"]

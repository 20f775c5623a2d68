"""Items become nodes in the shape that the rest of graphret reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, TypeVar

import pytest

from graphret.corpus import (
    Corpus,
    Document,
    HeuristicMetadata,
    MetadataExtractor,
    Record,
    SentenceChunker,
    Table,
    describe,
    to_edges,
    to_nodes,
)
from graphret.corpus.metadata import EXTRACTED, without
from graphret.errors import InvalidInput
from graphret.executors import LOCAL, Executor, batched
from graphret.types import Edge, Node

B, R = TypeVar("B"), TypeVar("R")
TEXT = "The first sentence is here. The second sentence is here."


class Fixed(MetadataExtractor):
    """Knows the same of every node."""

    corpus_wide = False

    def __init__(self, **known: Any) -> None:
        self.known = known

    def extract(
        self, nodes: Sequence[Node], executor: Executor = LOCAL
    ) -> list[dict[str, Any]]:
        return [self.known for _ in nodes]


def test_the_chunks_of_a_document() -> None:
    document = Document(TEXT, id="d", title="T", metadata={"year": 1999})
    first, second = to_nodes([document], chunker=SentenceChunker(0, 30))
    place = {"source_id": "d", "chunk_index": 1, "chunk_start": 28, "chunk_end": 56}
    assert (first.id, first.text) == ("d#0", "The first sentence is here.")
    assert second == Node(
        "d#1",
        ("Document",),
        "T",
        "The second sentence is here.",
        {"title": "T", "year": 1999, **place},
    )
    (whole,) = to_nodes([document], chunker=None)
    assert (whole.id, whole.text, whole.properties["chunk_end"]) == (
        "d",
        TEXT,
        len(TEXT),
    )
    assert [
        node.id for node in to_nodes([Document("  \n", id="empty", title="T")])
    ] == ["empty#0"]


def test_the_segments_of_a_table() -> None:
    rows = [[f"C{i}", str(i)] for i in range(12)]
    given = {
        "section": "Large ones",
        "introduction": "Where people\nlive.",
        "column_descriptions": {"People": "souls"},
    }
    table = Table(
        ["City", "People"], rows, "t", "Cities", metadata={"lang": "en"}, **given
    )
    first, second = to_nodes([table])
    assert (first.id, second.id, second.labels, second.name) == (
        "t#0",
        "t#1",
        ("Table",),
        "Cities",
    )
    lines = [
        "Cities",
        "Large ones",
        "Where people live.",
        "People: souls",
        "City | People",
        "C6 | 6",
    ]
    assert second.text.split("\n")[:6] == lines
    place = {
        "source_id": "t",
        "chunk_index": 1,
        "table_row_start": 6,
        "table_row_end": 12,
    }
    content = {"table_header": ["City", "People"], "table_rows": rows[6:]}
    assert second.properties == {
        "title": "Cities",
        "lang": "en",
        **given,
        **place,
        **content,
    }


def test_segments_hold_five_to_ten_rows_each_row_once() -> None:
    for n_rows in range(60):
        table = Table(["n"], [[n] for n in range(n_rows)], "t")
        for size, balance in [*((size, True) for size in range(5, 11)), (10, False)]:
            nodes = to_nodes([table], rows_per_segment=size, balance=balance)
            segments = [
                [int(cell) for (cell,) in node.properties["table_rows"]]
                for node in nodes
            ]
            assert [row for segment in segments for row in segment] == list(
                range(n_rows)
            )
            if balance:
                assert all(5 <= len(segment) <= 10 for segment in segments) or (
                    n_rows < 5 and len(segments) == 1
                )
            else:
                assert all(
                    {row // 10 for row in segment} <= {i}
                    for i, segment in enumerate(segments)
                )
    with pytest.raises(InvalidInput, match="rows_per_segment"):
        to_nodes([], rows_per_segment=4)


def test_a_record_stays_as_it_is() -> None:
    properties = {"description": "A gene.", "source": "x", "events": [{"year": 1}]}
    (node,) = to_nodes([Record("r", ("Gene", "Thing"), "BRCA1", properties)])
    assert node == Node("r", ("Gene", "Thing"), "BRCA1", "A gene.", properties)
    (named,) = to_nodes([Record("r", properties={"title": "From properties"})])
    assert named.name == "From properties"


def test_what_the_user_gave_wins_and_metadata_can_be_found_anew() -> None:
    (bare,) = to_nodes(
        [Document(TEXT, id="d", metadata={"topic": "mine", "entities": "One"})]
    )
    (first,) = describe(
        [bare],
        Fixed(
            topic="found", entities=["Two"], summary="found", title="Title", events=[]
        ),
    )
    found = {
        "summary": "found",
        "title": "Title",
        "extracted": ["summary", "title", "name"],
    }
    assert (first.name, first.properties) == ("Title", {**bare.properties, **found})
    (second,) = describe([first], Fixed(title="Two"))
    assert (
        second.name,
        "summary" in second.properties,
        second.properties["topic"],
    ) == ("Two", False, "mine")
    assert without(second, EXTRACTED) == bare


def test_nodes_keep_their_order_and_ids_do_not_clash() -> None:
    items = [
        Record("b"),
        Document("x", id="c"),
        Table(["a"], [], id="a"),
        Document("y", id="d"),
    ]
    assert [node.id for node in to_nodes(items)] == ["b", "c#0", "a#0", "d#0"]
    for other in (Record("d#0"), Document("z", id="d")):
        with pytest.raises(InvalidInput, match="'d#0'"):
            to_nodes([Document("x", id="d"), other])


def test_edges_between_items_become_edges_between_nodes() -> None:
    items = [Document(TEXT, id="d"), Table(["a"], [["1"]], id="t"), Record("r")]
    edges = [
        Edge("d", "cites", "t"),
        Edge("d#1", "about", "r", 0.5, {"a": 1}),
        Edge("r", "in", "old"),
    ]
    corpus = Corpus(tuple(items), tuple(edges))
    nodes = to_nodes(corpus, chunker=SentenceChunker(0, 30))
    assert to_edges(corpus.edges, nodes, held=lambda _: {"old": "old#0"}) == [
        Edge("d#0", "cites", "t#0"),
        Edge("d#1", "about", "r", 0.5, {"a": 1}),
        Edge("r", "in", "old#0"),
    ]
    with pytest.raises(InvalidInput, match=r"'r' -in-> 'old'.*'old'"):
        to_edges(corpus.edges, nodes)


class Words(MetadataExtractor):
    """Takes the first word of a node for its topic, block by block."""

    corpus_wide = False

    def extract(
        self, nodes: Sequence[Node], executor: Executor = LOCAL
    ) -> list[dict[str, Any]]:
        blocks = executor.map(self._first_words, batched(nodes, 2))
        return [*chain.from_iterable(blocks)]

    def _first_words(self, nodes: Sequence[Node]) -> list[dict[str, Any]]:
        return [{"topic": node.text.split()[0]} for node in nodes]


@pytest.mark.parametrize("extractor", [Words(), HeuristicMetadata()])
def test_any_extractor_can_run_on_the_executor(extractor: MetadataExtractor) -> None:
    class Threads:
        """Runs blocks in threads, and counts them."""

        blocks = 0

        def map(
            self, function: Callable[[B], R], blocks: Iterable[B], *, gpu: bool = False
        ) -> Iterator[R]:
            listed = list(blocks)
            self.blocks += len(listed)
            with ThreadPoolExecutor(2) as pool:
                return pool.map(function, listed)

    nodes = to_nodes([Document(f"w{i} and more", id=f"d{i}") for i in range(1025)])
    threads = Threads()
    assert describe(nodes, extractor, threads) == describe(nodes, extractor)
    assert threads.blocks == (513 if isinstance(extractor, Words) else 3)
    assert describe(nodes, Words())[-1].properties["topic"] == "w1024"

"""One rule for names, and what chunks that somebody else cut get back from their
source.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.corpus import Document, HeuristicMetadata, describe, from_chunks
from graphret.corpus.chunks import placed, without_derived
from graphret.corpus.readers import items_of
from graphret.types import Node

PAGE = """\
<p align="center"><img src="logo.svg"></p>

# The [Grand](https://example.org) `Hotel`

A hotel in Lübeck.

```bash
# no heading
```

## Rooms

There are forty.

| Room | Guest |
| --- | --- |
| 12 | Ada Lovelace |
| 13 | Charles Babbage |

### Prices

Ask.
"""


@pytest.mark.parametrize(
    ("metadata", "text", "name"),
    [
        ({"title": "Ada", "file_path": "/x/b.md"}, "# Other\n", "Ada"),
        ({"Title": "<b>Ada</b> & co"}, "text", "Ada & co"),
        ({"title": "-", "source": "notes/ada-lovelace.md"}, "text", "ada lovelace"),
        ({"Header 1": "Ada", "Header 2": "Life"}, "text", "Ada"),
        (
            {"source": "a.md"},
            '---\ntitle: "Ada: a life"\ntags: [x]\n---\n# Other\n',
            "Ada: a life",
        ),
        ({"source": "a.md"}, PAGE, "The Grand Hotel"),
        ({"source": "a.html"}, "<html><title>Ada</title><h1>Other</h1>", "Ada"),
        (
            {"source": "middleware.md"},
            "It wraps an app.\n\n## Using it\n",
            "middleware",
        ),
        (
            {"file_name": "Ada Lovelace - letters.csv"},
            "a,b\n1,2\n",
            "Ada Lovelace - letters",
        ),
        ({"url": "https://example.org/wiki/Ada_Lovelace?x=1"}, "text", "Ada Lovelace"),
        (
            {"source": "docs/index.md"},
            "text",
            "",
        ),  # then the lead sentence, by HeuristicMetadata
        ({"source": "tmpab12cd34.pdf"}, "text", ""),
        ({"source": "tweet"}, "text", ""),
    ],
)
def test_one_rule_for_names(metadata: dict[str, Any], text: str, name: str) -> None:
    (chunk,) = from_chunks([Node("c", ("Document",), "", text, metadata)])
    assert chunk.name == name
    item, *_ = items_of(text, metadata)
    assert item.title == name
    assert without_derived(chunk) == Node("c", ("Document",), "", text, metadata)


def test_the_lead_sentence_names_what_nothing_else_does() -> None:
    for text in (
        "---\ntags: [x]\n---\nThe *Mole* is a tower. It is old.",
        "<html><p>The Mole is a tower.</p></html>",
    ):
        chunk = Node("c", ("Document",), "", text, {"source": "a/index.md"})
        assert (
            describe(from_chunks([chunk]), HeuristicMetadata())[0].name
            == "The Mole is a tower"
        )


@pytest.mark.parametrize("stripped", [True, False])
def test_a_further_heading_is_a_name_of_its_page(stripped: bool) -> None:
    """LangChain's MarkdownHeaderTextSplitter, which takes the headings out of the
    texts, or leaves them.
    """
    headings = ["Setup", "Examples", "Keep"]
    chunks = [
        Node(
            f"c{i}",
            ("Document",),
            heading,
            f"# {heading}\n\nText." if not stripped else "Text.",
            {"source": "a.md", "Header 1": heading},
        )
        for i, heading in enumerate(headings)
    ]
    told = from_chunks(chunks)
    assert [node.name for node in told] == ["Setup", "Setup › Examples", "Setup › Keep"]
    assert {node.properties["chunk_index"] for node in told} == {0, 1, 2}
    assert from_chunks(told) == told
    alone = from_chunks(
        Node(one.id, one.labels, "", one.text, {"Header 1": one.name}) for one in chunks
    )
    assert [node.name for node in alone] == headings  # of no page that is known


def cut(
    text: str, size: int, overlap: int, *, source: str = "hotel.md", places: bool = True
) -> list[Node]:
    """Cut a text as splitters do: pieces that overlap, without the white space around
    them.
    """
    nodes = []
    for number, start in enumerate(range(0, len(text), size - overlap)):
        piece = text[start : start + size]
        begin = start + len(piece) - len(piece.lstrip())
        if piece.strip():
            node = Node(
                f"c{number:03}", ("Document",), "", piece.strip(), {"file_path": source}
            )
            nodes.append(placed(node, "doc", begin if places else None))
    return nodes


def rows_of(nodes: list[Node]) -> list[list[str]]:
    told = [node.properties for node in nodes if "table_rows" in node.properties]
    told.sort(key=lambda properties: properties.get("chunk_index", 0))
    rows = [
        (own["table_row_start"] + i, row)
        for own in told
        for i, row in enumerate(own["table_rows"])
    ]
    assert [number for number, _ in rows] == list(
        range(len(rows))
    )  # each once, in order
    return [[cell.strip() for cell in row] for _, row in rows]


@settings(max_examples=25)
@given(st.integers(60, 200), st.integers(10, 30), st.randoms())
def test_every_chunk_knows_its_source_in_any_order(
    size: int, overlap: int, rng: random.Random
) -> None:
    nodes = cut(PAGE, size, overlap)
    shuffled = nodes.copy()
    rng.shuffle(shuffled)
    told = from_chunks(shuffled)
    assert sorted(told, key=lambda node: node.id) == from_chunks(nodes)
    assert [node.id for node in told] == [node.id for node in shuffled]
    assert {node.name for node in told} == {"The Grand Hotel"}
    assert [node.text for node in told] == [node.text for node in shuffled]
    assert rows_of(told) == [["12", "Ada Lovelace"], ["13", "Charles Babbage"]]
    assert all(
        node.properties.get("table_header", ["Room", "Guest"]) == ["Room", "Guest"]
        for node in told
    )
    for node in told:
        start = node.properties["chunk_start"]
        section = (
            ""
            if start < PAGE.index("## Rooms")
            else "Rooms"
            if start < PAGE.index("### Pr")
            else "Rooms > Prices"
        )
        assert node.properties.get("section", "") == section
    assert from_chunks(told) == told  # again, and after changes, as at first


def test_chunks_without_places_follow_each_other() -> None:
    told = from_chunks(cut(PAGE, 150, 0, places=False))
    assert {node.name for node in told} == {"The Grand Hotel"}
    assert rows_of(told) == [["12", "Ada Lovelace"], ["13", "Charles Babbage"]]
    assert told[-1].properties["section"] == "Rooms"


CSV = (
    'Name,Born,"Known, for"\nAda Lovelace,1815,"Notes, on the Engine"\nCharles'
    " Babbage,1791,Engines\n"
    + "".join(f"Person {i},{1800 + i},Something {i}\n" for i in range(20))
)
ROWS = [
    ["Ada Lovelace", "1815", "Notes, on the Engine"],
    ["Charles Babbage", "1791", "Engines"],
]
ROWS += [[f"Person {i}", str(1800 + i), f"Something {i}"] for i in range(20)]


@pytest.mark.parametrize(("size", "overlap"), [(40, 0), (60, 11), (1000, 0)])
def test_a_file_of_commas_that_was_cut_as_text_is_a_table(
    size: int, overlap: int
) -> None:
    told = from_chunks(cut(CSV, size, overlap, source="people.csv"))
    assert rows_of(told) == ROWS
    tables = [node for node in told if "table_rows" in node.properties]
    assert all(
        node.properties["table_header"] == ["Name", "Born", "Known, for"]
        for node in tables
    )
    assert {(node.name, node.labels) for node in tables} == {("people", ("Table",))}


def test_lines_of_a_file_of_commas_without_places() -> None:
    pieces = ["\n".join(CSV.split("\n")[at : at + 5]) for at in range(0, 20, 5)]
    nodes = [
        Node(f"c{i}", ("Document",), "", piece, {"source": "people.csv"})
        for i, piece in enumerate(pieces)
    ]
    assert (
        rows_of(from_chunks([placed(node, "people.csv", None) for node in nodes]))
        == ROWS[:19]
    )


def test_rows_that_a_reader_joined_with_commas() -> None:
    joined = "\n".join(", ".join(row) for row in ROWS)
    (pandas,) = from_chunks(
        [Node("c", ("Document",), "", joined, {"file_path": "people.csv"})]
    )
    assert (
        pandas.properties["table_rows"][0] == ROWS[0]
    )  # of more cells than columns the last one has the rest
    assert pandas.properties["table_header"] == ["column 1", "column 2", "column 3"]


def test_one_document_a_row() -> None:
    """LangChain's CSVLoader."""
    header = ["Name", "Born", "Known for"]
    texts = ["\n".join(map(": ".join, zip(header, row, strict=True))) for row in ROWS]
    texts[0] += "\nand: more"  # a cell of two lines
    nodes = [
        Node(f"r{n}", ("Document",), "", text, {"source": "p.csv", "row": n})
        for n, text in enumerate(texts)
    ]
    told = from_chunks([placed(node, "p.csv", None) for node in reversed(nodes)])
    rows = [["Ada Lovelace", "1815", "Notes, on the Engine\nand: more"], *ROWS[1:]]
    assert rows_of(told) == rows
    assert all(node.properties["table_header"] == header for node in told)
    whole = [item for node in nodes for item in items_of(node.text, node.properties)]
    assert [(type(item), item.text, item.title) for item in whole] == [
        (Document, text, "p") for text in texts
    ]


def test_text_around_a_table() -> None:
    text = "Guests of Ada.\n\n| Room | Guest |\n|---|---|\n| 12 | Ada L. |\n\nDone."
    (told,) = from_chunks([Node("c", ("Document",), "", text)])
    assert (told.properties["table_header"], told.properties["table_rows"]) == (
        ["Room", "Guest"],
        [["12", "Ada L."]],
    )
    assert told.properties["table_context"].split() == ["Guests", "of", "Ada.", "Done."]
    assert told.labels == ("Document",)


def test_pages_are_one_source_and_titles_of_one_file_are_several() -> None:
    pages = [
        Node(
            f"p{n}",
            ("Document",),
            "",
            f"Page {n}.",
            {"file_path": "b.pdf", "page_label": str(n)},
        )
        for n in (10, 9)
    ]
    told = from_chunks(placed(page, f"doc-{page.id}", 0) for page in pages)
    assert [node.properties["chunk_index"] for node in told] == [1, 0]
    assert {node.properties["source_id"] for node in told} == {"b.pdf"}
    records = [
        Node(
            f"n{n}",
            ("Document",),
            "",
            "x",
            {"source": "b.jsonl", "title": f"Title {n}"},
        )
        for n in range(2)
    ]
    told = from_chunks(placed(record, "b.jsonl", None) for record in records)
    assert len({node.properties["source_id"] for node in told}) == 2
    assert [without_derived(node).properties["source_id"] for node in told] == [
        "b.jsonl",
        "b.jsonl",
    ]

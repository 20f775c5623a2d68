"""Topics and entities without a model."""

from __future__ import annotations

import pytest

from graphret.corpus import (
    Document,
    HeuristicMetadata,
    Item,
    Record,
    Table,
    describe,
    to_nodes,
)
from graphret.types import Node


def described(*items: Item) -> list[Node]:
    return describe(to_nodes(items, chunker=None), HeuristicMetadata())


@pytest.mark.parametrize(
    ("title", "text", "topic"),
    [
        (
            "Beatles",
            "The band ( formed 1960 ) played in Liverpool . They split .",
            "Beatles: The band played in Liverpool",
        ),
        (
            "Beatles (band)",
            "The Beatles were a band. They split.",
            "The Beatles were a band",
        ),
        (
            "Park",
            "# Park\n\n## History\n\nIt was a stadium. More.",
            "Park: It was a stadium",
        ),  # a heading is no sentence
        ("Songs", "#1 is the best. More.", "Songs: #1 is the best"),
    ],
)
def test_the_topic_is_the_first_sentence_behind_the_title(
    title: str, text: str, topic: str
) -> None:
    (node,) = described(Document(text, title=title))
    assert node.properties["topic"] == topic


def test_a_document_without_a_title_gets_one() -> None:
    (node,) = described(
        Document("One two three four five six seven eight nine ten. More.")
    )
    assert (
        node.name
        == node.properties["title"]
        == "One two three four five six seven eight…"
    )


@pytest.mark.parametrize(
    ("text", "titles", "found"),
    [
        # titles of the corpus, whatever their accents and brackets
        (
            "He left sao paulo for Mercury.",
            ["São Paulo", "Mercury (planet)"],
            ["São Paulo", "Mercury"],
        ),
        ("we like machine learning", ["Machine learning"], ["Machine learning"]),
        # a single word with a capital only
        ("they set out", ["Set"], []),
        ("they saw Set there", ["Set"], ["Set"]),
        ("私は東京に行く", ["東京"], ["東京"]),
        # what says nothing is no name
        ("the year 1999 in May It was", ["1999", "The", "May", "It"], []),
        # phrases in capitals
        (
            "In 1999 the University of the Arts hired J. K. Rowling.",
            [],
            ["University of the Arts", "J. K. Rowling"],
        ),
        (
            "It was Barnes & Noble 's on Monday 5 December . Apollo 11 landed .",
            [],
            ["Barnes & Noble", "Apollo 11"],
        ),
        ("We met Conan O'Brien .", [], ["Conan O'Brien"]),
        # a word that begins a sentence where it is one elsewhere
        ("Running is fun. Paris is big.", [], []),
        ("Paris is big. They like Paris.", [], ["Paris"]),
    ],
)
def test_entities_of_a_text(text: str, titles: list[str], found: list[str]) -> None:
    others = [
        Document(f"Nothing about number {i}.", title=title)
        for i, title in enumerate(titles)
    ]
    assert described(Document(text), *others)[0].properties.get("entities", []) == found


def test_aliases_and_names_of_records_are_found() -> None:
    node, *_ = described(
        Document("we saw acme corporation and big blue today"),
        Record("a", name="Acme Corporation"),
        Document("x", title="IBM", metadata={"aliases": ["Big Blue"]}),
    )
    assert node.properties["entities"] == ["Acme Corporation", "Big Blue"]


def test_entities_of_a_table_are_its_names_and_textual_cells() -> None:
    rows = [
        [
            "Zoë Ann",
            "12",
            "5 May 1999",
            "left for Real Madrid CF in the long summer break",
        ],
        ["", "1 000", "N/A", "yes"],
    ]
    table = Table(
        ["Player", "Goals", "Date", "Note"], rows, title="Scorers", section="2019"
    )
    node, *_ = described(table, Document("x", title="Real Madrid CF"))
    assert node.properties["entities"] == ["Scorers", "Zoë Ann", "Real Madrid CF"]
    assert node.properties["topic"] == "Scorers, 2019: Player, Goals, Date, Note"
    assert (
        node.properties["description"]
        == "Table of Player, Goals, Date, Note in Scorers, 2019"
    )


def test_entities_of_a_record_are_its_names_and_short_values() -> None:
    (node,) = described(
        Record(
            "r",
            name="Shoe",
            properties={"brand": "Nike", "price": "12", "url": "https://x.org/a"},
        )
    )
    assert node.properties["entities"] == ["Shoe", "Nike"]

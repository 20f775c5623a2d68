"""Topics and entities without a model."""

from __future__ import annotations

from graphret.corpus import Document, HeuristicMetadata, Item, Record, Table, to_nodes
from graphret.types import Node


def described(*items: Item) -> list[Node]:
    return to_nodes(items, chunker=None, metadata=HeuristicMetadata())


def entities(text: str, *titles: str) -> list[str]:
    others = [Document(f"Nothing about number {i}.", title=title) for i, title in enumerate(titles)]
    return list(described(Document(text), *others)[0].properties.get("entities", []))


def test_the_topic_is_the_first_sentence_behind_the_title() -> None:
    document = Document("The band ( formed 1960 ) played in Liverpool . They split .", title="Beatles")
    (node,) = described(document)
    assert node.properties["topic"] == "Beatles: The band played in Liverpool"
    (node,) = described(Document("The Beatles were a band. They split.", title="Beatles (band)"))
    assert node.properties["topic"] == "The Beatles were a band"


def test_a_heading_is_no_lead_sentence() -> None:
    text = "# Jarry Park\n\n## History\n\nIt was a stadium in Montreal. More."
    (node,) = described(Document(text, title="Jarry Park"))
    assert node.properties["topic"] == "Jarry Park: It was a stadium in Montreal"
    (node,) = described(Document("#1 is the best. More.", title="Songs"))
    assert node.properties["topic"] == "Songs: #1 is the best"


def test_a_document_without_a_title_gets_one() -> None:
    (node,) = described(Document("One two three four five six seven eight nine ten. More."))
    assert node.name == node.properties["title"] == "One two three four five six seven eight…"


def test_titles_of_the_corpus_are_found_whatever_their_accents_and_brackets() -> None:
    found = entities(
        "He left sao paulo for machine learning and Mercury.", "São Paulo", "Machine learning", "Mercury (planet)"
    )
    assert found == ["São Paulo", "Machine learning", "Mercury"]


def test_a_single_word_is_a_name_only_with_a_capital() -> None:
    assert entities("they set out", "Set") == []
    assert entities("they saw Set there", "Set") == ["Set"]
    assert entities("私は東京に行く", "東京") == ["東京"]


def test_titles_that_say_nothing_are_not_looked_for() -> None:
    assert entities("the year 1999 in May It was", "1999", "The", "May", "It") == []


def test_aliases_and_names_of_records_are_found() -> None:
    node, *_ = described(
        Document("we saw acme corporation and big blue today"),
        Record("a", name="Acme Corporation"),
        Document("x", title="IBM", metadata={"aliases": ["Big Blue"]}),
    )
    assert node.properties["entities"] == ["Acme Corporation", "Big Blue"]


def test_capitalised_phrases() -> None:
    assert entities("In 1999 the University of the Arts hired J. K. Rowling and Conan O'Brien .") == [
        "University of the Arts",
        "J. K. Rowling",
        "Conan O'Brien",
    ]
    assert entities("It was Barnes & Noble 's store on Monday 5 December . Apollo 11 landed .") == [
        "Barnes & Noble",
        "Apollo 11",
    ]


def test_a_word_that_begins_a_sentence_is_a_name_if_it_is_one_elsewhere() -> None:
    assert entities("Running is fun. Paris is big.") == []
    assert entities("Paris is big. They like Paris.") == ["Paris"]


def test_entities_of_a_table_are_its_names_and_textual_cells() -> None:
    table = Table(
        ["Player", "Goals", "Date", "Note"],
        [
            ["Zoë Ann", "12", "5 May 1999", "left for Real Madrid CF in the long summer break"],
            ["", "1 000", "N/A", "yes"],
        ],
        title="Scorers",
        section="2019",
    )
    node, *_ = described(table, Document("x", title="Real Madrid CF"))
    assert node.properties["entities"] == ["Scorers", "Zoë Ann", "Real Madrid CF"]
    assert node.properties["topic"] == "Scorers, 2019: Player, Goals, Date, Note"
    assert node.properties["description"] == "Table of Player, Goals, Date, Note in Scorers, 2019"


def test_entities_of_a_record_are_its_names_and_short_values() -> None:
    (node,) = described(Record("r", name="Shoe", properties={"brand": "Nike", "price": "12", "url": "https://x.org/a"}))
    assert node.properties["entities"] == ["Shoe", "Nike"]


def test_the_same_every_time_and_at_most_so_many() -> None:
    documents = [
        Document(" ".join(f"Name{chr(65 + i)}x saw Mc{chr(65 + i)}." for i in range(20)), title=str(n))
        for n in range(3)
    ]
    one = HeuristicMetadata(max_entities=7).extract(to_nodes(documents, metadata=None))
    assert one == HeuristicMetadata(max_entities=7).extract(to_nodes(documents, metadata=None))
    assert {len(metadata.entities) for metadata in one} == {7}

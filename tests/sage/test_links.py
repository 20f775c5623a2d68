"""Names that one node says of another."""

from __future__ import annotations

from typing import Any

import pytest

from graphret.nodes import NodeTable
from graphret.sage.links import LinkSettings, name_links
from graphret.types import Edge, Node


def passage(id_: str, name: str, text: str = "", **properties: Any) -> Node:
    return Node(id_, ("Document",), name, text, properties)


def table(*cells: str, name: str = "Results", section: str = "") -> Node:
    properties = {"section": section, "table_header": ["what"], "table_rows": [["filler"], *([cell] for cell in cells)]}
    return Node("t", ("Table",), name, properties=properties)


def links(*nodes: Node, settings: LinkSettings | None = None) -> list[Edge]:
    named = NodeTable.of(nodes)
    return list(name_links(named, settings).edges(named.ids))


@pytest.mark.parametrize(
    ("cell", "name", "kind"),
    [
        ("stadion poljud", "Stadion Poljud", "exact"),
        ("Géza", "Geza", "exact"),
        ("Mercury", "Mercury (planet)", "alias"),
        ("Orange", "Orange, New South Wales", "alias"),
        ("Boris Magaš, with others", "Boris Magaš", "inside"),
        ("won by Orange in May", "Orange, New South Wales", "inside_alias"),
        ("Butler", "1911 Butler Christians football team", "completed"),
    ],
)
def test_a_cell_names_a_node(cell: str, name: str, kind: str) -> None:
    (edge,) = links(table(cell, name="1911 Christians football team results"), passage("p", name))
    assert (edge.source, edge.target, edge.relation) == ("t", "p", "MENTIONS")
    assert edge.properties["kind"] == kind
    assert edge.properties["source_row"] == 1
    assert edge.properties["column"] == "what"


def test_running_text_names_the_longest_name() -> None:
    found = links(
        passage("a", "A", "She lives in New York City."), passage("n", "New York"), passage("c", "New York City")
    )
    assert [(e.source, e.target, e.properties["kind"]) for e in found] == [("a", "c", "text")]
    found = links(passage("a", "東京都"), passage("b", "隅田川", "隅田川は東京都を流れる川です。"), passage("c", "川"))
    assert [(e.source, e.target) for e in found] == [("b", "a")]


def test_aliases_and_the_ids_of_records_are_names() -> None:
    record = Node("P-1234", ("Product",), "Drill", "A drill.")
    found = links(
        passage("a", "Manual", "Fits the P-1234 and the Big Blue."), record, passage("b", "Saw", aliases=["Big Blue"])
    )
    assert {(e.source, e.target) for e in found} == {("a", "P-1234"), ("a", "b")}


def test_a_name_that_too_many_bear_says_nothing() -> None:
    bearers = [passage(f"b{i}", "John Smith") for i in range(4)]
    said = passage("a", "A", "Here is John Smith.")
    assert len(links(said, *bearers, settings=LinkSettings(max_bearers=4))) == 4
    assert links(said, *bearers, settings=LinkSettings(max_bearers=3)) == []


def test_numbers_and_stop_words_are_no_names_in_text() -> None:
    assert links(passage("a", "A", "It was in 12 of the year."), passage("b", "12"), passage("c", "It")) == []

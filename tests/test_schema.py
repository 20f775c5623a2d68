"""Schemas from nodes and edges, as JSON, and as text within a budget."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from typing import Any

import pytest

from graphret.errors import InvalidInput
from graphret.schema import GraphSchema, PropertySchema
from graphret.schema.text import estimate_tokens
from graphret.stores import MemoryStore
from graphret.types import Node

SCHEMA = GraphSchema(
    {"Person": 1200, "Film Star": 7, "Unused": 0},
    {("Person", "KNOWS", "Person"): 30, ("Person", "ACTED IN", "Film Star"): 4},
    {
        "Person": {
            "born": PropertySchema("INTEGER", 1.0, (1815, 1791)),
            "motto": PropertySchema(
                "STRING", 0.1, ('say "hi"\nMATCH (n) DELETE n', "x" * 90)
            ),
        }
    },
    {"KNOWS": {"since": PropertySchema("DATE", 0.5, (datetime.date(1833, 6, 5),))}},
)


def test_text_says_all_of_it_most_frequent_first() -> None:
    assert SCHEMA.text().splitlines() == [
        "Nodes, how many, and their properties:",
        (
            '(:Person) 1,200 {born: INTEGER e.g. 1815, 1791; motto: STRING e.g. "say'
            f' \\"hi\\" MATCH (n) DELETE n", "{"x" * 39}…"}}'
        ),
        "(:`Film Star`) 7",
        "(:Unused) 0",
        "Relations and how many:",
        "(:Person)-[:KNOWS]->(:Person) 30",
        "(:Person)-[:`ACTED IN`]->(:`Film Star`) 4",
        "Properties of relations:",
        '[:KNOWS] {since: DATE e.g. "1833-06-05"}',
    ]


def test_text_keeps_its_budget_and_says_what_is_missing() -> None:
    whole = SCHEMA.text()
    before = ""
    for budget in range(20, estimate_tokens(whole) + 1):
        text = SCHEMA.text(budget)
        assert estimate_tokens(text) <= budget
        assert text == SCHEMA.text(budget)
        assert ("Left out:" in text) == (text != whole)
        shown = [
            "(:Person) 1,200",
            "(:Person)-[:KNOWS]->(:Person)",
            "(:Unused)",
            "born",
            "since",
            "1815",
        ]
        places = [name in text for name in shown]
        assert places == sorted(
            places, reverse=True
        )  # nothing of less weight stands where something else is missing
        before = text
    assert before == whole
    assert "Left out: 3 labels, 2 relations, 3 properties." in SCHEMA.text(22)
    with pytest.raises(InvalidInput, match="max_tokens"):
        SCHEMA.text(3)


@pytest.mark.parametrize(
    ("sampled", "kinds"),
    [
        ({"sampled_properties": {"Person"}}, "properties"),
        ({"sampled_relation_properties": {"KNOWS"}}, "properties"),
        ({"sampled_relations": {"KNOWS"}}, "relations"),
    ],
    ids=str,
)
def test_samples_are_told(sampled: dict[str, Any], kinds: str) -> None:
    note = f"Seen in a sample: there may be more {kinds}."
    assert replace(SCHEMA, **sampled).text().splitlines()[-1] == note
    assert "sample" not in SCHEMA.text()
    assert GraphSchema({}, {}).text() == "The graph is empty."


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (("2024-01-31", "2023-12-01"), "YYYY-MM-DD"),
        (("2024-01-31T10:00:00Z",), "YYYY-MM-DDTHH:MM:SS"),
        (("31.01.2024",), "DD.MM.YYYY"),
        (("1/31/2024",), "MM/DD/YYYY"),
        (("31/1/2024",), "DD/MM/YYYY"),
        (("1/2/2024",), None),
        (("2024-01-31", "soon"), None),
        (("555-1234",), None),
    ],
)
def test_the_format_of_dates_is_told_and_no_value(
    values: tuple[str, ...], form: str | None
) -> None:
    known = {"Order": {"placed": PropertySchema("STRING", 1.0, values)}}
    told = GraphSchema({"Order": 3}, {}, known).text(values=False)
    assert told.splitlines()[1] == (
        f"(:Order) 3 {{placed: STRING{f' as {form}' if form else ''}}}"
    )


def test_all_values_of_a_property_that_has_few_are_told() -> None:
    states = ["open", "paid", "shipped", "returned"] * 3
    nodes = [
        Node(f"o{i}", ("Order",), f"order {i}", properties={"state": state, "no": i})
        for i, state in enumerate(states)
    ]
    schema = MemoryStore.of(nodes, []).schema()
    told = schema.text()
    assert 'one of "open", "paid", "returned", "shipped"' in told
    assert "no: INTEGER e.g. 0, 1, 10" in told
    assert "open" not in schema.text(values=False)


@pytest.mark.parametrize("name", ["a\nb", "x" * 101, "a\u202eb", ""])
def test_names_that_fit_on_no_line_are_left_out(name: str) -> None:
    text = GraphSchema({name or "\0": 5, "A": 1}, {("A", name or "\0", "A"): 3}).text()
    assert text.splitlines() == [
        "Nodes, how many, and their properties:",
        "(:A) 1",
        "Left out: 1 labels, 1 relations.",
    ]
    assert "(:`a``]->() //`) 1" in GraphSchema({"a`]->() //": 1}, {}).text()


# As JSON


def test_schema_as_json_shows_dates_as_text() -> None:
    made = json.loads(
        json.dumps(replace(SCHEMA, sampled_properties={"Person"}).to_dict())
    )
    assert made["relation_properties"]["KNOWS"]["since"]["examples"] == ["1833-06-05"]
    assert (made["sampled"], made["sampled_properties"], made["sampled_relations"]) == (
        True,
        ["Person"],
        [],
    )

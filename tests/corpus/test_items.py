"""Items refuse what is malformed, by name, and make ids that last."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from graphret.corpus import Document, Record, Table, to_edges, to_nodes
from graphret.errors import InvalidInput
from graphret.types import Edge


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Document(3, id="d"), ["document 'd'", "'text'", "int"]),
        (lambda: Document("x", id=7), ["document", "id"]),
        (
            lambda: Document("x", id="d", metadata=[1]),
            ["document 'd'", "metadata", "mapping"],
        ),
        (
            lambda: Document("x", title="T", metadata={"when": object()}),
            ["document 'T'", "metadata", "'when'", "JSON"],
        ),
        (
            lambda: Document("x", metadata={"a": {"b": [1, math.nan]}}),
            ["metadata", "'a'", "JSON"],
        ),
        (lambda: Document("x", metadata={"source_id": 1}), ["'source_id'", "reserved"]),
        (lambda: Table([], [], id="t"), ["table 't'", "'header'"]),
        (
            lambda: Table(["a", "b"], [["1", "2"], ["3"]], id="t"),
            ["table 't'", "row 2", "1 cells", "2"],
        ),
        (lambda: Table(["a"], [["1"], "2"], id="t"), ["table 't'", "a row"]),
        (lambda: Table(["a"], 3, id="t"), ["table 't'", "'rows'"]),
        (lambda: Record("r", labels="Gene"), ["record 'r'", "'labels'"]),
        (
            lambda: Record("r", properties={"x": {1}}),
            ["record 'r'", "properties", "'x'"],
        ),
        (lambda: to_nodes(["text"]), ["str", "graphret.read"]),
        (lambda: to_edges([Edge("a", "", "b")], []), ["edge 'a' to 'b'", "relation"]),
    ],
)
def test_malformed_input_is_refused_by_item_and_field(
    make: Callable[[], Any], words: list[str]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


def test_a_missing_id_is_made_from_the_content_and_is_the_same_in_every_version() -> (
    None
):
    assert Document("text", title="T", metadata={"a": 1}).id == "doc-445e69afb108b793"
    assert Table(["a"], [["1"]], title="T").id == "table-e9d38d52709b5266"
    assert Record(name="x", properties={"b": 1, "a": 2}).id == "record-f2d3f266ca211e85"
    assert (
        len(
            {
                Document("ab", title="c").id,
                Document("b", title="ca").id,
                Document("b").id,
            }
        )
        == 3
    )
    assert Document("x", id="mine").id == "mine"


def test_cells_become_strings() -> None:
    table = Table(["a", 1, "c", "d"], [[None, 2.5, math.nan, True]])
    assert table.header == ("a", "1", "c", "d")
    assert table.rows == (("", "2.5", "", "True"),)


def test_the_text_of_a_record_is_its_description_and_its_long_strings() -> None:
    properties = {
        "brand": "Acme",
        "note": "one two three four five six seven eight",
        "description": ["Red.", "Light."],
    }
    assert (
        Record(properties=properties).text
        == "one two three four five six seven eight\nRed.\nLight."
    )
    assert Record(properties=properties, text="given").text == "given"

"""Queries and schemas of any size: the work is bounded, and what is too long is refused."""

from __future__ import annotations

import sys

import pytest

from graphret.cypher import check, kinds
from graphret.cypher.check import MOST_CHARACTERS
from graphret.schema import GraphSchema, PropertySchema

LABELS = [f"L{i}" for i in range(300)]
SCHEMA = GraphSchema(
    dict.fromkeys(LABELS, 1),
    {(f"L{i}", f"R{j}", f"L{(i * 7 + j) % 300}"): 1 for i in range(300) for j in range(10)},
    {label: {"name": PropertySchema("STRING")} for label in LABELS},
)


def test_a_query_that_is_too_long_is_refused() -> None:
    long = f"RETURN '{'x' * MOST_CHARACTERS}'"
    for schema in (None, SCHEMA):
        (finding,) = check(long, schema).errors
        assert finding.kind == kinds.TOO_LONG
        assert "50,009 characters" in finding.message
    assert check(f"RETURN '{'x' * (MOST_CHARACTERS - 9)}'").ok


def test_a_query_with_too_many_relationships_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["graphret.cypher.check"], "MOST_RELATIONSHIPS", 20)
    assert check(f"MATCH {'-->'.join(['()'] * 21)} RETURN 1", SCHEMA).ok
    for query in (f"MATCH {'-->'.join(['()'] * 22)} RETURN 1", f"MATCH {', '.join(['()--()'] * 21)} RETURN 1"):
        (finding,) = check(query, SCHEMA).errors
        assert (finding.kind, "21 relationships" in finding.message) == (kinds.TOO_LONG, True)


@pytest.mark.parametrize(
    ("opening", "inner", "closing"),
    [
        ("RETURN ", "1 AS x", ("(", ")")),
        ("MATCH (n) WHERE ", "true RETURN n LIMIT 1", ("EXISTS { MATCH (n) WHERE ", " }")),
        ("MATCH (n:L1) WHERE ", "n.name = 'x' RETURN n LIMIT 1", ("NOT (true AND ", ")")),
        ("RETURN ", "1 AS x", ("{a: [", "]}")),
    ],
)
def test_what_is_nested_tens_of_levels_deep_is_read_and_thousands_an_error(
    opening: str, inner: str, closing: tuple[str, str]
) -> None:
    value, _, rest = inner.partition(" AS " if " AS " in inner else " RETURN ")
    end = f" {'AS' if ' AS ' in inner else 'RETURN'} {rest}"
    left, right = closing
    assert check(f"{opening}{left * 40}{value}{right * 40}{end}", SCHEMA).errors == []
    (finding,) = check(f"{opening}{left * 900}{value}{right * 900}{end}", SCHEMA).errors
    assert (finding.kind, finding.message) == (kinds.SYNTAX, "Nested too deeply to be read")

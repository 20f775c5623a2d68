from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphret.cypher.tokens import replace_escapes, tokenise


def kinds(query: str) -> list[tuple[str, str]]:
    return [(t.kind, t.value) for t in tokenise(query)[:-1]]


def test_tokens_know_their_kinds_and_places() -> None:
    query = "MATCH (n:`a``b` {x: $p}) // end"
    tokens = tokenise(query)
    kinds_of = "name operator name operator quoted+name operator name operator parameter operator operator comment end"
    assert [t.kind for t in tokens] == [kind.replace("+", " ") for kind in kinds_of.split()]
    assert [query[t.start : t.end] for t in tokens[:-1]] == [t.text for t in tokens[:-1]]
    assert tokens[4].value == "a`b"
    assert tokens[8].value == "p"


def test_an_escape_is_replaced_before_anything_else_is_read() -> None:
    tokens = tokenise(r"RETURN '\u0027 + 1")
    assert [(t.kind, t.text, t.start, t.end) for t in tokens[1:4]] == [
        ("string", "''", 7, 14),
        ("operator", "+", 15, 16),
        ("number", "1", 17, 18),
    ]
    assert kinds(r"RETURN '\\u0027'")[1] == ("string", r"\u0027")


def test_an_escape_without_its_digits_is_bad() -> None:
    assert tokenise(r"RETURN '\u00zz'")[0].kind == "bad"
    short = tokenise("\\u")[0]
    assert (short.kind, short.start, short.end) == ("bad", 0, 2)


@pytest.mark.parametrize(
    "number", ["1", "0", "1_000", ".5", "1.5", "1e5", "1.5E-3", "0x1F", "0o17", "9223372036854775808"]
)
def test_numbers(number: str) -> None:
    assert kinds(number) == [("number", number.replace("_", ""))]


@pytest.mark.parametrize("number", ["12abc", "0x", "017", "1e", "1__0", "99999999999999999999", "1e999", "1.5abc"])
def test_what_is_no_number(number: str) -> None:
    assert kinds(number)[0][0] == "bad"


def test_a_range_is_no_decimal() -> None:
    assert [value for _, value in kinds("1..2")] == ["1", "..", "2"]


def test_names_may_hold_dollars_and_letters_of_any_script() -> None:
    assert kinds("a$b é 名前 _x") == [("name", "a$b"), ("name", "é"), ("name", "名前"), ("name", "_x")]


def test_dashes_of_unicode_draw_relationships_and_end_names() -> None:
    assert kinds("a–b") == [("name", "a"), ("operator", "-"), ("name", "b")]
    assert kinds("⟨-")[0] == ("operator", "<")


@pytest.mark.parametrize("query", ["'abc", '"abc', "`abc", "/* abc", "😀", "“a”", "#", "~"])
def test_what_is_no_token(query: str) -> None:
    assert any(t.kind == "bad" for t in tokenise(query))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=60))
def test_places_are_in_order_and_within_any_text(query: str) -> None:
    tokens = [t for t in tokenise(query) if t.kind != "bad"]
    assert all(0 <= t.start <= t.end <= len(query) for t in tokens)
    assert [t.start for t in tokens] == sorted(t.start for t in tokens)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet="ab\\u0123456789'", max_size=40))
def test_offsets_of_escapes_point_at_what_was_written(query: str) -> None:
    text, offsets, _ = replace_escapes(query)
    if offsets is None:
        assert text == query
        return
    assert len(offsets) == len(text) + 1
    assert all(text[i] == query[o] or query[o] == "\\" for i, o in enumerate(offsets[:-1]))

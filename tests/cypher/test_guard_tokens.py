"""Tokens and their places; what servers cut in different ways is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.cypher import check
from graphret.cypher.tokens import Unreadable, tokenise


def kinds(query: str) -> list[tuple[str, str]]:
    return [(t.kind, t.value) for t in tokenise(query)[:-1]]


def test_tokens_know_their_kinds_and_places() -> None:
    query = "MATCH (n:`a``b` {x: $p}) // end"
    tokens = tokenise(query)
    assert " ".join(t.kind.replace(" ", "_") for t in tokens) == (
        "name operator name operator quoted_name operator name operator parameter operator operator end"
    )
    assert [query[t.start : t.end] for t in tokens[:-1]] == [t.text for t in tokens[:-1]]
    assert (tokens[4].value, tokens[8].value) == ("a`b", "p")


@pytest.mark.parametrize("number", ["1", "0", "1_000", ".5", "1.5", "1e5", "1.5E-3", "0x1F", "0o17", str(2**63)])
def test_numbers(number: str) -> None:
    assert kinds(number) == [("number", number.replace("_", ""))]
    assert [value for _, value in kinds("1..2")] == ["1", "..", "2"]


@pytest.mark.parametrize(
    "text",
    ["12abc", "0x", "017", "1e", "1__0", "9" * 20, "1e999", "1.5abc", "9" * 50_000, "1_" * 20_000, "0x" + "f" * 40_000]
    + ["'abc", '"abc', "`abc", "/* abc", "/* a /* b */ */", "😀", "“a”", "#", "~", "?", "a–b", "⟨-", "$ x", "`" * 5_001]
    + [r"RETURN \u0031", r"'\u0027'", r"'\u005c'", r"'\user'", r"`a\u0060`", r"1 // x \u000a DELETE n"]
    + [f"RETURN 1 // x{end}MERGE (n)" for end in "\r\x0b\x0c\x1c\x85\u2028\u2029"]
    + [f"RETURN {odd}1" for odd in "\x00\x1b\x85\u200b\u2060\u180e\ufeff"]
    + ["MATCH (n:`a\0`) RETURN n", "MATCH (n:`a\ud800`) RETURN n"],
)
def test_what_servers_cut_in_different_ways_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        tokenise(text)
    assert not check(text).ok


@pytest.mark.parametrize("character", ["\x01", "\x85", "\u200b", "\u2028", "😀"])
def test_any_character_is_one_of_the_text_between_quotes_and_backticks(character: str) -> None:
    for odd in ("n:`a@`", "n {`a@`: 1}", "n {a: $`a@`}", "n {a: 'a@'}", 'n {a: "a@"}'):
        assert check(f"MATCH ({odd.replace('@', character)}) RETURN n").ok
        for escape in ("\\u0060", "\\u0027", "\\u0022", "\\u005c"):  # a server that translates them sees an end
            assert not check(f"MATCH ({odd.replace('@', character + escape)}) RETURN n").ok


@pytest.mark.parametrize("space", ["\x0b", "\xa0", "\u2028"])
def test_white_space_of_unicode_parts_words(space: str) -> None:
    assert check(f"MATCH{space}(n){space}RETURN{space}n // x\n{space}").ok
    for query in (f"MATCH (n) DELETE{space}n", f"RETURN 1 AS{space}LOAD{space}CSV", f"MATCH (n) // x\n{space}DELETE n"):
        assert not check(query).ok


@settings(max_examples=25)
@given(st.text("MATCHn()[]{}:;,|'\"`\\u0/*-<>=.$ 19_eé東😀\n\u2028", max_size=60))
def test_places_are_in_order_and_within_any_text(query: str) -> None:
    findings = check(query).findings
    assert all(0 <= f.start <= f.end <= len(query) for f in findings)
    with suppress(Unreadable):
        tokens = tokenise(query)
        assert all(0 <= t.start <= t.end <= len(query) for t in tokens)
        assert [t.start for t in tokens] == sorted(t.start for t in tokens)

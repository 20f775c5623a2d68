"""Tokens and their places; what servers cut in different ways is refused."""

from __future__ import annotations

import pytest

from graphret.cypher import check
from graphret.cypher.tokens import Unreadable, tokenise


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

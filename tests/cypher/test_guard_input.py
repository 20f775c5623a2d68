"""Any text is read or refused: characters that servers cut in different ways, nesting,
and sizes without a bound.
"""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.cypher import check, codes
from graphret.cypher.check import MOST_CHARACTERS
from graphret.schema import GraphSchema


@pytest.mark.parametrize(
    "text",
    [
        "12abc",
        "0x",
        "017",
        "1e",
        "1__0",
        "9" * 20,
        "1e999",
        "1.5abc",
        "9" * 50_000,
        "1_" * 20_000,
        "0x" + "f" * 40_000,
    ]
    + [
        "'abc",
        '"abc',
        "`abc",
        "/* abc",
        "/* a /* b */ */",
        "😀",
        "“a”",
        "#",
        "~",
        "?",
        "a–b",
        "⟨-",
        "$ x",
        "`" * 5_001,
    ]
    + [
        r"RETURN \u0031",
        r"'\u0027'",
        r"'\u005c'",
        r"'\user'",
        r"`a\u0060`",
        r"1 // x \u000a DELETE n",
    ]
    + [f"RETURN 1 // x{end}MERGE (n)" for end in "\r\x0b\x0c\x1c\x85\u2028\u2029"]
    + [f"RETURN {odd}1" for odd in "\x00\x1b\x85\u200b\u2060\u180e\ufeff"]
    + ["MATCH (n:`a\0`) RETURN n", "MATCH (n:`a\ud800`) RETURN n"],
)
def test_what_servers_cut_in_different_ways_is_refused(text: str) -> None:
    for query in (text, f"RETURN {text} AS x"):
        report = check(query)
        assert not report.ok
        assert report.tree is None


@pytest.mark.parametrize("character", ["\x01", "\x85", "\u200b", "\u2028", "😀"])
def test_any_character_is_one_of_the_text_between_quotes_and_backticks(
    character: str,
) -> None:
    for odd in ("n:`a@`", "n {`a@`: 1}", "n {a: $`a@`}", "n {a: 'a@'}", 'n {a: "a@"}'):
        assert check(f"MATCH ({odd.replace('@', character)}) RETURN n").ok
        for escape in (
            "\\u0060",
            "\\u0027",
            "\\u0022",
            "\\u005c",
        ):  # a server that translates them sees an end
            assert not check(
                f"MATCH ({odd.replace('@', character + escape)}) RETURN n"
            ).ok


@pytest.mark.parametrize("space", ["\x0b", "\xa0", "\u2028"])
def test_white_space_of_unicode_parts_words(space: str) -> None:
    assert check(f"MATCH{space}(n){space}RETURN{space}n // x\n{space}").ok
    for query in (
        f"MATCH (n) DELETE{space}n",
        f"RETURN 1 AS{space}LOAD{space}CSV",
        f"MATCH (n) // x\n{space}DELETE n",
    ):
        assert not check(query).ok


WORDS = st.sampled_from(
    "MATCH RETURN WITH WHERE UNWIND CALL UNION LIMIT ORDER BY AS AND NOT IN ( ) [ ] { }"
    " - -> <- : , . | .. * = 'a' 1 n r m count size exists EXISTS COUNT CASE WHEN THEN"
    " END $p n.x (n) -[r]-> (m) :A :R shortestPath reduce any SHORTEST \\u0027 ` ' \""
    " // /* */ ; + ^ ! & % IS NULL :: STRING [x IN xs | x] {x: 1}".split(" ")
)


@settings(max_examples=40)
@given(st.lists(WORDS, max_size=25), st.sampled_from(["neo4j", "ladybug"]))
def test_any_words_are_checked_without_failing(words: list[str], dialect: str) -> None:
    query = " ".join(words)
    report = check(query, dialect=dialect)
    assert all(0 <= f.start <= f.end <= len(query) for f in report.findings)
    assert report.tree is not None or not report.ok


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        *(
            ("[x IN ", " WHERE x:A|B]"),
            ("[(a)-->(b) WHERE ", " | b]"),
            ("(a {x: ", "})-[1]"),
            ("a[", ":1]"),
        ),
        *(
            ("CASE WHEN ", " THEN 1 END"),
            ("EXISTS { (a WHERE ", ") }"),
            ("list_transform(x, y -> ", ")"),
        ),
    ],
)
def test_nesting_does_not_multiply_the_work(opening: str, closing: str) -> None:
    """Each level read twice would be 2**60 readings: this test would not end."""
    for dialect, closings in (
        ("ladybug", closing * 60),
        ("neo4j", (closing * 60)[:-3]),
    ):
        query = f"MATCH (a) RETURN {opening * 60}1{closings} AS z"
        assert check(query, dialect=dialect).query == query


@pytest.mark.parametrize(
    ("query", "opening", "closing"),
    [
        *(("RETURN @1@ AS x", "(", ")"), ("RETURN @1@ AS x", "{a: [", "]}")),
        ("MATCH (n) WHERE @true@ RETURN n LIMIT 1", "EXISTS { MATCH (n) WHERE ", " }"),
        ("MATCH (n:L1) WHERE @n.name = 'x'@ RETURN n LIMIT 1", "NOT (true AND ", ")"),
    ],
)
def test_tens_of_levels_are_read_and_hundreds_an_error(
    query: str, opening: str, closing: str
) -> None:
    before, value, after = query.split("@")
    assert check(f"{before}{opening * 40}{value}{closing * 40}{after}").errors == []
    (finding,) = check(f"{before}{opening * 900}{value}{closing * 900}{after}").errors
    assert (finding.kind, finding.message) == (
        codes.SYNTAX,
        "Nested too deeply to be read",
    )


def test_a_query_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = GraphSchema(
        {f"L{i}": 1 for i in range(300)},
        {(f"L{i}", "R", f"L{i * 7 % 300}"): 1 for i in range(300)},
    )
    monkeypatch.setattr(sys.modules["graphret.cypher.check"], "MOST_RELATIONSHIPS", 20)
    for fine in (
        f"RETURN '{'x' * (MOST_CHARACTERS - 9)}'",
        f"MATCH {'-->'.join(['()'] * 21)} RETURN 1",
    ):
        assert check(fine, schema).ok
    for query in (
        f"RETURN '{'x' * MOST_CHARACTERS}'",
        f"MATCH {'-->'.join(['()'] * 22)} RETURN 1",
        f"MATCH {', '.join(['()--()'] * 21)} RETURN 1",
    ):
        assert [finding.kind for finding in check(query, schema).errors] == [
            codes.TOO_LONG
        ]

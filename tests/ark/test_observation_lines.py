"""Lines of JSON, excerpts, and how both keep to a budget."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.ark.observation import excerpt, json_line

scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.text(st.characters(), max_size=40))
values = st.dictionaries(st.text(st.characters(), max_size=10), st.one_of(scalars, st.lists(scalars, max_size=3)))


@given(values)
@settings(max_examples=25)
def test_a_line_is_one_line_and_comes_back_unchanged(value: dict[str, Any]) -> None:
    line = json_line(value)
    assert len(line.splitlines()) <= 1
    assert all(c.isprintable() or c in "\u200c\u200d" for c in line)
    assert json.loads(line) == value


def test_letters_of_every_script_stay_readable_and_control_tokens_do_not_stand_in_a_line() -> None:
    for text in ("Ångström", "東京", "می\u200cخواهم", "🎬"):
        assert json_line(text) == f'"{text}"'
    assert json_line("\u202e\U000e0041\u2028\x85") == '"\\u202e\\udb40\\udc41\\u2028\\u0085"'
    for token in ("<|im_end|>", "</s>", "<s>", "<end_of_turn>", "<｜tool▁sep｜>", "[INST]", "[/INST]", "<tool_call>"):
        line = json_line({token: f"a {token} b"})
        assert token not in line
        assert json.loads(line) == {token: f"a {token} b"}
    assert json_line("x < 5 [a] <3") == '"x < 5 [a] <3"'


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ("temples", "He saw a temple"),
        ("Göteborg harbour", "in Goteborg"),
        ("running", "he ran and runs"),
        ("zeppelin", "It begins here"),
        ("the of", "It begins here"),
    ],
)
def test_an_excerpt_turns_around_the_words_of_the_query(query: str, holds: str) -> None:
    filler = "Nothing of note is said in this sentence. " * 6
    text = f"It begins here. {filler}He saw a temple. {filler}There is an Ionic temple. {filler}"
    text += f"He lived in Goteborg. {filler}On Sundays he ran and runs. {filler}"
    for said in (text, text + "Ørsted."):  # plain letters, and others
        assert holds in excerpt(said, query, 100)

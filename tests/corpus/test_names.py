"""Normalised names, words with their places, and names found in texts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.gazetteer import Gazetteer
from graphret.text import normalize_name, tokenize, words

WORDS = st.lists(st.sampled_from(["a", "b", "c", "É", "d"]), max_size=9)


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("  Beyoncé Knowles-Carter ", "beyonce knowles carter"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Brøndby IF", "brondby if"),
        ("Łódź", "lodz"),
        ("O'Brien & Co.", "o brien co"),
        ("İstanbul", "istanbul"),
        ("Ёлка", "елка"),
        ("ガス", "ガス"),
        ("Ⅳ ﬁne ½", "iv fine 1 2"),
        ("soft\u00adhyphen", "softhyphen"),
        ("—", ""),
        ("❤\ufe0f", ""),
    ],
)
def test_normalize_name(name: str, normal: str) -> None:
    assert normalize_name(name) == normalize_name(normal)
    assert not normal.isascii() or normalize_name(name) == normal
    assert normalize_name("カス") != normalize_name("ガス")


@settings(max_examples=50)
@given(st.text(max_size=60))
def test_tokens_are_the_normalised_text_cut_up_in_order(text: str) -> None:
    once, tokens = normalize_name(text), tokenize(text)
    assert normalize_name(once) == once == " ".join(once.split())
    assert "".join(word for word, _, _ in tokens) == once.replace(" ", "")
    assert words(text) == [word for word, _, _ in tokens]
    places = [(start, end) for _, start, end in tokens]
    assert places == sorted(places)
    assert all(word and " " not in word and 0 <= start < end <= len(text) for word, start, end in tokens)


def test_gazetteer_finds_names_in_the_text_as_given() -> None:
    names = ["New York", "New York City", "São Paulo", "York", "!!!", "new york"]
    text = "From NEW YORK (city) to Sao Paulo, not Yorkshire; York, New York."
    found = Gazetteer(names).find(text)
    assert [(names[m.name_index], text[m.start : m.end]) for m in found] == [
        ("New York City", "NEW YORK (city"),
        ("São Paulo", "Sao Paulo"),
        ("York", "York"),
        ("New York", "New York"),
    ]
    assert Gazetteer(["東京"]).find("私は東京 tower")[0][1:] == (2, 4)
    assert Gazetteer([]).find("anything") == []


@settings(max_examples=50)
@given(st.lists(WORDS.filter(bool), max_size=6), WORDS)
def test_gazetteer_against_a_plain_search(names: list[list[str]], words: list[str]) -> None:
    known = {tuple(name) for name in names}
    expected = []
    i = 0
    while i < len(words):
        length = next((n for n in range(len(words) - i, 0, -1) if tuple(words[i : i + n]) in known), 0)
        if length:
            expected.append((2 * i, 2 * (i + length) - 1))
        i += length or 1
    found = Gazetteer([" ".join(name) for name in names]).find(" ".join(words))
    assert [(m.start, m.end) for m in found] == expected

"""Normalised names, and words with their places."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.text import normalize_name, tokenize, words


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
    assert words("東京 tower") == ["東", "京", "tower"]


@settings(max_examples=25)
@given(st.text(max_size=60))
def test_tokens_are_the_normalised_text_cut_up_in_order(text: str) -> None:
    once, tokens = normalize_name(text), tokenize(text)
    assert normalize_name(once) == once == " ".join(once.split())
    assert "".join(word for word, _, _ in tokens) == once.replace(" ", "")
    assert words(text) == [word for word, _, _ in tokens]
    places = [(start, end) for _, start, end in tokens]
    assert places == sorted(places)
    assert all(word and " " not in word and 0 <= start < end <= len(text) for word, start, end in tokens)

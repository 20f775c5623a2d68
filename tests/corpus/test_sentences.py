"""Where sentences end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphret.corpus.sentences import split_long, split_sentences

TEXTS = st.text(
    alphabet=st.one_of(st.characters(codec="utf-8"), st.sampled_from(list(" \n.!?。Aab\u0301\u200d👨👩🇩🏽ا؟क्षि")))
)


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. J. K. Rowling met Mr. Smith at 5 p.m. on Monday.", "They left."],
        ["It ended .", "He left ."],
        ["It reached No . 1 on the U.S . Billboard charts .", "Ten more followed ."],
        ["He lived in the U.S.", "The house stood.", "Etc."],
        ["She said “Stop!”", "He did not.", "(Nobody did.)", "Really?"],
        ["Acme Inc. is based in St. Louis, Mo.", "It grew."],
        ["Version 2.5 is out.", "See e.g. Fig. 3 for it."],
        ["It cost 3 million in Jan. 2019.", "Then… nothing."],
        ["今日は雨です。", "明日は「晴れ。」", "本当？"],
        ["كيف حالك؟", "أنا بخير."],
        ["राम घर गया।", "सीता आई।"],
        ["# Heading", "A paragraph\nthat goes on.", "- one", "- two"],
        ["He said no.", "It was over."],
        ["What?!", "Yes!"],
    ],
)
def test_sentences(sentences: list[str]) -> None:
    sep = "" if "。" in sentences[0] else "\n" if sentences[0].startswith("#") else " "
    text = sep.join(sentences)
    assert [text[start:end] for start, end in split_sentences(text)] == sentences


def test_a_paragraph_ends_a_sentence() -> None:
    text = "a title\n\nand text"
    assert [text[start:end] for start, end in split_sentences(text)] == ["a title", "and text"]


@given(TEXTS)
def test_sentences_cover_the_text(text: str) -> None:
    assert_covers(text, split_sentences(text))


@given(TEXTS, st.integers(1, 12))
def test_long_pieces_fit(text: str, max_chars: int) -> None:
    pieces = split_long(text, (0, len(text)), max_chars)
    assert_covers(text, pieces)
    assert all(end - start <= max_chars for start, end in pieces)


def test_long_pieces_are_cut_at_spaces_where_there_are() -> None:
    text = "one two three fourfivesix"
    assert [text[a:b] for a, b in split_long(text, (0, len(text)), 9)] == ["one two", "three", "fourfives", "ix"]


def test_splitting_takes_time_linear_in_the_text() -> None:
    assert len(split_sentences("It was so. " * 50_000)) == 50_000
    assert split_sentences(" " * 200_000 + "\n " * 100_000) == []


def assert_covers(text: str, spans: list[tuple[int, int]]) -> None:
    last = 0
    for start, end in spans:
        assert last <= start < end
        assert not text[last:start].strip()
        assert text[start:end] == text[start:end].strip()
        last = end
    assert not text[last:].strip()

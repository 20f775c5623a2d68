"""Where sentences end, and chunks that follow the paper's rule, keep to their limits
and lose nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphret.corpus import SemanticChunker, SentenceChunker
from graphret.corpus.chunkers import split_sentences
from graphret.errors import InvalidInput

TEXTS = st.lists(
    st.sampled_from(
        ["a", "bé. A", " \n", "\n\n", "😀\u0301 ", "ش؟ ", "中。", "e.g. x"]
    ),
    max_size=30,
).map("".join)


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


def test_long_pieces_are_cut_at_spaces_where_there_are() -> None:
    text = "one two three fourfivesix"
    (spans,) = SentenceChunker(min_chars=0, max_chars=9).spans([text])
    assert [text[start:end] for start, end in spans] == [
        "one two",
        "three",
        "fourfives",
        "ix",
    ]


class HashEncoder:
    """Unit rows that depend on nothing but the text."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def encode_documents(self, texts: list[str]) -> NDArray[np.float32]:
        self.calls.append(texts)
        rows = np.array(
            [
                np.random.default_rng(list(text.encode())).normal(size=4)
                for text in texts
            ],
            dtype=np.float32,
        )
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_the_paper(text: str, encoder: Any, percentile: float) -> list[str]:
    """Section 2.1 A 1, word for word."""
    s = [text[start:end] for start, end in split_sentences(text)]
    n = len(s)
    w = [" ".join(s[max(0, i - 1) : min(n, i + 2)]) for i in range(n)]
    h = encoder.encode_documents(w)
    sims = [
        float(h[i] @ h[i + 1] / (np.linalg.norm(h[i]) * np.linalg.norm(h[i + 1])))
        for i in range(n - 1)
    ]
    chunks: list[list[str]] = [[]]
    for i in range(n):
        chunks[-1].append(s[i])
        if i < n - 1 and sims[i] <= np.percentile(sims, percentile):
            chunks.append([])
    return [" ".join(chunk) for chunk in chunks]


@pytest.mark.parametrize("n", [2, 3, 11, 30])
@pytest.mark.parametrize("percentile", [0, 20, 55])
def test_the_percentile_rule_is_that_of_the_paper(n: int, percentile: float) -> None:
    text = " ".join(f"Sentence number {i} of {n}." for i in range(n))
    chunker = SemanticChunker(
        HashEncoder(), percentile=percentile, min_chars=0, max_chars=10_000
    )
    (spans,) = chunker.spans([text])
    assert [text[start:end] for start, end in spans] == by_the_paper(
        text, HashEncoder(), percentile
    )


def test_windows_of_all_documents_go_to_the_encoder_together() -> None:
    encoder = HashEncoder()
    texts = ["One here. Two here. Three here.", "Alone.", "", "Four here. Five here."]
    spans = SemanticChunker(encoder, min_chars=0).spans(texts)
    assert encoder.calls == [
        [
            "One here. Two here.",
            "One here. Two here. Three here.",
            "Two here. Three here.",
        ]
        + ["Four here. Five here."] * 2
    ]
    assert spans[1:3] == [[(0, 6)], []]
    assert len(spans[3]) == 2


@settings(max_examples=25)
@given(st.lists(TEXTS, max_size=3), st.integers(0, 40), st.integers(0, 60))
def test_chunks_are_slices_that_cover_the_source_within_limits(
    texts: list[str], min_chars: int, more: int
) -> None:
    max_chars = max(8, min_chars + more)
    for chunker in (
        SemanticChunker(HashEncoder(), min_chars=min_chars, max_chars=max_chars),
        SentenceChunker(min_chars, max_chars),
    ):
        for text, chunks in zip(texts, chunker.spans(texts), strict=True):
            last = 0
            for start, end in [*chunks, (len(text), len(text))]:
                assert not text[last:start].strip()
                assert end - start <= max_chars
                last = end
            for (first, _), (start, end), (_, final) in zip(
                chunks, chunks[1:], chunks[2:], strict=False
            ):
                assert (
                    end - start >= min_chars
                    or max(end - first, final - start) > max_chars
                )


def test_sentences_are_packed_up_to_the_limit() -> None:
    text = "Aaaa aaaa. Bbbb bbbb. Cccc cccc.\n\nDddd dddd. Eeee."
    (spans,) = SentenceChunker(min_chars=15, max_chars=40).spans([text])
    assert [text[a:b] for a, b in spans] == [
        "Aaaa aaaa. Bbbb bbbb. Cccc cccc.",
        "Dddd dddd. Eeee.",
    ]


def test_answers_are_checked() -> None:
    class Wrong:
        def encode_documents(self, texts: Sequence[str]) -> Any:
            return np.zeros((1, 2))

    with pytest.raises(InvalidInput, match="sentence embedding"):
        SemanticChunker(Wrong()).spans(["One here. Two here."])

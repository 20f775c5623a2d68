"""Chunks follow the paper's rule, keep to their limits and lose nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphret.corpus import SemanticChunker, SentenceChunker, split_sentences
from graphret.errors import InvalidInput

SENTENCE = st.text(alphabet=st.sampled_from(list("abé😀\u0301 ش中")), min_size=1, max_size=30)
TEXTS = st.lists(SENTENCE, max_size=12).map(lambda parts: ". A".join(parts))


class HashEncoder:
    """Unit rows that depend on nothing but the text."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def encode_documents(self, texts: list[str]) -> NDArray[np.float32]:
        self.calls.append(texts)
        rows = np.array([np.random.default_rng(list(text.encode())).normal(size=4) for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_the_paper(text: str, encoder: Any, percentile: float) -> list[str]:
    """Section 2.1 A 1, word for word."""
    s = [text[start:end] for start, end in split_sentences(text)]
    n = len(s)
    w = [" ".join(s[max(0, i - 1) : min(n, i + 2)]) for i in range(n)]
    h = encoder.encode_documents(w)
    sims = [float(h[i] @ h[i + 1] / (np.linalg.norm(h[i]) * np.linalg.norm(h[i + 1]))) for i in range(n - 1)]
    chunks: list[list[str]] = [[]]
    for i in range(n):
        chunks[-1].append(s[i])
        if i < n - 1 and sims[i] <= np.percentile(sims, percentile):
            chunks.append([])
    return [" ".join(chunk) for chunk in chunks]


@pytest.mark.parametrize("n", [2, 3, 4, 7, 11, 30])
@pytest.mark.parametrize("percentile", [0, 20, 55])
def test_the_percentile_rule_is_that_of_the_paper(n: int, percentile: float) -> None:
    text = " ".join(f"Sentence number {i} of {n}." for i in range(n))
    chunker = SemanticChunker(HashEncoder(), percentile=percentile, min_chars=0, max_chars=10_000)
    (spans,) = chunker.spans([text])
    assert [text[start:end] for start, end in spans] == by_the_paper(text, HashEncoder(), percentile)


def test_known_vectors() -> None:
    class Known:
        def encode_documents(self, texts: list[str]) -> NDArray[np.float32]:
            angles = np.cumsum([0, 0.1, 0.2, 1.5, 0.1, 0.3])[: len(texts)]  # the third step is by far the largest
            return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    text = "One. Two. Three. Four. Five. Six."
    (spans,) = SemanticChunker(Known(), min_chars=0).spans([text])
    assert [text[a:b] for a, b in spans] == ["One. Two. Three.", "Four. Five. Six."]


def test_windows_of_all_documents_go_to_the_encoder_together() -> None:
    encoder = HashEncoder()
    texts = ["One here. Two here. Three here.", "Alone.", "", "Four here. Five here."]
    spans = SemanticChunker(encoder, min_chars=0).spans(texts)
    assert encoder.calls == [
        ["One here. Two here.", "One here. Two here. Three here.", "Two here. Three here."]
        + ["Four here. Five here."] * 2
    ]
    assert spans[1:3] == [[(0, 6)], []]
    assert len(spans[3]) == 2


@given(st.lists(TEXTS, max_size=3), st.integers(0, 40), st.integers(0, 60))
def test_chunks_are_slices_that_cover_the_source_within_limits(texts: list[str], min_chars: int, more: int) -> None:
    max_chars = max(8, min_chars + more)
    for chunker in (
        SemanticChunker(HashEncoder(), min_chars=min_chars, max_chars=max_chars),
        SentenceChunker(min_chars, max_chars),
    ):
        spans = chunker.spans(texts)
        assert spans == chunker.spans(texts)
        for text, chunks in zip(texts, spans, strict=True):
            assert_covers(text, chunks)
            for start, end in chunks:
                assert end - start <= max_chars or "\u0301" in text[start:end]


@given(TEXTS, st.integers(1, 40))
def test_a_short_chunk_has_no_neighbour_that_it_fits_to(text: str, min_chars: int) -> None:
    max_chars = 3 * min_chars + 8
    (chunks,) = SemanticChunker(HashEncoder(), min_chars=min_chars, max_chars=max_chars).spans([text])
    for left, right in pairwise(chunks):
        if min(left[1] - left[0], right[1] - right[0]) < min_chars:
            assert right[1] - left[0] > max_chars


def test_a_short_chunk_joins_the_neighbour_it_is_more_like() -> None:
    class Known:
        def encode_documents(self, texts: list[str]) -> NDArray[np.float32]:
            angles = np.cumsum([0, 1.2, 1.0])
            return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    text = "A long first sentence. Short. A long third sentence."
    (spans,) = SemanticChunker(Known(), percentile=100, min_chars=10).spans([text])
    assert [text[a:b] for a, b in spans] == ["A long first sentence.", "Short. A long third sentence."]


def test_sentences_are_packed_up_to_the_limit() -> None:
    text = "Aaaa aaaa. Bbbb bbbb. Cccc cccc.\n\nDddd dddd. Eeee."
    (spans,) = SentenceChunker(min_chars=15, max_chars=40).spans([text])
    assert [text[a:b] for a, b in spans] == ["Aaaa aaaa. Bbbb bbbb. Cccc cccc.", "Dddd dddd. Eeee."]


@pytest.mark.parametrize("rows", [np.zeros((1, 2)), np.zeros(2), np.full((2, 2), np.nan)])
def test_an_encoder_that_answers_wrongly(rows: NDArray[np.float64]) -> None:
    class Wrong:
        def encode_documents(self, texts: Sequence[str]) -> Any:
            return rows

    with pytest.raises(InvalidInput, match="sentence embedding"):
        SemanticChunker(Wrong()).spans(["One here. Two here."])


@pytest.mark.parametrize(
    "settings", [{"percentile": 101}, {"window": 2}, {"window": 0}, {"min_chars": 9, "max_chars": 8}, {"min_chars": -1}]
)
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        SemanticChunker(HashEncoder(), **settings)


def assert_covers(text: str, spans: Sequence[tuple[int, int]]) -> None:
    last = 0
    for start, end in spans:
        assert last <= start < end
        assert not text[last:start].strip()
        last = end
    assert not text[last:].strip()

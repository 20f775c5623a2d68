"""How much words and meaning count, fitted to what a corpus's own links say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphret import Document, SageGraph, SageSettings
from graphret.search.encoder import CallableEncoder

N = 780
VECTORS = np.random.default_rng(0).normal(size=(N, 64))


def corpus(shift: int) -> list[Document]:
    """Documents that name the next one in a sentence with a word of another, `shift` further on."""
    said = "Word{0} begins. Number{1} of the list brought Person{2} and what is called word{3} along."
    texts = [said.format(i, i, (i + 1) % N, (i + shift) % N) for i in range(N)]
    return [Document(text, id=f"p{i}", title=f"Person{i}") for i, text in enumerate(texts)]


def encoder(shift: int) -> CallableEncoder:
    """An encoder to which a masked sentence means the document that is `shift` further on."""

    def number(text: str) -> int:
        return int(re.search(r"Number(\d+)", text)[1])  # type: ignore[index]

    def queries(texts: list[str]) -> Any:
        assert not any("Person" in text for text in texts)
        return VECTORS[[(number(text) + shift) % N for text in texts]]

    return CallableEncoder(lambda texts: VECTORS[[number(text) for text in texts]], name="numbers", query_fn=queries)


@pytest.mark.parametrize(("words", "meaning", "shares"), [(1, 9, (0.6, 0.9)), (9, 1, (0.4, 0.4)), (1, 1, (0.6, 0.6))])
def test_what_finds_the_named_counts_more(
    words: int, meaning: int, shares: tuple[float, float], tmp_path: Path
) -> None:
    graph = SageGraph.build(corpus(words), encoder=encoder(meaning), chunker=None, metadata=None)
    assert shares[0] <= graph.index.alpha <= shares[1]
    assert graph.report().alpha == graph.settings.alpha == graph.index.alpha
    graph.save(tmp_path)
    assert SageGraph.load(tmp_path, encoder=encoder(meaning)).index.alpha == graph.index.alpha


def test_a_share_that_is_given_stays_and_a_small_corpus_has_the_papers() -> None:
    given = SageSettings(alpha=0.7)
    graph = SageGraph.build(corpus(9), encoder=encoder(1), chunker=None, metadata=None, settings=given)
    assert graph.index.alpha == 0.7
    assert SageGraph.build(corpus(9)[:300], encoder=encoder(1), chunker=None, metadata=None).index.alpha == 0.6

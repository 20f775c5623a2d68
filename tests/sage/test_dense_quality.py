"""What embeddings are worth in a corpus against words, fitted with no questions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphret import Document, Node, SageGraph, SageSettings
from graphret.search.encoder import CallableEncoder

N = 240
RANDOM = np.random.default_rng(0)
VECTORS = RANDOM.normal(size=(N, 64))


def corpus() -> list[Document]:
    """Return passages whose middle sentence shares half of its words with the rest."""
    said = (
        "Topic{0} opens with alpha{0} and beta{0}. Then number {0} tells of alpha{0}"
        " and beta{0} as well as of delta{0} in passing there. Topic{0} closes with"
        " gamma{0}."
    )
    return [Document(said.format(i), id=f"p{i}", title=f"Page {i}") for i in range(N)]


def encoder(knows: bool) -> CallableEncoder:
    """Return an encoder that knows which passage a text is from, or one that
    guesses.
    """

    def embed(texts: list[str]) -> Any:
        numbers = [
            int(re.search(r"(?:alpha|Topic|delta|beta)(\d+)", one)[1]) for one in texts
        ]  # type: ignore[index]
        return (
            VECTORS[numbers]
            if knows
            else np.ones((len(texts), 64)) + VECTORS[: len(texts)] * 1e-3
        )

    return CallableEncoder(embed, name=f"knows-{knows}", query_fn=embed)


@pytest.mark.parametrize(
    ("knows", "lowest", "highest"), [(True, 1.1, 1.1), (False, 0.1, 0.6)]
)
def test_an_encoder_counts_as_far_as_it_finds_what_was_cut_out(
    knows: bool, lowest: float, highest: float, tmp_path: Path
) -> None:
    graph = SageGraph.build(
        corpus(), encoder=encoder(knows), chunker=None, metadata=None
    )
    found = graph.index.dense_quality
    assert lowest <= found <= highest
    assert graph.report().dense_quality == pytest.approx(found, abs=1e-4)
    graph.save(tmp_path)
    assert SageGraph.load(tmp_path, encoder=encoder(knows)).index.dense_quality == found


def test_words_and_meaning_are_weighed_by_question_unless_a_share_is_given() -> None:
    graph = SageGraph.build(
        corpus(), encoder=encoder(True), chunker=None, metadata=None
    )
    index = graph.index
    assert index.alpha is None
    shares = {
        question: index.share_of_words(question)
        for question in ("alpha7 beta7 delta7", "what of alpha7")
    }
    assert all(0 < share < 1 for share in shares.values())
    assert len(set(shares.values())) == 2
    given = SageGraph.build(
        corpus(),
        encoder=encoder(True),
        chunker=None,
        metadata=None,
        settings=SageSettings(alpha=0.7),
    )
    assert given.index.share_of_words("alpha7 beta7 delta7") == 0.7


@pytest.mark.parametrize("n", [5, N])
def test_what_is_too_small_or_has_embeddings_already_is_not_fitted_to(n: int) -> None:
    listed = [
        Node(document.id, ("Document",), document.title, document.text)
        for document in corpus()[:n]
    ]
    vectors = None if n < N else VECTORS
    assert (
        SageGraph.from_nodes(
            listed, encoder=encoder(False), vectors=vectors
        ).index.dense_quality
        == 1.0
    )

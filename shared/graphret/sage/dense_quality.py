"""What embeddings are worth in a corpus, compared with words.

This is fitted while a graph is built, with no questions.

A sentence, or a row of a table, that is cut out of its passage is a question that one
passage answers: the rest of that passage. How well embeddings find it, against words,
says how much meaning should count here: an encoder may not know a corpus's language.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.corpus.chunkers import split_sentences
from graphret.nodes import NodeTable
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.hybrid import HybridIndex
from graphret.text import tokenize
from graphret.types import Node

# How many questions are asked: one for so many passages, at least and at most so many,
# so that embedding them costs little beside embedding the passages. A corpus that has
# fewer than the least that can be cut is not fitted to.
_ONE_IN, _LEAST, _MOST, _ENOUGH = 10, 40, 100, 12
# A question has so many words.
_MIN_WORDS, _MAX_WORDS = 8, 14
# So many questions speak for words and meaning being worth the same.
_PRIOR = 3
# A sentence shares more words with its passage than a question does, so that meaning is
# worth this much more than it shows.
_MEANING_UNSEEN, _LEAST_QUALITY, _BEST_QUALITY = 1.4, 0.1, 1.1


@dataclass(frozen=True)
class _ClozeQuestion:
    """A question that was cut out of a node, and the node without it."""

    question: str
    position: int
    rest: Node


def fitted_dense_quality(index: HybridIndex) -> float:
    """Return what embeddings are worth against words, 0.1 … 1.1.

    It is the ratio of the mean reciprocal ranks at which embeddings and words find the
    rest of passages, and 1 where the corpus is too small, or there is nothing to embed
    questions with.
    """
    dense = index.dense
    if dense is None or dense.encoder is None:
        return 1.0
    n_asked = min(max(len(index.table) // _ONE_IN, _LEAST), _MOST)
    asked = list(islice(_cut_out(index.table), n_asked))
    if len(asked) < _ENOUGH:
        return 1.0
    rest = NodeTable.of(one.rest for one in asked)
    lexical = index.lexical.changed(Change.of(index.table, rest))

    questions = dense.encoder.encode_queries([one.question for one in asked])
    by_words = by_meaning = float(_PRIOR)
    for one, question in zip(asked, questions, strict=True):
        words = lexical.scores(one.question)
        by_words += _reciprocal_rank(words, float(words[one.position]), one.position)
        cosines = dense.vectors @ question
        own = _cosine_of_rest(dense, lexical, one, question)
        by_meaning += _reciprocal_rank(cosines, own, one.position)
    quality = _MEANING_UNSEEN * by_meaning / by_words
    return float(np.clip(quality, _LEAST_QUALITY, _BEST_QUALITY))


def _cut_out(nodes: NodeTable) -> Iterator[_ClozeQuestion]:
    """Yield questions, in an order that hangs on the texts alone."""
    keys = [crc32(text.encode("utf-8", "replace")) for text in nodes.texts]
    for position in np.argsort(keys, kind="stable").tolist():
        [node] = nodes.at([position])
        cut = _cut_row(node) if "table_rows" in node.properties else _cut_sentence(node)
        if cut is None:
            continue
        said, rest = cut
        words = tokenize(said)
        if len(words) < _MIN_WORDS:
            continue
        length = _MIN_WORDS + keys[position] % (_MAX_WORDS - _MIN_WORDS + 1)
        first = max(0, len(words) - length) // 2
        last = min(first + length, len(words)) - 1
        yield _ClozeQuestion(said[words[first][1] : words[last][2]], position, rest)


def _cut_sentence(node: Node) -> tuple[str, Node] | None:
    """Return a sentence of a text, not its first, and the node without it."""
    sentences = list(split_sentences(node.text))
    if len(sentences) < 3:
        return None
    start, end = sentences[len(sentences) // 2]
    rest = f"{node.text[:start]} {node.text[end:]}"
    return node.text[start:end], replace(node, text=rest)


def _cut_row(node: Node) -> tuple[str, Node] | None:
    """Return the middle row of a table, and the node without it."""
    rows = node.properties["table_rows"]
    if len(rows) < 3:
        return None
    middle = len(rows) // 2
    others = [row for at, row in enumerate(rows) if at != middle]
    rest = replace(node, properties={**node.properties, "table_rows": others})
    return " ".join(map(str, rows[middle])), rest


def _cosine_of_rest(
    dense: DenseIndex,
    lexical: BM25Index,
    one: _ClozeQuestion,
    question: NDArray[np.float32],
) -> float:
    """Return the cosine of a question and the passage that it was cut out of.

    A text's embedding is nearly the mean of those of its parts, by their lengths, so
    that the rest of a passage need not be embedded.
    """
    part = len(one.question)
    rest = len(lexical.text.text(one.rest))
    vector = dense.vectors[one.position] * (part + rest) - question * part
    return float(vector @ question / max(float(np.linalg.norm(vector)), 1e-9))


def _reciprocal_rank(scores: NDArray[np.float32], own: float, position: int) -> float:
    """Return one over the rank of a node that scores `own` among the others."""
    above = int(np.count_nonzero(scores > own)) - int(scores[position] > own)
    return 1.0 / (1 + above)

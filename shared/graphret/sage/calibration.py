"""How far a corpus lets words, meaning and links be trusted: fitted while a graph is built, with no questions.

A sentence, or a row of a table, that is cut out of its passage is a question that one
passage answers: the rest of that passage. How well words and embeddings find it says
how much each is worth in this corpus. How much more of it linked passages say than the
best single one is what a link adds by chance: a question needs links where they add
more than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from graphret.corpus.chunkers import split_sentences
from graphret.expansion import Coverage, Frontier
from graphret.nodes import NodeTable
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.hybrid import Calibration, HybridIndex
from graphret.stores.memory import Graph
from graphret.text import tokenize
from graphret.types import Node

# How many questions are asked: one for so many passages, at least and at most so many,
# so that a build is not much slower. A corpus that has not so many is not fitted to.
_LINKED_ONE_IN, _LINKED_LEAST, _LINKED_MOST = 40, 12, 40
_DENSE_ONE_IN, _DENSE_LEAST, _DENSE_MOST = 10, 40, 100
# A question has so many words.
_MIN_WORDS, _MAX_WORDS = 8, 14
# So many questions speak for what is assumed where nothing is known: that words and
# meaning are worth the same, and that a link adds nothing by chance.
_PRIOR = 3
# A sentence shares more words with its passage than a question does, so that meaning is
# worth this much more than it shows.
_MEANING_UNSEEN, _LEAST_QUALITY, _BEST_QUALITY = 1.4, 0.1, 1.1


@dataclass(frozen=True)
class _CutOut:
    """A question that was cut out of a node, and the node without it."""

    question: str
    position: int
    rest: Node


def calibrated(index: HybridIndex, graph: Graph, *, embeds: bool = True) -> Calibration:
    """Return what a corpus shows about words, meaning and links.

    Parameters
    ----------
    index
        The index of the graph's nodes. Without an encoder that can embed questions
        nothing is said of meaning.
    graph
        The nodes and all their edges.
    embeds
        Whether the encoder may embed questions. Where the passages' embeddings were
        given it should not: its user expects that nothing is embedded again.
    """
    n = len(graph.nodes)
    n_linked = min(max(n // _LINKED_ONE_IN, _LINKED_LEAST), _LINKED_MOST)
    n_dense = 0
    if embeds and index.dense is not None and index.dense.encoder is not None:
        n_dense = min(max(n // _DENSE_ONE_IN, _DENSE_LEAST), _DENSE_MOST)
    asked = list(islice(_cut_out(graph.nodes), max(n_linked, n_dense)))
    if len(asked) < _LINKED_LEAST:
        return Calibration()
    rest = NodeTable.of(one.rest for one in asked)
    table, _ = index.table.merged(rest, set())
    lexical = index.lexical.changed(table, rest.ids.tolist())
    return Calibration(
        dense_quality=_dense_quality(index, lexical, asked[:n_dense]),
        linked_gain=_linked_gain(lexical, graph, asked[:n_linked]),
    )


def _cut_out(nodes: NodeTable) -> Iterator[_CutOut]:
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
        yield _CutOut(said[words[first][1] : words[last][2]], position, rest)


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


def _linked_gain(lexical: BM25Index, graph: Graph, asked: list[_CutOut]) -> float:
    """Return the median gain of links in questions that one passage answers."""
    index, coverage = HybridIndex(lexical), Coverage()
    around = Graph(lexical.table, graph.edges)
    gains = []
    for one in asked:
        seeds = index.top(one.question, coverage.max_seeds)
        gains.append(coverage.gain(Frontier(one.question, around, index, seeds)))
    return float(np.median(gains)) * len(asked) / (len(asked) + _PRIOR)


def _dense_quality(index: HybridIndex, lexical: BM25Index, asked: list[_CutOut]) -> float:
    """Return the mean reciprocal rank by meaning as a multiple of that by words."""
    dense = index.dense
    if dense is None or dense.encoder is None or not asked:
        return 1.0
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


def _cosine_of_rest(dense: DenseIndex, lexical: BM25Index, one: _CutOut, question: NDArray[np.float32]) -> float:
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

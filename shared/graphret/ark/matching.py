"""What a search finds, without what it only fills up with; and an index made ready to be searched."""

from __future__ import annotations

from copy import copy

import numpy as np

from graphret.search.bm25 import BM25Index
from graphret.search.hybrid import HybridIndex
from graphret.search.index import ArrayIndex, TextIndex
from graphret.search.multi_field import FieldIndex


def matching(index: TextIndex, query: str, k: int) -> list[str]:
    """Return the ids of at most `k` nodes that match a query, best first.

    An index returns `k` nodes where it has them. Those that hold no word of the query are left out where words are all
    that counts, and elsewhere those that score 0 where others score more.
    """
    state = copy(index) if isinstance(index, ArrayIndex) else index  # one state for both questions
    found = state.search(query, k)
    scores, lexical = np.asarray(found.scores), _lexical(state)
    if lexical and found.ids:  # unscaled: scaled scores of nodes that match alike are all 0
        scores = np.sum([one.score(query, found.ids) for one in lexical], axis=0)
    elif not (scores > 0).any() and getattr(index, "vector", "") is not None:  # which Neo4j's full text alone lacks
        return list(found.ids)
    return [one for one, score in zip(found.ids, scores.tolist(), strict=True) if score > 0]


def make_ready(index: TextIndex) -> None:
    """Have an index in this process make now what it would make when it is first searched by words."""
    for one in _word_indexes(index):
        one.make_ready()


def _word_indexes(index: TextIndex) -> list[BM25Index]:
    if isinstance(index, HybridIndex):
        return [index.lexical]
    parts = index.scorers.values() if isinstance(index, FieldIndex) else [index]
    return [one for one in parts if isinstance(one, BM25Index)]


def _lexical(index: TextIndex) -> list[BM25Index]:
    """The indexes that give a score of words alone; none for other scores."""
    if isinstance(index, BM25Index):
        return [index]
    if isinstance(index, HybridIndex):
        return [index.lexical] if index.dense is None else []
    parts = list(index.scorers.values()) if isinstance(index, FieldIndex) else []
    lexical = [one for one in parts if isinstance(one, BM25Index)]
    return lexical if len(lexical) == len(parts) else []

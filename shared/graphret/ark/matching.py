"""What a search finds, without what it only fills up with."""

from __future__ import annotations

import numpy as np

from graphret.search.bm25 import BM25Index
from graphret.search.index import TextIndex


def matching(index: TextIndex, query: str, k: int) -> list[str]:
    """Return the ids of at most `k` nodes that match a query, best first.

    An index returns `k` nodes where it has them. Those that score 0 are left out where others score more, and where
    the score is one of words alone.
    """
    found = index.search(query, k)
    scores = np.asarray(found.scores)
    if not (_lexical(index) or (scores > 0).any()):
        return list(found.ids)
    return [one for one, score in zip(found.ids, scores.tolist(), strict=True) if score > 0]


def _lexical(index: TextIndex) -> bool:
    return isinstance(index, BM25Index) or getattr(index, "vector", "") is None  # Neo4j's full text alone

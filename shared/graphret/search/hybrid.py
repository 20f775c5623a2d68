"""Lexical and dense scores in one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.fields import NodeText
from graphret.search.index import ArrayIndex, min_max


class HybridIndex(ArrayIndex):
    """``alpha · BM25 + (1 − alpha) · cosine``, each scaled to 0 … 1 over the index (SAGE, appendix E: 0.6 and 0.4).

    Parameters
    ----------
    lexical, dense
        Indexes of the same nodes; without a dense one the score is the scaled BM25.
    alpha
        Share of BM25.
    """

    def __init__(self, lexical: BM25Index, dense: DenseIndex | None = None, *, alpha: float = 0.6) -> None:
        super().__init__(lexical.table)
        if not 0 <= alpha <= 1:
            raise InvalidInput(f"alpha: a number from 0 to 1 is expected, not {alpha!r}")
        if dense is not None and dense.table.ids is not lexical.table.ids:
            raise InvalidInput("the lexical and the dense index must share one table of nodes")
        self.lexical = lexical
        self.dense = dense
        self.alpha = alpha

    def _scores(self, query: str) -> NDArray[np.float32]:
        lexical = min_max(self.lexical.scores(query))
        if self.dense is None:
            return np.array(lexical)
        dense = min_max(self.dense.scores(query))
        return np.asarray(self.alpha * lexical + (1.0 - self.alpha) * dense, dtype=np.float32)

    def prepare(self, queries: Sequence[str]) -> None:
        """Embed a batch of queries at once."""
        if self.dense is not None:
            self.dense.prepare(queries)

    def texts(self) -> list[NodeText]:
        """The ways in which its parts read nodes."""
        return self.lexical.texts() + (self.dense.texts() if self.dense else [])

    def with_texts(self, change: Callable[[NodeText], NodeText]) -> HybridIndex:
        """Return this index, nothing of it read anew, with every way in which it reads nodes changed."""
        state = copy(self)
        state.lexical = self.lexical.with_texts(change)
        state.dense = self.dense.with_texts(change) if self.dense else None
        return state

    @property
    def lexical_share(self) -> float:
        """The share of BM25 in the score: `alpha`, or 1 without a dense index."""
        return self.alpha if self.dense else 1.0

    def near_at(self, query: str, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosines of nodes scaled to 0 … 1 over the index, ``(p,)``; zeros without a dense index."""
        if self.dense is None:
            return np.zeros(len(positions), dtype=np.float32)
        low, high = self.dense.extent(query)
        if high <= low:
            return np.zeros(len(positions), dtype=np.float32)
        return np.asarray((self.dense.score_at(query, positions) - low) / (high - low), dtype=np.float32)

    def confidence(self, query: str, positions: NDArray[np.int64]) -> float:
        """Return `alpha` of the share of the query's words that nodes say together, and the rest of the best cosine."""
        near = self.dense.confidence(query, positions) if self.dense else 0.0
        said = self.lexical.confidence(query, positions)
        return self.lexical_share * said + (1.0 - self.lexical_share) * near

    def with_query(self, query: str, vector: Any) -> HybridIndex:
        """Return this index with an embedding given for a query; the index itself does not learn of it."""
        dense = self.dense.with_query(query, vector) if self.dense else None
        return HybridIndex(self.lexical, dense, alpha=self.alpha)

    def changed(self, table: NodeTable, fresh: Collection[str]) -> HybridIndex:
        """Return the index of another table, reading only the nodes that are new or in `fresh`."""
        again = list(fresh)
        dense = self.dense.changed(table, again) if self.dense else None
        return HybridIndex(self.lexical.changed(table, again), dense, alpha=self.alpha)

    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> HybridIndex:
        """Return the index of the nodes at `positions` alone."""
        dense = self.dense.induced(table, positions) if self.dense else None
        return HybridIndex(self.lexical.induced(table, positions), dense, alpha=self.alpha)

"""Lexical and dense scores in one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search.arrays import ArrayIndex, CombinedIndex
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.encoder import as_encoder
from graphret.search.fields import NodeText
from graphret.search.index import min_max
from graphret.stores.base import GraphStore
from graphret.types import Node


class HybridIndex(CombinedIndex):
    """``alpha · BM25 + (1 − alpha) · cosine``, each scaled to 0 … 1 over the index (SAGE, appendix E: 0.6 and 0.4).

    Parameters
    ----------
    lexical, dense
        Indexes of the same nodes; without a dense one the score is the scaled BM25.
    alpha
        Share of BM25.
    """

    def __init__(self, lexical: BM25Index, dense: DenseIndex | None = None, *, alpha: float = 0.6) -> None:
        members: dict[str, ArrayIndex] = {"lexical": lexical}
        super().__init__(members if dense is None else members | {"dense": dense})
        if not 0 <= alpha <= 1:
            raise InvalidInput(f"alpha: a number from 0 to 1 is expected, not {alpha!r}")
        self.alpha = alpha

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Iterable[Node],
        encoder: Any = None,
        *,
        text: NodeText | None = None,
        alpha: float = 0.6,
        source: GraphStore | None = None,
    ) -> Self:
        """Index nodes by their words, and by their embeddings where there is an encoder; see `BM25Index.build`."""
        lexical, model = BM25Index.build(nodes, text=text, source=source), as_encoder(encoder)
        dense = None if model is None else DenseIndex.build(lexical.table, model, text=text, source=source)
        return cls(lexical, dense, alpha=alpha)

    @property
    def lexical(self) -> BM25Index:
        """The index of words."""
        return self.members["lexical"]  # type: ignore[return-value]

    @property
    def dense(self) -> DenseIndex | None:
        """The index of embeddings, if there is one."""
        return self.members.get("dense")  # type: ignore[return-value]

    @property
    def lexical_share(self) -> float:
        """The share of BM25 in the score: `alpha`, or 1 without a dense index."""
        return self.alpha if self.dense else 1.0

    def _scores(self, query: str) -> NDArray[np.float32]:
        lexical = min_max(self.lexical.scores(query))
        if self.dense is None:
            return np.array(lexical)
        dense = min_max(self.dense.scores(query))
        return np.asarray(self.alpha * lexical + (1.0 - self.alpha) * dense, dtype=np.float32)

    def near_at(self, query: str, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosines of nodes scaled to 0 … 1 over the index, ``(p,)``; zeros without a dense index."""
        if self.dense is None:
            return np.zeros(len(positions), dtype=np.float32)
        return min_max(self.dense.scores(query))[positions]

    def confidence(self, query: str, positions: NDArray[np.int64]) -> float:
        """Return `alpha` of the share of the query's words that nodes say together, and the rest of the best cosine."""
        near = self.dense.confidence(query, positions) if self.dense else 0.0
        said = self.lexical.confidence(query, positions)
        return self.lexical_share * said + (1.0 - self.lexical_share) * near

    def with_query(self, query: str, vector: Any) -> HybridIndex:
        """Return this index with an embedding given for a query; the index itself does not learn of it."""
        dense = self.dense.with_query(query, vector) if self.dense else None
        return HybridIndex(self.lexical, dense, alpha=self.alpha)

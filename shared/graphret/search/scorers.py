"""The libraries that turn the weights of terms into the scores of all nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

#: Takes terms by their position in the vocabulary, and returns the score of every node, ``(n,)``.
Scorer = Callable[[NDArray[np.int64]], NDArray[np.float32]]


class Bm25sScorer:
    """bm25s as the scorer, given our weights, ``(n, terms)``, in the layout of its eager index."""

    def __init__(self, weights: sp.csc_matrix, k1: float, b: float) -> None:
        import bm25s

        self._engine = bm25s.BM25(method="lucene", k1=k1, b=b)
        self._engine.scores = {
            "data": weights.data,
            "indices": weights.indices,
            "indptr": weights.indptr,
            "num_docs": weights.shape[0],
        }
        self._engine.nonoccurrence_array = None

    def __call__(self, terms: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(self._engine.get_scores_from_ids(terms), dtype=np.float32)


class RankBm25Scorer:
    """rank_bm25's Okapi as the scorer; the fields' normalisation is in the counts that it is given, so its b is 0."""

    def __init__(self, weights: sp.csr_matrix, idf: NDArray[np.float64], k1: float) -> None:
        from rank_bm25 import BM25Okapi

        share = weights.data / idf[weights.indices]  # tf / (k1 + tf)
        counts = k1 * share / (1.0 - share)

        class Okapi(BM25Okapi):  # type: ignore[misc]
            def _calc_idf(self, nd: Mapping[int, int]) -> None:
                self.idf = {term: float(idf[term]) for term in nd}

        self._engine = Okapi([[0]] * weights.shape[0], k1=k1, b=0.0)
        self._engine.idf = dict(enumerate(idf.tolist()))
        rows = np.split(np.arange(weights.nnz), weights.indptr[1:-1])
        self._engine.doc_freqs = [
            dict(zip(weights.indices[row].tolist(), counts[row].tolist(), strict=True)) for row in rows
        ]

    def __call__(self, terms: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(self._engine.get_scores(terms.tolist()), dtype=np.float32)

"""From the counts of terms to their weights by BM25F, and to scores without the weights of terms not asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

#: Searches after a write until weights are made: to make these takes as long as some more of them.
_EARLY = 16
#: The counts of a field, ``(n, terms)``, and by how much they count in each node or part, ``(n,)``.
Scaled: TypeAlias = tuple[sp.csr_matrix, NDArray[np.float64]]


def scaled_counts(
    counts: Mapping[str, sp.csr_matrix], b: Mapping[str, float], weights: Mapping[str, float]
) -> list[Scaled]:
    """Return the counts of the fields that have any, each with its weight over the length norm.

    Parameters
    ----------
    counts
        By field.
    b
        How strongly the length of each field damps its counts.
    weights
        Of the fields; 1 for those that it does not name.
    """
    return [(matrix, _scale(matrix, b[name], weights.get(name, 1.0))) for name, matrix in counts.items() if matrix.nnz]


def _scale(counts: sp.csr_matrix, b: float, weight: float) -> NDArray[np.float64]:
    lengths = np.asarray(counts @ np.ones(counts.shape[1], dtype=counts.dtype), dtype=np.float64)  # quicker than sum
    present = lengths > 0
    norm = 1.0 - b + b * lengths / lengths[present].mean()
    scale: NDArray[np.float64] = np.zeros_like(norm)
    np.divide(weight, norm, out=scale, where=present & (norm > 0))
    return scale


def rarity(n_nodes: int, df: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the idf of terms that occur in so many nodes, as Lucene has it."""
    return np.asarray(np.log1p((n_nodes - df + 0.5) / (df + 0.5)))


def weighed(fields: Iterable[Scaled], idf: NDArray[np.float64], k1: float, n: int) -> sp.csr_matrix:
    """Return the weight of each term in each node or part, ``(n, terms)``."""
    total: sp.csr_matrix | None = None
    for counts, scale in fields:
        scaled = sp.csr_matrix(
            (counts.data * np.repeat(scale, np.diff(counts.indptr)), counts.indices, counts.indptr), shape=counts.shape
        )
        total = scaled if total is None else total + scaled
    if total is None:
        return sp.csr_matrix((n, len(idf)), dtype=np.float32)
    total = total.tocsr()
    tf = total.data
    weights = (idf[total.indices] * tf / (k1 + tf)).astype(np.float32)
    return sp.csr_matrix((weights, total.indices, total.indptr), shape=total.shape)


def scores_of_counts(
    fields: Sequence[Scaled], n_nodes: int, terms: NDArray[np.int64], k1: float
) -> NDArray[np.float32]:
    """Return the score of every node, ``(n,)``, to the last bit what `weighed` would give.

    Counts are read once; nothing is made of those of other terms, which is what takes time after a write.
    """
    found = [(counts[:, terms].tocsc(), scale) for counts, scale in fields]
    total = np.zeros(n_nodes, dtype=np.float32)
    for i in range(len(terms)):
        tf, held = np.zeros(n_nodes), np.zeros(n_nodes, dtype=bool)
        for counts, scale in found:
            entries = slice(counts.indptr[i], counts.indptr[i + 1])
            at = counts.indices[entries]
            tf[at] += counts.data[entries] * scale[at]
            held[at] = True
        at = np.flatnonzero(held)
        idf = rarity(n_nodes, np.asarray(len(at)))
        total[at] += (idf * tf[at] / (k1 + tf[at])).astype(np.float32)
    return total


class SoonAfterWrite:
    """Scores by the counts alone after a write, so that no search waits until the weights are made.

    Parameters
    ----------
    fields
        The counts.
    n_nodes
        How many nodes there are.
    k1
        Saturation of a term's count.
    """

    def __init__(self, fields: Sequence[Scaled], n_nodes: int, k1: float) -> None:
        self._fields, self._n_nodes, self._k1 = fields, n_nodes, k1
        self._searches = 0
        self._lock = threading.Lock()

    def scores(self, terms: NDArray[np.int64], make_weights: Callable[[], object]) -> NDArray[np.float32]:
        """Return the score of every node, ``(n,)``, and have the weights made beside the searches that may follow."""
        with self._lock:
            self._searches += 1
            due = self._searches == _EARLY
        if due:  # most of the work is numpy's and scipy's, which lets other threads go on
            threading.Thread(target=make_weights, name="graphret-bm25-weights", daemon=True).start()
        return scores_of_counts(self._fields, self._n_nodes, terms, self._k1)

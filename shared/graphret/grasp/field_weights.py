"""`FieldWeights`: how much each field of a `FieldIndex` counts for a question, learned from labelled ones (mFAR)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.search.analysis import Analyzer
from graphret.search.encoder import as_encoder

_HASHED = 256  # features of a question without an encoder


class FieldWeights:
    """Weights of the scorers of a `FieldIndex` by question: ``softmax(bias + matrix · features)`` (Li et al. 2025).

    The features of a question are its embedding, and without an encoder its hashed words. Given to an index as
    ``FieldIndex(scorers, weights)``; `graphret.training.fit_fields` learns them. Zeros weigh all fields alike.

    Parameters
    ----------
    scorers
        The names of the index's scorers, such as ``name/bm25``.
    bias, matrix
        ``(s,)`` and ``(s, features)``.
    encoder
        Embeds questions.
    """

    def __init__(
        self, scorers: Sequence[str], bias: NDArray[Any], matrix: NDArray[Any], *, encoder: Any = None
    ) -> None:
        self.scorers = tuple(scorers)
        self.bias, self.matrix = np.asarray(bias, dtype=np.float64), np.asarray(matrix, dtype=np.float64)
        if self.bias.shape != (len(self.scorers),) or self.matrix.shape[:1] != self.bias.shape:
            raise InvalidInput(f"weights: {len(self.scorers)} rows are expected, one for each scorer")
        self.encoder = as_encoder(encoder)
        self._analyzer = Analyzer()

    def __call__(self, query: str) -> dict[str, float]:
        """Return the weight of each scorer, in sum 1."""
        [features] = self.features([query])
        return dict(zip(self.scorers, softmax(self.bias + self.matrix @ features).tolist(), strict=True))

    def features(self, queries: Sequence[str]) -> NDArray[np.float64]:
        """Return the features of questions, unit rows, ``(n, f)``."""
        if self.encoder is not None:
            return np.asarray(self.encoder.encode_queries(list(queries)), dtype=np.float64)
        rows = np.zeros((len(queries), _HASHED))
        for row, query in zip(rows, queries, strict=True):
            for term in set(self._analyzer(query)):
                row[zlib.crc32(term.encode()) % _HASHED] += 1.0
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0))

    def save(self, path: str | Path) -> None:
        """Write the weights to a file of numpy, ``.npz``."""
        np.savez(Path(path), scorers=np.asarray(self.scorers), bias=self.bias, matrix=self.matrix)

    @classmethod
    def load(cls, path: str | Path, *, encoder: Any = None) -> FieldWeights:
        """Read weights that `save` wrote, for questions embedded by the same encoder."""
        try:
            with np.load(Path(path), allow_pickle=False) as held:
                return cls(held["scorers"].tolist(), held["bias"], held["matrix"], encoder=encoder)
        except (OSError, ValueError, KeyError) as error:
            raise InvalidInput(f"{path}: these are no weights of fields: {error}") from error


def softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values as shares of 1 along the last axis."""
    raised = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))

"""How alike a mention and a name are, by their words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphret.linking.names import variants_of
from graphret.search.bm25 import BM25Index
from graphret.types import Node


class NameSimilarity:
    """Dice's coefficient of two sets of words (Dice 1945), each word weighed by its rarity among names.

    ``2 · Σ idf(common) / (Σ idf(mention) + Σ idf(name))``, the highest over what a node is called; 0 to 1.
    """

    def __init__(self, names: BM25Index) -> None:
        self._analyzer = names.analyzer
        self._aliases = names.text.aliases
        self._idf = names.idf
        self._positions = names.counts.vocabulary
        self._unseen = float(np.log1p((len(names.table) + 0.5) / 0.5))

    def __call__(self, mention: str, nodes: Sequence[Node]) -> NDArray[np.float32]:
        """Return the likeness of a mention to each of some nodes, ``(n,)``."""
        said = self._weighed(mention)
        total = sum(said.values())
        values = [max(self._dice(said, total, name) for _, name in variants_of(node, self._aliases)) for node in nodes]
        return np.asarray(values, dtype=np.float32)

    def _dice(self, said: dict[str, float], total: float, name: str) -> float:
        own = self._weighed(name)
        common = sum(weight for term, weight in own.items() if term in said)
        return 2.0 * common / (total + sum(own.values())) if common else 0.0

    def _weighed(self, text: str) -> dict[str, float]:
        positions, idf = self._positions.positions, self._idf()
        return {
            term: float(idf[at]) if (at := positions.get(term)) is not None else self._unseen
            for term in self._analyzer(text)
        }

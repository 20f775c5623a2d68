"""The nodes that a mention may mean: how alike their names are, and GRASP's rule (section 3.1, appendix A)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.linking.names import variants_of
from graphret.search.bm25 import BM25Index
from graphret.search.index import require_k, top_k
from graphret.types import Node


@dataclass(frozen=True, slots=True)
class LinkRule:
    """Which of the candidates are kept: the `k` best of those that score at least `tau` times the best."""

    k: int
    tau: float

    def __post_init__(self) -> None:
        require_k(self.k)
        if not 0 <= self.tau <= 1:
            raise InvalidInput(f"tau: a number from 0 to 1 is expected, not {self.tau!r}")


#: GRASP, appendix A: (K, tau) = (5, 0.95) for mentions that are names, (10, 0.90) for those that describe.
NAME, DOC = LinkRule(5, 0.95), LinkRule(10, 0.90)


@dataclass(frozen=True, slots=True)
class Linked:
    """A node that a mention may mean.

    Parameters
    ----------
    node
        The node.
    score
        How sure that is, 0 to 1.
    how
        ``exact``, ``normalised``, ``alias``, ``short`` (its name but for a bracket), ``similar`` or ``document``.
    """

    node: Node
    score: float
    how: str

    @property
    def id(self) -> str:
        """The node's id."""
        return self.node.id


def kept(nodes: Sequence[Node], scores: NDArray[Any], hows: Sequence[str], rule: LinkRule) -> list[Linked]:
    """Apply the rule to nodes in the order of their ids."""
    best = top_k(np.asarray(scores, dtype=np.float32), rule.k)
    floor = rule.tau * float(scores[best[0]]) if len(best) else 0.0
    return [Linked(nodes[i], float(scores[i]), hows[i]) for i in best.tolist() if scores[i] > 0 and scores[i] >= floor]


class NameSimilarity:
    """Dice's coefficient of two sets of words (Dice 1945), each word weighed by its rarity among names.

    ``2 · Σ idf(common) / (Σ idf(mention) + Σ idf(name))``, the highest over what a node is called; 0 to 1.
    """

    def __init__(self, names: BM25Index) -> None:
        self._analyzer = names.analyzer
        self._aliases = names.text.aliases
        self._weights = names.weights
        self._counts = names.counts
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
        positions, idf = self._counts.positions, self._weights.idf
        return {
            term: float(idf[at]) if (at := positions.get(term)) is not None else self._unseen
            for term in self._analyzer(text)
        }

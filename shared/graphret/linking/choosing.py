"""Which of the nodes that a mention may mean are kept: GRASP's rule (section 3.1, step 1, and appendix A)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
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

"""Propagation: a neighbour inherits from the seeds it hangs on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from graphret.expansion.frontier import (
    NO_EDGE,
    STRENGTH,
    Frontier,
    Ranked,
    best_of,
    spread,
)


@dataclass(frozen=True)
class Propagate:
    """Give each node its own score plus a share of the best seed that a link joins it
    to.

    ``score(n) = own(n) + inherit · max_s strength(s, n) · own(s)`` over the seeds s
    that are linked to n, so that seeds and neighbours compete in one list. Beyond the
    SAGE paper.

    Parameters
    ----------
    inherit
        The share that is passed on.
    walked
        How many of the best seeds are walked from.
    strength
        Factor on the weight of links by relation; 0 leaves a relation out, one that is
        not named counts 1.
    """

    inherit: float = 0.5
    max_seeds: int = 50
    strength: Mapping[str, float] = field(default_factory=lambda: dict(STRENGTH))
    name: str = "propagate"

    def n_seeds(self, k: int) -> int:
        """How many seeds are needed for `k` hits."""
        return max(k, self.max_seeds)

    def rank(self, frontier: Frontier, k: int) -> Ranked:
        """Rank the seeds and what they are linked to."""
        seeds = frontier.seeds
        links = frontier.incident(
            seeds[: self.max_seeds], self.strength, by_source=True
        )
        walked = seeds[: self.max_seeds]
        candidates = np.concatenate([seeds, links.target, links.source])
        given = spread(
            np.concatenate([links.source, links.target]),
            walked,
            frontier.node_scores(walked),
        )
        passed = given * np.tile(links.strength, 2)
        inherited = np.concatenate(
            [np.zeros(len(seeds), dtype=np.float32), self.inherit * passed]
        )
        via = np.concatenate([np.full(len(seeds), NO_EDGE), links.edges, links.edges])
        scores = frontier.node_scores(candidates) + inherited
        return best_of(candidates, scores.astype(np.float32), via, links=len(links))

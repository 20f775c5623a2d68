"""Propagation: a neighbour inherits from the seeds it is linked to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from graphret.expansion.frontier import (
    NO_EDGE,
    STRENGTH,
    Frontier,
    RankedNodes,
    best_of,
    spread,
)


@dataclass(frozen=True)
class Propagate:
    """Give each node its own score plus a share of the best seed it is linked to.

    ``score(n) = own(n) + inherit · max_s strength(s, n) · own(s)`` over the seeds s
    that are linked to n, so that seeds and neighbours compete in one list. Beyond the
    SAGE paper.

    Parameters
    ----------
    inherit
        The share that is passed on.
    max_seeds
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

    def rank(self, frontier: Frontier, k: int) -> RankedNodes:
        """Rank the seeds and what they are linked to."""
        seeds = frontier.seeds
        walked = seeds[: self.max_seeds]
        links = frontier.incident(walked, self.strength, by_source=True)
        # Each link passes a share of the score of one end on to the other.
        givers = np.concatenate([links.source, links.target])
        takers = np.concatenate([links.target, links.source])
        scores_of_givers = spread(givers, walked, frontier.node_scores(walked))
        inherited = self.inherit * (scores_of_givers * np.tile(links.strength, 2))

        candidates = np.concatenate([seeds, takers])
        no_edge = np.full(len(seeds), NO_EDGE)
        none_inherited = np.zeros(len(seeds), dtype=np.float32)
        scores = frontier.node_scores(candidates)
        scores = scores + np.concatenate([none_inherited, inherited])
        via = np.concatenate([no_edge, links.edges, links.edges])
        return best_of(candidates, scores.astype(np.float32), via, links=len(links))

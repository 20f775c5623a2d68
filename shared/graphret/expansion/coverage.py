"""Coverage: nodes that, together with what they are linked to, say what the question asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphret.expansion.frontier import NONE, Frontier, Links, Ranked, best_of, terms_said

#: Relations that join nodes which say the same, or which merely stand in one source: as a pair they cover no more.
STRENGTH: Mapping[str, float] = {"IS_SIMILAR": 0.0, "SHARES_ENTITY": 0.0, "SAME_SOURCE": 0.0}


@dataclass(frozen=True)
class Coverage:
    """Score linked pairs by how much of the question their two ends say together.

    For a link between a and b, ``F = Σ_t max(w(t, a), w(t, b))`` over the question's terms t, where w is the BM25F
    weight of the term in the node, or in the row that the link is about. Each term counts once, on the side that says
    it best: a pair is good when its halves together say what was asked. With an encoder a pair's score also has its
    cosine. The best pairs are extended by a third node, which adds the terms that the pair leaves out. A node's score
    is its own plus `weight` times that of the best pair or triple it is in, relative to the best of the question.

    This goes beyond the SAGE paper; docs/expansion.md has what each part is worth.

    Parameters
    ----------
    weight
        Of coverage against a node's own score.
    walked
        How many of the best seeds are walked from.
    best_cosine
        A pair's cosine is this share of the better one, the rest of the mean.
    beam
        How many of the best pairs a third node extends; 0 for pairs alone.
    keep
        A third node's share of its pair's score.
    hub
        Nodes with more links than this extend no pair.
    strength
        Factor on the weight of links by relation; 0 leaves a relation out, one that is not named counts 1.
    """

    weight: float = 4.0
    walked: int = 50
    best_cosine: float = 0.5
    beam: int = 30
    keep: float = 0.65
    hub: int = 200
    strength: Mapping[str, float] = field(default_factory=lambda: dict(STRENGTH))
    name: str = "coverage"

    def n_seeds(self, k: int) -> int:
        """How many seeds are needed for `k` hits."""
        return max(k, self.walked)

    def rank(self, frontier: Frontier, k: int) -> Ranked:
        """Rank the seeds and what they are linked to."""
        seeds, index, query = frontier.seeds, frontier.index, frontier.query
        links = frontier.incident(seeds[: self.walked], self.strength, 1.0)
        candidates = np.unique(np.concatenate([seeds, links.source, links.target]))
        own = frontier.own(candidates)
        near = index.near_at(query, candidates)
        lexical = index.lexical.score_at(query, candidates)
        share = index.lexical_share
        said = links.said()
        covered = np.maximum(*said)
        total = covered.sum(axis=1)
        scale = max(float(total.max(initial=0)), float(lexical.max(initial=0)), 1e-9)

        alone = np.maximum(share * lexical / scale + (1 - share) * near, own if frontier.seed_scores is not None else 0)
        left, right = (near[np.searchsorted(candidates, end)] for end in (links.source, links.target))
        cosine = self.best_cosine * np.maximum(left, right) + (1 - self.best_cosine) * (left + right) / 2
        pairs = (share * total / scale + (1 - share) * cosine) * links.strength

        triple = self._triples(frontier, links, pairs, covered, share / scale)
        positions = np.concatenate([candidates, links.source, links.target, triple[0]])
        scores = np.concatenate([alone, pairs, pairs, triple[1]]).astype(np.float32)
        via = np.concatenate([np.full(len(candidates), NONE), links.edges, links.edges, triple[2]])
        best = best_of(positions, scores, via)
        top = max(float(best.scores.max(initial=0)), 1e-9)
        final = frontier.own(best.positions) + self.weight * best.scores / top
        counts = {"links": len(links), "candidates": len(best.positions)}
        return best_of(best.positions, final.astype(np.float32), best.via, **counts)

    def _triples(
        self,
        frontier: Frontier,
        links: Links,
        pairs: NDArray[np.float32],
        covered: NDArray[np.float32],
        per_term: float,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
        """Return third nodes, their scores, and the edges by which they join a pair."""
        beam = np.lexsort((links.edges, -pairs))[: self.beam]
        # Each pair is left by both ends: by a row's own links where it is about a row, by any where about the node.
        pair = np.concatenate([beam, beam])
        at = np.concatenate([links.source[beam], links.target[beam]])
        part = np.concatenate([links.source_part[beam], links.target_part[beam]])
        edges = frontier.graph.edges
        found, end = edges.incident_each(at)
        leaves = edges.source[found] == at[end]
        here = np.where(leaves, edges.source_part[found], edges.target_part[found])
        other = np.where(leaves, edges.target[found], edges.source[found]).astype(np.int64)
        other_part = np.where(leaves, edges.target_part[found], edges.source_part[found])
        fits = (part[end] < 0) | (here == part[end])
        fits &= np.bincount(end[fits], minlength=len(at))[end] <= self.hub
        fits &= (other != links.source[pair[end]]) & (other != links.target[pair[end]])
        factors = np.asarray([self.strength.get(name, 1.0) for name in edges.relations], dtype=np.float32)
        strength = edges.weight[found] * factors[edges.relation[found]] if len(found) else np.empty(0, np.float32)
        fits &= strength > 0
        found, which, other, other_part = found[fits], pair[end[fits]], other[fits], other_part[fits]
        values, place = terms_said(frontier, other, other_part)
        extra = np.maximum(values[place] - covered[which], 0).sum(axis=1)
        return other, self.keep * pairs[which] * strength[fits] + per_term * extra, found

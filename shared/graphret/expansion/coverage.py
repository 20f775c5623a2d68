"""Coverage: nodes that, together with what they are linked to, say what the question asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.edges import NO_PART
from graphret.expansion.frontier import MENTIONS, NONE, STRENGTH, Frontier, Links, Ranked, best_of, spread, terms_said
from graphret.text import normalize_name, short_names

# A third node's share of its pair's score where the text or row that joins the pair names it too, and elsewhere; the
# weight of its own cosine; the middle node's share of a triple's score; nodes with more links extend no pair.
_KEEP_SAME, _KEEP, _THIRD_COSINE, _MIDDLE, _HUB = 0.8, 0.65, 0.1, 0.95, 100
# So many places go to what says something new, of twice as many nodes.
_FRESH = 20
# Number of terms past which terms, and coverage as a whole, count less and less: in a long question most pairs cover
# something.
_LONG_QUESTION = 16


@dataclass(frozen=True)
class Coverage:
    """Score linked pairs by how much of the question their two ends say together.

    For a link between a and b, ``F = Σ_t max(w(t, a), w(t, b))`` over the question's terms t, where w is the BM25F
    weight of the term in the node, or in the row that the link is about. Each term counts once, on the side that says
    it best: a pair is good when its halves together say what was asked. With an encoder a pair's score also has its
    cosine. The best pairs are extended by a third node, which adds the terms that the pair leaves out. A node's score
    is its own plus `weight` times that of the best pair or triple it is in, relative to the best of the question.

    This goes beyond the SAGE paper; docs/concepts/expansion.md has what each part is worth.

    Parameters
    ----------
    weight
        Of coverage against a node's own score.
    lexical_share
        Share of the terms in a pair's score; the rest is its cosine. Without an encoder it is 1.
    phrases
        Weight of a phrase, two words next to each other in the question and in a text, beside their own; 0 for none.
    repeated
        What a node loses where those before it say all that it says, as a share of the best node's words.
    walked
        How many of the best seeds are walked from.
    beam
        How many of the best pairs a third node extends; 0 for pairs alone.
    naming
        What a text counts that names the other node of its pair, against what it names: a page is named by many, and
        names few. Rows count in full.
    named
        Strength of the pair that two nodes make when the question names both, linked or not; 0 for no such pairs.
    strength
        Factor on the weight of links by relation; 0 leaves a relation out, one that is not named counts 1.
    alpha
        Share of BM25 in a node's own score, seeds' too, where the graph is in this process; the index's by default.
    """

    weight: float = 4.0
    lexical_share: float = 0.85
    phrases: float = 0.3
    repeated: float = 0.5
    walked: int = 50
    beam: int = 30
    naming: float = 0.9
    named: float = 0.9
    strength: Mapping[str, float] = field(default_factory=lambda: dict(STRENGTH))
    alpha: float | None = None
    name: str = "coverage"

    def n_seeds(self, k: int) -> int:
        """How many seeds are needed for `k` hits."""
        return max(k, self.walked)

    def rank(self, frontier: Frontier, k: int) -> Ranked:
        """Rank the seeds and what they are linked to."""
        return self.covered(frontier)[0]

    def covered(self, frontier: Frontier) -> tuple[Ranked, Links, NDArray[np.float32]]:
        """Return the ranking, the pairs that it was made of, and their scores, ``(m,)``."""
        seeds, index, query = frontier.seeds, frontier.index, frontier.query
        fade = min(1.0, _LONG_QUESTION / max(1, len(index.lexical.term_ids(query))))
        with_cosine = index.dense is not None
        share = self.lexical_share * fade if with_cosine else 1.0
        weight = self.weight * (fade if with_cosine else fade**4)  # without cosines nothing else speaks for a pair

        links = frontier.incident(seeds[: self.walked], self.strength, by_source=True)
        pairs = links.joined(named_pairs(frontier, seeds[: self.walked], self.named)) if self.named > 0 else links
        candidates = np.unique(np.concatenate([seeds, pairs.source, pairs.target]))
        near = index.near_at(query, candidates)
        lexical = index.lexical.score_at(query, candidates)
        covered = pairs.said_together(self.phrases)
        total = covered.sum(axis=1)
        scale = max(float(total.max(initial=0)), float(lexical.max(initial=0)), 1e-9)

        alone = index.lexical_share * lexical / scale + (1 - index.lexical_share) * near
        if frontier.seed_scores is not None:
            alone = np.maximum(alone, frontier.own(candidates))
        left, right = (near[np.searchsorted(candidates, end)] for end in (pairs.source, pairs.target))
        cosine = 0.5 * np.maximum(left, right) + 0.5 * (left + right) / 2  # the better counts more than the other
        together = (share * total / scale + (1 - share) * cosine) * pairs.strength

        third, extended, joined = self._triples(frontier, pairs, covered, together, share / scale)
        of_source = together * self._of_naming(frontier, pairs.edges, pairs.source_part)
        ends = np.concatenate([pairs.source, pairs.target, third])
        by_link = np.concatenate([of_source, together, extended]).astype(np.float32)
        edges = np.concatenate([pairs.edges, pairs.edges, joined])
        best = best_of(
            np.concatenate([candidates, ends]),
            np.concatenate([alone.astype(np.float32), by_link]),
            np.concatenate([np.full(len(candidates), NONE), edges]),
        )
        top = max(float(best.scores.max(initial=0)), 1e-9)
        final = frontier.own(best.positions) + weight * best.scores / top
        counts = {"links": len(links), "named": len(pairs.edges) - len(links), "candidates": len(best.positions)}
        # What no seed is was brought by a link, also where it stands by its own score.
        linked = best_of(ends, by_link, edges)
        brought = spread(best.positions, linked.positions, linked.via + 1) - 1
        via = np.where((best.via == NONE) & ~np.isin(best.positions, seeds), brought, best.via)
        ranked = best_of(best.positions, final.astype(np.float32), via.astype(np.int64), **counts)
        return self._fresh_first(frontier, ranked), pairs, together

    def _fresh_first(self, frontier: Frontier, ranked: Ranked) -> Ranked:
        """Return the ranking, in whose first places what repeats the words of those before it comes later."""
        said = frontier.index.lexical.term_weights(frontier.query, ranked.positions[: 2 * _FRESH])
        if not said.any():
            return ranked
        said *= self.repeated / said.sum(axis=1).max()
        left, told = ranked.scores[: len(said)].copy(), np.zeros_like(said[0])
        first, scores = [], []
        for _ in range(min(_FRESH, len(said))):
            now = left - np.minimum(said, told).sum(axis=1)
            chosen = int(now.argmax())
            first.append(chosen)
            scores.append(now[chosen])
            left[chosen] = -np.inf
            told = np.maximum(told, said[chosen])
        order = np.concatenate([first, np.delete(np.arange(len(ranked.positions)), first)])
        falling = np.minimum.accumulate(np.concatenate([scores, ranked.scores[order[len(first) :]]]))
        return replace(
            ranked, positions=ranked.positions[order], scores=falling.astype(np.float32), via=ranked.via[order]
        )

    def _of_naming(self, frontier: Frontier, edges: NDArray[np.int64], part: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return what the sources of edges count, `part` being what of them each is about, ``(m,)``."""
        found = frontier.graph.edges
        mentions = found.relations.index(MENTIONS) if MENTIONS in found.relations else NONE
        names = np.zeros(len(edges), dtype=bool)
        names[edges != NONE] = found.relation[edges[edges != NONE]] == mentions
        return np.where(names & (part == NO_PART), np.float32(self.naming), np.float32(1))

    def _triples(
        self, frontier: Frontier, pairs: Links, covered: NDArray[Any], scores: NDArray[np.float32], per_term: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
        """Return third nodes, their scores, and the edges by which they join a pair; then the nodes in the middle."""
        beam = np.lexsort((pairs.target, pairs.source, pairs.edges, -scores))[: self.beam]
        # Each pair is left by both ends: by a row's own links where it is about a row, by any where about the node.
        pair = np.concatenate([beam, beam])
        at = np.concatenate([pairs.source[beam], pairs.target[beam]])
        part = np.concatenate([pairs.source_part[beam], pairs.target_part[beam]])
        edges = frontier.graph.edges
        found, end = edges.incident_each(at)
        leaves = edges.source[found] == at[end]
        here = np.where(leaves, edges.source_part[found], edges.target_part[found])
        fits = (part[end] < 0) | (here == part[end])
        side = 2 * end + leaves
        fits &= np.bincount(side[fits], minlength=2 * len(at))[side] <= _HUB
        other = np.where(leaves, edges.target[found], edges.source[found]).astype(np.int64)
        fits &= (other != pairs.source[pair[end]]) & (other != pairs.target[pair[end]])
        strength = frontier.weights(found, self.strength)
        fits &= strength > 0
        found, end, other, leaves, strength = (c[fits] for c in (found, end, other, leaves, strength))
        which = pair[end]
        other_part = np.where(leaves, edges.target_part[found], edges.source_part[found])
        same = leaves & (end < len(beam)) & (edges.source_part[found] == pairs.source_part[which])
        keep = np.where(same, _KEEP_SAME, _KEEP)
        values, place = terms_said(frontier, other, other_part, self.phrases)
        extra = np.maximum(values[place] - covered[which], 0).sum(axis=1)
        near = _THIRD_COSINE * frontier.index.near_at(frontier.query, other)
        counts = np.where(leaves, 1, self._of_naming(frontier, found, other_part))
        extended = counts * (keep * scores[which] * strength + per_term * extra + near)
        return np.append(other, at[end]), np.append(extended, _MIDDLE * extended), np.append(found, found)


@lru_cache(maxsize=200_000)
def _spoken(name: str) -> tuple[str, ...]:
    forms = (normalize_name(form) for form in (name, *short_names(name)))
    return tuple(dict.fromkeys(form for form in forms if form))


def named_pairs(frontier: Frontier, positions: NDArray[np.int64], strength: float) -> Links:
    """Return pairs of the nodes at `positions` that the question names in different places; they have no edge.

    Of names that overlap the longest counts, as in any text; nodes that share a name are no pair.
    """
    question = f" {normalize_name(frontier.query)} "
    bearers: dict[str, list[int]] = {}
    for position, name in zip(positions.tolist(), frontier.graph.nodes.names.take(positions), strict=True):
        for form in _spoken(name):
            bearers.setdefault(f" {form} ", []).append(position)
    named = []
    for form in sorted(bearers, key=len, reverse=True):
        before, found, after = question.partition(form)
        if found:
            named.append(bearers[form])
            question = f"{before} · {after}"
    pairs = [(one, other) for these, those in combinations(named, 2) for one in these for other in those]
    left, right = np.asarray([pair for pair in pairs if pair[0] != pair[1]], dtype=np.int64).reshape(-1, 2).T
    whole = np.full(len(left), NO_PART, dtype=np.int32)
    weights = np.full(len(left), strength, dtype=np.float32)
    return Links(frontier, np.full(len(left), NONE), weights, left, right, whole, whole)

"""Coverage: nodes that, together with what they are linked to, say what the question
asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphret.edges import NO_ROW
from graphret.expansion.diversity import demote_repeats
from graphret.expansion.frontier import (
    MENTIONS,
    NONE,
    STRENGTH,
    Frontier,
    Links,
    Ranked,
    best_of,
    spread,
    term_weights,
)
from graphret.expansion.relations import NamedTerms
from graphret.expansion.trust import Trust, linked_gain, names_one, trust_in_links
from graphret.text import normalize_name, spoken_forms

Floats = NDArray[np.float32]
Positions = NDArray[np.int64]

# A third node's share of its pair's score where the text or row that joins the pair
# names it too, and elsewhere; the weight of its own cosine; the middle node's share of
# a triple's score; nodes with more links extend no pair.
_KEEP_SAME, _KEEP, _THIRD_COSINE, _MIDDLE, _HUB = 0.8, 0.65, 0.1, 0.95, 100
# Number of terms past which terms, and coverage as a whole, count less and less: in a
# long question most pairs cover something.
_LONG_QUESTION = 16
# The constant of reciprocal ranks, where the ranking by links and hybrid search are
# fused. It is small, as the first places are what a reader sees.
_RRF_K = 2.0
# So many of the best nodes by their words are asked which of them says most by itself.
_SINGLES = 10


@dataclass(frozen=True)
class Coverage:
    """Score linked pairs by how much of the question their two ends say together.

    For a link between a and b, ``F = Σ_t max(w(t, a), w(t, b))`` over the question's
    terms t, where w is the BM25F weight of the term in the node, or in the row that the
    link is about. Each term counts once, on the side that says it best: a pair is good
    when its halves together say what was asked. With an encoder a pair's score also has
    its cosine. The best pairs are extended by a third node, which adds the terms that
    the pair leaves out. A node's score is its own plus `weight` times that of the best
    pair or triple it is in, relative to the best of the question.

    How much of this counts is decided for each question (`graphret.expansion.trust`):
    where one node says as much as the best linked pair, links count nothing, and the
    ranking is that of hybrid search.

    This goes beyond the SAGE paper; docs/concepts/expansion.md has what each part is
    worth.

    Parameters
    ----------
    weight
        Of coverage against a node's own score.
    meaning
        Share of its cosine in a pair's score, as a multiple of that in a node's own
        score. Without an encoder there is none.
    phrases
        Weight of a phrase, two words next to each other in the question and in a text,
        beside their own; 0 for none.
    redundancy_penalty
        What a node loses where those before it say all that it says, as a share of the
        best node's words.
    max_seeds
        How many of the best seeds are walked from.
    beam
        How many of the best pairs a third node extends; 0 for pairs alone.
    mention_source_weight
        What a text counts that names the other node of its pair, against what it names:
        a page is named by many, and names few. Rows count in full.
    named
        Strength of the pair that two nodes make when the question names both, linked or
        not; 0 for no such pairs.
    strength
        Factor on the weight of links by relation; 0 leaves a relation out, one that is
        not named counts 1.
    alpha
        Share of BM25 in a node's own score, seeds' too, where the graph is in this
        process; the index's by default.
    trust
        How much links count, 0 to 1, whatever the question; `None` decides by question.
    """

    weight: float = 4.0
    meaning: float = 0.375
    phrases: float = 0.3
    redundancy_penalty: float = 0.5
    max_seeds: int = 50
    beam: int = 30
    mention_source_weight: float = 0.9
    named: float = 0.9
    strength: Mapping[str, float] = field(default_factory=lambda: dict(STRENGTH))
    alpha: float | None = None
    trust: float | None = None
    name: str = "coverage"

    def n_seeds(self, k: int) -> int:
        """How many seeds are needed for `k` hits."""
        return max(k, self.max_seeds)

    def rank(self, frontier: Frontier, k: int) -> Ranked:
        """Rank the seeds and what they are linked to."""
        return self.cover(frontier).ranked

    def cover(self, frontier: Frontier) -> Covered:
        """Return the ranking, with the pairs and scores that it was made of."""
        found = self._scored(frontier)
        pairs, scores, triples = found.pairs, found.scores, found.triples
        decided = self._trust(frontier, found)
        trust = decided.share

        # Every node by itself, then each end of every pair, then thirds and middles.
        naming = scores * self._source_weights(frontier, pairs.edges, pairs.source_row)
        ends = np.concatenate([pairs.source, pairs.target, triples.nodes])
        by_link = np.concatenate([naming, scores, triples.scores]).astype(np.float32)
        edges = np.concatenate([pairs.edges, pairs.edges, triples.edges])
        best = best_of(
            np.concatenate([found.candidates, ends]),
            np.concatenate([found.single.astype(np.float32), by_link]),
            np.concatenate([np.full(len(found.candidates), NONE), edges]),
        )
        top = max(float(best.scores.max(initial=0)), 1e-9)
        weight = self.weight * found.fade * trust
        own = frontier.node_scores(best.positions)
        relevance = (own + weight * best.scores / top) / (1 + weight)
        via = self._brought_by(frontier, best, best_of(ends, by_link, edges))

        by_links = best_of(best.positions, relevance.astype(np.float32), via)
        penalty = self.redundancy_penalty * trust**2 / (1 + weight)
        by_links = demote_repeats(frontier, by_links, penalty)
        ranked = _fused_with_search(frontier, by_links, decided)
        ranked.details.update(
            links=len(pairs.edges) - found.n_named,
            named=found.n_named,
            candidates=len(best.positions),
            trust=round(trust, 3),
        )
        return Covered(ranked, pairs, scores)

    def _scored(self, frontier: Frontier) -> _Scored:
        """Score single nodes, pairs and triples, all relative to the best."""
        index, query, seeds = frontier.index, frontier.query, frontier.seeds
        words = index.share_of_words(query)
        fade = min(1.0, _LONG_QUESTION / max(1, len(index.lexical.term_ids(query))))

        pairs = self._pairs(frontier)
        candidates = np.unique(np.concatenate([seeds, pairs.source, pairs.target]))
        near = index.dense_scores_at(query, candidates)
        lexical = index.lexical.score_at(query, candidates)
        names = NamedTerms.of(frontier)
        terms = pairs.joint_term_weights(self.phrases)
        if names is not None:
            terms = names.added(terms, pairs.edges, pairs.source, pairs.target)
        said = terms.sum(axis=1)
        scale = max(float(said.max(initial=0)), float(lexical.max(initial=0)), 1e-9)

        single = words * lexical / scale + (1 - words) * near
        if frontier.seed_scores is not None:
            single = np.maximum(single, frontier.node_scores(candidates))

        # Where nothing but words speaks for a pair, a long question fades it sooner.
        share = 1.0
        if index.dense is not None:
            share = (1 - self.meaning * (1 - words)) * fade
        left = near[np.searchsorted(candidates, pairs.source)]
        right = near[np.searchsorted(candidates, pairs.target)]
        cosine = 0.5 * np.maximum(left, right) + 0.25 * (left + right)
        scores = (share * said / scale + (1 - share) * cosine) * pairs.strength

        kept = _best_of_each_edge(pairs.edges, scores)
        pairs, terms, scores = pairs.take(kept), terms[kept], scores[kept]
        return _Scored(
            candidates=candidates,
            single=single,
            best_single=self._best_single(frontier, names, candidates, lexical),
            pairs=pairs,
            scores=scores,
            said=said[kept] * pairs.strength,
            triples=self._triples(frontier, names, pairs, terms, scores, share / scale),
            n_named=int((pairs.edges == NONE).sum()),
            fade=fade if index.dense is not None else fade**4,
        )

    def _best_single(
        self,
        frontier: Frontier,
        names: NamedTerms | None,
        candidates: Positions,
        lexical: Floats,
    ) -> float:
        """Return what the best node says by itself, of all that counts in pairs."""
        best = candidates[np.argsort(-lexical, kind="stable")[:_SINGLES]]
        whole = np.full(len(best), NO_ROW, dtype=np.int32)
        weights, place = term_weights(frontier, best, whole, self.phrases)
        weights = weights[place]
        if names is not None:
            weights = names.added(weights, np.full(len(best), NONE), best)
        return float(weights.sum(axis=1).max(initial=0))

    def _pairs(self, frontier: Frontier) -> Links:
        """Return the links of the best seeds, and the pairs that the question names."""
        seeds = frontier.seeds[: self.max_seeds]
        links = frontier.incident(seeds, self.strength, by_source=True)
        if self.named <= 0:
            return links
        return links.joined(named_pairs(frontier, seeds, self.named))

    def _trust(self, frontier: Frontier, found: _Scored) -> Trust:
        """Return how much links count for this question."""
        if self.trust is not None or not len(found.scores):
            return Trust(self.trust or 0.0, sure=self.trust == 1)
        pairs, best = found.pairs, int(found.said.argmax())
        # A row of a table and what it names halve a question, as a name does.
        expected = int(pairs.source_row[best]) != NO_ROW
        ends = [int(pairs.source[best]), int(pairs.target[best])]
        names = frontier.graph.nodes.names.take(ends)
        expected = expected or names_one(frontier.query, names)
        gain = self._gain(frontier, found)
        return trust_in_links(gain, expected=expected)

    def _gain(self, frontier: Frontier, found: _Scored) -> float:
        """Return what links add to the best single node, as a share of the question."""
        linked = float(found.said.max(initial=0))
        best_pair = float(found.scores.max(initial=0))
        if best_pair > 0:  # a third node adds to its pair as much as to its score
            linked *= max(1.0, float(found.triples.scores.max(initial=0)) / best_pair)
        return linked_gain(frontier, linked, found.best_single)

    def _source_weights(
        self, frontier: Frontier, edges: Positions, part: NDArray[np.int32]
    ) -> Floats:
        """Return what the sources of edges count, ``(m,)``.

        `part` says which row of its node each edge is about.
        """
        table = frontier.graph.edges
        mentions = NONE
        if MENTIONS in table.relations:
            mentions = table.relations.index(MENTIONS)
        names = np.zeros(len(edges), dtype=bool)
        real = edges != NONE
        names[real] = table.relation[edges[real]] == mentions
        weight = np.float32(self.mention_source_weight)
        return np.where(names & (part == NO_ROW), weight, np.float32(1))

    def _brought_by(
        self, frontier: Frontier, best: Ranked, linked: Ranked
    ) -> Positions:
        """Return the edge that brought each node; none for seeds that no link says
        better.
        """
        is_seed = np.isin(best.positions, frontier.seeds)
        # What is no seed was brought by a link, also where it stands by its own score.
        brought = spread(best.positions, linked.positions, linked.via + 1) - 1
        return np.asarray(
            np.where((best.via == NONE) & ~is_seed, brought, best.via), dtype=np.int64
        )

    def _triples(
        self,
        frontier: Frontier,
        names: NamedTerms | None,
        pairs: Links,
        terms: Floats,
        scores: Floats,
        per_term: float,
    ) -> _Triples:
        """Return third nodes that extend the best pairs, then the nodes in the middle.

        A triple scores a share of its pair's score times the strength of the link to
        the third node, what the third node says beyond the pair, and its cosine.
        """
        order = np.lexsort((pairs.target, pairs.source, pairs.edges, -scores))
        beam = order[: self.beam]
        # Each pair is left by both ends: by a row's own links where it is about a row,
        # by any where it is about the node.
        pair = np.concatenate([beam, beam])
        middle = np.concatenate([pairs.source[beam], pairs.target[beam]])
        part = np.concatenate([pairs.source_row[beam], pairs.target_row[beam]])

        table = frontier.graph.edges
        edges, end = table.incident_each(middle)
        outward = table.source[edges] == middle[end]
        here = np.where(outward, table.source_row[edges], table.target_row[edges])
        fits = (part[end] < 0) | (here == part[end])
        side = 2 * end + outward
        n_links = np.bincount(side[fits], minlength=2 * len(middle))[side]
        third = np.where(outward, table.target[edges], table.source[edges])
        third = third.astype(np.int64)
        strength = frontier.weights(edges, self.strength)
        fits &= (n_links <= _HUB) & (strength > 0)
        fits &= (third != pairs.source[pair[end]]) & (third != pairs.target[pair[end]])
        edges, end, third, outward, strength = (
            column[fits] for column in (edges, end, third, outward, strength)
        )

        of_pair = pair[end]
        third_row = np.where(outward, table.target_row[edges], table.source_row[edges])
        same_row = outward & (end < len(beam))
        same_row &= table.source_row[edges] == pairs.source_row[of_pair]
        keep = np.where(same_row, _KEEP_SAME, _KEEP)
        weights, place = term_weights(frontier, third, third_row, self.phrases)
        weights = weights[place]
        if names is not None:
            weights = names.added(weights, edges, third)
        extra = np.maximum(weights - terms[of_pair], 0).sum(axis=1)
        near = _THIRD_COSINE * frontier.index.dense_scores_at(frontier.query, third)
        counts = np.where(outward, 1, self._source_weights(frontier, edges, third_row))
        extended = counts * (
            keep * scores[of_pair] * strength + per_term * extra + near
        )
        return _Triples(
            np.append(third, middle[end]),
            np.append(extended, _MIDDLE * extended),
            np.append(edges, edges),
        )


class Covered(NamedTuple):
    """A ranking by coverage, the pairs that it was made of, and their scores,
    ``(m,)``.
    """

    ranked: Ranked
    pairs: Links
    scores: Floats


class _Triples(NamedTuple):
    """Nodes of triples, their scores, and the edges by which they join a pair."""

    nodes: Positions
    scores: Floats
    edges: Positions


@dataclass(frozen=True)
class _Scored:
    """What a question finds: single nodes, linked pairs, and triples.

    `best_single` and `said` are BM25F weights of the question's terms, in the best node
    and in each pair; `single` and `scores` have cosines in them too and are relative to
    the best of the question. `fade` is what coverage counts in a long question.
    """

    candidates: Positions
    single: Floats
    best_single: float
    pairs: Links
    scores: Floats
    said: Floats
    triples: _Triples
    n_named: int
    fade: float


def _best_of_each_edge(edges: Positions, scores: Floats) -> Positions:
    """Return which pairs to keep: the best of each edge, and all that are of none.

    An edge to a page may join any of its chunks: one link brings the chunk that answers
    best, not all of them.
    """
    order = np.lexsort((-scores, edges))
    ordered = edges[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (ordered[1:] != ordered[:-1]) | (ordered[1:] == NONE)
    return np.sort(order[first])


def _fused_with_search(frontier: Frontier, ranked: Ranked, trust: Trust) -> Ranked:
    """Fuse a ranking by links with hybrid search, which counts the less links are
    trusted.

    ``1 / (K + rank by links) + (1 − trust) / (K + rank by search)``. The first hit of
    the search stays first, unless links are sure.
    """
    n = len(ranked.positions)
    if not n:
        return ranked
    by_search = np.argsort(-frontier.node_scores(ranked.positions), kind="stable")
    search_rank = np.empty(n)
    search_rank[by_search] = np.arange(n)
    fused = 1 / (_RRF_K + np.arange(n)) + (1 - trust.share) / (_RRF_K + search_rank)
    if trust.share == 0:
        fused = -search_rank
    if not trust.sure:
        fused[by_search[0]] = np.inf
    order = np.argsort(-fused, kind="stable")
    scores = ranked.scores[order]
    scores[0] = scores.max()
    falling = np.minimum.accumulate(scores)
    details = dict(ranked.details)
    return Ranked(ranked.positions[order], falling, ranked.via[order], details)


def named_pairs(frontier: Frontier, positions: Positions, strength: float) -> Links:
    """Return pairs of nodes that the question names in different places.

    They have no edge. Of names that overlap the longest counts, as in any text; nodes
    that share a name are no pair.
    """
    question = f" {normalize_name(frontier.query)} "
    nodes_by_name: dict[str, list[int]] = {}
    names = frontier.graph.nodes.names.take(positions)
    for position, name in zip(positions.tolist(), names, strict=True):
        for form in spoken_forms(name):
            nodes_by_name.setdefault(f" {form} ", []).append(position)
    named = []
    for form in sorted(nodes_by_name, key=len, reverse=True):
        before, found, after = question.partition(form)
        if found:
            named.append(nodes_by_name[form])
            question = f"{before} · {after}"
    pairs = [
        (one, other)
        for these, those in combinations(named, 2)
        for one in these
        for other in those
        if one != other
    ]
    left, right = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    whole = np.full(len(pairs), NO_ROW, dtype=np.int32)
    weights = np.full(len(pairs), strength, dtype=np.float32)
    no_edge = np.full(len(pairs), NONE)
    return Links(frontier, no_edge, weights, left, right, whole, whole)

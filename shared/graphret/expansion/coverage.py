"""Coverage: rank nodes that answer a question together with a linked node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from graphret.edges import NO_ROW
from graphret.expansion.diversity import demote_repeats
from graphret.expansion.frontier import (
    NO_EDGE,
    STRENGTH,
    Floats,
    Frontier,
    Links,
    Positions,
    RankedNodes,
    best_of,
    spread,
    term_weights,
)
from graphret.expansion.pairs import (
    ScoredNodes,
    ScoredPairs,
    mention_weights,
    named_pairs,
    score_pairs,
)
from graphret.expansion.relations import NamedTerms
from graphret.expansion.triples import Triples, extend_pairs
from graphret.expansion.trust import (
    LinkTrust,
    linked_gain,
    mentions_any,
    trust_in_links,
)
from graphret.numeric import unique

# Number of terms past which terms, and coverage as a whole, count less and less: in a
# long question most pairs cover something.
_LONG_QUESTION = 16
# The constant of reciprocal ranks, where the ranking by links and hybrid search are
# fused. It is small, as the first places are what a reader sees.
_RRF_K = 2.0
# How many of the best nodes by BM25 may be the node that covers most by itself.
_SINGLES = 10

# A pair is close to the best one if it covers this share of the best one's weight.
_CLOSE = 0.9


@dataclass(frozen=True)
class Coverage:
    """Score linked pairs by how much of the question their two ends cover together.

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

    def rank(self, frontier: Frontier, k: int) -> RankedNodes:
        """Rank the seeds and what they are linked to."""
        return self.cover(frontier).ranked

    def cover(self, frontier: Frontier) -> CoverageResult:
        """Return the ranking, with the pairs and scores behind it."""
        scored = self._scored(frontier)
        trust = self._trust(frontier, scored)
        by_links = self._rank_by_links(frontier, scored, trust.share)
        penalty = self.redundancy_penalty * trust.share**2
        penalty /= 1 + self._weight(scored, trust.share)
        by_links = demote_repeats(frontier, by_links, penalty)

        ranked = _fused_with_search(frontier, by_links, trust)
        pairs = scored.pairs
        n_named = int((pairs.links.edges == NO_EDGE).sum())
        ranked.details.update(
            links=len(pairs.links) - n_named,
            named=n_named,
            candidates=len(by_links.positions),
            trust=round(trust.share, 3),
        )
        return CoverageResult(ranked, pairs.links, pairs.scores)

    def _scored(self, frontier: Frontier) -> _Scored:
        """Score single nodes, pairs and triples, all relative to the best."""
        index, query = frontier.index, frontier.query
        links = self._links(frontier)
        nodes = unique(frontier.seeds, links.source, links.target)
        bm25 = index.lexical.score_at(query, nodes)
        cosines = index.dense_scores_at(query, nodes)
        names = NamedTerms.of(frontier)
        terms = links.joint_term_weights(self.phrases)
        if names is not None:
            terms = names.added(terms, links.edges, links.source, links.target)
        weights = terms.sum(axis=1)
        best = max(float(weights.max(initial=0)), float(bm25.max(initial=0)), 1e-9)

        # The share of words in a node's own score, and in a pair's. Where words alone
        # speak for a pair, a long question fades it sooner.
        words = index.share_of_words(query)
        n_terms = len(index.lexical.term_ids(query))
        fade = min(1.0, _LONG_QUESTION / max(1, n_terms))
        if index.dense is None:
            words_of_pair, fade_of_links = 1.0, fade**4
        else:
            words_of_pair = (1 - self.meaning * (1 - words)) * fade
            fade_of_links = fade

        own_scores = words * bm25 / best + (1 - words) * cosines
        if frontier.seed_scores is not None:
            own_scores = np.maximum(own_scores, frontier.node_scores(nodes))
        single = ScoredNodes(nodes, own_scores, cosines)
        pairs = score_pairs(links, terms, single, words_of_pair, best)
        triples = extend_pairs(
            pairs,
            names,
            beam=self.beam,
            strength=self.strength,
            phrases=self.phrases,
            mention_source_weight=self.mention_source_weight,
            per_term=words_of_pair / best,
        )
        best_weight = self._weight_of_best_node(frontier, names, nodes, bm25)
        return _Scored(single, pairs, triples, best_weight, fade_of_links)

    def _links(self, frontier: Frontier) -> Links:
        """Return the links of the best seeds, and the pairs that the question names."""
        seeds = frontier.seeds[: self.max_seeds]
        links = frontier.incident(seeds, self.strength, by_source=True)
        if self.named <= 0:
            return links
        return links.joined(named_pairs(frontier, seeds, self.named))

    def _weight_of_best_node(
        self,
        frontier: Frontier,
        names: NamedTerms | None,
        nodes: Positions,
        bm25: Floats,
    ) -> float:
        """Return the weight that the best node covers by itself, as in pairs."""
        best = nodes[np.argsort(-bm25, kind="stable")[:_SINGLES]]
        no_rows = np.full(len(best), NO_ROW, dtype=np.int32)
        terms = term_weights(frontier, best, no_rows, self.phrases)
        if names is not None:
            terms = names.added(terms, np.full(len(best), NO_EDGE), best)
        return float(terms.sum(axis=1).max(initial=0))

    def _trust(self, frontier: Frontier, scored: _Scored) -> LinkTrust:
        """Return how much links count for this question."""
        if self.trust is not None or not len(scored.pairs.scores):
            return LinkTrust(self.trust or 0.0, sure=self.trust == 1)
        gain = linked_gain(frontier, scored.best_linked_weight, scored.best_node_weight)
        return trust_in_links(gain, expected=_expects_link(frontier, scored.pairs))

    def _weight(self, scored: _Scored, trust: float) -> float:
        """Return the weight of the best pair against a node's own score."""
        return self.weight * scored.fade * trust

    def _rank_by_links(
        self, frontier: Frontier, scored: _Scored, trust: float
    ) -> RankedNodes:
        """Rank nodes by their own scores and the best pair or triple each is in.

        ``score(n) = (own(n) + w · best(n) / max_m best(m)) / (1 + w)``
        """
        single, linked = scored.single, self._ends_of_links(frontier, scored)
        best = best_of(
            np.concatenate([single.positions, linked.positions]),
            np.concatenate([single.scores.astype(np.float32), linked.scores]),
            np.concatenate([np.full(len(single.positions), NO_EDGE), linked.via]),
        )
        highest = max(float(best.scores.max(initial=0)), 1e-9)
        weight = self._weight(scored, trust)
        own_scores = frontier.node_scores(best.positions)
        scores = (own_scores + weight * best.scores / highest) / (1 + weight)
        via = _brought_by(frontier, best, best_of(*linked))
        return best_of(best.positions, scores.astype(np.float32), via)

    def _ends_of_links(self, frontier: Frontier, scored: _Scored) -> _Ends:
        """Return each end of every pair, then the third and middle nodes of triples."""
        pairs, triples, links = scored.pairs, scored.triples, scored.pairs.links
        # A text that names a page counts less in their pair than the page does.
        naming = mention_weights(
            frontier, links.edges, links.source_row, self.mention_source_weight
        )
        scores = [pairs.scores * naming, pairs.scores, triples.scores]
        return _Ends(
            np.concatenate([links.source, links.target, triples.nodes]),
            np.concatenate(scores).astype(np.float32),
            np.concatenate([links.edges, links.edges, triples.edges]),
        )


class CoverageResult(NamedTuple):
    """A ranking by coverage, the pairs behind it, and their scores."""

    ranked: RankedNodes
    pairs: Links
    scores: Floats


class _Ends(NamedTuple):
    """Nodes at the ends of links, the scores of these, and their edges, ``(m,)``."""

    positions: Positions
    scores: Floats
    via: Positions


@dataclass(frozen=True)
class _Scored:
    """The candidates of a question: single nodes, linked pairs, and triples.

    `best_node_weight` is the BM25F weight of the question's terms in the best node;
    `fade` scales links down in a long question.
    """

    single: ScoredNodes
    pairs: ScoredPairs
    triples: Triples
    best_node_weight: float
    fade: float

    @property
    def best_linked_weight(self) -> float:
        """The BM25F weight of the question's terms in the best pair or triple."""
        weight = float(self.pairs.weights.max(initial=0))
        best_pair = float(self.pairs.scores.max(initial=0))
        if best_pair > 0:  # a third node adds to its pair as much as to its score
            best_triple = float(self.triples.scores.max(initial=0))
            weight *= max(1.0, best_triple / best_pair)
        return weight


def _expects_link(frontier: Frontier, pairs: ScoredPairs) -> bool:
    """Tell whether the question, or a table row, joins the nodes of its best pair.

    A row and the page it names split a question, as a name in the question does. A row
    has few words, so one that comes close to the best pair is enough.
    """
    best, links = int(pairs.weights.argmax()), pairs.links
    close = pairs.weights >= _CLOSE * pairs.weights[best]
    if np.any(links.source_row[close] != NO_ROW):
        return True
    best_pair = [int(links.source[best]), int(links.target[best])]
    return mentions_any(frontier.query, frontier.graph.nodes.names.take(best_pair))


def _brought_by(
    frontier: Frontier, best: RankedNodes, linked: RankedNodes
) -> Positions:
    """Return the edge that brought each node; none for seeds best by themselves.

    A node that is no seed was brought by a link even if its own score is its best.
    """
    is_seed = np.isin(best.positions, frontier.seeds)
    brought = spread(best.positions, linked.positions, linked.via + 1) - 1
    by_itself = (best.via == NO_EDGE) & ~is_seed
    return np.where(by_itself, brought, best.via).astype(np.int64)


def _fused_with_search(
    frontier: Frontier, ranked: RankedNodes, trust: LinkTrust
) -> RankedNodes:
    """Fuse a ranking by links with hybrid search; the more trust, the less search.

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
    return RankedNodes(ranked.positions[order], falling, ranked.via[order], details)

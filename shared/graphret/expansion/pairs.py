"""Linked pairs of nodes, and how much of a question each says with its two ends."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from graphret.edges import NO_ROW
from graphret.expansion.frontier import (
    MENTIONS,
    NO_EDGE,
    Floats,
    Frontier,
    Links,
    Positions,
    Rows,
)
from graphret.text import normalize_name, spoken_forms


@dataclass(frozen=True)
class ScoredNodes:
    """Nodes by themselves: their positions, ascending, scores and cosines, ``(n,)``.

    Scores are relative to the question's best node or pair, as those of pairs are.
    """

    positions: Positions
    scores: Floats
    cosines: Floats

    def cosines_at(self, positions: Positions) -> Floats:
        """Return the cosines of some of the nodes."""
        return self.cosines[np.searchsorted(self.positions, positions)]


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of nodes, and what the two say of a question together.

    Parameters
    ----------
    links
        The pairs.
    terms
        The weight of each of the question's terms in each pair, ``(m, t)``.
    weights
        Their sum, times the strength of the link, ``(m,)``.
    scores
        The same as a share of the question's best, with the cosines, ``(m,)``.
    """

    links: Links
    terms: Floats
    weights: Floats
    scores: Floats


def score_pairs(
    links: Links,
    terms: Floats,
    nodes: ScoredNodes,
    share_of_words: float,
    best_weight: float,
) -> ScoredPairs:
    """Score pairs by the terms that they cover and by their cosines.

    Parameters
    ----------
    terms
        The weight of each of the question's terms in each pair, ``(m, t)``.
    nodes
        Those at the ends of the links.
    share_of_words
        What terms count in a score; the rest is that of cosines.
    best_weight
        The highest BM25F weight of a node or pair.
    """
    weights = terms.sum(axis=1)
    left, right = nodes.cosines_at(links.source), nodes.cosines_at(links.target)
    cosines = 0.5 * np.maximum(left, right) + 0.25 * (left + right)
    mixed = share_of_words * weights / best_weight + (1 - share_of_words) * cosines
    scores = mixed * links.strength
    kept = _best_of_each_edge(links.edges, scores)
    links = links.take(kept)
    weights = weights[kept] * links.strength
    return ScoredPairs(links, terms[kept], weights, scores[kept])


def _best_of_each_edge(edges: Positions, scores: Floats) -> Positions:
    """Return which pairs to keep: the best of each edge, and all that are of none.

    An edge to a page may join any of its chunks: one link brings the chunk that answers
    best, not all of them.
    """
    order = np.lexsort((-scores, edges))
    ordered = edges[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (ordered[1:] != ordered[:-1]) | (ordered[1:] == NO_EDGE)
    return np.sort(order[first])


def mention_weights(
    frontier: Frontier, edges: Positions, source_rows: Rows, weight: float
) -> Floats:
    """Return what the sources of edges count, ``(m,)``.

    A text that names the other node counts `weight`, all others 1: a page is named by
    many, and names few. `source_rows` says which row of its node each edge is about.
    """
    table = frontier.graph.edges
    is_mention = np.zeros(len(edges), dtype=bool)
    if MENTIONS in table.relations:
        real = edges != NO_EDGE
        mentions = table.relations.index(MENTIONS)
        is_mention[real] = table.relation[edges[real]] == mentions
    by_text = is_mention & (source_rows == NO_ROW)
    return np.where(by_text, np.float32(weight), np.float32(1))


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
    no_edge = np.full(len(pairs), NO_EDGE)
    return Links(frontier, no_edge, weights, left, right, whole, whole)

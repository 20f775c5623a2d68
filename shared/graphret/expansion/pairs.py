"""Linked pairs of nodes, and how much of a question each pair covers."""

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
    """Single nodes: their positions, ascending, scores and cosines, ``(n,)``.

    Scores are relative to the question's best node or pair, like those of pairs.
    """

    positions: Positions
    scores: Floats
    cosines: Floats

    def cosines_at(self, positions: Positions) -> Floats:
        """Return the cosines of some of the nodes."""
        return self.cosines[np.searchsorted(self.positions, positions)]


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of nodes, and how much of a question each pair covers.

    Parameters
    ----------
    links
        The pairs.
    terms
        The weight of each of the question's terms in each pair, ``(m, t)``.
    weights
        Their sum, times the strength of the link, ``(m,)``.
    scores
        The weights as a share of the question's best, with the cosines, ``(m,)``.
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
    source_cosines, target_cosines = (
        nodes.cosines_at(links.source),
        nodes.cosines_at(links.target),
    )
    cosines = 0.5 * np.maximum(source_cosines, target_cosines) + 0.25 * (
        source_cosines + target_cosines
    )
    mixed = share_of_words * weights / best_weight + (1 - share_of_words) * cosines
    scores = mixed * links.strength
    best = _best_of_each_edge(links.edges, scores)
    links = links.take(best)
    weights = weights[best] * links.strength
    return ScoredPairs(links, terms[best], weights, scores[best])


def _best_of_each_edge(edges: Positions, scores: Floats) -> Positions:
    """Return which pairs to keep: the best of each edge, and all without an edge.

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
    """Return the weights of the sources of edges, ``(m,)``.

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

    They have no edge. Of overlapping names the longest counts, as in any text; nodes
    that share a name are not paired.
    """
    question = f" {normalize_name(frontier.query)} "
    nodes_by_name: dict[str, list[int]] = {}
    names = frontier.graph.nodes.names.take(positions)
    for position, name in zip(positions.tolist(), names, strict=True):
        for form in spoken_forms(name):
            nodes_by_name.setdefault(f" {form} ", []).append(position)
    nodes_per_mention = []
    for form in sorted(nodes_by_name, key=len, reverse=True):
        before, mention, after = question.partition(form)
        if mention:
            nodes_per_mention.append(nodes_by_name[form])
            question = f"{before} · {after}"
    pairs = [
        (source, target)
        for sources, targets in combinations(nodes_per_mention, 2)
        for source in sources
        for target in targets
        if source != target
    ]
    source, target = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    no_row = np.full(len(pairs), NO_ROW, dtype=np.int32)
    weights = np.full(len(pairs), strength, dtype=np.float32)
    no_edge = np.full(len(pairs), NO_EDGE)
    return Links(frontier, no_edge, weights, source, target, no_row, no_row)

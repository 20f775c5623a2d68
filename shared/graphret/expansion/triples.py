"""Triples: a linked pair, and a third node that covers what the pair leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from graphret.edges import NO_ROW
from graphret.expansion.frontier import (
    Floats,
    Links,
    Mask,
    Positions,
    Rows,
    term_weights,
)
from graphret.expansion.pairs import ScoredPairs, mention_weights
from graphret.expansion.relations import NamedTerms

# A third node's share of its pair's score, where the text or row that joins the pair
# names it too and elsewhere; the weight of its own cosine; the middle node's share of a
# triple's score; the most links of a node that extends a pair.
_KEEP_SAME, _KEEP, _THIRD_COSINE, _MIDDLE, _HUB = 0.8, 0.65, 0.1, 0.95, 100


class Triples(NamedTuple):
    """Nodes of triples, their scores, and the edges by which they join a pair."""

    nodes: Positions
    scores: Floats
    edges: Positions


def extend_pairs(
    pairs: ScoredPairs,
    names: NamedTerms | None,
    *,
    beam: int,
    strength: Mapping[str, float],
    phrases: float,
    mention_source_weight: float,
    per_term: float,
) -> Triples:
    """Return third nodes that extend the best pairs, then the nodes in the middle.

    A triple's score adds up a share of its pair's score times the strength of the link
    to the third node, what that node covers beyond the pair, and its cosine.

    Parameters
    ----------
    names
        The weights of the question's terms in relations and labels, if any.
    beam
        How many of the best pairs are extended.
    strength, phrases, mention_source_weight
        Those of `Coverage`.
    per_term
        What a BM25F weight of 1 counts in a score.
    """
    links, frontier = pairs.links, pairs.links.frontier
    best_first = np.lexsort((links.target, links.source, links.edges, -pairs.scores))
    onward = _onward_edges(links, best_first[:beam], strength)

    terms = term_weights(frontier, onward.third, onward.third_row, phrases)
    if names is not None:
        terms = names.added(terms, onward.edges, onward.third)
    beyond_pair = np.maximum(terms - pairs.terms[onward.pair], 0).sum(axis=1)
    cosines = frontier.index.dense_scores_at(frontier.query, onward.third)
    keep = np.where(onward.same_row, _KEEP_SAME, _KEEP)
    naming = mention_weights(
        frontier, onward.edges, onward.third_row, mention_source_weight
    )
    scores = np.where(onward.outward, 1, naming) * (
        keep * pairs.scores[onward.pair] * onward.strength
        + per_term * beyond_pair
        + _THIRD_COSINE * cosines
    )
    return Triples(
        np.append(onward.third, onward.middle),
        np.append(scores, _MIDDLE * scores),
        np.append(onward.edges, onward.edges),
    )


@dataclass(frozen=True)
class _Extensions:
    """Edges from linked pairs to third nodes, in columns, ``(m,)`` each.

    Parameters
    ----------
    pair, middle
        Which pair is extended, and at which of its two nodes.
    edges, strength
        The edges by position, and their weights by the ranking's factors.
    outward
        Whether an edge leads from the middle node to the third.
    third, third_row
        The third nodes, and which rows of them the edges are about.
    same_row
        Whether the text or the row that joins the pair names the third node too.
    """

    pair: Positions
    middle: Positions
    edges: Positions
    strength: Floats
    outward: Mask
    third: Positions
    third_row: Rows
    same_row: Mask

    def take(self, chosen: Mask) -> _Extensions:
        """Return some of the edges."""
        columns = (getattr(self, column.name) for column in fields(self))
        return _Extensions(*(column[chosen] for column in columns))


def _onward_edges(
    links: Links, beam: Positions, strength: Mapping[str, float]
) -> _Extensions:
    """Return the edges that lead from pairs to a third node, except through hubs.

    They leave a pair at both ends: only the row's edges where an end is about a row,
    all edges where it is about the node.
    """
    frontier, table = links.frontier, links.frontier.graph.edges
    pair = np.concatenate([beam, beam])
    middle = np.concatenate([links.source[beam], links.target[beam]])
    row = np.concatenate([links.source_row[beam], links.target_row[beam]])

    edges, end = table.incident_each(middle)
    outward = table.source[edges] == middle[end]
    from_row = np.where(outward, table.source_row[edges], table.target_row[edges])
    third = np.where(outward, table.target[edges], table.source[edges])
    third_row = np.where(outward, table.target_row[edges], table.source_row[edges])
    same_row = outward & (end < len(beam))
    same_row &= table.source_row[edges] == links.source_row[pair[end]]
    onward = _Extensions(
        pair=pair[end],
        middle=middle[end],
        edges=edges,
        strength=frontier.weights(edges, strength),
        outward=outward,
        third=third.astype(np.int64),
        third_row=third_row,
        same_row=same_row,
    )

    fits = (row[end] == NO_ROW) | (from_row == row[end])
    direction = 2 * end + outward
    n_links = np.bincount(direction[fits], minlength=2 * len(middle))[direction]
    fits &= (n_links <= _HUB) & (onward.strength > 0)
    fits &= onward.third != links.source[onward.pair]
    fits &= onward.third != links.target[onward.pair]
    return onward.take(fits)

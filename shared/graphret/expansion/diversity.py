"""Demote hits that repeat the words of the hits before them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graphret.expansion.frontier import Frontier, RankedNodes

# How many places go to nodes that say something new, chosen from twice as many.
_PLACES = 20


def demote_repeats(
    frontier: Frontier, ranked: RankedNodes, penalty: float
) -> RankedNodes:
    """Return the ranking with repetitive nodes moved down within its first places.

    Greedy, as maximal marginal relevance (Carbonell and Goldstein 1998): the next node
    is the one with the highest score, less what earlier nodes have already covered.

    Parameters
    ----------
    penalty
        What a node that adds nothing loses, as a share of the weight of the node that
        covers most.
    """
    head = ranked.positions[: 2 * _PLACES]
    words = frontier.index.lexical.term_weights(frontier.query, head)
    if penalty <= 0 or not words.any():
        return ranked
    words *= penalty / words.sum(axis=1).max()

    remaining = ranked.scores[: len(head)].copy()
    covered = np.zeros_like(words[0])
    chosen, scores = [], []
    for _ in range(min(_PLACES, len(head))):
        marginal = remaining - np.minimum(words, covered).sum(axis=1)
        best = int(marginal.argmax())
        chosen.append(best)
        scores.append(marginal[best])
        remaining[best] = -np.inf
        covered = np.maximum(covered, words[best])

    not_chosen = np.delete(np.arange(len(ranked.positions)), chosen)
    order = np.concatenate([chosen, not_chosen]).astype(np.int64)
    falling = np.minimum.accumulate(np.concatenate([scores, ranked.scores[not_chosen]]))
    return replace(
        ranked,
        positions=ranked.positions[order],
        scores=falling.astype(np.float32),
        via=ranked.via[order],
    )

"""What repeats the words of hits before it comes later in a ranking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graphret.expansion.frontier import Frontier, RankedNodes

# So many places go to what says something new, of twice as many nodes.
_PLACES = 20


def demote_repeats(
    frontier: Frontier, ranked: RankedNodes, penalty: float
) -> RankedNodes:
    """Return the ranking with repeats later in its first places.

    Greedy, as maximal marginal relevance (Carbonell and Goldstein 1998): the next node
    is the one whose score, less what those before it have said, is highest.

    Parameters
    ----------
    penalty
        What a node loses that says nothing new, as a share of the words of the node
        that says most.
    """
    head = ranked.positions[: 2 * _PLACES]
    words = frontier.index.lexical.term_weights(frontier.query, head)
    if penalty <= 0 or not words.any():
        return ranked
    words *= penalty / words.sum(axis=1).max()

    remaining = ranked.scores[: len(head)].copy()
    said = np.zeros_like(words[0])
    chosen, scores = [], []
    for _ in range(min(_PLACES, len(head))):
        now = remaining - np.minimum(words, said).sum(axis=1)
        best = int(now.argmax())
        chosen.append(best)
        scores.append(now[best])
        remaining[best] = -np.inf
        said = np.maximum(said, words[best])

    rest = np.delete(np.arange(len(ranked.positions)), chosen)
    order = np.concatenate([chosen, rest]).astype(np.int64)
    falling = np.minimum.accumulate(np.concatenate([scores, ranked.scores[rest]]))
    return replace(
        ranked,
        positions=ranked.positions[order],
        scores=falling.astype(np.float32),
        via=ranked.via[order],
    )

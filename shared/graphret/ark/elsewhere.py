"""Scores of many neighbours by an index that lies elsewhere, of as many of them as it takes to know the best."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graphret.ark.grouped import Grouped
from graphret.ark.neighborhood import scores_of
from graphret.search.index import Matches, TextIndex, top_k

#: How many times as many nodes as are wanted a search returns, until the best are known.
_SEARCHED = (5, 20, 100)
#: How many times as many matches are asked for where these can be had alone, were all of them among the neighbours:
_MATCHED = (5, 20, 50)
#: a hundred cost a server little more than one, and more than ten thousand as much as all.
_LEAST, _MOST = 100, 10_000
#: Where the best do not come to be known so, so many of the neighbours are scored.
_SCORED = 10_000
#: Lists of matches that are kept of a node, at most, and how long they may be.
_KEPT, _LONG = 16, 1_000


@runtime_checkable
class _Hitting(Protocol):
    """An index that can say what matches without what it fills up with, ties at the end in any order."""

    @property
    def words_alone(self) -> bool: ...

    def hits(self, query: str, n: int) -> Matches: ...


def scores_elsewhere(
    index: TextIndex, query: str, k: int, near: Grouped, known: dict[tuple[str, int], Matches]
) -> NDArray[np.float32]:
    """Return the scores of neighbours, of as many as it takes to know the `k` best.

    The index's ranking of all nodes ranks the neighbours among them. So the best are known once they score more than
    the last node that it returned, and all are known once that one scores nothing. Where neither comes about soon, the
    neighbours are scored, the heaviest of very many.

    Parameters
    ----------
    near
        The neighbours, ``(n,)``.
    known
        Matches of queries, which are added to.
    """
    nodes, neighbors = near.links.nodes, near.positions
    wanted = min(k, len(neighbors))
    for found, last, whole in _rankings(index, query, wanted, len(nodes) / len(neighbors), known):
        at = nodes.find(found.ids)
        place = np.minimum(np.searchsorted(neighbors, at), len(neighbors) - 1)
        there = neighbors[place] == at
        values = np.asarray(found.scores, dtype=np.float32)[there]
        scores = np.full(len(neighbors), 0.0 if last == 0 else -np.inf, dtype=np.float32)
        scores[place[there]] = values
        if whole or last == 0 or np.count_nonzero(values > last) >= wanted:
            return scores
    scores = np.full(len(neighbors), -np.inf, dtype=np.float32)
    heaviest = top_k(near.weights, _SCORED)
    scored = scores_of(index, query, nodes.ids.take(neighbors[heaviest]))
    scores[heaviest] = list(scored.values())
    return scores


def _rankings(
    index: TextIndex, query: str, k: int, share: float, known: dict[tuple[str, int], Matches]
) -> Iterator[tuple[Matches, np.float32, bool]]:
    """Go through longer and longer rankings: each, the highest score of what is not in it, and whether it has all.

    Parameters
    ----------
    share
        How many nodes there are, at least, for each of the neighbours.
    """
    if isinstance(index, _Hitting) and index.words_alone:
        sizes = [math.ceil(times * k * share) for times in _MATCHED]
        if sizes[0] > _MOST:
            return  # few are scored sooner
        for n in dict.fromkeys(min(max(size, _LEAST), _MOST) for size in sizes):
            found = known.get((query, n))
            if found is None:
                found = index.hits(query, n)
                if n <= _LONG:
                    known[query, n] = found
                for oldest in list(known)[:-_KEPT]:
                    known.pop(oldest, None)
            yield found, found.scores[-1] if len(found) == n else np.float32(0), False
    else:
        for times in _SEARCHED:
            found = index.search(query, times * k)
            last = np.float32(found.scores[-1] if len(found) else 0)
            yield found, last, len(found) < times * k

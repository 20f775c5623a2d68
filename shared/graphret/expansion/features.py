"""What a trained ranking is told of a candidate: what `Coverage` found out of it, in numbers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.expansion.coverage import Covered
from graphret.expansion.frontier import NONE, Frontier
from graphret.search.analysis import Analyzer

#: Features by name, ``(n,)`` each; NaN where one does not apply.
Columns: TypeAlias = dict[str, NDArray[Any]]


def features_of(frontier: Frontier, covered: Covered, depth: int) -> Columns:
    """Return the features of the first `depth` nodes of a ranking.

    None of them says which node it is: what is learned of them holds for nodes that are added later, too.
    """
    at = covered.ranked.positions[:depth]
    return _alone(frontier, covered, at) | _in_pairs(frontier, covered, at)


def _alone(frontier: Frontier, covered: Covered, at: NDArray[np.int64]) -> Columns:
    """What a node is, and says by itself."""
    lexical, score = frontier.index.lexical, covered.ranked.scores[: len(at)]
    said, names = lexical.term_weights(frontier.query, at), frontier.graph.nodes.names.take(at)
    codes: dict[str, int] = {}
    bearers = np.asarray([codes.setdefault(name, len(codes)) for name in names], dtype=np.int64)
    best = np.zeros(len(codes))
    np.maximum.at(best, bearers, score)
    edges, terms = frontier.graph.edges, lexical.terms
    starts = {"links out": edges.out_indptr, "links in": edges.by_target[0], "rows": terms.part_indptr}
    if "body" in terms.fields:
        starts["terms"] = terms.fields["body"][0]
    return {
        "score": score / max(float(score.max(initial=0)), 1e-9),
        "place": np.log1p(np.arange(1, len(at) + 1)),
        "score by itself": frontier.own(at),
        "score behind a namesake": best[bearers] - score,
        "namesakes": np.bincount(bearers)[bearers],
        "words": said.sum(axis=1) / covered.scale,
        "terms said": np.count_nonzero(said, axis=1) / max(1, said.shape[1]),
        "meaning": frontier.index.near_at(frontier.query, at),
        "name said": _said(lexical.analyzer, names, frontier.query),
        **{name: np.log1p(start[at + 1] - start[at]) for name, start in starts.items()},
    }


def _in_pairs(frontier: Frontier, covered: Covered, at: NDArray[np.int64]) -> Columns:
    """How many pairs a node is in, what the best of them scores, and how much of the question its link says."""
    pairs, n = covered.pairs, len(at)
    place = np.zeros(len(frontier.graph.nodes), dtype=np.int64)
    place[covered.ranked.positions] = np.arange(1, len(covered.ranked.positions) + 1)
    ends, others = np.concatenate([pairs.source, pairs.target]), np.concatenate([pairs.target, pairs.source])
    near = np.flatnonzero((place[ends] > 0) & (place[ends] <= n))
    node, score = place[ends[near]] - 1, np.tile(covered.together, 2)[near]
    best, nearest, which = np.full(n, np.nan), np.full(n, np.nan), np.full(n, len(ends))
    np.fmax.at(best, node, score)
    np.fmin.at(nearest, node, place[others[near]])
    is_best = score >= best[node]
    np.minimum.at(which, node[is_best], near[is_best])

    paired = np.flatnonzero(which < len(ends))
    edge = pairs.edges[which[paired] % max(1, len(pairs))]
    linked, edge = paired[edge != NONE], edge[edge != NONE]
    about = frontier.graph.edges.properties.take(edge)
    said = np.full((2, n), np.nan)
    for row, key in zip(said, ("column", "name"), strict=True):
        texts = [str(link.get(key) or "") for link in about]
        row[linked] = _said(frontier.index.lexical.analyzer, texts, frontier.query)
    return {
        "pairs": np.log1p(np.bincount(node, minlength=n)),
        "pair": best,
        "best place of a neighbour": np.log1p(nearest),
        "link's column said": said[0],
        "link's name said": said[1],
    }


def _said(analyzer: Analyzer, texts: list[str], query: str) -> NDArray[np.float64]:
    """Return the share of the terms of each text that the question says."""
    asked, terms_of = set(analyzer.of_query(query)), _analyzed(analyzer)
    terms = [terms_of(text) for text in texts]
    return np.asarray([len(asked & one) / len(one) if one else np.nan for one in terms], dtype=np.float64)


@lru_cache(maxsize=8)
def _analyzed(analyzer: Analyzer) -> Any:
    return lru_cache(maxsize=100_000)(lambda text: frozenset(analyzer(text)))

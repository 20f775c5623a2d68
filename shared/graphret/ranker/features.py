"""What a trained ranking is told of a candidate: what `Coverage` found out of it, in
numbers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.expansion.frontier import NO_EDGE, Frontier, Links, RankedNodes
from graphret.search.analysis import Analyzer

#: Features by name, ``(n,)`` each; NaN where one does not apply.
Columns: TypeAlias = dict[str, NDArray[Any]]


def features_of(
    frontier: Frontier,
    ranked: RankedNodes,
    pairs: Links,
    together: NDArray[np.float32],
    depth: int,
) -> Columns:
    """Return the features of the first `depth` nodes of a ranking by pairs and their
    scores.

    None of them says which node it is: what is learned of them holds for nodes that are
    added later, too.
    """
    return _alone(frontier, ranked, depth) | _in_pairs(
        frontier, ranked, pairs, together, depth
    )


def _alone(frontier: Frontier, ranked: RankedNodes, depth: int) -> Columns:
    """What a node is, and says by itself."""
    lexical, at, score = (
        frontier.index.lexical,
        ranked.positions[:depth],
        ranked.scores[:depth],
    )
    said, names = (
        lexical.term_weights(frontier.query, at),
        frontier.graph.nodes.names.take(at),
    )
    codes: dict[str, int] = {}
    bearers = np.asarray(
        [codes.setdefault(name, len(codes)) for name in names], dtype=np.int64
    )
    best = np.zeros(len(codes))
    np.maximum.at(best, bearers, score)
    edges, terms = frontier.graph.edges, lexical.terms
    starts = {
        "links out": edges.out_indptr,
        "links in": edges.by_target[0],
        "rows": terms.row_indptr,
    }
    if "body" in terms.fields:
        starts["terms"] = terms.fields["body"][0]
    return {
        "score": _to_the_best(score),
        "place": np.log1p(np.arange(1, len(at) + 1)),
        "score by itself": frontier.node_scores(at),
        "score behind a namesake": best[bearers] - score,
        "namesakes": np.bincount(bearers)[bearers],
        "words": _to_the_best(said.sum(axis=1)),
        "terms said": np.count_nonzero(said, axis=1) / max(1, said.shape[1]),
        "meaning": frontier.index.dense_scores_at(frontier.query, at),
        "name said": _said(lexical.analyzer, names, frontier.query),
        **{name: np.log1p(start[at + 1] - start[at]) for name, start in starts.items()},
    }


def _in_pairs(
    frontier: Frontier,
    ranked: RankedNodes,
    pairs: Links,
    together: NDArray[np.float32],
    depth: int,
) -> Columns:
    """How many pairs a node is in, what the best of them scores, and how much of the
    question its link says.
    """
    n = min(depth, len(ranked.positions))
    place = np.zeros(len(frontier.graph.nodes), dtype=np.int64)
    place[ranked.positions] = np.arange(1, len(ranked.positions) + 1)
    ends, others = (
        np.concatenate([pairs.source, pairs.target]),
        np.concatenate([pairs.target, pairs.source]),
    )
    near = np.flatnonzero((place[ends] > 0) & (place[ends] <= n))
    node, score = place[ends[near]] - 1, np.tile(together, 2)[near]
    best, nearest, which = np.full(n, np.nan), np.full(n, np.nan), np.full(n, len(ends))
    np.fmax.at(best, node, score)
    np.fmin.at(nearest, node, place[others[near]])
    is_best = score >= best[node]
    np.minimum.at(which, node[is_best], near[is_best])

    paired = np.flatnonzero(which < len(ends))
    edge = pairs.edges[which[paired] % max(1, len(pairs))]
    linked, edge = paired[edge != NO_EDGE], edge[edge != NO_EDGE]
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


def _to_the_best(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(values / max(float(values.max(initial=0)), 1e-9))


def _said(analyzer: Analyzer, texts: list[str], query: str) -> NDArray[np.float64]:
    """Return the share of the terms of each text that the question says."""
    asked, terms_of = set(analyzer.of_query(query)), _analyzed(analyzer)
    terms = [terms_of(text) for text in texts]
    return np.asarray(
        [len(asked & one) / len(one) if one else np.nan for one in terms],
        dtype=np.float64,
    )


@lru_cache(maxsize=8)
def _analyzed(analyzer: Analyzer) -> Any:
    return lru_cache(maxsize=100_000)(lambda text: frozenset(analyzer(text)))

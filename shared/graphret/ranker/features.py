"""The features of candidates that a trained ranking reads, from `Coverage`."""

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
    """Return the features of the first `depth` nodes of a ranking by pairs.

    `together` are the scores of the pairs. No feature identifies a node: what is
    learned from them also holds for nodes that are added later.
    """
    return _node_features(frontier, ranked, depth) | _pair_features(
        frontier, ranked, pairs, together, depth
    )


def _node_features(frontier: Frontier, ranked: RankedNodes, depth: int) -> Columns:
    """Return the features of nodes by themselves."""
    lexical, at, score = (
        frontier.index.lexical,
        ranked.positions[:depth],
        ranked.scores[:depth],
    )
    term_weights = lexical.term_weights(frontier.query, at)
    names = frontier.graph.nodes.names.take(at)
    codes: dict[str, int] = {}
    name_codes = np.asarray(
        [codes.setdefault(name, len(codes)) for name in names], dtype=np.int64
    )
    best = np.zeros(len(codes))
    np.maximum.at(best, name_codes, score)
    edges, terms = frontier.graph.edges, lexical.terms
    lengths = {
        name: starts[at + 1] - starts[at]
        for name, starts in (
            ("links out", edges.out_indptr),
            ("links in", edges.by_target[0]),
            ("rows", terms.row_indptr),
        )
    }
    if "body" in terms.fields:
        lengths["terms"] = terms.fields["body"].take(at).lengths
    return {
        "score": _to_the_best(score),
        "place": np.log1p(np.arange(1, len(at) + 1)),
        "score by itself": frontier.node_scores(at),
        "score behind a namesake": best[name_codes] - score,
        "namesakes": np.bincount(name_codes)[name_codes],
        "words": _to_the_best(term_weights.sum(axis=1)),
        "terms said": np.count_nonzero(term_weights, axis=1)
        / max(1, term_weights.shape[1]),
        "meaning": frontier.index.dense_scores_at(frontier.query, at),
        "name said": _share_in_query(lexical.analyzer, names, frontier.query),
        **{name: np.log1p(length) for name, length in lengths.items()},
    }


def _pair_features(
    frontier: Frontier,
    ranked: RankedNodes,
    pairs: Links,
    together: NDArray[np.float32],
    depth: int,
) -> Columns:
    """Return the features of nodes from their pairs, the best of these and its link."""
    n = min(depth, len(ranked.positions))
    place = np.zeros(len(frontier.graph.nodes), dtype=np.int64)
    place[ranked.positions] = np.arange(1, len(ranked.positions) + 1)
    nodes, partners = (
        np.concatenate([pairs.source, pairs.target]),
        np.concatenate([pairs.target, pairs.source]),
    )
    near = np.flatnonzero((place[nodes] > 0) & (place[nodes] <= n))
    node, score = place[nodes[near]] - 1, np.tile(together, 2)[near]
    best, nearest = np.full(n, np.nan), np.full(n, np.nan)
    which = np.full(n, len(nodes))
    np.fmax.at(best, node, score)
    np.fmin.at(nearest, node, place[partners[near]])
    is_best = score >= best[node]
    np.minimum.at(which, node[is_best], near[is_best])

    paired = np.flatnonzero(which < len(nodes))
    edge = pairs.edges[which[paired] % max(1, len(pairs))]
    linked, edge = paired[edge != NO_EDGE], edge[edge != NO_EDGE]
    edge_properties = frontier.graph.edges.properties.take(edge)
    analyzer = frontier.index.lexical.analyzer
    shares = np.full((2, n), np.nan)
    for row, key in zip(shares, ("column", "name"), strict=True):
        texts = [str(properties.get(key) or "") for properties in edge_properties]
        row[linked] = _share_in_query(analyzer, texts, frontier.query)
    return {
        "pairs": np.log1p(np.bincount(node, minlength=n)),
        "pair": best,
        "best place of a neighbour": np.log1p(nearest),
        "link's column said": shares[0],
        "link's name said": shares[1],
    }


def _to_the_best(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(values / max(float(values.max(initial=0)), 1e-9))


def _share_in_query(
    analyzer: Analyzer, texts: list[str], query: str
) -> NDArray[np.float64]:
    """Return the share of each text's terms that the question has."""
    query_terms, terms_of = set(analyzer.of_query(query)), _analyzed(analyzer)
    terms_by_text = [terms_of(text) for text in texts]
    return np.asarray(
        [
            len(query_terms & terms) / len(terms) if terms else np.nan
            for terms in terms_by_text
        ],
        dtype=np.float64,
    )


@lru_cache(maxsize=8)
def _analyzed(analyzer: Analyzer) -> Any:
    return lru_cache(maxsize=100_000)(lambda text: frozenset(analyzer(text)))

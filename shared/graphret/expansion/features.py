"""What a trained ranking is told of a candidate: everything that `Coverage` found out, in numbers."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.edges import NO_PART
from graphret.expansion.coverage import Covered
from graphret.expansion.frontier import NONE, Frontier, best_of, spread
from graphret.search.analysis import Analyzer

Columns: TypeAlias = dict[str, NDArray[Any]]

_LEAST = 1e-9
#: Kinds of links by name, the surest first.
_KINDS = ("exact", "alias", "inside", "inside_alias", "completed", "text", "text_alias")


def features_of(frontier: Frontier, covered: Covered, depth: int) -> Columns:
    """Return the features of the first `depth` nodes of a ranking by name, ``(n,)`` each; NaN where one does not apply.

    None of them says which node it is: what is learned of them holds for nodes that are added later, too.
    """
    at = covered.ranked.positions[:depth]
    found = _alone(frontier, covered, at) | _pairs(frontier, covered, at) | _best_pair(frontier, covered, at)
    third = best_of(covered.third, covered.extended.astype(np.float32), covered.pair)
    found["triple"] = np.where(np.isin(at, third.positions), spread(at, third.positions, third.scores), np.nan)
    top = max(float(covered.together.max(initial=0)), _LEAST)
    found["pair, to the best"] = found["pair"] / top
    return found


def _alone(frontier: Frontier, covered: Covered, at: NDArray[np.int64]) -> Columns:
    """What a node is, and says by itself."""
    lexical, seeds = frontier.index.lexical, frontier.seeds
    said = lexical.term_weights(frontier.query, at)
    words, near, score = said.sum(axis=1), frontier.index.near_at(frontier.query, at), covered.ranked.scores[: len(at)]
    names = frontier.graph.nodes.names.take(at)
    codes: dict[str, int] = {}
    bearers = np.asarray([codes.setdefault(name, len(codes)) for name in names])
    seed = spread(at, seeds, np.arange(1, len(seeds) + 1))
    asked = frozenset(lexical.analyzer(frontier.query))
    return {
        "score": score / max(float(score.max(initial=0)), _LEAST),
        "place": np.log1p(np.arange(len(at))),
        "score by itself": frontier.own(at),
        "place as a seed": np.where(seed, np.log1p(seed), np.nan),
        "words": words / covered.scale,
        "words, standardised": _standardised(words),
        "meaning": near,
        "meaning, standardised": _standardised(near),
        "score, standardised": _standardised(score),
        "terms said": _share(said),
        "name said by the question": np.asarray([_said(lexical.analyzer, name, asked) for name in names]),
        "bearers of the name": np.bincount(bearers)[bearers],
        "score behind a namesake": _behind(bearers, score),
        "words behind a namesake": _behind(bearers, words) / covered.scale,
        **_size(frontier, at),
    }


def _pairs(frontier: Frontier, covered: Covered, at: NDArray[np.int64]) -> Columns:
    """What all pairs of a node say."""
    pairs, ranked = covered.pairs, covered.ranked.positions
    ends, others = np.concatenate([pairs.source, pairs.target]), np.concatenate([pairs.target, pairs.source])
    scores = np.concatenate([covered.together] * 2)
    nodes, of, many = np.unique(ends, return_inverse=True, return_counts=True)
    places = spread(others, ranked, np.arange(1, len(ranked) + 1))
    nearest, best = np.full(len(nodes), len(ranked)), np.zeros(len(nodes))
    np.minimum.at(nearest, of, places)
    np.maximum.at(best, of, scores)
    good = scores >= 0.9 * best[of]
    return {
        "pairs": np.log1p(spread(at, nodes, many)),
        "good pairs": np.log1p(spread(at, nodes, np.bincount(of[good], minlength=len(nodes)))),
        "best place of a neighbour": np.log1p(spread(at, nodes, nearest)),
    }


def _best_pair(frontier: Frontier, covered: Covered, at: NDArray[np.int64]) -> Columns:
    """What the best pair of a node says, which half of it says what, and by which link."""
    pairs, lexical, edges = covered.pairs, frontier.index.lexical, frontier.graph.edges
    m = len(pairs)
    ends = np.concatenate([pairs.source, pairs.target])
    best = best_of(ends, np.concatenate([covered.together] * 2), np.arange(2 * m))
    found = spread(at, best.positions, best.via + 1) - 1
    has = found >= 0
    which, second = found[has] % max(m, 1), found[has] >= m

    def sides(source: NDArray[Any], target: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The node's own side of each pair, and the other."""
        turned = second if source.ndim == 1 else second[:, None]
        return np.where(turned, target[which], source[which]), np.where(turned, source[which], target[which])

    mine, theirs = sides(*covered.said)
    _, other = sides(pairs.source, pairs.target)
    part, other_part = sides(pairs.source_part, pairs.target_part)
    total = np.maximum(np.maximum(mine, theirs).sum(axis=1), _LEAST)
    ranked, seeds = covered.ranked.positions, frontier.seeds
    seed = spread(other, seeds, np.arange(1, len(seeds) + 1))
    edge = pairs.edges[which]
    linked, place = np.unique(edge[edge != NONE], return_inverse=True)
    asked = frozenset(lexical.analyzer(frontier.query))
    said = np.full((len(edge), 3), np.nan)
    about = [
        (*(_said(lexical.analyzer, str(one.get(key) or ""), asked) for key in ("column", "name")), one.get("kind"))
        for one in edges.properties.take(linked)
    ]
    if about:
        said[edge != NONE] = np.asarray(
            [(*one[:2], _KINDS.index(one[2]) if one[2] in _KINDS else -1) for one in about]
        )[place]
    columns: Columns = {
        "pair": covered.together[which],
        "pair's words": total / covered.scale,
        "pair's terms said": _share(np.maximum(mine, theirs)),
        "own share of the pair": mine.sum(axis=1) / total,
        "what it adds to the pair": (total - theirs.sum(axis=1)) / covered.scale,
        "what the pair adds to it": (total - mine.sum(axis=1)) / covered.scale,
        "row of it linked": part != NO_PART,
        "row of the other linked": other_part != NO_PART,
        "link's strength": pairs.strength[which],
        "link's source": ~second,
        "link's column said": said[:, 0],
        "link's name said": said[:, 1],
        "link's kind": said[:, 2],
        "other's words": theirs.sum(axis=1) / covered.scale,
        "other's meaning": frontier.index.near_at(frontier.query, other),
        "other's place": np.log1p(spread(other, ranked, np.arange(1, len(ranked) + 1))),
        "other's place as a seed": np.where(seed, np.log1p(seed), np.nan),
        **{f"other's {name}": values for name, values in _size(frontier, other).items()},
    }
    out = np.full((len(columns), len(at)), np.nan)
    out[:, has] = list(columns.values())
    return dict(zip(columns, out, strict=True))


def _size(frontier: Frontier, at: NDArray[np.int64]) -> Columns:
    """How many links, rows and terms nodes have."""
    edges, counts = frontier.graph.edges, frontier.index.lexical.counts
    starts = {"links out": edges.out_indptr, "links in": edges.by_target[0], "rows": counts.part_indptr}
    if "body" in counts.fields:
        starts["terms"] = counts.fields["body"].indptr
    return {name: np.log1p(start[at + 1] - start[at]) for name, start in starts.items()}


def _share(said: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.count_nonzero(said, axis=1) / max(1, said.shape[1]))


@lru_cache(maxsize=100_000)
def _terms(analyzer: Analyzer, text: str) -> tuple[str, ...]:
    return tuple(analyzer(text))


def _said(analyzer: Analyzer, text: str, asked: Collection[str]) -> float:
    """Return the share of a name's terms that the question says."""
    terms = _terms(analyzer, text)
    return sum(term in asked for term in terms) / len(terms) if terms else np.nan


def _behind(group: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    best = np.full(group.max(initial=0) + 1, -np.inf)
    np.maximum.at(best, group, values)
    return np.asarray(best[group] - values)


def _standardised(values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray((values - values.mean()) / max(float(values.std()), _LEAST))

"""What a trained ranking is told of a candidate: everything that `Coverage` found out, in numbers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.edges import NO_PART
from graphret.expansion.coverage import Covered
from graphret.expansion.frontier import NONE, Frontier
from graphret.search.analysis import Analyzer

#: Features by name, ``(n,)`` each; NaN where one does not apply.
Columns: TypeAlias = dict[str, NDArray[Any]]

_LEAST = 1e-9
#: Kinds of links by name, the surest first.
_KINDS = ("exact", "alias", "inside", "inside_alias", "completed", "text", "text_alias")


def features_of(frontier: Frontier, covered: Covered, depth: int) -> Columns:
    """Return the features of the first `depth` nodes of a ranking.

    None of them says which node it is: what is learned of them holds for nodes that are added later, too.
    """
    n, at = len(frontier.graph.nodes), covered.ranked.positions[:depth]
    places = {"place": _places(n, covered.ranked.positions), "place as a seed": _places(n, frontier.seeds)}
    found = _alone(frontier, covered, at) | {name: np.log1p(place[at]) for name, place in places.items()}
    found["triple"] = np.zeros(n, dtype=np.float32)
    np.maximum.at(found["triple"], covered.third, covered.extended)
    found["triple"] = found["triple"][at]

    pairs, row = covered.pairs, _places(n, at) - 1
    ends, others = np.concatenate([pairs.source, pairs.target]), np.concatenate([pairs.target, pairs.source])
    near = np.flatnonzero(row[ends] >= 0)  # ends of pairs among the candidates, each a row
    row, other, score = row[ends[near]], others[near], np.concatenate([covered.together] * 2)[near]
    best, nearest, first = np.zeros(len(at)), np.full(len(at), np.nan), np.full(len(at), len(ends))
    np.maximum.at(best, row, score)
    np.fmin.at(nearest, row, places["place"][other])
    is_best = score >= best[row]
    np.minimum.at(first, row[is_best], near[is_best])
    found["pairs"] = np.log1p(np.bincount(row, minlength=len(at)))
    found["good pairs"] = np.log1p(np.bincount(row[score >= 0.9 * best[row]], minlength=len(at)))
    found["best place of a neighbour"] = np.log1p(nearest)

    has = first < len(ends)
    other = others[first[has]]
    meaning = np.split(frontier.index.near_at(frontier.query, np.concatenate([at, other])), [len(at)])
    found["meaning"] = meaning[0]
    of_pair = {"other's meaning": meaning[1]} | _best_pair(
        frontier, covered, first[has] % max(1, len(pairs)), first[has] >= len(pairs)
    )
    of_pair |= {f"other's {name}": np.log1p(place[other]) for name, place in places.items()}
    of_pair |= {f"other's {name}": values for name, values in _size(frontier, other).items()}
    table = np.full((len(of_pair), len(at)), np.nan)
    table[:, has] = list(of_pair.values())
    return found | dict(zip(of_pair, table, strict=True))


def _alone(frontier: Frontier, covered: Covered, at: NDArray[np.int64]) -> Columns:
    """What a node is, and says by itself."""
    lexical, score = frontier.index.lexical, covered.ranked.scores[: len(at)]
    said, names = lexical.term_weights(frontier.query, at), frontier.graph.nodes.names.take(at)
    codes: dict[str, int] = {}
    bearers = np.asarray([codes.setdefault(name, len(codes)) for name in names], dtype=np.int64)
    best = np.zeros(len(codes))
    np.maximum.at(best, bearers, score)
    return {
        "score": score / max(float(score.max(initial=0)), _LEAST),
        "score by itself": frontier.own(at),
        "score behind a namesake": best[bearers] - score,
        "namesakes": np.bincount(bearers)[bearers],
        "words": said.sum(axis=1) / covered.scale,
        "terms said": _share(said),
        "name said": _said(lexical.analyzer, names, frontier.query),
        **_size(frontier, at),
    }


def _best_pair(frontier: Frontier, covered: Covered, which: NDArray[Any], second: NDArray[Any]) -> Columns:
    """What pairs say, which half says what, and by which link; a node is the `second` of its pair or the first."""
    pairs, edges, analyzer = covered.pairs, frontier.graph.edges, frontier.index.lexical.analyzer

    def half(source: NDArray[Any], target: NDArray[Any], other: bool = False) -> NDArray[Any]:
        turned = second != other
        sides: NDArray[Any] = np.where(turned if source.ndim == 1 else turned[:, None], target[which], source[which])
        return sides

    mine, theirs = half(*covered.said), half(*covered.said, other=True)
    together = np.maximum(mine, theirs)
    total, edge = together.sum(axis=1), pairs.edges[which]
    linked, place = np.unique(edge[edge != NONE], return_inverse=True)
    about = edges.properties.take(linked)
    link = np.full((3, len(edge)), np.nan)
    link[:, edge != NONE] = np.asarray(
        [
            *(
                _said(analyzer, [str(one.get(key) or "") for one in about], frontier.query)
                for key in ("column", "name")
            ),
            [_KINDS.index(one["kind"]) if one.get("kind") in _KINDS else -1 for one in about],
        ]
    )[:, place]
    return {
        "pair": covered.together[which],
        "pair, to the best": covered.together[which] / max(float(covered.together.max(initial=0)), _LEAST),
        "pair's words": total / covered.scale,
        "pair's terms said": _share(together),
        "own share of the pair": mine.sum(axis=1) / np.maximum(total, _LEAST),
        "what it adds to the pair": (total - theirs.sum(axis=1)) / covered.scale,
        "what the pair adds to it": (total - mine.sum(axis=1)) / covered.scale,
        "row of it linked": half(pairs.source_part, pairs.target_part) != NO_PART,
        **dict(zip(("link's column said", "link's name said", "link's kind"), link, strict=True)),
    }


def _size(frontier: Frontier, at: NDArray[np.int64]) -> Columns:
    """How many links, rows and terms nodes have."""
    edges, terms = frontier.graph.edges, frontier.index.lexical.terms
    starts = {"links out": edges.out_indptr, "links in": edges.by_target[0], "rows": terms.part_indptr}
    if "body" in terms.fields:
        starts["terms"] = terms.fields["body"][0]
    return {name: np.log1p(start[at + 1] - start[at]) for name, start in starts.items()}


def _places(n: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each of `n` nodes stands among some, from 1; 0 where it does not."""
    places = np.zeros(n, dtype=np.int64)
    places[positions] = np.arange(1, len(positions) + 1)
    return places


def _share(said: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.count_nonzero(said, axis=1) / max(1, said.shape[1]))


def _said(analyzer: Analyzer, texts: list[str], query: str) -> NDArray[np.float64]:
    """Return the share of the terms of each text that the question says."""
    asked, terms_of = set(analyzer.of_query(query)), _analyzed(analyzer)
    terms = [terms_of(text) for text in texts]
    return np.asarray([len(asked & one) / len(one) if one else np.nan for one in terms], dtype=np.float64)


@lru_cache(maxsize=8)
def _analyzed(analyzer: Analyzer) -> Any:
    return lru_cache(maxsize=100_000)(lambda text: frozenset(analyzer(text)))

"""Fusion of ranked lists, as pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphret.errors import InvalidInput
from graphret.types import Evidence, Hit, Node


def require_weights(weights: Sequence[float] | None, n: int) -> list[float]:
    """Return one weight for each of `n` lists, 1 by default.

    Raises
    ------
    InvalidInput
        When there are too many or too few, or one is negative or not finite.
    """
    if weights is None:
        return [1.0] * n
    if len(weights) != n:
        raise InvalidInput(f"weights: {n} are expected, not {len(weights)}")
    for i, weight in enumerate(weights):
        if not math.isfinite(weight) or weight < 0:
            raise InvalidInput(f"weights: number {i} is {weight!r}; a finite number of at least 0 is expected")
    return [float(weight) for weight in weights]


def reciprocal_rank(
    lists: Sequence[Sequence[Hit]],
    *,
    weights: Sequence[float] | None = None,
    rrf_k: float = 60.0,
    names: Sequence[str] | None = None,
) -> list[Hit]:
    """Fuse by weighted reciprocal ranks: ``score(d) = Σ_l weight_l / (rrf_k + rank_l(d))`` (Cormack et al. 2009).

    Parameters
    ----------
    lists
        Hits, best first.
    names
        What the evidence calls the lists.

    Returns
    -------
    list of Hit
        Every node of any list, best first, ties by id. The evidence has the node's rank in each list, then what the
        lists themselves said of it.
    """
    factors = require_weights(weights, len(lists))
    if not rrf_k >= 0:
        raise InvalidInput(f"rrf_k: a number of at least 0 is expected, not {rrf_k!r}")
    labels = list(names) if names is not None else [f"list {i + 1}" for i in range(len(lists))]
    scores: dict[str, float] = {}
    nodes: dict[str, Node] = {}
    ranks: dict[str, list[Evidence]] = {}
    inner: dict[str, list[Evidence]] = {}
    for hits, factor, label in zip(lists, factors, labels, strict=True):
        for rank, hit in enumerate(hits, start=1):
            scores[hit.id] = scores.get(hit.id, 0.0) + factor / (rrf_k + rank)
            nodes.setdefault(hit.id, hit.node)
            ranks.setdefault(hit.id, []).append(Evidence("rank", rank=rank, retriever=label))
            known = inner.setdefault(hit.id, [])
            known.extend(evidence for evidence in hit.evidence if evidence not in known)
    order = sorted(scores, key=lambda node_id: (-scores[node_id], node_id))
    return [Hit(nodes[i], scores[i], (*ranks[i], *inner[i])) for i in order]

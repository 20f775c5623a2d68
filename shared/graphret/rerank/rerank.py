"""`Rerank`: reorder a retriever's hits by a reranker, fused with their old order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from graphret.errors import GraphretError, InvalidInput, RetrievalFailed
from graphret.fusion import filled
from graphret.retriever import Ask, Compute, Retriever, Steps, require_on_failure
from graphret.search.index import min_max
from graphret.stores.base import GraphStore
from graphret.trace import Stage, Trace
from graphret.types import Evidence, Hit, Retrieval
from graphret.where import Where

# The share of a hit's score that goes to the hit from which an edge led to it.
_SHARED = 0.9


class Scores(list[float]):
    """Scores of hits, NaN for one without, and details for the trace such as tokens."""

    def __init__(self, scores: Sequence[float], **details: Any) -> None:
        super().__init__(scores)
        self.details = details


@runtime_checkable
class Reranker(Protocol):
    """Scores hits against a query."""

    name: str

    def scores(self, query: str, hits: Sequence[Hit]) -> Sequence[float]:
        """Return a score for each hit, higher for better, NaN for one without.

        `Scores` also has details for the trace.
        """
        ...


class Rerank(Retriever):
    """Let a reranker reorder another retriever's hits, and fuse both orders.

    This is section 3.3 of the GRASP paper. A hit's score is ``(1 - weight) * before +
    weight * judged``, both scaled to 0 … 1 (min–max), or, by reciprocal ranks, ``(1 -
    weight) / (rrf_k + rank before) + weight / (rrf_k + rank judged)``. Hits that answer
    together share a score: a hit from which an edge led to another gets nine tenths of
    the other's reranker score, if that is more. A hit without a score, or below
    `depth`, keeps its place. The evidence has both ranks and the score.

    Parameters
    ----------
    inner, reranker
        The retriever that finds hits, and the reranker that scores them.
    depth
        How many of the best hits are scored.
    weight
        The share of the reranker, 0 … 1; 1 for its order alone.
    rrf_k
        Constant of reciprocal rank fusion; `None` fuses scores.
    on_failure
        ``"fallback"`` keeps the order of `inner` when the reranker fails or scores no
        hit; ``"raise"`` raises.
    """

    name = "rerank"

    def __init__(
        self,
        inner: Retriever,
        reranker: Reranker,
        *,
        depth: int = 20,
        weight: float = 0.5,
        rrf_k: float | None = None,
        on_failure: str = "fallback",
    ) -> None:
        if not (
            depth >= 1 and 0 <= weight <= 1 and (rrf_k is None or 0 <= rrf_k < math.inf)
        ):
            raise InvalidInput(
                "expected depth from 1, weight from 0 to 1 and rrf_k from 0,"
                f" got {depth!r}, {weight!r} and {rrf_k!r}"
            )
        self.inner = inner
        self.reranker = reranker
        self.depth = depth
        self.weight = weight
        self.rrf_k = rrf_k
        self.on_failure = require_on_failure(on_failure)

    @property
    def graph_store(self) -> GraphStore | None:
        return self.inner.graph_store

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        result = yield Ask(self.inner, query, max(k, self.depth), where)
        if isinstance(result, Exception):
            raise result
        trace, signals = Trace(), replace(result.signals)
        trace.extend(result.trace, f"{self.inner}/")
        # Rows are computed: no text could be more relevant.
        rows = [hit for hit in result if hit.is_row]
        hits = [hit for hit in result if not hit.is_row]
        unranked = Retrieval(query, k, result.hits[:k], signals, trace, result.rows)
        if not hits:
            return unranked
        try:
            with trace.stage(
                "rerank", reranker=self.reranker.name, scored=len(hits[: self.depth])
            ) as stage:
                scores = yield Compute(
                    lambda: self._scores(query, hits[: self.depth], stage)
                )
        except Exception as error:
            if self.on_failure == "raise" or isinstance(error, InvalidInput):
                raise RetrievalFailed(
                    f"{self.reranker.name} failed: {error}"
                ) from error
            trace.note(
                "fallback",
                failed=self.reranker.name,
                error=f"{type(error).__name__}: {error}",
            )
            return unranked
        best = max(scores.values())
        # Some cross-encoders give log-odds, others probabilities.
        is_log_odds = any(not 0 <= score <= 1 for score in scores.values())
        signals.confidence = 0.5 + 0.5 * math.tanh(best / 2) if is_log_odds else best
        return replace(
            unranked, hits=filled(rows, self._fused(hits, scores), k, mark=False)
        )

    def _scores(
        self, query: str, hits: Sequence[Hit], stage: Stage
    ) -> dict[int, float]:
        """Return the reranker's scores by the places of hits, without missing ones."""
        reranked = self.reranker.scores(query, hits)
        scores = {
            place: float(score)
            for place, score in enumerate(reranked)
            if math.isfinite(score)
        }
        if len(reranked) != len(hits) or not scores:
            raise GraphretError(
                f"{self.reranker.name}: expected a number for each hit, got"
                f" {list(reranked)}"
            )
        stage.details |= getattr(reranked, "details", {})
        if len(scores) < len(reranked):
            stage.details["unscored"] = len(reranked) - len(scores)
        return scores

    def _fused(self, hits: Sequence[Hit], scores: Mapping[int, float]) -> list[Hit]:
        shares = min_max(np.asarray(list(scores.values()), np.float32)).tolist()
        judged = _with_pairs(hits, dict(zip(scores, shares, strict=True)))
        before = min_max(
            np.asarray([hit.score for hit in hits[: self.depth]], np.float32)
        ).tolist()
        before += [0.0] * len(hits[self.depth :])
        order = sorted(judged, key=lambda place: (-judged[place], place))
        new_places = dict(zip(order, sorted(judged), strict=True))
        ranked = []
        for place, hit in enumerate(hits):
            old_rank, new_rank = place + 1, new_places.get(place, place) + 1
            old, new = before[place], judged.get(place, before[place])
            if self.rrf_k is not None:
                old, new = 1 / (self.rrf_k + old_rank), 1 / (self.rrf_k + new_rank)
            fused = (1 - self.weight) * old + self.weight * new
            score = {"score": scores[place]} if place in scores else {}
            evidence = (
                *hit.evidence,
                Evidence(
                    "rank",
                    rank=new_rank,
                    retriever=self.reranker.name,
                    properties=score,
                ),
                Evidence("rank", rank=old_rank, retriever="before reranking"),
            )
            ranked.append((-fused, new_rank, Hit(hit.node, fused, evidence)))
        return [hit for *_, hit in sorted(ranked, key=lambda entry: entry[:2])]


def _with_pairs(hits: Sequence[Hit], judged: Mapping[int, float]) -> dict[int, float]:
    """Return the scores, where a hit shares that of another to which its edge led."""
    places, out = {hits[place].id: place for place in judged}, dict(judged)
    for place, score in judged.items():
        for evidence in hits[place].evidence:
            if (
                evidence.kind == "neighbor"
                and (other := places.get(evidence.source or "")) is not None
            ):
                out[other] = max(
                    out[other], _SHARED * score + (1 - _SHARED) * judged[other]
                )
    return out

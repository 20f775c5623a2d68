"""`Rerank`: what a retriever found, ordered anew by a reranker and fused with the order
it had.
"""

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

_SHARED = 0.9  # of the score of a hit goes to the one from which an edge led to it


class Scores(list[float]):
    """Scores of hits, NaN for one that could not be judged, with what the trace says of
    them, such as tokens.
    """

    def __init__(self, scores: Sequence[float], **details: Any) -> None:
        super().__init__(scores)
        self.details = details


@runtime_checkable
class Reranker(Protocol):
    """Scores hits against a query."""

    name: str

    def scores(self, query: str, hits: Sequence[Hit]) -> Sequence[float]:
        """Return a score for each hit, higher for better, NaN for one without; `Scores`
        has details for the trace.
        """
        ...


class Rerank(Retriever):
    """Let a reranker order what another retriever found, and fuse its order with the
    one before (GRASP, section 3.3).

    A hit's score is ``(1 - weight) * before + weight * judged``, the scores of both
    brought to 0 … 1 (min–max), or, by reciprocal ranks, ``(1 - weight) / (rrf_k + rank
    before) + weight / (rrf_k + rank judged)``. What answers together shares its score:
    a hit from which an edge led to another gets nine tenths of what that one is judged,
    where this is more. A hit without a score, and one below `depth`, stays where it
    was. The evidence has both ranks and the score.

    Parameters
    ----------
    inner, reranker
        Who finds, and who orders.
    depth
        How many of the best hits are scored.
    weight
        The share of the reranker, 0 … 1; 1 for its order alone.
    rrf_k
        Constant of reciprocal rank fusion; `None` fuses scores.
    on_failure
        ``"fallback"`` keeps the order of `inner` when the reranker fails or scores no
        hit, ``"raise"`` does not.
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
            wanted = "expected depth from 1, weight from 0 to 1 and rrf_k from 0"
            raise InvalidInput(f"{wanted}, got {depth!r}, {weight!r} and {rrf_k!r}")
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
        found = Retrieval(query, k, result.hits[:k], signals, trace, result.rows)
        if not hits:
            return found
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
            return found
        best = max(scores.values())
        odds = any(
            not 0 <= score <= 1 for score in scores.values()
        )  # of some cross-encoders, of others a share
        signals.confidence = 0.5 + 0.5 * math.tanh(best / 2) if odds else best
        return replace(
            found, hits=filled(rows, self._fused(hits, scores), k, mark=False)
        )

    def _scores(
        self, query: str, hits: Sequence[Hit], stage: Stage
    ) -> dict[int, float]:
        """The reranker's scores of hits by their places; those that it cannot judge are
        left out.
        """
        found = self.reranker.scores(query, hits)
        scores = {
            place: float(score)
            for place, score in enumerate(found)
            if math.isfinite(score)
        }
        if len(found) != len(hits) or not scores:
            raise GraphretError(
                f"{self.reranker.name}: expected a number for each hit, got"
                f" {list(found)}"
            )
        stage.details |= getattr(found, "details", {})
        if len(scores) < len(found):
            stage.details["unscored"] = len(found) - len(scores)
        return scores

    def _fused(self, hits: Sequence[Hit], scores: Mapping[int, float]) -> list[Hit]:
        shares = min_max(np.asarray(list(scores.values()), np.float32)).tolist()
        judged = _with_pairs(hits, dict(zip(scores, shares, strict=True)))
        known = min_max(
            np.asarray([hit.score for hit in hits[: self.depth]], np.float32)
        ).tolist()
        known += [0.0] * len(hits[self.depth :])
        order = sorted(judged, key=lambda place: (-judged[place], place))
        after = dict(zip(order, sorted(judged), strict=True))
        ranked = []
        for place, hit in enumerate(hits):
            before, by = place + 1, after.get(place, place) + 1
            one, other = known[place], judged.get(place, known[place])
            if self.rrf_k is not None:
                one, other = 1 / (self.rrf_k + before), 1 / (self.rrf_k + by)
            fused = (1 - self.weight) * one + self.weight * other
            said = {"score": scores[place]} if place in scores else {}
            ranks = [
                Evidence("rank", rank=by, retriever=self.reranker.name, properties=said)
            ]
            ranks.append(Evidence("rank", rank=before, retriever="before reranking"))
            ranked.append((-fused, by, Hit(hit.node, fused, (*hit.evidence, *ranks))))
        return [hit for *_, hit in sorted(ranked, key=lambda one: one[:2])]


def _with_pairs(hits: Sequence[Hit], judged: Mapping[int, float]) -> dict[int, float]:
    """The scores, where a hit shares in that of another to which an edge led from it,
    and which was read with it.
    """
    places, out = {hits[place].id: place for place in judged}, dict(judged)
    for place, score in judged.items():
        for one in hits[place].evidence:
            if (
                one.kind == "neighbor"
                and (other := places.get(one.source or "")) is not None
            ):
                out[other] = max(
                    out[other], _SHARED * score + (1 - _SHARED) * judged[other]
                )
    return out

"""`Rerank`: what a retriever found, ordered anew by a reranker and fused with the order it had."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from graphret.errors import GraphretError, InvalidInput, RetrievalFailed
from graphret.retriever import Ask, Compute, Retriever, Steps, require_on_failure
from graphret.types import Evidence, Hit, Retrieval, Signals, Stage, Trace
from graphret.where import Where


class Scores(list[float]):
    """Scores of hits, NaN for one that could not be judged, with what the trace says of them, such as tokens."""

    def __init__(self, scores: Sequence[float], **details: Any) -> None:
        super().__init__(scores)
        self.details = details


@runtime_checkable
class Reranker(Protocol):
    """Scores hits against a query."""

    name: str

    def scores(self, query: str, hits: Sequence[Hit]) -> Sequence[float]:
        """Return a score for each hit, higher for better, NaN for one without; `Scores` has details for the trace."""
        ...


class Rerank(Retriever):
    """Let a reranker order what another retriever found, and fuse its order with the one before (GRASP, section 3.3).

    A hit's score is ``(1 - weight) / (rrf_k + rank before) + weight / (rrf_k + rank by the reranker)``; ties go by the
    reranker's rank. A hit that the reranker gives no score, and one below `depth`, is ranked where it was. The evidence
    has both ranks.

    Parameters
    ----------
    inner, reranker
        Who finds, and who orders.
    depth
        How many of the best hits are scored.
    weight
        The share of the reranker, 0 … 1; 1 for its order alone.
    rrf_k
        Constant of reciprocal rank fusion.
    on_failure
        ``"fallback"`` keeps the order of `inner` when the reranker fails or scores no hit, ``"raise"`` does not.
    """

    name = "rerank"

    def __init__(
        self,
        inner: Retriever,
        reranker: Reranker,
        *,
        depth: int = 20,
        weight: float = 0.5,
        rrf_k: float = 10.0,
        on_failure: str = "fallback",
    ) -> None:
        if not (depth >= 1 and 0 <= weight <= 1 and 0 <= rrf_k < math.inf):
            given = f"depth {depth!r}, weight {weight!r}, rrf_k {rrf_k!r}"
            raise InvalidInput(f"depth from 1, weight from 0 to 1 and rrf_k from 0 are expected, not {given}")
        self.inner = inner
        self.reranker = reranker
        self.depth = depth
        self.weight = weight
        self.rrf_k = rrf_k
        self.on_failure = require_on_failure(on_failure)

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        result = yield Ask(self.inner, query, max(k, self.depth), where)
        if isinstance(result, Exception):
            raise result
        trace = Trace()
        trace.extend(result.trace, f"{self.inner}/")
        hits, signals = result.hits, result.signals
        try:
            with trace.stage("rerank", reranker=self.reranker.name, scored=min(len(hits), self.depth)) as stage:
                if not hits:
                    return Retrieval(query, k, [], signals, trace)
                hits, signals = yield Compute(lambda: self._ordered(query, hits, signals, stage))
        except Exception as error:
            if self.on_failure == "raise" or isinstance(error, InvalidInput):
                raise RetrievalFailed(f"{self.reranker.name} failed: {error}") from error
            trace.note("fallback", failed=self.reranker.name, error=f"{type(error).__name__}: {error}")
        return Retrieval(query, k, hits[:k], signals, trace)

    def _ordered(
        self, query: str, hits: Sequence[Hit], signals: Signals, stage: Stage
    ) -> tuple[Sequence[Hit], Signals]:
        found = self.reranker.scores(query, hits[: self.depth])
        scores = [float(score) for score in found]
        stage.details |= getattr(found, "details", {})
        places = [place for place, score in enumerate(scores) if math.isfinite(score)]
        if len(scores) != min(len(hits), self.depth) or not places:
            raise GraphretError(f"{self.reranker.name}: a number is expected for each hit, not {scores}")
        if len(places) < len(scores):
            stage.details["unscored"] = len(scores) - len(places)
        after = list(range(len(hits)))
        for place, scored in zip(places, sorted(places, key=lambda at: -scores[at]), strict=True):
            after[scored] = place
        ranked = []
        for place, hit in enumerate(hits):
            said = {"score": scores[place]} if place in places else {}
            by, before = after[place] + 1, place + 1
            score = self.weight / (self.rrf_k + by) + (1 - self.weight) / (self.rrf_k + before)
            ranks = (
                Evidence("rank", rank=by, retriever=self.reranker.name, properties=said),
                Evidence("rank", rank=before, retriever="before reranking"),
            )
            ranked.append((-score, by, Hit(hit.node, score, (*hit.evidence, *ranks))))
        best = max(scores[place] for place in places)
        odds = any(not 0 <= scores[place] <= 1 for place in places)  # which some cross-encoders give, others a share
        ordered = [hit for *_, hit in sorted(ranked, key=lambda one: one[:2])]
        return ordered, replace(signals, confidence=0.5 + 0.5 * math.tanh(best / 2) if odds else best)

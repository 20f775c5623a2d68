"""`Rerank`: what a retriever found, in the order of a reranker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from graphret.errors import GraphretError, InvalidInput, RetrievalFailed
from graphret.retriever import Ask, Compute, Retriever, Steps, require_on_failure
from graphret.types import Evidence, Hit, Retrieval, Trace
from graphret.where import Where


@runtime_checkable
class Reranker(Protocol):
    """Scores hits against a query."""

    name: str

    def scores(self, query: str, hits: Sequence[Hit]) -> Sequence[float]:
        """Return a score for each hit, higher for better."""
        ...


class Rerank(Retriever):
    """Let a reranker order what another retriever found.

    Parameters
    ----------
    inner, reranker
        Who finds, and who orders.
    depth
        How many hits are scored, at least; never fewer than `k`.
    on_failure
        ``"fallback"`` keeps the order of `inner` when the reranker fails, ``"raise"`` does not.
    """

    name = "rerank"

    def __init__(self, inner: Retriever, reranker: Reranker, *, depth: int = 50, on_failure: str = "fallback") -> None:
        self.inner = inner
        self.reranker = reranker
        self.depth = depth
        self.on_failure = require_on_failure(on_failure)

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        result = yield Ask(self.inner, query, max(k, self.depth), where)
        if isinstance(result, Exception):
            raise result
        trace = Trace()
        trace.extend(result.trace, f"{self.inner}/")
        hits = result.hits
        try:
            with trace.stage("rerank", reranker=self.reranker.name, scored=len(hits)):
                hits = yield Compute(lambda: self._ordered(query, hits))
        except Exception as error:
            if self.on_failure == "raise" or isinstance(error, InvalidInput):
                raise RetrievalFailed(f"{self.reranker.name} failed: {error}") from error
            trace.note("fallback", failed=self.reranker.name, error=f"{type(error).__name__}: {error}")
        return Retrieval(query, k, hits[:k], result.signals, trace)

    def _ordered(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """The hits in the order of the reranker's scores, ties by id, with their earlier rank as evidence."""
        scores = [float(score) for score in self.reranker.scores(query, hits)] if hits else []
        if len(scores) != len(hits) or any(map(math.isnan, scores)):
            raise GraphretError(f"{self.reranker.name}: a number is expected for each hit, not {scores}")
        log_odds = not all(0 <= score <= 1 for score in scores)  # which some cross-encoders give, others a share
        relevances = [0.5 + 0.5 * math.tanh(score / 2) if log_odds else score for score in scores]
        ranked = [
            Hit(hit.node, score, (*hit.evidence, Evidence("rank", rank=rank, retriever="before reranking")), relevance)
            for rank, (hit, score, relevance) in enumerate(zip(hits, scores, relevances, strict=True), start=1)
        ]
        return sorted(ranked, key=lambda hit: (-hit.score, hit.id))

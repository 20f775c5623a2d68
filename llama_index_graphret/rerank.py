"""`GraphReranker`: a postprocessor over a cross-encoder, or over any graphret reranker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import SkipValidation

from graphret.errors import InvalidInput, ModelError, RetrievalFailed
from graphret.rerank import CrossEncoderReranker
from graphret.retriever import Reranker, require_on_failure
from graphret.types import Evidence, Hit, Retrieval, Trace
from llama_index_graphret.evidence import SageNodeWithScore, evidence_of, mark, retrieval_of
from llama_index_graphret.nodes import outline
from llama_index_graphret.retriever import top_k

dispatcher = get_dispatcher(__name__)


class GraphReranker(BaseNodePostprocessor):
    """Order nodes by a model that reads question and node together; evidence is kept and gains the rank before.

    The model reads a node as graphret has it: its name, then its text. Nodes come out with the same hash
    and texts; those that went in are not changed.

    Parameters
    ----------
    model
        A sentence-transformers cross-encoder by name or folder (loaded when first used), an object with
        ``predict(pairs)``, or a graphret `Reranker`.
    top_n, k
        How many nodes are returned; 10 by default.
    on_failure
        ``"fallback"``: if the model fails, the nodes keep their order, and the trace says so. ``"raise"`` raises
        `RetrievalFailed`.

    Raises
    ------
    InvalidInput
        When an argument is malformed, or nodes come without a question.
    """

    top_n: int = Field(default=10, description="How many nodes are returned.")
    on_failure: str = Field(default="fallback", description="'fallback' or 'raise'.")
    reranker: SkipValidation[Any] = Field(exclude=True, repr=False, description="What scores the nodes.")

    def __init__(
        self,
        model: Any,
        *,
        top_n: int | None = None,
        k: int | None = None,
        on_failure: str = "fallback",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]
            reranker=model if isinstance(model, Reranker) else CrossEncoderReranker(model),
            top_n=top_k(k, top_n=top_n),
            on_failure=require_on_failure(on_failure),
            callback_manager=callback_manager or CallbackManager([]),
        )

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return "GraphReranker"

    @dispatcher.span
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = self._begun(nodes, query_bundle)
        with self._legacy_event(nodes, query) as event:
            ranked = self._ranked(nodes, query, self._scores(query, nodes))
            event.on_end(payload={EventPayload.NODES: ranked})
        return self._ended(ranked)

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = self._begun(nodes, query_bundle)
        with self._legacy_event(nodes, query) as event:
            ranked = self._ranked(nodes, query, await asyncio.to_thread(self._scores, query, nodes))
            event.on_end(payload={EventPayload.NODES: ranked})
        return self._ended(ranked)

    def _begun(self, nodes: list[NodeWithScore], bundle: QueryBundle | None) -> str:
        if nodes and bundle is None:
            raise InvalidInput("query: GraphReranker needs the question, as query_bundle or query_str")
        dispatcher.event(ReRankStartEvent(query=bundle, nodes=nodes, top_n=self.top_n, model_name=self.reranker.name))
        return bundle.query_str if bundle else ""

    def _legacy_event(self, nodes: list[NodeWithScore], query: str) -> Any:
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: self.reranker.name,
            EventPayload.QUERY_STR: query,
            EventPayload.TOP_K: self.top_n,
        }
        return self.callback_manager.event(CBEventType.RERANKING, payload=payload)

    def _ended(self, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        dispatcher.event(ReRankEndEvent(nodes=nodes))
        return nodes

    def _scores(self, query: str, nodes: Sequence[NodeWithScore]) -> list[float] | Exception:
        hits = [Hit(outline(one.node), one.score or 0.0, tuple(evidence_of(one))) for one in nodes]
        try:
            scores = [float(score) for score in self.reranker.scores(query, hits)] if hits else []
            if len(scores) != len(hits) or any(score != score for score in scores):
                raise ModelError(f"{self.reranker.name}: {len(hits)} scores are expected, not {scores!r:.200}")
        except Exception as error:
            return error
        return scores

    def _ranked(
        self, nodes: Sequence[NodeWithScore], query: str, scores: list[float] | Exception
    ) -> list[NodeWithScore]:
        retrieval = retrieval_of(nodes)
        if isinstance(scores, Exception):
            if self.on_failure == "raise" or isinstance(scores, InvalidInput):
                raise RetrievalFailed(f"{self.reranker.name} failed: {scores}") from scores
            trace = Trace(list(retrieval.trace.stages) if retrieval else [])
            trace.note("fallback", failed=self.reranker.name, error=f"{type(scores).__name__}: {scores}")
            told = Retrieval(query, self.top_n, list(retrieval.hits) if retrieval else [], trace=trace)
            return [_kept(one, one.score, tuple(evidence_of(one)), told) for one in nodes[: self.top_n]]
        order = sorted(range(len(nodes)), key=lambda i: (-scores[i], nodes[i].node.node_id))
        return [
            _kept(
                nodes[i],
                scores[i],
                (*evidence_of(nodes[i]), Evidence("rank", rank=i + 1, retriever="before reranking")),
                retrieval,
            )
            for i in order[: self.top_n]
        ]


def _kept(
    given: NodeWithScore, score: float | None, evidence: tuple[Evidence, ...], retrieval: Retrieval | None
) -> NodeWithScore:
    return SageNodeWithScore(node=mark(given.node, evidence), score=score, raw_score=score, retrieval=retrieval)

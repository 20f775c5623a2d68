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

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.rerank import CrossEncoderReranker
from graphret.retriever import Reranker, require_on_failure, rerank
from graphret.types import Hit, Retrieval, Trace
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
        return "GraphReranker"

    @dispatcher.span
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if nodes and query_bundle is None:
            raise InvalidInput("query: GraphReranker needs the question, as query_bundle or query_str")
        query, name = query_bundle.query_str if query_bundle else "", self.reranker.name
        dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=self.top_n, model_name=name))
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: name,
            EventPayload.QUERY_STR: query,
            EventPayload.TOP_K: self.top_n,
        }
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            ranked = self._ranked(nodes, query)
            event.on_end(payload={EventPayload.NODES: ranked})
        dispatcher.event(ReRankEndEvent(nodes=ranked))
        return ranked

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._postprocess_nodes, nodes, query_bundle)

    def _ranked(self, nodes: Sequence[NodeWithScore], query: str) -> list[NodeWithScore]:
        retrieval, handed = retrieval_of(nodes), {one.node.node_id: one for one in reversed(nodes)}
        hits = [Hit(outline(one.node), one.score or 0.0, tuple(evidence_of(one))) for one in handed.values()][::-1]
        try:
            hits = rerank(self.reranker, query, hits)
        except Exception as error:
            if self.on_failure == "raise" or isinstance(error, InvalidInput):
                raise RetrievalFailed(f"{self.reranker.name} failed: {error}") from error
            trace = Trace(list(retrieval.trace.stages) if retrieval else [])
            trace.note("fallback", failed=self.reranker.name, error=f"{type(error).__name__}: {error}")
            retrieval = Retrieval(query, self.top_n, list(retrieval.hits) if retrieval else [], trace=trace)
        return [_scored(handed[hit.id], hit, retrieval) for hit in hits[: self.top_n]]


def _scored(given: NodeWithScore, hit: Hit, retrieval: Retrieval | None) -> NodeWithScore:
    node = mark(given.node, hit.evidence)
    return SageNodeWithScore(node=node, score=hit.score, raw_score=hit.score, retrieval=retrieval)

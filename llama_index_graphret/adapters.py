"""Adapters for retrievers, embedding models and encoders, in both directions."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager
from llama_index.core.rate_limiter import BaseRateLimiter
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.storage.kvstore.types import BaseKVStore
from pydantic import SkipValidation

from graphret.errors import InvalidInput
from graphret.retriever import Call, Retriever, Steps
from graphret.search.encoder import as_encoder
from graphret.search.index import TextIndex
from graphret.trace import Trace
from graphret.types import Evidence, Hit, Retrieval, Signals
from graphret.where import Where
from llama_index_graphret.evidence import evidence_of, mark
from llama_index_graphret.nodes import from_llama_node


class EncoderEmbedding(BaseEmbedding):
    """A graph's encoder as a LlamaIndex embedding model, for a vector index.

    The other way needs no adapter: ``embed_model=`` and everything in graphret that
    takes an encoder take LlamaIndex embedding models.

    Parameters
    ----------
    encoder
        ``"default"`` for all-MiniLM-L6-v2, or anything that
        `graphret.search.encoder.as_encoder` takes.
    model_name
        What traces call it; the encoder's name by default.
    embed_batch_size, num_workers, callback_manager, embeddings_cache, rate_limiter
        As any LlamaIndex embedding model has them.
    """

    encoder: SkipValidation[Any] = Field(
        exclude=True, repr=False, description="What embeds."
    )

    def __init__(
        self,
        encoder: Any = "default",
        *,
        model_name: str | None = None,
        embed_batch_size: int = 512,
        num_workers: int | None = None,
        callback_manager: CallbackManager | None = None,
        embeddings_cache: BaseKVStore | None = None,
        rate_limiter: BaseRateLimiter | None = None,
    ) -> None:
        resolved = as_encoder(encoder)
        if resolved is None:
            raise InvalidInput("encoder: expected an encoder for embeddings, got None")
        super().__init__(  # type: ignore[call-arg]  # the field is of this class
            encoder=resolved,
            model_name=model_name or resolved.name,
            embed_batch_size=embed_batch_size,
            num_workers=num_workers,
            callback_manager=callback_manager or CallbackManager([]),
            embeddings_cache=embeddings_cache,
            rate_limiter=rate_limiter,
        )

    @classmethod
    def class_name(cls) -> str:
        return "EncoderEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        return list(map(float, self.encoder.encode_queries([query])[0]))

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return (
            np.asarray(self.encoder.encode_documents(texts)).tolist() if texts else []
        )

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


_current_bundle: ContextVar[QueryBundle | None] = ContextVar(
    "current_bundle", default=None
)


@contextmanager
def answering(query_bundle: QueryBundle) -> Iterator[None]:
    """While graphret answers a bundle, let `LlamaIndexSeeds` pass it on unchanged.

    graphret itself only knows the text of a question.
    """
    token = _current_bundle.set(query_bundle)
    try:
        yield
    finally:
        _current_bundle.reset(token)


class LlamaIndexSeeds(Retriever):
    """A LlamaIndex retriever as a graphret one.

    Its nodes become graphret nodes and keep their scores; where it gives none, its
    order counts. A condition is applied to what it returns, since LlamaIndex retrievers
    take none with a question.

    Parameters
    ----------
    retriever
        Any LlamaIndex retriever. Its async side is awaited by `aretrieve`.
    deepen
        Where the retriever has a ``similarity_top_k``, ask it (a copy of it) for as
        many nodes as are needed; if not, it answers with as many as it was made for.
    name
        What evidence and traces call it; its class by default.
    """

    def __init__(
        self, retriever: BaseRetriever, *, deepen: bool = True, name: str = ""
    ) -> None:
        if not isinstance(retriever, BaseRetriever):
            raise InvalidInput(
                "retriever: expected a LlamaIndex retriever, got"
                f" {type(retriever).__name__}"
            )
        self.retriever = retriever
        self.deepen = deepen
        self.name = name or type(retriever).__name__

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        trace, retriever = Trace(), self._deep(k)
        outer_bundle = _current_bundle.get()
        bundle = QueryBundle(query)
        if outer_bundle is not None and outer_bundle.query_str == query:
            bundle = replace(outer_bundle)  # retrievers write into what they are given
        with trace.stage("search", retriever=self.name) as stage:
            nodes = yield Call(
                lambda: retriever.retrieve(bundle), lambda: retriever.aretrieve(bundle)
            )
            stage.details["found"] = len(nodes)
        hits = [
            hit
            for hit in hits_of(nodes, self.name)
            if where is None or where.matches(hit.node)
        ]
        return Retrieval(
            query,
            k,
            hits[:k],
            Signals(candidates=len(nodes), walked_edges=False),
            trace,
        )

    def _deep(self, k: int) -> BaseRetriever:
        depth = getattr(self.retriever, "similarity_top_k", None)
        if not self.deepen or not isinstance(depth, int) or depth >= k:
            return self.retriever
        deeper: Any = copy.copy(self.retriever)
        deeper.similarity_top_k = k
        return deeper  # type: ignore[no-any-return]


def hits_of(nodes: Sequence[NodeWithScore], name: str = "") -> list[Hit]:
    """Return LlamaIndex's nodes as distinct hits, in their order.

    If scores are missing or not in descending order, ranks count. Without evidence of
    their own, the hits are seeds of the retriever `name`.
    """
    scores = [
        scored_node.score for scored_node in nodes if scored_node.score is not None
    ]
    scored = len(scores) == len(nodes) and scores == sorted(scores, reverse=True)
    hits: dict[str, Hit] = {}
    for rank, scored_node in enumerate(nodes, start=1):
        score = (
            float(scored_node.score)
            if scored and scored_node.score is not None
            else 1.0 / rank
        )
        evidence = tuple(evidence_of(scored_node)) or (
            (Evidence("seed", rank=rank, retriever=name),) if name else ()
        )
        if scored_node.node.node_id not in hits:
            hits[scored_node.node.node_id] = Hit(
                from_llama_node(mark(scored_node.node, ())), score, evidence
            )
    return list(hits.values())


def as_seeds(seeds: Any) -> Any:
    """Return a LlamaIndex retriever as graphret's; anything of graphret's as it is."""
    return (
        seeds
        if seeds is None or isinstance(seeds, Retriever | TextIndex)
        else LlamaIndexSeeds(seeds)
    )


def encoder_of(embed_model: BaseEmbedding) -> Any:
    return (
        embed_model.encoder
        if isinstance(embed_model, EncoderEmbedding)
        else as_encoder(embed_model)
    )

"""`RRFFusionRetriever`: several LlamaIndex retrievers, fused by weighted reciprocal ranks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

from graphret import fusion
from graphret.errors import InvalidInput, RetrievalFailed
from graphret.retriever import Retriever, require_on_failure
from graphret.types import Evidence, Hit, Node, Retrieval, Signals, Trace
from llama_index_graphret.events import SageRetrievalEvent
from llama_index_graphret.evidence import SageNodeWithScore, evidence_of
from llama_index_graphret.retriever import SageRetriever, top_k

dispatcher = get_dispatcher(__name__)


class RRFFusionRetriever(BaseRetriever):
    """Ask several retrievers and fuse their rankings: ``score(d) = Σ_i weight_i / (rrf_k + rank_i(d))``.

    Unlike `QueryFusionRetriever` it weighs the retrievers, keeps the evidence that any of them gave, and needs no LLM.
    ``aretrieve`` asks all at once. Nodes are the same where their ids or their hashes are.

    Parameters
    ----------
    retrievers
        LlamaIndex retrievers, or graphret ones.
    weights
        How much each counts; 1 by default.
    similarity_top_k, k
        How many nodes are returned; 10 by default.
    rrf_k
        Constant of reciprocal rank fusion (Cormack et al. 2009; 60 there).
    names
        What the evidence calls the retrievers; their classes by default.
    on_failure
        ``"fallback"`` goes on with those that answered and says so in the trace, ``"raise"`` does not.

    Raises
    ------
    InvalidInput
        When there are no retrievers, or as many weights or names as there are not.
    RetrievalFailed
        On retrieval, when every retriever fails.
    """

    def __init__(
        self,
        retrievers: Sequence[BaseRetriever | Retriever],
        *,
        weights: Sequence[float] | None = None,
        similarity_top_k: int | None = None,
        k: int | None = None,
        rrf_k: float = 60.0,
        names: Sequence[str] | None = None,
        on_failure: str = "fallback",
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(callback_manager, object_map, objects, verbose)
        if not retrievers:
            raise InvalidInput("retrievers: there are none to fuse")
        self.similarity_top_k = top_k(k, similarity_top_k=similarity_top_k)
        self.retrievers = [self._listed(i, one, self.similarity_top_k) for i, one in enumerate(retrievers)]
        self.weights = fusion.require_weights(weights, len(self.retrievers))
        if not rrf_k >= 0:
            raise InvalidInput(f"rrf_k: a number of at least 0 is expected, not {rrf_k!r}")
        self.rrf_k = rrf_k
        self.names = list(names) if names is not None else _numbered([type(one).__name__ for one in self.retrievers])
        if len(self.names) != len(self.retrievers):
            raise InvalidInput(f"names: {len(self.retrievers)} are expected, not {len(self.names)}")
        self.on_failure = require_on_failure(on_failure)

    @staticmethod
    def _listed(number: int, retriever: Any, k: int) -> BaseRetriever:
        if isinstance(retriever, Retriever):
            return SageRetriever(retriever, similarity_top_k=k)
        if not isinstance(retriever, BaseRetriever):
            raise InvalidInput(f"retrievers: number {number} is a {type(retriever).__name__}, not a retriever")
        return retriever

    @dispatcher.span
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        results: list[Any] = []
        trace = Trace()
        with trace.stage("ask", retrievers=self.names):
            for retriever in self.retrievers:
                try:
                    results.append(retriever.retrieve(_own(query_bundle)))
                except Exception as error:
                    results.append(error)
        return self._fused(query_bundle, results, trace)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        trace = Trace()
        with trace.stage("ask", retrievers=self.names):
            asks = [retriever.aretrieve(_own(query_bundle)) for retriever in self.retrievers]
            results = await asyncio.gather(*asks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, Exception):
                raise result
        return self._fused(query_bundle, results, trace)

    def _fused(self, bundle: QueryBundle, results: Sequence[Any], trace: Trace) -> list[NodeWithScore]:
        lists: list[list[NodeWithScore]] = []
        for name, result in zip(self.names, results, strict=True):
            if isinstance(result, Exception):
                if self.on_failure == "raise" or isinstance(result, InvalidInput):
                    raise result
                trace.note("fallback", failed=name, error=f"{type(result).__name__}: {result}")
            lists.append([] if isinstance(result, Exception) else list(result))
        if all(isinstance(result, Exception) for result in results):
            raise RetrievalFailed(f"every retriever failed; the first: {results[0]}") from results[0]
        keys = _keys(lists)
        first: dict[str, NodeWithScore] = {}
        ranked: list[list[Hit]] = []
        for found in lists:
            hits: dict[str, Hit] = {}
            for one in found:
                key = keys[one.node.node_id]
                kept = first.setdefault(key, one)
                if not isinstance(kept, SageNodeWithScore) and isinstance(one, SageNodeWithScore):
                    first[key] = one
                hits.setdefault(key, Hit(Node(key), 0.0, tuple(evidence_of(one))))
            ranked.append(list(hits.values()))
        with trace.stage("fuse", rrf_k=self.rrf_k):
            fused = fusion.reciprocal_rank(ranked, weights=self.weights, rrf_k=self.rrf_k, names=self.names)
        top = fused[: self.similarity_top_k]
        evidence = {hit.id: _once(hit.evidence) for hit in top}
        told = [Hit(Node(first[hit.id].node.node_id), hit.score, evidence[hit.id]) for hit in top]
        retrieval = Retrieval(bundle.query_str, self.similarity_top_k, told, Signals(candidates=len(fused)), trace)
        dispatcher.event(SageRetrievalEvent.of(retrieval))
        return [
            SageNodeWithScore.of(Hit(hit.node, hit.score, evidence[hit.id]), first[hit.id].node, retrieval)
            for hit in top
        ]


def _keys(lists: Sequence[Sequence[NodeWithScore]]) -> dict[str, str]:
    """Return one key for all ids whose nodes have the same hash."""
    keys: dict[str, str] = {}
    by_hash: dict[str, str] = {}
    for found in lists:
        for one in found:
            keys.setdefault(one.node.node_id, by_hash.setdefault(one.node.hash, one.node.node_id))
    return keys


def _once(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    out: list[Evidence] = []
    for one in evidence:
        if one not in out:
            out.append(one)
    return tuple(out)


def _numbered(names: list[str]) -> list[str]:
    """Return names that differ."""
    return [f"{name} {names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _own(bundle: QueryBundle) -> QueryBundle:
    """Return a bundle of its own for each retriever, since they write their embedding into it."""
    return QueryBundle(bundle.query_str, bundle.image_path, bundle.custom_embedding_strs, bundle.embedding)

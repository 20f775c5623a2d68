"""`SageRetriever`: a LlamaIndex retriever over a graph, or over any graphret retriever."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index_instrumentation import get_dispatcher

from graphret import SageGraph
from graphret.errors import InvalidInput
from graphret.expansion import Expand, Ranking
from graphret.retriever import Ask, Compute, Retriever, Steps, answered, require_on_failure
from graphret.search import DenseIndex
from graphret.search.index import require_k
from graphret.stores import MemoryStore
from graphret.types import Retrieval, Trace
from graphret.where import Where
from llama_index_graphret.adapters import LlamaIndexEncoder, as_seeds
from llama_index_graphret.evidence import SageNodeWithScore, SageRetrievalEvent
from llama_index_graphret.filters import FiltersLike, to_where
from llama_index_graphret.nodes import to_llama_node

dispatcher = get_dispatcher(__name__)

_RETRIEVALS_KEPT = 32


class CoreRetriever(BaseRetriever):
    """What a graphret retriever finds, as LlamaIndex's nodes: filters, evidence, events and recent retrievals.

    `options` are those of any LlamaIndex retriever: ``callback_manager``, ``object_map``, ``objects``, ``verbose``.
    """

    _relevance = True  # whether the scores of nodes are their relevance, rather than what the method ranked by

    def __init__(self, similarity_top_k: int, filters: FiltersLike, **options: Any) -> None:
        super().__init__(**options)
        self.similarity_top_k = similarity_top_k
        self.where = to_where(filters)
        self._recent: deque[Retrieval] = deque(maxlen=_RETRIEVALS_KEPT)

    @dispatcher.span
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        retriever = self._retriever(query_bundle)
        return self._answer(retriever.retrieve(query_bundle.query_str, self.similarity_top_k, self.where))

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        retriever = self._retriever(query_bundle)
        return self._answer(await retriever.aretrieve(query_bundle.query_str, self.similarity_top_k, self.where))

    def retrieval_of(self, query: QueryType) -> Retrieval | None:
        """Return the last retrieval for a question, with hits, evidence and trace; some recent ones are remembered."""
        asked = query if isinstance(query, str) else query.query_str
        return next((one for one in reversed(list(self._recent)) if one.query == asked), None)

    def _retriever(self, bundle: QueryBundle) -> Retriever:
        raise NotImplementedError

    def _answer(self, retrieval: Retrieval) -> list[NodeWithScore]:
        self._recent.append(retrieval)
        dispatcher.event(SageRetrievalEvent.of(retrieval))
        hits = retrieval.hits if self._relevance else [replace(hit, relevance=None) for hit in retrieval.hits]
        return [SageNodeWithScore.of(hit, to_llama_node(hit.node), retrieval) for hit in hits]


class SageRetriever(CoreRetriever):
    """Retrieve from a graph: seeds, what it connects them to, and the evidence for each (SAGE, section 2.2).

    Put it where a retriever goes: `RetrieverQueryEngine`, `RouterQueryEngine`, `QueryFusionRetriever`, a chat engine.
    A node's score is its relevance, 0 … 1 (see `graphret.types.Hit`); `evidence_of` says why it was returned.
    ``aretrieve`` awaits the embedding model and the seed retriever. The embedding in a `QueryBundle` is used where the
    graph's vectors are from a LlamaIndex model (`SageGraph.from_index`), or the graph has no encoder.

    Parameters
    ----------
    graph
        A `SageGraph`, or any graphret `Retriever`.
    similarity_top_k, k
        How many nodes are returned, in total: exactly so many where that many qualify; 10 by default.
    ranking
        ``"coverage"``, ``"propagate"``, ``"paper"`` or a `graphret.expansion.Ranking`; ``"coverage"`` by default.
    seeds
        Who finds the seeds: any LlamaIndex or graphret retriever; the graph's own search by default.
    filters
        What may be returned: `MetadataFilters`, or a graphret condition. The walk passes through the rest; to hide
        nodes altogether retrieve from ``graph.view(...)``.
    on_failure
        ``"fallback"``: if the seed retriever fails, the graph's own search finds the seeds; if the embedding model
        fails, words alone count; the trace says so. ``"raise"`` raises `RetrievalFailed`.
    options
        As any LlamaIndex retriever has them: ``callback_manager``, ``object_map``, ``objects``, ``verbose``.
    """

    def __init__(
        self,
        graph: SageGraph | Retriever,
        *,
        similarity_top_k: int | None = None,
        k: int | None = None,
        ranking: Ranking | str | None = None,
        seeds: BaseRetriever | Retriever | None = None,
        filters: FiltersLike = None,
        on_failure: str = "fallback",
        **options: Any,
    ) -> None:
        super().__init__(top_k(k, similarity_top_k=similarity_top_k), filters, **options)
        if isinstance(graph, Retriever) and (ranking is not None or seeds is not None):
            raise InvalidInput("ranking and seeds are for a SageGraph; a graphret Retriever has its own")
        as_seeds(seeds)  # refuses what is no retriever
        self.graph = graph
        self.seeds = seeds
        self.ranking = None if isinstance(graph, Retriever) else ranking_of(graph, ranking or "coverage")
        self.on_failure = require_on_failure(on_failure)

    def _retriever(self, bundle: QueryBundle) -> Retriever:
        if isinstance(self.graph, Retriever):
            return self.graph
        assert self.ranking is not None
        return Question(self.graph, bundle, self.ranking, as_seeds(self.seeds, bundle), self.on_failure)


def as_llama_index_retriever(retriever: SageGraph | Retriever, **options: Any) -> SageRetriever:
    """Return a graphret retriever, or a graph, as a LlamaIndex retriever; `options` are those of `SageRetriever`."""
    return SageRetriever(retriever, **options)


class Question(Retriever):
    """One question as LlamaIndex puts it to a graph: perhaps with an embedding, or with texts to be embedded instead.

    The parameters are those of `SageRetriever`; `instead` answers where the expansion fails, `None` raises.
    """

    name = "sage"

    def __init__(
        self,
        graph: SageGraph,
        bundle: QueryBundle,
        ranking: Ranking,
        seeds: Retriever | None,
        on_failure: str,
        instead: Retriever | None = None,
    ) -> None:
        self.graph = graph
        self.bundle = bundle
        self.ranking = ranking
        self.seeds = seeds
        self.on_failure = on_failure
        self.instead = instead

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        state, trace = self.graph.state, Trace()
        vector = yield from self._vector(state.index.dense, trace)
        retriever: Retriever = self.graph.retriever(self.ranking, seeds=self.seeds, on_failure=self.on_failure)
        if vector is not None:
            index = state.index.with_query(query, vector)
            store = MemoryStore(state.graph)
            retriever = Expand(self.seeds, store, index, ranking=self.ranking, on_failure=self.on_failure)
        result = yield Ask(retriever, query, k, where)
        if isinstance(result, Exception):
            answered(result, self, self.on_failure if self.instead else "raise", trace)
            result = yield Ask(self.instead or retriever, query, k, where)
        retrieval: Retrieval = result
        retrieval.trace.stages[:0] = trace.stages
        return retrieval

    def _vector(self, dense: DenseIndex | None, trace: Trace) -> Generator[Any, Any, Any]:
        """Return the embedding that counts for the question; `None` where the graph is to embed it, or has none."""
        if dense is None:
            return None
        encoder, given, texts = dense.encoder, self.bundle.embedding, self.bundle.custom_embedding_strs
        alike = encoder is None or isinstance(encoder, LlamaIndexEncoder)  # else it may be of another model
        if given is not None and alike and len(given) == dense.vectors.shape[1]:
            return given
        if encoder is None:
            raise InvalidInput("query: the graph has no encoder, so the question's embedding must be given")
        if not texts:
            return None
        with trace.stage("embed", encoder=encoder.name, texts=len(texts)):
            try:
                return (yield Compute(lambda: np.mean(encoder.encode_queries(texts), axis=0)))
            except Exception as error:
                return answered(error, self, self.on_failure, trace)


def top_k(k: int | None, **named: int | None) -> int:
    """Return how many nodes are wanted, by the name that LlamaIndex has for it or as `k`; 10 by default."""
    [(name, value)] = named.items()
    if k is not None and value is not None:
        raise InvalidInput(f"k: it is another name of {name}; give one of the two")
    given = value if k is None else k
    return require_k(10 if given is None else given)


def ranking_of(graph: Any, ranking: Ranking | str) -> Ranking:
    """Return a ranking by name; an `InvalidInput` says which there are, and refuses what is no graph."""
    if not isinstance(graph, SageGraph):
        raise InvalidInput(f"graph: a graphret SageGraph is expected, not {type(graph).__name__}")
    return graph.retriever(ranking).ranking

"""`SageRetriever`: a LlamaIndex retriever over a graph, or over any graphret retriever."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, QueryType
from llama_index_instrumentation import get_dispatcher

from graphret import SageGraph
from graphret.errors import InvalidInput
from graphret.expansion import Ranking
from graphret.retriever import Retriever, require_on_failure
from graphret.search.index import require_k
from graphret.types import Retrieval
from llama_index_graphret.adapters import as_seeds, asked
from llama_index_graphret.events import SageRetrievalEvent
from llama_index_graphret.evidence import SageNodeWithScore
from llama_index_graphret.filters import FiltersLike, to_where
from llama_index_graphret.nodes import to_llama_node
from llama_index_graphret.question import Question, ranking_of

dispatcher = get_dispatcher(__name__)

_RETRIEVALS_KEPT = 32


def top_k(k: int | None, **named: int | None) -> int:
    """Return how many nodes are wanted, by the name that LlamaIndex has for it or as `k`; 10 by default."""
    [(name, value)] = named.items()
    if k is not None and value is not None:
        raise InvalidInput(f"k: it is another name of {name}; give one of the two")
    given = value if k is None else k
    return require_k(10 if given is None else given)


class CoreRetriever(BaseRetriever):
    """What a graphret retriever finds, as LlamaIndex's nodes: filters, evidence, events and recent retrievals."""

    def __init__(
        self,
        similarity_top_k: int,
        filters: FiltersLike,
        *,
        callback_manager: CallbackManager | None,
        object_map: dict[str, Any] | None,
        objects: list[IndexNode] | None,
        verbose: bool,
    ) -> None:
        super().__init__(callback_manager, object_map, objects, verbose)
        self.similarity_top_k = require_k(similarity_top_k)
        self.where = to_where(filters)
        self._recent: OrderedDict[str, Retrieval] = OrderedDict()
        self._lock = threading.Lock()

    @dispatcher.span
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        retriever, token = self._retriever(query_bundle), asked.set(query_bundle)
        try:
            retrieval = retriever.retrieve(query_bundle.query_str, self.similarity_top_k, self.where)
        finally:
            asked.reset(token)
        return self._answer(retrieval)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        retriever, token = self._retriever(query_bundle), asked.set(query_bundle)
        try:
            retrieval = await retriever.aretrieve(query_bundle.query_str, self.similarity_top_k, self.where)
        finally:
            asked.reset(token)
        return self._answer(retrieval)

    def retrieval_of(self, query: QueryType) -> Retrieval | None:
        """Return the last retrieval for a question, with hits, evidence and trace; some recent ones are remembered."""
        with self._lock:
            return self._recent.get(query if isinstance(query, str) else query.query_str)

    def _retriever(self, bundle: QueryBundle) -> Retriever:
        raise NotImplementedError

    def _answer(self, retrieval: Retrieval) -> list[NodeWithScore]:
        with self._lock:
            self._recent[retrieval.query] = retrieval
            self._recent.move_to_end(retrieval.query)
            while len(self._recent) > _RETRIEVALS_KEPT:
                self._recent.popitem(last=False)
        dispatcher.event(SageRetrievalEvent.of(retrieval))
        return [SageNodeWithScore.of(hit, to_llama_node(hit.node), retrieval) for hit in retrieval.hits]


class SageRetriever(CoreRetriever):
    """Retrieve from a graph: seeds, what it connects them to, and the evidence for each (SAGE, section 2.2).

    Put it where a retriever goes: `RetrieverQueryEngine`, `RouterQueryEngine`, `QueryFusionRetriever`, a chat engine.
    A node's score is its relevance, 0 … 1 (see `graphret.types.Hit`); `evidence_of` says why it was returned.
    ``aretrieve`` awaits the embedding model and the seed retriever.

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
    use_query_embedding
        Whether the embedding in a `QueryBundle` is used. By default only where the graph's vectors are from a
        LlamaIndex model (`SageGraph.from_index`) or the graph has no encoder, since other retrievers of an engine leave
        there the vectors of their own model.
    on_failure
        ``"fallback"``: if the seed retriever fails, the graph's own search finds the seeds; if the embedding model
        fails, words alone count; the trace says so. ``"raise"`` raises `RetrievalFailed`.

    Raises
    ------
    InvalidInput
        When an argument is malformed, or `ranking` or `seeds` is given for what is no graph.
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
        use_query_embedding: bool | None = None,
        on_failure: str = "fallback",
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            top_k(k, similarity_top_k=similarity_top_k),
            filters,
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )
        if isinstance(graph, SageGraph):
            self.ranking: Ranking | None = ranking_of(graph, ranking or "coverage")
        elif not isinstance(graph, Retriever):
            raise InvalidInput(f"graph: a SageGraph or a graphret Retriever is expected, not {type(graph).__name__}")
        elif ranking is not None or seeds is not None:
            raise InvalidInput("ranking and seeds are for a SageGraph; a graphret Retriever has its own")
        else:
            self.ranking = None
        self.graph = graph
        self.seeds = as_seeds(seeds)
        self.use_query_embedding = use_query_embedding
        self.on_failure = require_on_failure(on_failure)

    def _retriever(self, bundle: QueryBundle) -> Retriever:
        if isinstance(self.graph, Retriever):
            return self.graph
        assert self.ranking is not None
        return Question(
            self.graph,
            bundle,
            seeds=self.seeds,
            ranking=self.ranking,
            use_query_embedding=self.use_query_embedding,
            on_failure=self.on_failure,
        )


def as_llama_index_retriever(retriever: SageGraph | Retriever, **options: Any) -> SageRetriever:
    """Return a graphret retriever, or a graph, as a LlamaIndex retriever; `options` are those of `SageRetriever`."""
    return SageRetriever(retriever, **options)

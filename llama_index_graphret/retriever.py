"""LlamaIndex retrievers over a graph, over any graphret retriever, and over several
retrievers, fused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

from graphret import SageGraph
from graphret.errors import InvalidInput
from graphret.expansion import Ranking
from graphret.retriever import Fuse, Retriever
from graphret.search.index import require_k
from graphret.types import Retrieval
from llama_index_graphret.adapters import LlamaIndexSeeds, as_seeds
from llama_index_graphret.evidence import SageNodeWithScore, SageRetrievalEvent
from llama_index_graphret.filters import FiltersLike, to_where
from llama_index_graphret.nodes import to_llama_node

dispatcher = get_dispatcher(__name__)

_OPTIONS = {
    "callback_manager",
    "object_map",
    "objects",
    "verbose",
}  # of any LlamaIndex retriever


class CoreRetriever(BaseRetriever):
    """What a graphret retriever finds, as LlamaIndex's nodes: filters, evidence and
    events.

    `core` is the graphret retriever that does the work. It is made of the parts, and of
    those options that are none of any LlamaIndex retriever: ``callback_manager``,
    ``object_map``, ``objects``, ``verbose``.
    """

    # Whether the scores of nodes are their relevance, rather than what the method
    # ranked by.
    _relevance = True

    def __init__(
        self,
        make: Callable[..., Retriever],
        *parts: Any,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        **options: Any,
    ) -> None:
        super().__init__(
            **{name: options.pop(name) for name in _OPTIONS & options.keys()}
        )
        self.similarity_top_k = top_k(k, similarity_top_k)
        self.where = to_where(filters)
        self.core = make(*parts, **options)

    @dispatcher.span
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._answer(
            self.core.retrieve(
                query_bundle.query_str, self.similarity_top_k, self.where
            )
        )

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._answer(
            await self.core.aretrieve(
                query_bundle.query_str, self.similarity_top_k, self.where
            )
        )

    def _answer(self, retrieval: Retrieval) -> list[NodeWithScore]:
        dispatcher.event(SageRetrievalEvent.of(retrieval))
        hits = (
            retrieval.hits
            if self._relevance
            else [replace(hit, relevance=None) for hit in retrieval.hits]
        )
        return [
            SageNodeWithScore.of(hit, to_llama_node(hit.node), retrieval)
            for hit in hits
        ]


class SageRetriever(CoreRetriever):
    """Retrieve from a graph: seeds, what it connects them to, and the evidence for each
    (SAGE, section 2.2).

    Put it where a retriever goes: `RetrieverQueryEngine`, `RouterQueryEngine`,
    `QueryFusionRetriever`, a chat engine. A node's score is its relevance, 0 … 1 (see
    `graphret.types.Hit`); `evidence_of` says why it was returned. ``aretrieve`` awaits
    the embedding model and the seed retriever. Of a `QueryBundle` the question's text
    is read.

    Parameters
    ----------
    graph
        A `SageGraph`, or any graphret `Retriever`.
    similarity_top_k, k
        How many nodes are returned, in total: exactly so many where that many qualify;
        10 by default.
    ranking
        ``"coverage"`` (the default), ``"propagate"``, ``"paper"`` or a `Ranking`.
    seeds
        Who finds the seeds: any LlamaIndex or graphret retriever; the graph's own
        search by default.
    filters
        What may be returned: `MetadataFilters`, or a graphret condition. The walk
        passes through the rest; to hide nodes altogether retrieve from
        ``graph.view(...)``.
    on_failure
        ``"fallback"``: if the seed retriever fails, the graph's own search finds the
        seeds; if the embedding model fails, words alone count; the trace says so.
        ``"raise"`` raises `RetrievalFailed`.
    options
        As any LlamaIndex retriever has them: ``callback_manager``, ``object_map``,
        ``objects``, ``verbose``.
    """

    def __init__(self, graph: SageGraph | Retriever, **options: Any) -> None:
        super().__init__(_sage, graph, **options)


def _sage(
    graph: SageGraph | Retriever,
    *,
    ranking: Ranking | str | None = None,
    seeds: BaseRetriever | Retriever | None = None,
    on_failure: str = "fallback",
) -> Retriever:
    if not isinstance(graph, Retriever):
        return require_graph(graph).retriever(
            ranking, seeds=as_seeds(seeds), on_failure=on_failure
        )
    if ranking is not None or seeds is not None:
        raise InvalidInput(
            "ranking and seeds are for a SageGraph; a graphret Retriever has its own"
        )
    return graph


def as_llama_index_retriever(
    retriever: SageGraph | Retriever, **options: Any
) -> SageRetriever:
    """Return a graphret retriever, or a graph, as a LlamaIndex retriever; `options` are
    those of `SageRetriever`.
    """
    return SageRetriever(retriever, **options)


class RRFFusionRetriever(CoreRetriever):
    """Ask several retrievers and fuse their rankings: ``score(d) = Σ_i weight_i /
    (rrf_k + rank_i(d))``.

    Unlike `QueryFusionRetriever` it weighs the retrievers, keeps the evidence that any
    of them gave, and needs no LLM. ``aretrieve`` asks all at once. Nodes are the same
    where their ids are.

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
        ``"fallback"`` goes on with those that answered and says so in the trace,
        ``"raise"`` raises `RetrievalFailed`, as does a retrieval in which every
        retriever fails.
    options
        As any LlamaIndex retriever has them.
    """

    _relevance = False

    def __init__(
        self, retrievers: Sequence[BaseRetriever | Retriever], **options: Any
    ) -> None:
        n = top_k(options.get("k"), options.get("similarity_top_k"))
        asked = [
            SageRetriever(one, k=n) if isinstance(one, Retriever) else one
            for one in retrievers
        ]
        super().__init__(_fused, asked, **options)


def _fused(
    retrievers: Sequence[BaseRetriever],
    *,
    names: Sequence[str] | None = None,
    rrf_k: float = 60.0,
    **options: Any,
) -> Retriever:
    named = zip(retrievers, names or [""] * len(retrievers), strict=True)
    listed = [LlamaIndexSeeds(one, name=name, deepen=False) for one, name in named]
    return Fuse(listed, rrf_k=rrf_k, depth=1000, **options)  # all that each found


def top_k(k: int | None, other: int | None) -> int:
    """Return how many nodes are wanted, by the name that LlamaIndex has for it or as
    `k`; 10 by default.
    """
    if k is not None and other is not None:
        raise InvalidInput(
            "k: it is another name of similarity_top_k or top_n; give one of the two"
        )
    return require_k(next((given for given in (k, other) if given is not None), 10))


def require_graph(graph: Any) -> SageGraph:
    """Return what is a graph; an `InvalidInput` refuses anything else."""
    if not isinstance(graph, SageGraph):
        raise InvalidInput(
            f"graph: a graphret SageGraph is expected, not {type(graph).__name__}"
        )
    return graph

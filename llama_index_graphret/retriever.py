"""LlamaIndex retrievers over a graph, a graphret retriever, or several ones, fused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

from graphret import SageGraph, sage
from graphret.content import Content, NodeContent
from graphret.contracts import CheckedKeywords
from graphret.errors import InvalidInput
from graphret.expansion import Ranking
from graphret.retriever import Fuse, Retriever, Weights
from graphret.search.index import require_k
from graphret.types import Retrieval
from llama_index_graphret.adapters import LlamaIndexSeeds, answering, as_seeds
from llama_index_graphret.evidence import SageNodeWithScore, SageRetrievalEvent
from llama_index_graphret.filters import FiltersLike, to_where
from llama_index_graphret.nodes import to_llama_node

dispatcher = get_dispatcher(__name__)


class CoreRetriever(CheckedKeywords, BaseRetriever):
    """What a graphret retriever finds, as LlamaIndex's nodes, with evidence and events.

    Parameters
    ----------
    core
        The graphret retriever that does the work.
    similarity_top_k, k, filters, fill, content
        As `SageRetriever` has them.
    callback_manager, object_map, objects, verbose
        As any LlamaIndex retriever has them.
    """

    # Whether the scores of nodes are their relevance, rather than what the method
    # ranked by.
    _relevance = True

    def __init__(
        self,
        core: Retriever,
        *,
        fill: bool = True,
        content: Content | None = None,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )
        self.core = core
        self.fill = fill
        self.content = NodeContent(core.graph_store, content)
        self.similarity_top_k = top_k(k, similarity_top_k)
        self.where = to_where(filters)

    @dispatcher.span
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with answering(query_bundle):
            retrieval = for_bundle(self.core, query_bundle).retrieve(
                query_bundle.query_str, self.similarity_top_k, self.where
            )
        return self._answer(retrieval)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with answering(query_bundle):
            retrieval = await for_bundle(self.core, query_bundle).aretrieve(
                query_bundle.query_str, self.similarity_top_k, self.where
            )
        # neighbors may have to be read from a database
        return await asyncio.to_thread(self._answer, retrieval)

    def _answer(self, retrieval: Retrieval) -> list[NodeWithScore]:
        dispatcher.event(SageRetrievalEvent.of(retrieval))
        hits = [hit for hit in retrieval.hits if self.fill or not hit.fill]
        if not self._relevance:
            hits = [replace(hit, relevance=None) for hit in hits]
        texts = self.content.texts([hit.node for hit in hits])
        return [
            SageNodeWithScore.of(hit, to_llama_node(hit.node, text), retrieval)
            for hit, text in zip(hits, texts, strict=True)
        ]


class SageRetriever(CoreRetriever):
    """Retrieve seeds and what a graph connects them to, with evidence.

    SAGE, section 2.2.

    Put it where a retriever goes: `RetrieverQueryEngine`, `RouterQueryEngine`,
    `QueryFusionRetriever`, a chat engine. A node's score is its relevance, 0 … 1 (see
    `graphret.types.Hit`); `evidence_of` says why it was returned. ``aretrieve`` awaits
    the embedding model and the seed retriever. A `QueryBundle` means what its
    ``custom_embedding_strs`` say, as `HyDEQueryTransform` sets them; its ``embedding``
    counts where the graph was made with an ``embed_model``.

    Parameters
    ----------
    graph
        A `SageGraph`, or any graphret `Retriever`.
    similarity_top_k, k
        How many nodes are returned, in total: exactly so many where that many qualify;
        10 by default.
    ranking
        ``"coverage"``, ``"propagate"``, ``"paper"`` or a `Ranking`; by default the one
        that was trained for the graph, ``"coverage"`` where none was.
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
    fill
        Whether hits that only fill a place come back too, marked by the node's `fill`:
        exactly so many nodes then where that many qualify.
    content
        What a node's text is, a `graphret.NodeText` or a function of a graphret node;
        by default a passage's own text, and of any other node its name, properties and
        named neighbours.
    callback_manager, object_map, objects, verbose
        As any LlamaIndex retriever has them.
    """

    def __init__(
        self,
        graph: SageGraph | Retriever,
        *,
        ranking: Ranking | str | None = None,
        seeds: BaseRetriever | Retriever | None = None,
        on_failure: str = "fallback",
        fill: bool = True,
        content: Content | None = None,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            _over(graph, ranking, seeds, on_failure),
            fill=fill,
            content=content,
            similarity_top_k=similarity_top_k,
            k=k,
            filters=filters,
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )


def _over(
    graph: SageGraph | Retriever,
    ranking: Ranking | str | None,
    seeds: BaseRetriever | Retriever | None,
    on_failure: str,
) -> Retriever:
    """Return a retriever over a graph; a graphret retriever as it is."""
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
    retriever: SageGraph | Retriever,
    *,
    fill: bool = True,
    content: Content | None = None,
    similarity_top_k: int | None = None,
    k: int | None = None,
    filters: FiltersLike = None,
    callback_manager: CallbackManager | None = None,
    object_map: dict[str, Any] | None = None,
    objects: list[IndexNode] | None = None,
    verbose: bool = False,
) -> SageRetriever:
    """Return a graphret retriever, or a graph, as a LlamaIndex retriever.

    The parameters are those of `SageRetriever`.
    """
    return SageRetriever(
        retriever,
        fill=fill,
        content=content,
        similarity_top_k=similarity_top_k,
        k=k,
        filters=filters,
        callback_manager=callback_manager,
        object_map=object_map,
        objects=objects,
        verbose=verbose,
    )


class RRFFusionRetriever(CoreRetriever):
    """Fuse the rankings of several retrievers by reciprocal rank.

    ``score(d) = Σ_i weight_i / (rrf_k + rank_i(d))``.

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
    fill, content, filters, callback_manager, object_map, objects, verbose
        As `SageRetriever` has them.
    """

    _relevance = False

    def __init__(
        self,
        retrievers: Sequence[BaseRetriever | Retriever],
        *,
        weights: Weights | None = None,
        rrf_k: float = 60.0,
        names: Sequence[str] | None = None,
        on_failure: str = "fallback",
        fill: bool = True,
        content: Content | None = None,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        depth = top_k(k, similarity_top_k)
        sources = [
            LlamaIndexSeeds(
                SageRetriever(retriever, k=depth)
                if isinstance(retriever, Retriever)
                else retriever,
                name=name,
                deepen=False,
            )
            for retriever, name in zip(
                retrievers, names or [""] * len(retrievers), strict=True
            )
        ]
        # deep enough for everything that each retriever finds
        fused = Fuse(
            sources, weights=weights, rrf_k=rrf_k, depth=1000, on_failure=on_failure
        )
        super().__init__(
            fused,
            fill=fill,
            content=content,
            similarity_top_k=similarity_top_k,
            k=k,
            filters=filters,
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )


def for_bundle(core: Retriever, query_bundle: QueryBundle) -> Retriever:
    """Return a retriever that uses the meaning stated in a bundle, if it can use it.

    LlamaIndex's retrievers leave the embedding of their own model in the bundle that
    they share. Only a graph that was built with such a model can tell whether the
    embedding is one of its own.
    """
    if not isinstance(core, sage.SageRetriever):
        return core
    if query_bundle.custom_embedding_strs:
        return core.meaning(query_bundle.custom_embedding_strs)
    if (
        query_bundle.embedding is None
        or getattr(core.graph, "embed_model", None) is None
    ):
        return core
    vector, dense = (
        np.asarray(query_bundle.embedding, np.float32),
        core.graph.index.dense,
    )
    fits = dense is not None and dense.vectors.shape[1:] == vector.shape
    return core.meaning(vector) if fits else core


def top_k(k: int | None, framework_k: int | None) -> int:
    """Return the number of nodes, `k` or as LlamaIndex names it; 10 by default."""
    if k is not None and framework_k is not None:
        raise InvalidInput(
            "k: it is an alias of similarity_top_k or top_n; pass only one of them"
        )
    return require_k(
        next((value for value in (k, framework_k) if value is not None), 10)
    )


def require_graph(graph: Any) -> SageGraph:
    """Return the graph; anything else is an `InvalidInput`."""
    if not isinstance(graph, SageGraph):
        raise InvalidInput(
            f"graph: expected a graphret SageGraph, got {type(graph).__name__}"
        )
    return graph

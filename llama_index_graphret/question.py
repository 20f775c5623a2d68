"""A question as LlamaIndex puts it, answered by a graph."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import numpy as np
from llama_index.core.schema import QueryBundle

from graphret import SageGraph
from graphret.errors import InvalidInput, RetrievalFailed
from graphret.expansion import Expand, Ranking
from graphret.retriever import Call, Retriever, Steps, require_on_failure
from graphret.sage.asking import embedded
from graphret.search.encoder import Encoder
from graphret.search.hybrid import HybridIndex
from graphret.stores.memory import MemoryStore
from graphret.types import Trace
from graphret.where import Where
from llama_index_graphret.adapters import LlamaIndexEncoder


class Question(Retriever):
    """One question to a graph: its embedding is found, and then seeds are expanded.

    Parameters
    ----------
    graph, seeds, ranking, on_failure
        As `graphret.SageGraph.retriever` has them.
    bundle
        The question as LlamaIndex puts it.
    use_query_embedding
        Whether the embedding in `bundle` is taken: `None` for yes if the graph's vectors are from a LlamaIndex model or
        the graph has no encoder. Other retrievers of a query engine write theirs into the bundle, and those may be of
        another model.
    """

    name = "sage"

    def __init__(
        self,
        graph: SageGraph,
        bundle: QueryBundle,
        *,
        seeds: Retriever | None,
        ranking: Ranking,
        use_query_embedding: bool | None = None,
        on_failure: str = "fallback",
    ) -> None:
        self.graph = graph
        self.bundle = bundle
        self.seeds = seeds
        self.ranking = ranking
        self.use_query_embedding = use_query_embedding
        self.on_failure = require_on_failure(on_failure)

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        state, trace = self.graph.state, Trace()
        index = yield from self._index(state.index, trace)
        store = MemoryStore(state.graph)
        expand = Expand(self.seeds, store, index, ranking=self.ranking, on_failure=self.on_failure)
        retrieval = yield from expand._steps(query, k, where)
        retrieval.trace.stages[:0] = trace.stages
        return retrieval

    def _index(self, index: HybridIndex, trace: Trace) -> Generator[Any, Any, HybridIndex]:
        """Return an index that knows the question's embedding, or that of the words alone where none can be had."""
        dense, query, texts = index.dense, self.bundle.query_str, self.bundle.custom_embedding_strs
        if dense is None:
            return index
        given = self._given(dense.encoder, dense.vectors.shape[1])
        if given is not None:
            return index.with_query(query, given)
        if dense.encoder is None:
            raise InvalidInput("query: the graph has no encoder, so the question's embedding must be given")
        if not texts:
            known = yield from embedded(index, query, trace, self.on_failure)
            return known
        with trace.stage("embed", encoder=dense.encoder.name, texts=len(texts)):
            vector = yield _mean(dense.encoder, texts)
        if not isinstance(vector, Exception):  # what is embedded in place of the question counts for it alone
            return index.with_query(query, vector)
        if self.on_failure == "raise":
            raise RetrievalFailed(f"{dense.encoder.name} failed: {vector}") from vector
        trace.note("fallback", failed=dense.encoder.name, error=f"{type(vector).__name__}: {vector}")
        return HybridIndex(index.lexical)

    def _given(self, encoder: Encoder | None, width: int) -> list[float] | None:
        embedding, wanted = self.bundle.embedding, self.use_query_embedding
        if embedding is None or wanted is False:
            return None
        if wanted is None and encoder is not None:
            return embedding if isinstance(encoder, LlamaIndexEncoder) and len(embedding) == width else None
        return embedding


def ranking_of(graph: SageGraph, ranking: Ranking | str) -> Ranking:
    """Return a ranking by name; an `InvalidInput` says which there are."""
    return graph.retriever(ranking).ranking


def require_graph(graph: Any) -> SageGraph:
    """Return `graph` if it is a `graphret.SageGraph`."""
    if not isinstance(graph, SageGraph):
        raise InvalidInput(f"graph: a graphret SageGraph is expected, not {type(graph).__name__}")
    return graph


def _mean(encoder: Encoder, texts: list[str]) -> Call[Any]:
    """Return the call that embeds texts as one question; a failure comes back as a value."""

    def work() -> Any:
        try:
            return np.mean(encoder.encode_queries(texts), axis=0)
        except Exception as error:
            return error

    async def awaited() -> Any:
        ask = getattr(encoder, "aencode_queries", None)
        if ask is None:
            return await asyncio.to_thread(work)
        try:
            return np.mean(await ask(texts), axis=0)
        except Exception as error:
            return error

    return Call(work, awaited)

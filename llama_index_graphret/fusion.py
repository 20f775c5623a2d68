"""`RRFFusionRetriever`: several LlamaIndex retrievers, fused by weighted reciprocal ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever

from graphret.retriever import Fuse, Retriever
from llama_index_graphret.adapters import LlamaIndexSeeds
from llama_index_graphret.retriever import CoreRetriever, SageRetriever, top_k


class RRFFusionRetriever(CoreRetriever):
    """Ask several retrievers and fuse their rankings: ``score(d) = Σ_i weight_i / (rrf_k + rank_i(d))``.

    Unlike `QueryFusionRetriever` it weighs the retrievers, keeps the evidence that any of them gave, and needs no LLM.
    ``aretrieve`` asks all at once. Nodes are the same where their ids are.

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
        ``"fallback"`` goes on with those that answered and says so in the trace, ``"raise"`` raises `RetrievalFailed`,
        as does a retrieval in which every retriever fails.
    options
        As any LlamaIndex retriever has them.
    """

    _relevance = False

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
        **options: Any,
    ) -> None:
        n = top_k(k, similarity_top_k)
        asked = [SageRetriever(one, k=n) if isinstance(one, Retriever) else one for one in retrievers]
        named = zip(asked, names or [""] * len(asked), strict=True)
        listed = [LlamaIndexSeeds(one, name=name, deepen=False) for one, name in named]
        fuse = Fuse(listed, weights=weights, rrf_k=rrf_k, depth=1000, on_failure=on_failure)  # all that each found
        super().__init__(fuse, n, **options)

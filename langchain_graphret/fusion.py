"""`RRFFusionRetriever`: several retrievers, fused by the ranks of what they find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphret.content import Content
from graphret.retriever import Fuse, Retriever, Weights
from graphret.where import WhereLike
from langchain_graphret.retriever import CoreRetriever, Part
from langchain_graphret.seeds import LangChainRetriever, LangChainSeeds


class RRFFusionRetriever(CoreRetriever):
    """Ask several retrievers and fuse their rankings by reciprocal rank.

    ``score(d) = Σ_i weight_i / (rrf_k + rank_i(d))``. Unlike `EnsembleRetriever` it
    returns `k` documents, keeps the evidence that any of them gave, and goes on where
    one fails. Documents are the same where their ids are.

    Parameters
    ----------
    retrievers
        LangChain retrievers, or graphret ones.
    weights
        How much each counts; 1 by default.
    rrf_k
        Constant of reciprocal rank fusion (Cormack et al. 2009; 60 there).
    names
        What the evidence calls the retrievers of LangChain; their classes by default.
    on_failure
        ``"fallback"`` goes on with those that answered and says so in the trace,
        ``"raise"`` raises `RetrievalFailed`, as does a retrieval in which every
        retriever fails.
    fill, content, k, where, name, tags, metadata
        As `SageRetriever` has them.
    """

    retrievers: Part[Sequence[LangChainRetriever | Retriever]]
    weights: Part[Weights | None] = None
    rrf_k: float = 60.0
    names: Part[Sequence[str] | None] = None
    on_failure: str = "fallback"

    def __init__(
        self,
        retrievers: Sequence[LangChainRetriever | Retriever],
        *,
        weights: Weights | None = None,
        rrf_k: float = 60.0,
        names: Sequence[str] | None = None,
        on_failure: str = "fallback",
        fill: bool = True,
        content: Content | None = None,
        k: int = 10,
        where: WhereLike = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]  # fields of this class
            retrievers=retrievers,
            weights=weights,
            rrf_k=rrf_k,
            names=names,
            on_failure=on_failure,
            fill=fill,
            content=content,
            k=k,
            where=where,
            name=name,
            tags=tags,
            metadata=metadata,
        )
        self._check()

    def _make(self) -> Retriever:
        names = self.names or [""] * len(self.retrievers)
        retrievers = [
            retriever
            if isinstance(retriever, Retriever)
            else LangChainSeeds(retriever, name=name or type(retriever).__name__)
            for retriever, name in zip(self.retrievers, names, strict=True)
        ]
        return Fuse(
            retrievers,
            weights=self.weights,
            rrf_k=self.rrf_k,
            on_failure=self.on_failure,
        )

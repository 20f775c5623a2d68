"""`GraphReranker`: documents ordered by a model that reads question and node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.documents import Document
from pydantic import Field

from graphret.rerank import CrossEncoderReranker, Rerank, Reranker
from graphret.retriever import require_on_failure
from graphret.types import Evidence, Hit
from langchain_graphret.compressor import CoreCompressor, InputHits, with_hit
from langchain_graphret.documents import evidence_of, from_document
from langchain_graphret.retriever import Part, traced
from langchain_graphret.state import NodeSteps


class GraphReranker(CoreCompressor):
    """Order documents by a model that reads question and node together.

    The model reads a node as graphret has it, its name, then its text, behind the row
    or the words of the node by which a graphret retriever found it; its order is fused
    with the one that the documents came in (`graphret.Rerank`). Evidence is kept and
    gains the rank before. Documents that were given are not changed. It is a document
    compressor and a runnable, as `SageExpansion` is.

    Parameters
    ----------
    model
        A sentence-transformers cross-encoder by name or folder (loaded when first
        used), an object with ``predict(pairs)``, or a graphret `Reranker`.
    weight
        The share of the model's order in the fused one; 1 for its order alone.
    rrf_k
        Constant of reciprocal rank fusion (Cormack et al. 2009; 60 there); `None` fuses
        scores.
    on_failure
        ``"fallback"``: if the model fails, the documents keep their order, and a logged
        warning says so. ``"raise"`` raises `RetrievalFailed`.
    k
        How many documents are returned.
    name
        As any runnable of LangChain has it.
    """

    model: Part[Any]
    weight: float = Field(default=0.5, ge=0, le=1)
    rrf_k: float | None = Field(default=None, ge=0)
    on_failure: str = "fallback"

    def __init__(
        self,
        model: Any,
        *,
        weight: float = 0.5,
        rrf_k: float | None = None,
        on_failure: str = "fallback",
        k: int = 10,
        name: str | None = None,
    ) -> None:
        # Made once: a cross-encoder is loaded when it is first used.
        reranker = model if isinstance(model, Reranker) else CrossEncoderReranker(model)
        super().__init__(  # type: ignore[call-arg]  # fields of this class
            model=reranker,
            weight=weight,
            rrf_k=rrf_k,
            on_failure=require_on_failure(on_failure),
            k=k,
            name=name,
        )

    def _steps(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: CallbackManager | AsyncCallbackManager,
    ) -> NodeSteps:
        if not documents:
            return []
        hits = _hits(documents)
        inputs = {  # each document once, where it came first
            hit.id: (hit, document)
            for hit, document in reversed(list(zip(hits, documents, strict=True)))
        }
        core = Rerank(
            InputHits([hit for hit, _ in reversed(inputs.values())]),
            self.model,
            depth=len(inputs),
            weight=self.weight,
            rrf_k=self.rrf_k,
            on_failure=self.on_failure,
        )
        retrieval = yield from traced(core, query, self.k, None, callbacks)
        return [
            with_hit(inputs[hit.id][1], replace(hit, relevance=None))
            for hit in retrieval
        ]


def _hits(documents: Sequence[Document]) -> list[Hit]:
    """Return documents as hits, by their rank, with the evidence that they have."""
    hits = list[Hit]()
    for place, document in enumerate(documents):
        node = from_document(document, strict=False)
        evidence = tuple(evidence_of(document)) or (Evidence("seed", rank=place + 1),)
        hits.append(Hit(node, 1 - place / len(documents), evidence))
    return hits

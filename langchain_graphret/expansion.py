"""`SageExpansion`: what a graph connects to the documents that someone else's retriever
found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSerializable,
)
from pydantic import ConfigDict, Field, model_validator

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.retriever import Retriever, adrive, drive
from graphret.sage import SageGraph
from graphret.types import Evidence, Hit, Retrieval
from graphret.where import Where
from langchain_graphret.documents import (
    KEY,
    block_of,
    from_document,
    known_nodes,
    to_document,
)
from langchain_graphret.retriever import Filter, log, traced
from langchain_graphret.seeds import seed_hits
from langchain_graphret.state import NodeSteps

_UNKNOWN = (
    "the graph knows none of the documents; was it built of them, with the same ids?"
)


class SageExpansion(
    BaseDocumentCompressor, RunnableSerializable[dict[str, Any], list[Document]]
):
    """Expand retrieved documents over a graph, to `k` in all.

    The documents are the seeds, by their rank. Those that come back are the documents
    that were given, with their id, text and metadata, and ``metadata["graphret"]``
    besides; what the graph adds is made of its nodes. The graph must be built of the
    documents that the retriever searches; `langchain_graphret.documents.known_nodes`
    says how they are recognised. Documents that the graph does not know keep their
    place. No documents are expanded to none.

    It is a document compressor, and a runnable from ``{"query": ..., "documents":
    ...}`` to documents:

    >>> chain = {"query": RunnablePassthrough(), "documents": retriever} |
    SageExpansion(graph)  # doctest: +SKIP
    >>> chain = SageExpansion(graph).after(retriever)  # the same  # doctest: +SKIP

    Parameters
    ----------
    graph
        A `SageGraph`, or a view of one; nothing outside the view is added.
    k
        How many documents there are afterwards, those that were given included.
    where
        A filter dictionary, as `graphret.Where` has them, or a `Where`: what is
        returned, of documents and graph.
    ranking
        ``"coverage"``, ``"propagate"``, ``"paper"`` or a `Ranking`.
    on_failure
        ``"fallback"``: if the question cannot be embedded, words alone count; if the
        graph knows none of the documents, they keep their places, and a warning says
        so. ``"raise"`` raises `RetrievalFailed`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    graph: SageGraph = Field(repr=False)
    k: int = Field(default=10, ge=1, strict=True)
    where: Filter = None
    ranking: Any = "coverage"
    on_failure: Literal["fallback", "raise"] = "fallback"

    def __init__(self, graph: SageGraph, **options: Any) -> None:
        super().__init__(**options | {"graph": graph})

    @model_validator(mode="after")
    def _check(self) -> SageExpansion:
        self.graph.retriever(self.ranking)  # refuses what is no ranking
        return self

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> list[Document]:
        """Return `k` documents: the given ones and what the graph connects to them,
        best first.

        Raises
        ------
        RetrievalFailed
            See `on_failure`.
        """
        return drive(
            self._steps(documents, query, CallbackManager.configure(callbacks))
        )

    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> list[Document]:
        """Do what `compress_documents` does without blocking the event loop."""
        return await adrive(
            self._steps(documents, query, AsyncCallbackManager.configure(callbacks))
        )

    def invoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Expand ``input["documents"]`` for ``input["query"]``."""

        def expand(value: dict[str, Any], run_manager: Any) -> list[Document]:
            return self.compress_documents(*_read(value), run_manager.get_child())

        return self._call_with_config(expand, input, config, **kwargs)

    async def ainvoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Do what `invoke` does without blocking the event loop."""

        async def expand(value: dict[str, Any], run_manager: Any) -> list[Document]:
            return await self.acompress_documents(
                *_read(value), run_manager.get_child()
            )

        return await self._acall_with_config(expand, input, config, **kwargs)

    def after(
        self, retriever: Runnable[str, list[Document]]
    ) -> Runnable[str, list[Document]]:
        """Return the runnable that asks `retriever` and expands what it finds."""
        return RunnableParallel(query=RunnablePassthrough(), documents=retriever) | self

    def _steps(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: CallbackManager | AsyncCallbackManager,
    ) -> NodeSteps:
        if not documents:
            return []
        nodes = known_nodes(documents, self.graph)
        given = {
            node.id: one
            for one, node in reversed(list(zip(documents, nodes, strict=True)))
            if node is not None
        }
        if not given and self.on_failure == "raise":
            raise RetrievalFailed(_UNKNOWN)
        if not given:
            log.warning(_UNKNOWN)
        seeds = _Seeds(seed_hits(node for node in nodes if node is not None))
        core = self.graph.retriever(
            self.ranking, seeds=seeds, on_failure=self.on_failure
        )
        found = yield from traced(core, query, self.k, self.where, callbacks)
        out = [
            _with_hit(given[hit.id], hit) if hit.id in given else to_document(hit)
            for hit in found
        ]
        for place, (document, known) in enumerate(zip(documents, nodes, strict=True)):
            node = known or from_document(document, strict=False)
            if known is None and (self.where is None or self.where.matches(node)):
                near = (
                    out[max(min(place, len(out)) - 1, 0)].metadata[KEY]
                    if out
                    else {"score": 1.0, "relevance": 1.0}
                )
                why = Evidence("seed", rank=place + 1, properties={"known": False})
                out.insert(
                    place,
                    _with_hit(
                        document, Hit(node, near["score"], (why,), near["relevance"])
                    ),
                )
        return out[: self.k]


class _Seeds(Retriever):
    """Given hits, as the answer to any question."""

    name = "given"

    def __init__(self, hits: list[Hit]) -> None:
        self.hits = hits

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        return Retrieval(
            query,
            k,
            [hit for hit in self.hits if where is None or where.matches(hit.node)][:k],
        )


def _with_hit(document: Document, hit: Hit) -> Document:
    return document.model_copy(
        update={"metadata": {**document.metadata, KEY: block_of(hit)}}
    )


def _read(value: dict[str, Any]) -> tuple[Sequence[Document], str]:
    try:
        return value["documents"], value["query"]
    except (KeyError, TypeError) as error:
        raise InvalidInput(
            "SageExpansion: an object with 'query' and 'documents' is expected"
        ) from error

"""`SageExpansion`: what a graph connects to the documents that someone else's retriever found."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForChainRun,
    CallbackManager,
    CallbackManagerForChainRun,
    Callbacks,
)
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSerializable,
)
from pydantic import ConfigDict, Field, field_validator, model_validator

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.retriever import Retriever
from graphret.sage import SageGraph
from graphret.search.index import require_k
from graphret.types import Evidence, Hit, Retrieval
from graphret.where import Where, both
from langchain_graphret._calls import areport, log, refuse_unknown, report
from langchain_graphret.documents import KEY, block_of, from_document, to_document
from langchain_graphret.filters import to_where
from langchain_graphret.matching import node_ids


class SageExpansion(BaseDocumentCompressor, RunnableSerializable[dict[str, Any], list[Document]]):
    """Expand retrieved documents over a graph, to `k` in all.

    The documents are the seeds, by their rank. Those that come back are the documents that were given, with their id,
    text and metadata, and ``metadata["graphret"]`` besides; what the graph adds is made of its nodes. The graph must be
    built of the documents that the retriever searches; `langchain_graphret.matching` says how they are recognised.
    Documents that the graph does not know keep their place. No documents are expanded to none.

    It is a document compressor, and a runnable from ``{"query": ..., "documents": ...}`` to documents:

    >>> chain = {"query": RunnablePassthrough(), "documents": retriever} | SageExpansion(graph)  # doctest: +SKIP
    >>> chain = SageExpansion(graph).after(retriever)  # the same  # doctest: +SKIP

    Parameters
    ----------
    graph
        A `SageGraph`, or a view of one; nothing outside the view is added.
    k
        How many documents there are afterwards, those that were given included.
    where
        A filter dictionary (see `to_where`) or a `Where`: what of the documents and of the graph is returned.
    ranking
        ``"coverage"``, ``"propagate"``, ``"paper"``, or a `Ranking` of your own.
    id_key
        The entry of the metadata that holds a node's id, where the document's own id is another.
    on_failure
        ``"fallback"``: if the question cannot be embedded, words alone count; if the expansion fails, or the graph
        knows none of the documents, they are returned as they are; a warning says so. ``"raise"`` raises
        `RetrievalFailed`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    graph: SageGraph = Field(repr=False)
    k: int = Field(default=10, ge=1, strict=True)
    where: Any = None
    ranking: Any = "coverage"
    id_key: str | None = None
    on_failure: Literal["fallback", "raise"] = "fallback"

    def __init__(self, graph: SageGraph, **options: Any) -> None:
        super().__init__(**options | {"graph": graph})

    @field_validator("where")
    @classmethod
    def _read_where(cls, value: Any) -> Where | None:
        return to_where(value)

    @model_validator(mode="after")
    def _check(self) -> SageExpansion:
        self.graph.retriever(self.ranking)  # refuses what is no ranking
        return self

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
        *,
        k: int | None = None,
        where: Any = None,
    ) -> list[Document]:
        """Return `k` documents: the given ones and what the graph connects to them, best first.

        Raises
        ------
        InvalidInput
            When the query is not a string, `k` is below 1 or the filter is malformed.
        RetrievalFailed
            See `on_failure`.
        """
        given = self._given(documents, k, where)
        if not given.seeds:
            return given.unchanged(self.on_failure)
        try:
            retrieval = self._retriever(given).retrieve(query, given.k, given.where)
        except Exception as error:
            return given.failed(error, self.on_failure)
        manager = CallbackManager.configure(callbacks)
        if manager.parent_run_id is not None:
            report(retrieval, manager)
        return given.joined(retrieval)

    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
        *,
        k: int | None = None,
        where: Any = None,
    ) -> list[Document]:
        """Do what `compress_documents` does without blocking the event loop."""
        given = await asyncio.to_thread(self._given, documents, k, where)
        if not given.seeds:
            return given.unchanged(self.on_failure)
        try:
            retrieval = await self._retriever(given).aretrieve(query, given.k, given.where)
        except Exception as error:
            return given.failed(error, self.on_failure)
        manager = AsyncCallbackManager.configure(callbacks)
        if manager.parent_run_id is not None:
            await areport(retrieval, manager)
        return given.joined(retrieval)

    def invoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Expand ``input["documents"]`` for ``input["query"]``; takes `k` and `where` too."""

        def work(value: dict[str, Any], run_manager: CallbackManagerForChainRun) -> list[Document]:
            query, documents, options = self._read(value, kwargs)
            return self.compress_documents(documents, query, run_manager.get_child(), **options)

        return self._call_with_config(work, input, config)

    async def ainvoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Do what `invoke` does without blocking the event loop."""

        async def work(value: dict[str, Any], run_manager: AsyncCallbackManagerForChainRun) -> list[Document]:
            query, documents, options = self._read(value, kwargs)
            return await self.acompress_documents(documents, query, run_manager.get_child(), **options)

        return await self._acall_with_config(work, input, config)

    def after(self, retriever: Runnable[str, list[Document]]) -> Runnable[str, list[Document]]:
        """Return the runnable that asks `retriever` and expands what it finds."""
        return RunnableParallel(query=RunnablePassthrough(), documents=retriever) | self

    def _read(self, value: Any, options: dict[str, Any]) -> tuple[str, Sequence[Document], dict[str, Any]]:
        refuse_unknown(self, {key: option for key, option in options.items() if key not in ("k", "where")})
        if not isinstance(value, Mapping) or not {"query", "documents"} <= value.keys():
            raise InvalidInput("SageExpansion: an object with 'query' and 'documents' is expected")
        chosen = {key: option for key, option in options.items() if key in ("k", "where")}
        return value["query"], value["documents"], chosen

    def _given(self, documents: Sequence[Document], k: int | None, where: Any) -> _Given:
        n, condition = self.k if k is None else require_k(k), both(self.where, to_where(where))
        return _Given(list(documents), self.graph, self.id_key, n, condition)

    def _retriever(self, given: _Given) -> Retriever:
        return self.graph.retriever(self.ranking, seeds=given, on_failure=self.on_failure)


class _Given(Retriever):
    """The documents of a call, and the nodes that they are, as the seeds of an expansion."""

    name = "given"

    def __init__(
        self, documents: list[Document], graph: SageGraph, id_key: str | None, k: int, where: Where | None
    ) -> None:
        self.k = k
        self.where = where
        table = graph.nodes
        self.documents: dict[str, Document] = {}
        self.unknown: list[tuple[int, Document]] = []
        for place, (document, known) in enumerate(
            zip(documents, node_ids(documents, table, id_key), strict=True), start=1
        ):
            if known is not None:
                self.documents.setdefault(known, document)
            elif where is None or where.matches(from_document(document, strict=False)):
                self.unknown.append((place, document))
        positions = table.positions(self.documents)
        self.seeds = [
            Hit(table[int(position)], 1 - rank / len(positions), (Evidence("seed", rank=rank + 1),))
            for rank, position in enumerate(positions.tolist())
        ]

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        hits = [hit for hit in self.seeds if where is None or where.matches(hit.node)]
        return Retrieval(query, k, hits[:k])

    def joined(self, retrieval: Retrieval) -> list[Document]:
        """Return the hits as documents, the given ones as they were given, and the unknown ones in their places."""
        hits = list(retrieval.hits)
        out = [self._document(hit) for hit in hits]
        for place, document in self.unknown:
            above = out[min(place - 1, len(out)) - 1] if out else None
            near = above if above is not None and place > 1 else out[0] if out else None
            out.insert(place - 1, _with_hit(document, _unknown_hit(document, near, place)))
        return out[: self.k]

    def unchanged(self, on_failure: str) -> list[Document]:
        """Return the documents where the graph knows none of them."""
        if self.unknown:
            message = "the graph knows none of the documents; was it built of them, and are their ids the same?"
            if on_failure == "raise":
                raise RetrievalFailed(f"expansion: {message}")
            log.warning("fallback: %s", message)
        return self._as_they_are()

    def failed(self, error: Exception, on_failure: str) -> list[Document]:
        """Return the documents where their expansion failed."""
        if isinstance(error, (InvalidInput, RetrievalFailed)):
            raise error
        if on_failure == "raise":
            raise RetrievalFailed(f"expansion failed: {error}") from error
        log.warning("fallback: expansion failed: %s: %s", type(error).__name__, error)
        return self._as_they_are()

    def _as_they_are(self) -> list[Document]:
        hits = self._retrieve("", len(self.seeds) or 1, self.where).hits
        return self.joined(Retrieval("", self.k, hits))

    def _document(self, hit: Hit) -> Document:
        known = self.documents.get(hit.id)
        return to_document(hit) if known is None else _with_hit(known, hit)


def _with_hit(document: Document, hit: Hit) -> Document:
    return document.model_copy(update={"metadata": {**document.metadata, KEY: block_of(hit)}})


def _unknown_hit(document: Document, near: Document | None, place: int) -> Hit:
    """Return a document that the graph does not know as a hit, with the scores of one beside it."""
    scores = (1.0, 1.0) if near is None else (near.metadata[KEY]["score"], near.metadata[KEY].get("relevance"))
    why = Evidence("seed", rank=place, properties={"known": False})
    return Hit(from_document(document, strict=False), scores[0], (why,), scores[1])

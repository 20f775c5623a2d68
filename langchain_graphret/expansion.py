"""`SageExpansion`: what a graph connects to the documents that someone else's retriever found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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

from graphret.errors import InvalidInput
from graphret.retriever import Ask, Retriever, Steps, answered
from graphret.sage import SageGraph
from graphret.types import Evidence, Hit, Retrieval, Trace
from graphret.where import Where
from langchain_graphret.documents import KEY, block_of, from_document, node_ids, to_document
from langchain_graphret.filters import to_where
from langchain_graphret.retriever import areport, asked, report


class SageExpansion(BaseDocumentCompressor, RunnableSerializable[dict[str, Any], list[Document]]):
    """Expand retrieved documents over a graph, to `k` in all.

    The documents are the seeds, by their rank. Those that come back are the documents that were given, with their id,
    text and metadata, and ``metadata["graphret"]`` besides; what the graph adds is made of its nodes. The graph must be
    built of the documents that the retriever searches; `langchain_graphret.documents.node_ids` says how they are
    recognised. Documents that the graph does not know keep their place. No documents are expanded to none.

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
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None, **options: Any
    ) -> list[Document]:
        """Return `k` documents: the given ones and what the graph connects to them, best first.

        `k` and `where` of a call are options.

        Raises
        ------
        InvalidInput
            When the query is not a string, `k` is below 1 or the filter is malformed.
        RetrievalFailed
            See `on_failure`.
        """
        given = self._given(documents, **options)
        retrieval = given.retrieve(query, given.k, given.where)
        report(retrieval, CallbackManager.configure(callbacks))
        return given.joined(retrieval)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None, **options: Any
    ) -> list[Document]:
        """Do what `compress_documents` does without blocking the event loop."""
        given = self._given(documents, **options)
        retrieval = await given.aretrieve(query, given.k, given.where)
        await areport(retrieval, AsyncCallbackManager.configure(callbacks))
        return given.joined(retrieval)

    def invoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Expand ``input["documents"]`` for ``input["query"]``; takes `k` and `where` too."""
        return self._call_with_config(self._expand, input, config, **kwargs)

    async def ainvoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Do what `invoke` does without blocking the event loop."""
        return await self._acall_with_config(self._aexpand, input, config, **kwargs)

    def _expand(self, value: dict[str, Any], run_manager: CallbackManagerForChainRun, **options: Any) -> list[Document]:
        return self.compress_documents(*_read(value), run_manager.get_child(), **options)

    async def _aexpand(
        self, value: dict[str, Any], run_manager: AsyncCallbackManagerForChainRun, **options: Any
    ) -> list[Document]:
        return await self.acompress_documents(*_read(value), run_manager.get_child(), **options)

    def after(self, retriever: Runnable[str, list[Document]]) -> Runnable[str, list[Document]]:
        """Return the runnable that asks `retriever` and expands what it finds."""
        return RunnableParallel(query=RunnablePassthrough(), documents=retriever) | self

    def _given(
        self, documents: Sequence[Document], *, k: int | None = None, where: Any = None, **unknown: Any
    ) -> _Expansion:
        return _Expansion(self, documents, *asked(self, k, where, unknown))


class _Expansion(Retriever):
    """The documents of one call, and their expansion over the nodes that they are."""

    name = "expansion"

    def __init__(self, owner: SageExpansion, documents: Sequence[Document], k: int, where: Where | None) -> None:
        self.owner = owner
        self.k = k
        self.where = where
        table = owner.graph.nodes
        self.known: dict[str, Document] = {}
        self.unknown: list[tuple[int, Document]] = []
        ids = node_ids(documents, table, owner.id_key)
        for place, (document, node_id) in enumerate(zip(documents, ids, strict=True)):
            if node_id is not None:
                self.known.setdefault(node_id, document)
            elif where is None or where.matches(from_document(document, strict=False)):
                self.unknown.append((place, document))
        nodes = [table[position] for position in table.positions(self.known).tolist()]
        hits = [Hit(node, 1 - i / len(nodes), (Evidence("seed", rank=i + 1),)) for i, node in enumerate(nodes)]
        self.seeds = _Seeds(hits)

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        found: Any = LookupError("the graph knows none of the documents; was it built of them, with the same ids?")
        trace, on_failure = Trace(), self.owner.on_failure
        if self.known:
            expanded = self.owner.graph.retriever(self.owner.ranking, seeds=self.seeds, on_failure=on_failure)
            found = yield Ask(expanded, query, k, where)
        result = answered(found, self, on_failure, trace) if self.known or self.unknown else None
        return replace(self.seeds._retrieve(query, k, where), trace=trace) if result is None else result

    def joined(self, retrieval: Retrieval) -> list[Document]:
        """Return the hits as documents, the given ones as they were given, and the unknown ones in their places."""
        out = [
            to_document(hit) if (given := self.known.get(hit.id)) is None else _with_hit(given, hit)
            for hit in retrieval
        ]
        for place, document in self.unknown:
            near = out[max(min(place, len(out)) - 1, 0)].metadata[KEY] if out else {"score": 1.0, "relevance": 1.0}
            why = Evidence("seed", rank=place + 1, properties={"known": False})
            node = from_document(document, strict=False)
            out.insert(place, _with_hit(document, Hit(node, near["score"], (why,), near.get("relevance"))))
        return out[: self.k]


class _Seeds(Retriever):
    """Given hits, as the answer to any question."""

    name = "given"

    def __init__(self, hits: list[Hit]) -> None:
        self.hits = hits

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        return Retrieval(query, k, [hit for hit in self.hits if where is None or where.matches(hit.node)][:k])


def _with_hit(document: Document, hit: Hit) -> Document:
    return document.model_copy(update={"metadata": {**document.metadata, KEY: block_of(hit)}})


def _read(value: Any) -> tuple[Sequence[Document], str]:
    if not isinstance(value, Mapping) or not {"query", "documents"} <= value.keys():
        raise InvalidInput("SageExpansion: an object with 'query' and 'documents' is expected")
    return value["documents"], value["query"]

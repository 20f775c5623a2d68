"""The base of graphret's document compressors, which are runnables, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import (
    RunnableConfig,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSerializable,
)
from pydantic import ConfigDict, Field

from graphret.contracts import CheckedKeywords
from graphret.errors import InvalidInput
from graphret.retriever import Retriever, adrive, drive
from graphret.types import Hit, Retrieval
from graphret.where import Where
from langchain_graphret.documents import KEY, block_of
from langchain_graphret.seeds import LangChainRetriever
from langchain_graphret.state import NodeSteps


class CoreCompressor(
    CheckedKeywords,
    BaseDocumentCompressor,
    RunnableSerializable[dict[str, Any], list[Document]],
):
    """A document compressor, and a runnable from ``{"query", "documents"}``."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    k: int = Field(default=10, ge=1, strict=True)

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> list[Document]:
        """Return `k` documents, best first; `RetrievalFailed` as `on_failure` says."""
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
        """Compress ``input["documents"]`` for ``input["query"]``."""

        def compress(value: dict[str, Any], run_manager: Any) -> list[Document]:
            return self.compress_documents(
                *_read(value, type(self).__name__), run_manager.get_child()
            )

        return self._call_with_config(compress, input, config, **kwargs)

    async def ainvoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Do what `invoke` does without blocking the event loop."""

        async def compress(value: dict[str, Any], run_manager: Any) -> list[Document]:
            return await self.acompress_documents(
                *_read(value, type(self).__name__), run_manager.get_child()
            )

        return await self._acall_with_config(compress, input, config, **kwargs)

    def after(self, retriever: LangChainRetriever) -> LangChainRetriever:
        """Return the runnable that asks `retriever` and compresses what it finds."""
        return RunnableParallel(query=RunnablePassthrough(), documents=retriever) | self

    def _steps(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: CallbackManager | AsyncCallbackManager,
    ) -> NodeSteps:
        raise NotImplementedError


class InputHits(Retriever):
    """The input hits, as the answer to any question."""

    name = "given"

    def __init__(self, hits: list[Hit]) -> None:
        self.hits = hits

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        return Retrieval(
            query,
            k,
            [hit for hit in self.hits if where is None or where.matches(hit.node)][:k],
        )


def with_hit(document: Document, hit: Hit) -> Document:
    """Return a document with graphret's metadata entry of a hit."""
    return document.model_copy(
        update={"metadata": {**document.metadata, KEY: block_of(hit)}}
    )


def _read(value: dict[str, Any], name: str) -> tuple[Sequence[Document], str]:
    try:
        return value["documents"], value["query"]
    except (KeyError, TypeError) as error:
        raise InvalidInput(
            f"{name}: expected an object with 'query' and 'documents'"
        ) from error

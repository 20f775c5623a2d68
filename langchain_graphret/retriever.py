"""`SageRetriever`: expansion over a graph, or any other graphret retriever, as a LangChain retriever."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Literal, Self

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForRetrieverRun,
    CallbackManager,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import patch_config, set_config_context
from pydantic import ConfigDict, Field, PrivateAttr, field_validator, model_validator

from graphret.errors import InvalidInput
from graphret.retriever import Retriever
from graphret.sage import SageGraph
from graphret.search.index import require_k
from graphret.types import Retrieval
from graphret.where import Where, both
from langchain_graphret.documents import plain, to_document
from langchain_graphret.filters import to_where
from langchain_graphret.seeds import LangChainSeeds

#: The custom event that carries a retrieval's trace to callback handlers.
TRACE_EVENT = "graphret_trace"

log = logging.getLogger("langchain_graphret")


class CoreRetriever(BaseRetriever):
    """What a graphret retriever finds, as LangChain's documents: `k` and `where` at a call, evidence, callbacks."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    k: int = Field(default=10, ge=1, strict=True)
    where: Any = None

    @field_validator("where")
    @classmethod
    def _read_where(cls, value: Any) -> Where | None:
        return to_where(value)

    @property
    def core(self) -> Retriever:
        """The graphret retriever that does the work; its `retrieve` returns hits, signals and trace."""
        raise NotImplementedError

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        where: Any = None,
        **unknown: Any,
    ) -> list[Document]:
        n, condition = asked(self, k, where, unknown)
        callbacks = run_manager.get_child()
        with set_config_context(patch_config(None, callbacks=callbacks)) as context:  # what is asked is traced below
            retrieval = context.run(self.core.retrieve, query, n, condition)
        report(retrieval, callbacks)
        return [to_document(hit) for hit in retrieval]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        where: Any = None,
        **unknown: Any,
    ) -> list[Document]:
        n, condition = asked(self, k, where, unknown)
        callbacks = run_manager.get_child()
        with set_config_context(patch_config(None, callbacks=callbacks)) as context:
            retrieval = await asyncio.create_task(self.core.aretrieve(query, n, condition), context=context)
        await areport(retrieval, callbacks)
        return [to_document(hit) for hit in retrieval]


class ModelRetriever(CoreRetriever):
    """What a retriever of the core finds that a model drives; it is made once."""

    model: Any = Field(repr=False)
    store: Any = Field(repr=False)
    index: Any = Field(repr=False)
    hints: str = Field(default="", repr=False)
    fallback: Any = None
    on_failure: Literal["fallback", "raise"] = "fallback"

    _core: Retriever = PrivateAttr()

    def __init__(self, model: Any, store: Any, index: Any, **options: Any) -> None:
        super().__init__(**options | {"model": model, "store": store, "index": index})

    @model_validator(mode="after")
    def _build(self) -> Self:
        self._core = self._made()
        return self

    def _made(self) -> Retriever:
        raise NotImplementedError

    @property
    def core(self) -> Any:
        """The core's retriever."""
        return self._core


class SageRetriever(CoreRetriever):
    """Retrieve connected evidence: exactly `k` documents where that many qualify, with scores and reasons.

    Each document's ``metadata["graphret"]`` has its score and the evidence for it, in plain JSON values; see
    `langchain_graphret.documents`. Callback handlers get the retrieval's trace as the custom event ``graphret_trace``,
    and what LangChain retrievers and models do on the way is traced below the retriever's own run.

    Parameters
    ----------
    graph
        A `SageGraph`, or a view of one.
    retriever
        Any graphret `Retriever` instead: a combinator, another method.
    k
        How many documents are returned.
    where
        A filter dictionary (see `to_where`) or a `Where`.
    ranking
        Over a graph: ``"coverage"``, ``"propagate"``, ``"paper"``, or a `Ranking` of your own.
    seeds
        Over a graph: who finds the seeds, a LangChain or a graphret retriever; by default the graph's hybrid search.
    on_failure
        Over a graph: ``"fallback"`` seeds from the graph's search when `seeds` fails, and goes by words alone when the
        question cannot be embedded; the trace and a logged warning say so. ``"raise"`` raises `RetrievalFailed`.

    Notes
    -----
    `invoke` and its kin take `k` and `where` too: ``retriever.invoke(question, k=3, where={"year": 1969})``. That `k`
    is used instead of the retriever's; that filter is joined to the retriever's by *and*, so a call can narrow what is
    returned and never widen it. Any other argument of a call is an `InvalidInput`.

    Examples
    --------
    >>> from langchain_core.documents import Document
    >>> from langchain_graphret import SageGraph, SageRetriever
    >>> graph = SageGraph.from_documents([Document("Emma is a novel by Jane Austen.", id="emma")], embedding=None)
    >>> SageRetriever(graph, k=1).invoke("Who wrote Emma?")[0].id
    'emma'
    """

    graph: SageGraph | None = Field(default=None, repr=False)
    retriever: Retriever | None = None
    ranking: Any = "coverage"
    seeds: Any = None
    on_failure: Literal["fallback", "raise"] = "fallback"

    def __init__(self, graph: SageGraph | None = None, **options: Any) -> None:
        super().__init__(**options if graph is None else options | {"graph": graph})

    @model_validator(mode="after")
    def _check(self) -> SageRetriever:
        if (self.graph is None) == (self.retriever is None):
            raise InvalidInput("SageRetriever: either 'graph' or 'retriever' is expected")
        if self.graph is None and (self.seeds is not None or self.ranking != "coverage"):
            raise InvalidInput("SageRetriever: 'seeds' and 'ranking' belong to a graph, not to another retriever")
        if self.seeds is not None and not isinstance(self.seeds, (Retriever, Runnable)):
            raise InvalidInput(f"seeds: a retriever is expected, not {type(self.seeds).__name__}")
        assert isinstance(self.core, Retriever)
        return self

    @property
    def core(self) -> Retriever:
        if self.graph is None:
            assert self.retriever is not None
            return self.retriever
        seeds = LangChainSeeds(self.seeds, graph=self.graph) if isinstance(self.seeds, Runnable) else self.seeds
        return self.graph.retriever(self.ranking, seeds=seeds, on_failure=self.on_failure)


def asked(owner: Any, k: int | None, where: Any, unknown: Mapping[str, Any]) -> tuple[int, Where | None]:
    """Return the `k` and the condition of a call of a retriever or compressor that has both itself.

    Raises
    ------
    InvalidInput
        When `k` is malformed, and for the arguments of a call that nobody takes, by name.
    """
    if names := sorted(set(unknown) - {"verbose"}):  # LangChain reads `verbose` itself, and passes it on
        raise InvalidInput(f"{type(owner).__name__}: a call takes 'k' and 'where', not {', '.join(map(repr, names))}")
    return owner.k if k is None else require_k(k), both(owner.where, to_where(where))


def report(retrieval: Retrieval, callbacks: CallbackManager) -> None:
    """Log fallbacks, and hand the trace to callback handlers."""
    _log(retrieval)
    if callbacks.handlers and callbacks.parent_run_id is not None:
        dispatch_custom_event(TRACE_EVENT, plain(retrieval.trace.to_dict()), config={"callbacks": callbacks})


async def areport(retrieval: Retrieval, callbacks: AsyncCallbackManager) -> None:
    """Do what `report` does, awaiting the handlers."""
    _log(retrieval)
    if callbacks.handlers and callbacks.parent_run_id is not None:
        data = plain(retrieval.trace.to_dict())
        await adispatch_custom_event(TRACE_EVENT, data, config={"callbacks": callbacks})


def _log(retrieval: Retrieval) -> None:
    for stage in retrieval.trace.fallbacks:
        log.warning("fallback: %s", ", ".join(f"{key}: {value}" for key, value in stage.details.items()))

"""`SageRetriever`: expansion over a graph, or any other graphret retriever, as a LangChain retriever."""

from __future__ import annotations

import asyncio
import logging
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
from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from graphret.errors import InvalidInput
from graphret.retriever import Call, Retriever, adrive, drive
from graphret.sage import SageGraph
from graphret.search.index import require_k
from graphret.types import Retrieval
from graphret.where import Where, both
from langchain_graphret.documents import plain, to_document
from langchain_graphret.filters import Filter, to_where
from langchain_graphret.seeds import LangChainSeeds
from langchain_graphret.state import NodeSteps

#: The custom event that carries a retrieval's trace to callback handlers.
TRACE_EVENT = "graphret_trace"

log = logging.getLogger("langchain_graphret")


class CoreRetriever(BaseRetriever):
    """What a graphret retriever finds, as LangChain's documents: `k` and `where` at a call, evidence, callbacks."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    k: int = Field(default=10, ge=1, strict=True)
    where: Filter = None
    on_failure: Literal["fallback", "raise"] = "fallback"

    _core: Retriever = PrivateAttr()

    @model_validator(mode="after")
    def _build(self) -> Self:
        self._core = self._made()
        return self

    def _made(self) -> Retriever:
        raise NotImplementedError

    @property
    def core(self) -> Any:
        """The graphret retriever that does the work; its `retrieve` returns hits, signals and trace."""
        return self._core

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return drive(self._documents(query, run_manager.get_child(), **options))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return await adrive(self._documents(query, run_manager.get_child(), **options))

    def _documents(self, query: str, callbacks: Any, k: Any = None, where: Any = None, **unknown: Any) -> NodeSteps:
        if unknown:
            names = ", ".join(map(repr, sorted(unknown)))
            raise InvalidInput(f"{type(self).__name__}: a call takes 'k' and 'where', not {names}")
        wanted, condition = self.k if k is None else require_k(k), both(self.where, to_where(where))
        retrieval = yield from traced(self.core, query, wanted, condition, callbacks)
        return [to_document(hit) for hit in retrieval]


class ModelRetriever(CoreRetriever):
    """What a retriever of the core finds that a model drives."""

    model: Any = Field(repr=False)
    store: Any = Field(repr=False)
    index: Any = Field(repr=False)
    hints: str = Field(default="", repr=False)
    fallback: Any = None

    def __init__(self, model: Any, store: Any, index: Any, **options: Any) -> None:
        super().__init__(**options | {"model": model, "store": store, "index": index})


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
        Over a graph: ``"coverage"``, ``"propagate"``, ``"paper"``, a `Ranking`, or a file that ``graphret tune`` wrote.
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

    def __init__(self, graph: SageGraph | None = None, **options: Any) -> None:
        super().__init__(**options if graph is None else options | {"graph": graph})

    def _made(self) -> Retriever:
        if self.graph is not None and self.retriever is None:
            seeds = LangChainSeeds(self.seeds, graph=self.graph) if isinstance(self.seeds, Runnable) else self.seeds
            if seeds is not None and not isinstance(seeds, Retriever):
                raise InvalidInput(f"seeds: a retriever is expected, not {type(seeds).__name__}")
            return self.graph.retriever(self.ranking, seeds=seeds, on_failure=self.on_failure)
        if self.graph is None and self.retriever is not None and self.seeds is None and self.ranking == "coverage":
            return self.retriever
        raise InvalidInput("SageRetriever: 'graph' is expected, with 'seeds' and 'ranking', or 'retriever' alone")


def traced(
    retriever: Retriever, query: str, k: int, where: Where | None, callbacks: CallbackManager | AsyncCallbackManager
) -> NodeSteps:
    """Ask a retriever below a run of LangChain's, log its fallbacks and hand its trace to the callback handlers."""
    with set_config_context(patch_config(None, callbacks=callbacks)) as context:
        retrieval: Retrieval = yield Call(
            lambda: context.run(retriever.retrieve, query, k, where),
            lambda: asyncio.create_task(retriever.aretrieve(query, k, where), context=context),
        )
    for stage in retrieval.trace.fallbacks:
        log.warning("fallback: %s", ", ".join(f"{key}: {value}" for key, value in stage.details.items()))
    if callbacks.handlers and callbacks.parent_run_id is not None:
        data, config = plain(retrieval.trace.to_dict()), patch_config(None, callbacks=callbacks)
        yield Call(
            lambda: dispatch_custom_event(TRACE_EVENT, data, config=config),
            lambda: adispatch_custom_event(TRACE_EVENT, data, config=config),
        )
    return retrieval

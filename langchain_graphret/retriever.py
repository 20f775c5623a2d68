"""`SageRetriever`: expansion over a graph, or any other graphret retriever, as a
LangChain retriever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

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
from langchain_core.runnables.config import patch_config, set_config_context
from pydantic import BeforeValidator, ConfigDict, Field

from graphret.errors import InvalidInput
from graphret.retriever import Call, Retriever, adrive, drive
from graphret.sage import SageGraph
from graphret.search.index import require_k
from graphret.types import Retrieval
from graphret.where import Where, both
from langchain_graphret.documents import plain, to_document
from langchain_graphret.seeds import LangChainSeeds
from langchain_graphret.state import NodeSteps

#: The custom event that carries a retrieval's trace to callback handlers.
TRACE_EVENT = "graphret_trace"

#: A field of a pydantic class that takes a filter dictionary or a `Where`.
Filter: TypeAlias = Annotated[Any, BeforeValidator(Where.parse)]

log = logging.getLogger("langchain_graphret")


class CoreRetriever(BaseRetriever):
    """What a graphret retriever finds, as LangChain's documents: `k` and `where` at a
    call, evidence, callbacks.

    `core` is the graphret retriever that does the work; its `retrieve` returns hits,
    signals and trace. It is made of the parts, and of those options that are none of a
    retriever of LangChain.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    core: Any = Field(repr=False)
    k: int = Field(default=10, ge=1, strict=True)
    where: Filter = None

    def __init__(
        self, make: Callable[..., Retriever], *parts: Any, **options: Any
    ) -> None:
        own: dict[str, Any] = {
            name: options.pop(name)
            for name in CoreRetriever.model_fields
            if name in options
        }
        own["core"] = make(*parts, **options)
        super().__init__(**own)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return drive(self._documents(query, run_manager.get_child(), **options))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        **options: Any,
    ) -> list[Document]:
        return await adrive(self._documents(query, run_manager.get_child(), **options))

    def _documents(
        self,
        query: str,
        callbacks: Any,
        k: Any = None,
        where: Any = None,
        **unknown: Any,
    ) -> NodeSteps:
        if unknown:
            names = ", ".join(map(repr, sorted(unknown)))
            raise InvalidInput(
                f"{type(self).__name__}: a call takes 'k' and 'where', not {names}"
            )
        wanted, condition = (
            self.k if k is None else require_k(k),
            both(self.where, Where.parse(where)),
        )
        retrieval = yield from traced(self.core, query, wanted, condition, callbacks)
        return [to_document(hit) for hit in retrieval]


class SageRetriever(CoreRetriever):
    """Retrieve connected evidence: exactly `k` documents where that many qualify, with
    scores and reasons.

    Each document's ``metadata["graphret"]`` has its score and the evidence for it, in
    plain JSON values; see `langchain_graphret.documents`. Callback handlers get the
    retrieval's trace as the custom event ``graphret_trace``, and what LangChain
    retrievers and models do on the way is traced below the retriever's own run.

    Parameters
    ----------
    graph
        A `SageGraph`, or a view of one.
    retriever
        Any graphret `Retriever` instead: a combinator, another method.
    k
        How many documents are returned.
    where
        A filter dictionary, as `graphret.Where` has them, or a `Where`.
    ranking
        Over a graph: ``"coverage"``, ``"propagate"``, ``"paper"`` or a `Ranking`.
    seeds
        Over a graph: who finds the seeds, a LangChain or a graphret retriever; by
        default the graph's hybrid search.
    on_failure
        Over a graph: ``"fallback"`` seeds from the graph's search when `seeds` fails,
        and goes by words alone when the question cannot be embedded; the trace and a
        logged warning say so. ``"raise"`` raises `RetrievalFailed`.

    Notes
    -----
    `invoke` and its kin take `k` and `where` too: ``retriever.invoke(question, k=3,
    where={"year": 1969})``. That `k` is used instead of the retriever's; that filter is
    joined to the retriever's by *and*, so a call can narrow what is returned and never
    widen it. Any other argument of a call is an `InvalidInput`.

    Examples
    --------
    >>> from langchain_core.documents import Document
    >>> from langchain_graphret import SageGraph, SageRetriever
    >>> graph = SageGraph.from_documents([Document("Emma is a novel by Jane Austen.",
    id="emma")], embedding=None)
    >>> SageRetriever(graph, k=1).invoke("Who wrote Emma?")[0].id
    'emma'
    """

    def __init__(self, graph: SageGraph | None = None, **options: Any) -> None:
        super().__init__(_sage, graph, **options)


def _sage(
    graph: SageGraph | None,
    *,
    retriever: Retriever | None = None,
    seeds: Any = None,
    **options: Any,
) -> Retriever:
    if graph is not None and retriever is None:
        if seeds is not None and not isinstance(seeds, Retriever):
            seeds = LangChainSeeds(seeds, graph=graph)
        return graph.retriever(seeds=seeds, **options)
    if graph is None and retriever is not None and seeds is None and not options:
        return retriever
    raise InvalidInput(
        "SageRetriever: 'graph' is expected, with 'seeds' and 'ranking', or 'retriever'"
        " alone"
    )


def traced(
    retriever: Retriever,
    query: str,
    k: int,
    where: Where | None,
    callbacks: CallbackManager | AsyncCallbackManager,
) -> NodeSteps:
    """Ask a retriever below a run of LangChain's, log its fallbacks and hand its trace
    to the callback handlers.
    """
    with set_config_context(patch_config(None, callbacks=callbacks)) as context:
        retrieval: Retrieval = yield Call(
            lambda: context.run(retriever.retrieve, query, k, where),
            lambda: asyncio.create_task(
                retriever.aretrieve(query, k, where), context=context
            ),
        )
    for stage in retrieval.trace.fallbacks:
        log.warning(
            "fallback: %s",
            ", ".join(f"{key}: {value}" for key, value in stage.details.items()),
        )
    if callbacks.handlers and callbacks.parent_run_id is not None:
        data, config = (
            plain(retrieval.trace.to_dict()),
            patch_config(None, callbacks=callbacks),
        )
        yield Call(
            lambda: dispatch_custom_event(TRACE_EVENT, data, config=config),
            lambda: adispatch_custom_event(TRACE_EVENT, data, config=config),
        )
    return retrieval

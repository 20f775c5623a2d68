"""`SageRetriever`: a graph, or any graphret retriever, as a LangChain retriever."""

from __future__ import annotations

import asyncio
import logging
from operator import is_
from typing import Annotated, Any, TypeAlias, TypeVar

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
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    SkipValidation,
)

from graphret.content import Content, NodeContent
from graphret.contracts import CheckedKeywords, require_keywords
from graphret.errors import InvalidInput
from graphret.expansion import Ranking
from graphret.retriever import Call, Compute, Retriever, adrive, drive
from graphret.sage import SageGraph
from graphret.search.index import require_k
from graphret.types import Retrieval
from graphret.where import Where, WhereLike, both
from langchain_graphret.documents import plain, to_document
from langchain_graphret.seeds import LangChainRetriever, as_seeds
from langchain_graphret.state import NodeSteps

T = TypeVar("T")

#: The custom event that carries a retrieval's trace to callback handlers.
TRACE_EVENT = "graphret_trace"

#: A field that stores its value as it is; in JSON, it is the name of the value's class.
Part: TypeAlias = Annotated[
    T,
    SkipValidation,
    PlainSerializer(
        lambda part: type(part).__name__, return_type=str, when_used="json-unless-none"
    ),
]

#: A field of a pydantic class that takes a filter dictionary or a `Where`.
Filter: TypeAlias = Annotated[
    Any,
    BeforeValidator(Where.parse),
    PlainSerializer(lambda where: where and where.to_dict()),
]

log = logging.getLogger("langchain_graphret")


class CoreRetriever(CheckedKeywords, BaseRetriever):
    """What a graphret retriever finds, as LangChain's documents.

    Fields are the parameters of `core`, the graphret retriever that does the work, and
    `k` and `where`, which a call may give too, `fill` and `content`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    k: int = Field(default=10, ge=1, strict=True)
    where: Filter = None
    fill: bool = True
    content: Part[Content | None] = None

    _made: tuple[list[object], Retriever] | None = PrivateAttr(default=None)

    @property
    def core(self) -> Retriever:
        """The graphret retriever that does the work; its `retrieve` has the trace.

        It is made again when a field changes, for example by `model_copy`.
        """
        values = [
            value
            for name, value in self
            if name == "fill" or name not in CoreRetriever.model_fields
        ]
        if self._made is None or not all(map(is_, values, self._made[0])):
            self._made = values, self._make()
        return self._made[1]

    def _check(self) -> None:
        """Refuse malformed fields at construction."""
        NodeContent(self.core.graph_store, self.content)

    def _make(self) -> Retriever:
        """Make the core from the fields; an `InvalidInput` names a malformed one."""
        raise NotImplementedError

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
        require_keywords(unknown, ("k", "where"), f"{type(self).__name__}.invoke")
        depth, condition = (
            self.k if k is None else require_k(k),
            both(Where.parse(self.where), Where.parse(where)),
        )
        core = self.core
        retrieval = yield from traced(core, query, depth, condition, callbacks)
        hits = [hit for hit in retrieval if self.fill or not hit.fill]
        content = NodeContent(core.graph_store, self.content)
        texts = yield Compute(lambda: content.texts([hit.node for hit in hits]))
        return [to_document(hit, text) for hit, text in zip(hits, texts, strict=True)]


class SageRetriever(CoreRetriever):
    """Retrieve `k` documents of connected evidence, with scores and reasons.

    Each document's ``metadata["graphret"]`` has its score and the evidence for it, in
    plain JSON values; see `langchain_graphret.documents`. Callback handlers get the
    retrieval's trace as the custom event ``graphret_trace``, and what LangChain
    retrievers and models do on the way is traced below the retriever's own run.

    Parameters
    ----------
    graph
        A `SageGraph` or a view of one, or any graphret `Retriever`: a combinator,
        another method.
    ranking
        Over a graph: ``"coverage"``, ``"propagate"``, ``"paper"`` or a `Ranking`; by
        default the one that was trained for it, ``"coverage"`` where none was.
    seeds
        Over a graph: who finds the seeds, a LangChain or a graphret retriever; by
        default the graph's hybrid search.
    on_failure
        Over a graph: ``"fallback"`` seeds from the graph's search when `seeds` fails,
        and goes by words alone when the question cannot be embedded; the trace and a
        logged warning say so. ``"raise"`` raises `RetrievalFailed`.
    fill
        Whether hits that only fill a place come back too, marked by
        ``metadata["graphret"]["fill"]``: exactly `k` documents then where that many
        qualify.
    content
        What a document's text is, a `graphret.NodeText` or a function of a node; by
        default a passage's own text, and of any other node its name, properties and
        named neighbours.
    k
        How many documents are returned.
    where
        A filter dictionary, as `graphret.Where` has them, or a `Where`.
    name, tags, metadata
        As any LangChain retriever has them.

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
    >>> document = Document("Emma is a novel by Jane Austen.", id="emma")
    >>> graph = SageGraph.from_documents([document], embedding=None)
    >>> SageRetriever(graph, k=1).invoke("Who wrote Emma?")[0].id
    'emma'
    """

    graph: Part[SageGraph | Retriever]
    ranking: Part[Ranking | str | None] = None
    seeds: Part[LangChainRetriever | Retriever | None] = None
    on_failure: str = "fallback"

    def __init__(
        self,
        graph: SageGraph | Retriever,
        *,
        ranking: Ranking | str | None = None,
        seeds: LangChainRetriever | Retriever | None = None,
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
            graph=graph,
            ranking=ranking,
            seeds=seeds,
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
        if isinstance(self.graph, SageGraph):
            return self.graph.retriever(
                self.ranking,
                seeds=as_seeds(self.seeds, graph=self.graph),
                on_failure=self.on_failure,
            )
        if not isinstance(self.graph, Retriever):
            kind = type(self.graph).__name__
            raise InvalidInput(
                f"graph: expected a SageGraph or a graphret Retriever, got {kind}"
            )
        if self.ranking is not None or self.seeds is not None:
            raise InvalidInput(
                "ranking and seeds are for a SageGraph; a graphret Retriever has its"
                " own"
            )
        return self.graph


def as_langchain_retriever(
    retriever: SageGraph | Retriever,
    *,
    fill: bool = True,
    content: Content | None = None,
    k: int = 10,
    where: WhereLike = None,
    name: str | None = None,
    tags: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
) -> SageRetriever:
    """Return a graphret retriever, or a graph, as a LangChain retriever.

    The parameters are those of `SageRetriever`.
    """
    return SageRetriever(
        retriever,
        fill=fill,
        content=content,
        k=k,
        where=where,
        name=name,
        tags=tags,
        metadata=metadata,
    )


def traced(
    retriever: Retriever,
    query: str,
    k: int,
    where: Where | None,
    callbacks: CallbackManager | AsyncCallbackManager,
) -> NodeSteps:
    """Ask a retriever within a LangChain run; log fallbacks and dispatch its trace."""
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

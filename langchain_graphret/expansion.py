"""`SageExpansion`: what a graph connects to the documents of another retriever."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.documents import Document

from graphret.content import Content, NodeContent
from graphret.errors import InvalidInput, RetrievalFailed
from graphret.expansion import Expand, Ranking, ranking_of
from graphret.retriever import Compute, Retriever, require_on_failure
from graphret.sage import SageGraph
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.types import Evidence, Hit, Node
from graphret.where import WhereLike
from langchain_graphret.compressor import CoreCompressor, InputHits, with_hit
from langchain_graphret.documents import (
    KEY,
    from_document,
    known_nodes,
    stored_nodes,
    to_document,
)
from langchain_graphret.retriever import Filter, Part, log, traced
from langchain_graphret.seeds import seed_hits
from langchain_graphret.state import NodeSteps

_UNKNOWN = (
    "the graph knows none of the documents; was it built of them, with the same ids?"
)


class SageExpansion(CoreCompressor):
    """Expand retrieved documents over a graph, to `k` in all.

    The documents are the seeds, by their rank. Those that come back are the documents
    that were given, with their id, text and metadata, and ``metadata["graphret"]``
    besides; what the graph adds is made of its nodes. The graph must be built of the
    documents that the retriever searches; `langchain_graphret.documents.known_nodes`
    says how they are recognised. Documents that the graph does not know keep their
    place. No documents are expanded to none.

    It is a document compressor, and a runnable from ``{"query": ..., "documents":
    ...}`` to documents. `after` makes the chain with a retriever:

    >>> chain = SageExpansion(graph).after(retriever)  # doctest: +SKIP
    >>> chain.invoke("Who wrote Emma?")  # doctest: +SKIP

    Parameters
    ----------
    graph
        A `SageGraph`, or a view of one; nothing outside the view is added. Or a store,
        whose nodes are known by the documents' ids, or by ``metadata["id"]``.
    index
        With a store: a text index over its nodes.
    ranking
        ``"coverage"``, ``"propagate"``, ``"paper"`` or a `Ranking`; by default the one
        that was trained for the graph, ``"coverage"`` where none was.
    on_failure
        ``"fallback"``: if the question cannot be embedded, words alone count; if the
        graph knows none of the documents, they keep their places, and a warning says
        so. ``"raise"`` raises `RetrievalFailed`.
    fill, content
        As `SageRetriever` has them, of documents that the graph adds.
    k
        How many documents there are afterwards, those that were given included.
    where
        A filter dictionary, as `graphret.Where` has them, or a `Where`: what is
        returned, of documents and graph.
    name
        As any runnable of LangChain has it.
    """

    graph: Part[SageGraph | GraphStore]
    index: Part[TextIndex | None] = None
    fill: bool = True
    content: Part[Content | None] = None
    where: Filter = None
    ranking: Part[Ranking | str | None] = None
    on_failure: str = "fallback"

    def __init__(
        self,
        graph: SageGraph | GraphStore,
        index: TextIndex | None = None,
        *,
        fill: bool = True,
        content: Content | None = None,
        ranking: Ranking | str | None = None,
        on_failure: str = "fallback",
        k: int = 10,
        where: WhereLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]  # fields of this class
            graph=graph,
            index=index,
            fill=fill,
            content=content,
            ranking=ranking,
            on_failure=require_on_failure(on_failure),
            k=k,
            where=where,
            name=name,
        )
        NodeContent(chosen=content)
        self._expanding(None)  # refuses a wrong graph or ranking

    def _expanding(self, seeds: Retriever | None) -> Retriever:
        """Return the retriever that expands seeds over the graph."""
        if isinstance(self.graph, SageGraph):
            return self.graph.retriever(
                self.ranking, seeds=seeds, on_failure=self.on_failure
            )
        if self.index is None:
            kind = type(self.graph).__name__
            raise InvalidInput(
                f"graph: expected a SageGraph, or a store and its index, got {kind}"
            )
        ranking = ranking_of(self.ranking or "coverage")
        return Expand(
            seeds, self.graph, self.index, ranking=ranking, on_failure=self.on_failure
        )

    def _known(self, documents: Sequence[Document]) -> list[Node | None]:
        """Return each document's node in the graph, or `None` if there is none."""
        if isinstance(self.graph, SageGraph):
            return known_nodes(documents, self.graph)
        return stored_nodes(documents, self.graph)

    def _steps(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: CallbackManager | AsyncCallbackManager,
    ) -> NodeSteps:
        if not documents:
            return []
        nodes = yield Compute(lambda: self._known(documents))
        documents_by_id = {
            node.id: input_document
            for input_document, node in reversed(
                list(zip(documents, nodes, strict=True))
            )
            if node is not None
        }
        if not documents_by_id and self.on_failure == "raise":
            raise RetrievalFailed(_UNKNOWN)
        if not documents_by_id:
            log.warning(_UNKNOWN)
        seeds = InputHits(seed_hits(node for node in nodes if node is not None))
        core = self._expanding(seeds)
        retrieval = yield from traced(core, query, self.k, self.where, callbacks)
        hits = [hit for hit in retrieval if self.fill or not hit.fill]
        content = NodeContent(core.graph_store, self.content)
        texts = yield Compute(lambda: content.texts([hit.node for hit in hits]))
        expanded = [
            with_hit(documents_by_id[hit.id], hit)
            if hit.id in documents_by_id
            else to_document(hit, text)
            for hit, text in zip(hits, texts, strict=True)
        ]
        for place, (document, known_node) in enumerate(
            zip(documents, nodes, strict=True)
        ):
            node = known_node or from_document(document, strict=False)
            if known_node is None and (self.where is None or self.where.matches(node)):
                neighbor = (
                    expanded[max(min(place, len(expanded)) - 1, 0)].metadata[KEY]
                    if expanded
                    else {"score": 1.0, "relevance": 1.0}
                )
                evidence = Evidence("seed", rank=place + 1, properties={"known": False})
                expanded.insert(
                    place,
                    with_hit(
                        document,
                        Hit(
                            node, neighbor["score"], (evidence,), neighbor["relevance"]
                        ),
                    ),
                )
        return expanded[: self.k]

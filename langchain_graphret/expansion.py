"""`SageExpansion`: what a graph connects to the documents that someone else's retriever
found.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.documents import Document

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.expansion import Ranking
from graphret.retriever import require_on_failure
from graphret.sage import SageGraph
from graphret.types import Evidence, Hit
from graphret.where import WhereLike
from langchain_graphret.compressor import CoreCompressor, GivenHits, with_hit
from langchain_graphret.documents import KEY, from_document, known_nodes, to_document
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
    ...}`` to documents:

    >>> chain = {"query": RunnablePassthrough(), "documents": retriever} |
    SageExpansion(graph)  # doctest: +SKIP
    >>> chain = SageExpansion(graph).after(retriever)  # the same  # doctest: +SKIP

    Parameters
    ----------
    graph
        A `SageGraph`, or a view of one; nothing outside the view is added.
    ranking
        ``"coverage"``, ``"propagate"``, ``"paper"`` or a `Ranking`; by default the one
        that was trained for the graph, ``"coverage"`` where none was.
    on_failure
        ``"fallback"``: if the question cannot be embedded, words alone count; if the
        graph knows none of the documents, they keep their places, and a warning says
        so. ``"raise"`` raises `RetrievalFailed`.
    k
        How many documents there are afterwards, those that were given included.
    where
        A filter dictionary, as `graphret.Where` has them, or a `Where`: what is
        returned, of documents and graph.
    name
        As any runnable of LangChain has it.
    """

    graph: Part[SageGraph]
    where: Filter = None
    ranking: Part[Ranking | str | None] = None
    on_failure: str = "fallback"

    def __init__(
        self,
        graph: SageGraph,
        *,
        ranking: Ranking | str | None = None,
        on_failure: str = "fallback",
        k: int = 10,
        where: WhereLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]  # fields of this class
            graph=graph,
            ranking=ranking,
            on_failure=require_on_failure(on_failure),
            k=k,
            where=where,
            name=name,
        )
        if not isinstance(graph, SageGraph):
            kind = type(graph).__name__
            raise InvalidInput(f"graph: expected a SageGraph, got {kind}")
        graph.retriever(ranking)  # refuses what is no ranking

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
        seeds = GivenHits(seed_hits(node for node in nodes if node is not None))
        core = self.graph.retriever(
            self.ranking, seeds=seeds, on_failure=self.on_failure
        )
        found = yield from traced(core, query, self.k, self.where, callbacks)
        out = [
            with_hit(given[hit.id], hit) if hit.id in given else to_document(hit)
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
                    with_hit(
                        document, Hit(node, near["score"], (why,), near["relevance"])
                    ),
                )
        return out[: self.k]

"""A LangChain retriever as a graphret `Retriever`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStoreRetriever

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.retriever import Call, Retriever, Steps
from graphret.sage import SageGraph
from graphret.trace import Trace
from graphret.types import Evidence, Hit, Node, Retrieval, Signals
from graphret.where import Where
from langchain_graphret.documents import from_document, known_nodes

#: A LangChain retriever, or any runnable from a question to documents.
LangChainRetriever: TypeAlias = Runnable[str, list[Document]]


class LangChainSeeds(Retriever):
    """A LangChain retriever as the seeds of an expansion, or for fusion with others.

    Parameters
    ----------
    retriever
        A LangChain retriever, or any runnable from a question to documents. It is
        awaited where graphret is.
    graph
        The graph whose nodes the documents are; they are found as `SageExpansion` finds
        them. Without one, documents become nodes of their own, with their ids.
    name
        What evidence and traces call it.

    Notes
    -----
    A vector store's retriever and graphret's own are asked for as many documents as are
    needed; any other answers with as many as it is set to, and no more than that can be
    used. `where` is passed on to graphret's own retrievers, and applied to what the
    others return. Scores are by rank, because LangChain documents have none.
    """

    def __init__(
        self,
        retriever: LangChainRetriever,
        *,
        graph: SageGraph | None = None,
        name: str = "langchain",
    ) -> None:
        if not isinstance(retriever, Runnable):
            raise InvalidInput(
                "retriever: expected a LangChain retriever, got"
                f" {type(retriever).__name__}"
            )
        self.retriever = retriever
        self.graph = graph
        self.name = name

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        ours = isinstance(getattr(self.retriever, "core", None), Retriever)
        options: dict[str, Any] = (
            {"k": k} if ours or isinstance(self.retriever, VectorStoreRetriever) else {}
        )
        if ours:
            options["where"] = where
        trace = Trace()
        with trace.stage("search", retriever=type(self.retriever).__name__) as stage:
            documents = yield Call(
                lambda: self.retriever.invoke(query, **options),
                lambda: self.retriever.ainvoke(query, **options),
            )
            if not isinstance(documents, Sequence) or not all(
                isinstance(document, Document) for document in documents
            ):
                raise RetrievalFailed(
                    f"{self.name}: expected a list of documents, got"
                    f" {type(documents).__name__}"
                )
            stage.details["found"] = len(documents)
        graph_nodes = known_nodes(documents, self.graph)
        nodes = [
            node or from_document(document, strict=False)
            for document, node in zip(documents, graph_nodes, strict=True)
        ]
        hits = seed_hits(
            (node for node in nodes if where is None or where.matches(node)), self.name
        )
        return Retrieval(
            query,
            k,
            hits[:k],
            Signals(candidates=len(nodes), walked_edges=False),
            trace,
        )


def as_seeds(
    retriever: LangChainRetriever | Retriever | None, *, graph: SageGraph | None = None
) -> Retriever | None:
    """Return a LangChain retriever as a graphret one; those and `None` as they are."""
    if retriever is None or isinstance(retriever, Retriever):
        return retriever
    return LangChainSeeds(retriever, graph=graph)


def seed_hits(nodes: Iterable[Node], name: str | None = None) -> list[Hit]:
    """Return distinct nodes as the seeds of a retriever, with scores by rank."""
    distinct = list({node.id: node for node in nodes}.values())
    return [
        Hit(
            node,
            1.0 - i / len(distinct),
            (Evidence("seed", rank=i + 1, retriever=name),),
        )
        for i, node in enumerate(distinct)
    ]

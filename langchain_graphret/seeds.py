"""A LangChain retriever as a graphret `Retriever`."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStoreRetriever

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.retriever import Call, Retriever, Steps
from graphret.sage import SageGraph
from graphret.types import Evidence, Hit, Node, Retrieval, Signals, Trace
from graphret.where import Where
from langchain_graphret.documents import from_document, node_ids


class LangChainSeeds(Retriever):
    """Ask a LangChain retriever, for seeds of an expansion or among others to be fused.

    Parameters
    ----------
    retriever
        A LangChain retriever, or any runnable from a question to documents. It is awaited where graphret is.
    graph
        The graph whose nodes the documents are; they are found as `SageExpansion` finds them. Without one, documents
        become nodes of their own, with their ids.
    id_key
        The entry of the metadata that holds a node's id, where the document's own id is another.
    name
        What evidence and traces call it.

    Notes
    -----
    A vector store's retriever, and one whose ``_get_relevant_documents`` takes ``k``, is asked for as many documents as
    are needed; any other answers with as many as it is set to, and no more than that can be used. `where` is passed on
    to graphret's own retrievers, and applied to what the others return. Scores are by rank, because LangChain
    documents have none.
    """

    def __init__(
        self,
        retriever: Runnable[str, list[Document]],
        *,
        graph: SageGraph | None = None,
        id_key: str | None = None,
        name: str = "langchain",
    ) -> None:
        if not isinstance(retriever, Runnable):
            raise InvalidInput(f"retriever: a LangChain retriever is expected, not {type(retriever).__name__}")
        self.retriever = retriever
        self.graph = graph
        self.id_key = id_key
        self.name = name

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        options: dict[str, Any] = {"k": k} if _takes_k(self.retriever) else {}
        if where is not None and isinstance(getattr(self.retriever, "core", None), Retriever):  # one of ours
            options["where"] = where
        trace = Trace()
        with trace.stage("search", retriever=type(self.retriever).__name__) as stage:
            found = yield Call(
                lambda: self.retriever.invoke(query, **options), lambda: self.retriever.ainvoke(query, **options)
            )
            if not isinstance(found, Sequence) or not all(isinstance(one, Document) for one in found):
                raise RetrievalFailed(f"{self.name}: a list of documents is expected, not {type(found).__name__}")
            stage.details["found"] = len(found)
        nodes = {node.id: node for node in self._nodes(found)}
        qualified = [node for node in nodes.values() if where is None or where.matches(node)][:k]
        hits = [
            Hit(node, 1.0 - i / len(qualified), (Evidence("seed", rank=i + 1, retriever=self.name),))
            for i, node in enumerate(qualified)
        ]
        return Retrieval(query, k, hits, Signals(candidates=len(nodes), walked_edges=False), trace)

    def _nodes(self, documents: Sequence[Document]) -> list[Node]:
        if self.graph is None:
            return [from_document(document, strict=False) for document in documents]
        table = self.graph.nodes
        known = node_ids(documents, table, self.id_key)
        return [
            from_document(document, strict=False) if one is None else table[int(table.find([one])[0])]
            for document, one in zip(documents, known, strict=True)
        ]


def _takes_k(retriever: Runnable[str, list[Document]]) -> bool:
    if isinstance(retriever, VectorStoreRetriever):
        return True
    return isinstance(retriever, BaseRetriever) and "k" in signature(retriever._get_relevant_documents).parameters

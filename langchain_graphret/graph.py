"""`SageGraph` with LangChain's documents and embeddings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.stores import BaseStore
from langchain_core.tools import StructuredTool, create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from graphret import corpus, sage
from graphret.contracts import require_keywords
from graphret.corpus import (
    HeuristicMetadata,
    MetadataExtractor,
    from_chunks,
    to_edges,
)
from graphret.errors import InvalidInput
from graphret.executors import LOCAL, Executor, Progress
from graphret.expansion import Ranking
from graphret.retriever import Retriever
from graphret.sage import SageSettings
from graphret.sage.state import Changes
from graphret.types import Edge, Node
from graphret.where import WhereLike
from langchain_graphret.documents import from_chunk
from langchain_graphret.retriever import SageRetriever
from langchain_graphret.seeds import LangChainRetriever

_DESCRIPTION = (
    "Find passages that answer a question, together with those that they are linked to."
    " Ask one whole question, with the names that it is about."
)


class SageGraph(sage.SageGraph):
    """A `graphret.SageGraph` of LangChain documents, with LangChain retrievers."""

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        embedding: Any = "default",
        *,
        metadata: MetadataExtractor | None = HeuristicMetadata(),
        settings: SageSettings | None = None,
        edges: Iterable[Edge] = (),
        progress: Progress | None = None,
        executor: Executor = LOCAL,
    ) -> Self:
        """Build a graph of documents, one node each.

        Parameters
        ----------
        documents
            The documents of a loader or a text splitter, in any order. A document
            without an id gets one made from its title and text. Those whose
            ``metadata["source"]`` is the same file or address are parts of it: they
            have its name, and the rows of its tables are rows, those of `CSVLoader`
            too; ``start_index`` says where each begins. `graphret.corpus.from_chunks`
            has the rule.
        embedding
            LangChain embeddings, or anything else that `graphret.SageGraph.build`
            takes; `None` goes without.
        metadata, settings, edges, progress, executor
            As `graphret.SageGraph.build` has them.

        Raises
        ------
        InvalidInput
            When there are no documents, two have the same id, or the metadata of one is
            not JSON.
        """
        nodes = from_chunks(_chunks(documents))
        return cls.from_nodes(
            nodes,
            encoder=embedding,
            metadata=metadata,
            settings=settings,
            edges=to_edges(edges, nodes),
            progress=progress,
            executor=executor,
        )

    def add(
        self,
        items: Any,
        *,
        edges: Iterable[Edge] = (),
        replace_documents: bool = True,
    ) -> list[str]:
        """Add LangChain documents or graphret items, replacing those with the same id.

        It returns the nodes' ids. `refresh_from_store` also removes documents.

        Parameters
        ----------
        replace_documents
            Whether the chunks of a file or address (``metadata["source"]``) that the
            graph knows and that has changed take the place of all its chunks. Say no to
            add a file piece by piece whose pieces have no ``start_index``.
        """
        listed = items if isinstance(items, corpus.Corpus) else list(items)
        if isinstance(listed, corpus.Corpus) or not any(
            isinstance(item, Document) for item in listed
        ):
            return super().add(listed, edges=edges)
        return self.add_nodes(
            _chunks(listed), edges=edges, replace_documents=replace_documents
        )

    def refresh(self, nodes: Iterable[Any]) -> Changes:
        """Make the graph hold exactly these documents, and return what changed.

        They are LangChain's, cut as they are to be found, or graphret's nodes.
        """
        listed = list(nodes)
        if any(isinstance(node, Document) for node in listed):
            listed = _chunks(listed)
        return super().refresh(listed)

    def refresh_from_store(
        self, store: BaseStore[str, Document] | VectorStore | Iterable[Document]
    ) -> Changes:
        """Update the graph from a store; return what was added, changed and deleted.

        Parameters
        ----------
        store
            A document store (`BaseStore`), a vector store that lists its documents
            (`Chroma`, `FAISS`, `InMemoryVectorStore`), or all documents that there are
            now.

        Raises
        ------
        InvalidInput
            When a vector store does not list its documents, or there are none.
        """
        return self.refresh(documents_of(store))

    def as_retriever(
        self,
        *,
        ranking: Ranking | str | None = None,
        seeds: LangChainRetriever | Retriever | None = None,
        on_failure: str = "fallback",
        k: int | None = None,
        where: WhereLike = None,
        search_kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> SageRetriever:
        """Return a LangChain retriever over the graph, as `SageRetriever` makes it.

        Parameters
        ----------
        search_kwargs
            As vector stores take it: ``{"k": 5, "filter": {"year": 1969}}``, where
            ``filter`` is `where`; an `InvalidInput` names any other.
        k
            How many documents are returned; 10 by default.
        ranking, seeds, on_failure, where, name, tags, metadata
            As `SageRetriever` has them.
        """
        from_kwargs = dict(search_kwargs or {})
        require_keywords(from_kwargs, ("k", "filter"), "search_kwargs")
        if ("k" in from_kwargs and k is not None) or (
            "filter" in from_kwargs and where
        ):
            raise InvalidInput(
                "search_kwargs: expected k and filter once, got one of them as k= or"
                " where= too"
            )
        return SageRetriever(
            self,
            ranking=ranking,
            seeds=seeds,
            on_failure=on_failure,
            k=from_kwargs.get("k", 10 if k is None else k),
            where=from_kwargs.get("filter", where),
            name=name,
            tags=tags,
            metadata=metadata,
        )

    def as_tool(
        self,
        *,
        name: str = "search_graph",
        description: str = _DESCRIPTION,
        ranking: Ranking | str | None = None,
        k: int = 10,
        where: WhereLike = None,
    ) -> StructuredTool:
        """Return the graph as a tool for an agent, which reads the texts found.

        The documents are the message's artifact.

        Parameters
        ----------
        name, description
            What the model knows it by. Say what the graph holds.
        ranking, k, where
            As `SageRetriever` has them.
        """
        return create_retriever_tool(
            SageRetriever(self, ranking=ranking, k=k, where=where),
            name,
            description,
            response_format="content_and_artifact",
        )


def documents_of(
    store: BaseStore[str, Document] | VectorStore | Iterable[Document],
) -> list[Document]:
    """Return the documents of a document store or vector store, with their ids."""
    if isinstance(store, BaseStore):
        keys = list(store.yield_keys())
        stored = zip(keys, store.mget(keys), strict=True)
        present = ((key, document) for key, document in stored if document is not None)
        return [
            document.model_copy(update={"id": document.id or key})
            for key, document in present
        ]
    if isinstance(store, InMemoryVectorStore):
        return store.get_by_ids(list(store.store))
    if isinstance(store, VectorStore):
        places = getattr(store, "index_to_docstore_id", None)  # FAISS
        if isinstance(places, dict):
            return store.get_by_ids(list(places.values()))
        get = getattr(store, "get", None)
        if not callable(get):
            raise InvalidInput(
                f"store: {type(store).__name__} does not list its documents; pass them"
                " as documents"
            )
        listed = get(include=["documents", "metadatas"])  # Chroma
        columns = zip(
            listed["ids"], listed["documents"], listed["metadatas"], strict=True
        )
        return [
            Document(text, id=key, metadata=metadata or {})
            for key, text, metadata in columns
        ]
    return list(store)


def _chunks(documents: Iterable[Document]) -> list[Node]:
    """Return the documents as nodes; duplicates without an id get numbered ids."""
    nodes: list[Node] = []
    times: Counter[str] = Counter()
    for document in documents:
        if not isinstance(document, Document):
            package = type(document).__module__.split(".")[0]
            kind = f"{package}.{type(document).__qualname__}"
            raise InvalidInput(f"documents: expected a LangChain Document, got {kind}")
        node = from_chunk(document)
        times[node.id] += 1
        is_duplicate = times[node.id] > 1 and not document.id
        nodes.append(
            replace(node, id=f"{node.id}-{times[node.id]}") if is_duplicate else node
        )
    return nodes

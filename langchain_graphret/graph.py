"""`SageGraph` with LangChain's documents and embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.documents import Document

from graphret import corpus, sage
from graphret.corpus import Chunker, HeuristicMetadata, MetadataExtractor
from graphret.sage import SageSettings
from graphret.sage.graph import Progress, SageView
from graphret.types import Edge
from graphret.where import WhereLike
from langchain_graphret.documents import to_item
from langchain_graphret.filters import to_where
from langchain_graphret.retriever import SageRetriever


class SageGraph(sage.SageGraph):
    """A `graphret.SageGraph` that is made of LangChain documents and makes LangChain retrievers."""

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        embedding: Any = "default",
        *,
        chunker: Chunker | str | None = None,
        metadata: MetadataExtractor | None = HeuristicMetadata(),  # noqa: B008 -- it holds no state
        settings: SageSettings | None = None,
        edges: Iterable[Edge] = (),
        progress: Progress | None = None,
    ) -> SageGraph:
        """Build a graph of documents, one node each unless a chunker is given.

        Parameters
        ----------
        documents
            Usually what a text splitter returns. A document without an id gets one made from its title and text;
            ``metadata["title"]`` is the title.
        embedding
            LangChain embeddings, or anything else that `graphret.SageGraph.build` takes; `None` goes without.
        chunker, metadata, settings, edges, progress
            As `graphret.SageGraph.build` has them.

        Raises
        ------
        InvalidInput
            When there are no documents, two have the same id, or the metadata of one is not JSON.
        """
        return cls.build(
            _items(documents),
            encoder=embedding,
            chunker=chunker,
            metadata=metadata,
            settings=settings,
            edges=edges,
            progress=progress,
        )

    def add_documents(self, documents: Iterable[Document]) -> list[str]:
        """Add documents, each in place of the one that had its id, and return the ids of their nodes."""
        return self.add(_items(documents))

    def as_retriever(self, **options: Any) -> SageRetriever:
        """Return a LangChain retriever over the graph; `options` are the parameters of `SageRetriever`."""
        return SageRetriever(graph=self, **options)

    def view(self, where: WhereLike) -> SageGraph:
        """Return the graph as far as nodes satisfy a condition; see `graphret.SageGraph.view`."""
        view = super().view(to_where(where))
        return _View(view.state, view.settings, chunker=view.chunker, metadata=view.metadata)


class _View(SageView, SageGraph):
    """A part of a graph that can be read and not changed, and makes LangChain retrievers."""


def _items(documents: Iterable[Document]) -> list[corpus.Document]:
    """Return the documents as items; those without an id whose content comes again get a number behind it."""
    items: list[corpus.Document] = []
    times: dict[str, int] = {}
    for document in documents:
        item = to_item(document)
        if item.made_id:
            times[item.id] = times.get(item.id, 0) + 1
            if times[item.id] > 1:
                item = corpus.Document(item.text, f"{item.id}-{times[item.id]}", item.title, item.metadata)
        items.append(item)
    return items

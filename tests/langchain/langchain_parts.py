"""LangChain documents, and retrievers to put around a graph of them."""

from __future__ import annotations

from corpora import BALLPARKS
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from graphret.corpus import Document as Item

DOCUMENTS = [
    Document(item.text, id=item.id, metadata={"title": item.title, **item.metadata})
    for item in BALLPARKS
    if isinstance(item, Item)
]


class ListRetriever(BaseRetriever):
    """Returns the same documents for every question, and remembers how it was asked."""

    documents: list[Document]
    asked: list[str] = Field(default_factory=list)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        self.asked.append("invoke")
        return self.documents

    async def _aget_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
        self.asked.append("ainvoke")
        return self.documents


class BrokenRetriever(BaseRetriever):
    """Never answers."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        raise ConnectionError("the vector store is down")


def by_id(*ids: str) -> list[Document]:
    found = {document.id: document for document in DOCUMENTS}
    return [found[one].model_copy(deep=True) for one in ids]

"""LangChain retrievers inside graphret, and graphs of LangChain documents and embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from corpora import QUESTION
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_parts import DOCUMENTS, ListRetriever, by_id

from graphret.errors import InvalidInput, RetrievalFailed
from langchain_graphret import EncoderEmbeddings, LangChainSeeds, SageGraph, to_where


@pytest.fixture(scope="module")
def graph() -> SageGraph:
    return SageGraph.from_documents(DOCUMENTS, None)


class WordEmbeddings(Embeddings):
    """Counts a few words."""

    words = ("ballpark", "city", "baseball", "opera")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(text.lower().count(word)) + 0.01 for word in self.words] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [2 * number for number in self.embed_documents([text])[0]]


async def test_a_langchain_retriever_is_a_graphret_retriever(graph: SageGraph) -> None:
    inner = ListRetriever(documents=by_id("opera", "pilots", "opera"))
    seeds = LangChainSeeds(inner, name="mine")
    retrieval = seeds.retrieve(QUESTION, 5)
    assert retrieval.ids == ["opera", "pilots"]
    assert [hit.score for hit in retrieval] == sorted((hit.score for hit in retrieval), reverse=True)
    assert [(e.rank, e.retriever) for hit in retrieval for e in hit.evidence] == [(1, "mine"), (2, "mine")]
    assert (await seeds.aretrieve(QUESTION, 1)).ids == ["opera"]
    assert inner.asked == ["invoke", "ainvoke"]
    assert seeds.retrieve(QUESTION, 5, {"year": {"$lt": 1900}}).ids == ["opera"]


async def test_graphrets_own_retrievers_get_k_and_where(graph: SageGraph) -> None:
    seeds = LangChainSeeds(graph.as_retriever(k=1))
    assert set((await seeds.aretrieve(QUESTION, 3, {"tenant": "a"})).ids) == {"pilots", "milwaukee", "opera"}


def test_documents_become_the_nodes_of_a_graph() -> None:
    nameless = [Document(document.page_content, metadata=document.metadata) for document in DOCUMENTS]
    graph = SageGraph.from_documents(nameless, None)
    store = InMemoryVectorStore.from_documents(nameless, WordEmbeddings())
    known = {node.id for node in graph.nodes}
    one = store.as_retriever(search_kwargs={"k": 1})  # it is asked for as many as are needed
    found = LangChainSeeds(one, graph=graph).retrieve("ballpark", 3).ids
    assert len(found) == 3
    assert set(found) <= known
    assert not set(LangChainSeeds(store.as_retriever()).retrieve("ballpark", 3).ids) & known
    retriever = graph.as_retriever(k=5, seeds=store.as_retriever(), on_failure="raise")
    assert {document.id for document in retriever.invoke(QUESTION)} == known


async def test_any_runnable_to_documents_will_do(graph: SageGraph) -> None:
    seeds = LangChainSeeds(RunnableLambda(lambda query: by_id("sicks")), graph=graph)
    assert seeds.retrieve(QUESTION).ids == (await seeds.aretrieve(QUESTION)).ids == ["sicks"]
    with pytest.raises(RetrievalFailed, match="a list of documents"):
        LangChainSeeds(RunnableLambda(lambda query: [1, 2])).retrieve(QUESTION)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="retriever"):
        LangChainSeeds(print)  # type: ignore[arg-type]


def test_an_encoder_is_langchain_embeddings(encoder: Any) -> None:
    embeddings = EncoderEmbeddings(encoder)
    texts = ["one two", "three"]
    np.testing.assert_allclose(embeddings.embed_documents(texts), encoder.encode_documents(texts))
    np.testing.assert_allclose(embeddings.embed_query("one"), encoder.encode_queries(["one"])[0])
    assert embeddings.embed_documents([]) == []
    with pytest.raises(InvalidInput, match="encoder"):
        EncoderEmbeddings(None)


def test_a_view_of_a_graph_is_one_too_and_cannot_be_changed(graph: SageGraph) -> None:
    view = graph.view({"$not": [{"tenant": "b"}]})
    assert isinstance(view, SageGraph)
    assert {node.id for node in view.nodes} == {"pilots", "milwaukee", "opera"}
    with pytest.raises(InvalidInput, match="view"):
        view.add([Document("x", id="x")])
    assert len(graph.view(to_where({}))) == len(graph)

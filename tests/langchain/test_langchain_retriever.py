"""`SageRetriever` as LangChain sees it, expansion around its retrievers, and these and
its documents in graphret.
"""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_parts import (
    DOCUMENTS,
    BrokenRetriever,
    ListRetriever,
    RetrieverSuite,
    by_id,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from pydantic import ValidationError
from tests_support import QUESTION

from graphret.errors import InvalidInput, RetrievalFailed
from langchain_graphret import (
    KEY,
    EncoderEmbeddings,
    GraphReranker,
    LangChainSeeds,
    RRFFusionRetriever,
    SageExpansion,
    SageGraph,
    SageRetriever,
    evidence_of,
    to_document,
)

CITY = "Which ballpark is in the city of Wisconsin on Lake Michigan?"


@pytest.fixture(scope="module")
def graph() -> SageGraph:
    return SageGraph.from_documents(DOCUMENTS, None)


class TestSage(RetrieverSuite):
    kind, parts, question = (
        SageRetriever,
        {"graph": SageGraph.from_documents(DOCUMENTS, None)},
        QUESTION,
    )


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


async def test_k_and_where_at_a_call_mean_the_same_in_both_forms(
    graph: SageGraph,
) -> None:
    retriever = SageRetriever(graph=graph)
    for options in (
        {"k": 1},
        {"k": 2, "where": {"tenant": "a"}},
        {"where": {"year": {"$lt": 1950}}},
    ):
        blocking = retriever.invoke(QUESTION, **options)
        assert ids(await retriever.ainvoke(QUESTION, **options)) == ids(blocking)
        assert blocking == (await retriever.abatch([QUESTION], **options))[0]
    with pytest.raises(InvalidInput, match="'top_k'"):
        retriever.invoke(QUESTION, top_k=3)
    assert len(retriever.invoke(QUESTION, k=2)) == 2
    assert set(ids(retriever.invoke(QUESTION, where={"year": {"$lt": 1950}}))) == {
        "sicks",
        "opera",
    }
    narrow = SageRetriever(graph=graph, where={"tenant": "a"})
    assert ids(narrow.invoke(QUESTION, where={"year": 1969})) == ["pilots"]
    assert narrow.invoke(QUESTION, where={"tenant": "b"}) == []


def test_malformed_constructions_are_refused(graph: SageGraph) -> None:
    for wrong, error in (
        ({}, "'graph'"),
        ({"graph": "papers"}, "SageGraph or a graphret Retriever"),
        ({"graph": graph.retriever(), "ranking": "paper"}, "for a SageGraph"),
        ({"graph": graph, "seeds": "bm25"}, "LangChain retriever"),
        ({"graph": graph, "where": {"year": {"$near": 3}}}, r"\$near"),
        ({"graph": graph, "k": 0}, "k"),
        ({"graph": graph, "top_k": 3}, "top_k"),
    ):
        with pytest.raises((InvalidInput, ValidationError, TypeError), match=error):
            SageRetriever(**wrong)


async def test_a_node_that_two_questions_find_is_one_document(graph: SageGraph) -> None:
    retriever = SageRetriever(graph, k=5)
    first, second = (retriever.invoke(question) for question in (QUESTION, CITY))
    assert [document.metadata[KEY]["score"] for document in first] != [
        document.metadata[KEY]["score"] for document in second
    ]
    other = first[0].model_copy(deep=True)
    assert other == first[0]
    other.metadata[KEY]["name"] = "another node"
    assert other != first[0]
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    several = retrievers.MultiQueryRetriever(
        retriever=retriever, llm_chain=RunnableLambda(lambda _: [QUESTION, CITY])
    )
    for documents in (several.invoke(QUESTION), await several.ainvoke(QUESTION)):
        assert len(set(ids(documents))) == len(documents)
        assert all(map(evidence_of, documents))


async def test_seeds_that_fail_fall_back_or_raise(
    graph: SageGraph, caplog: pytest.LogCaptureFixture
) -> None:
    falling = SageRetriever(graph=graph, k=3, seeds=BrokenRetriever())
    assert ids(falling.invoke(QUESTION)) == ids(
        SageRetriever(graph=graph, k=3).invoke(QUESTION)
    )
    assert "the vector store is down" in caplog.text
    raising = SageRetriever(graph=graph, seeds=BrokenRetriever(), on_failure="raise")
    with pytest.raises(RetrievalFailed, match="the vector store is down"):
        await raising.ainvoke(QUESTION)


# -- as a node of a LangGraph graph


class State(TypedDict, total=False):
    query: str
    documents: list[Document]


async def test_evidence_survives_a_strict_checkpointer_and_traces_are_streamed() -> (
    None
):
    retriever = SageRetriever(SageGraph.from_documents(DOCUMENTS, None), k=3)

    def retrieve(state: State) -> State:
        return {"documents": retriever.invoke(state["query"])}

    async def aretrieve(state: State) -> State:
        return {"documents": await retriever.ainvoke(state["query"])}

    builder = StateGraph(State)
    builder.add_node("retrieve", RunnableLambda(retrieve, aretrieve))
    builder.add_edge(START, "retrieve")
    compiled = builder.compile(
        checkpointer=InMemorySaver(
            serde=JsonPlusSerializer(allowed_msgpack_modules=None)
        )
    )
    first, second = ({"configurable": {"thread_id": thread_id}} for thread_id in "12")
    inputs: Any = {"query": CITY}
    compiled.invoke(inputs, first)  # type: ignore[arg-type]
    events = [
        event async for event in compiled.astream_events(inputs, second, version="v2")
    ]  # type: ignore[arg-type]
    for config in (first, second):
        saved = compiled.get_state(config).values["documents"]  # type: ignore[arg-type]
        assert saved == retriever.invoke(CITY)
        assert any(
            evidence.kind == "neighbor"
            for document in saved
            for evidence in evidence_of(document)
        )
    [trace] = [event for event in events if event["event"] == "on_custom_event"]
    assert (trace["name"], trace["metadata"]["langgraph_node"]) == (
        "graphret_trace",
        "retrieve",
    )


# -- expansion


def test_documents_keep_id_text_and_metadata(graph: SageGraph) -> None:
    inputs = by_id("milwaukee", "opera")
    inputs[0].metadata.update(
        score=0.7, tags={"mine"}
    )  # not JSON, and the user's own business
    before = [document.model_copy(deep=True) for document in inputs]
    documents_by_id = {
        document.id: document
        for document in SageExpansion(graph=graph, k=5).compress_documents(inputs, CITY)
    }
    assert inputs == before
    for document in before:
        metadata = dict(documents_by_id[document.id].metadata)
        assert metadata.pop(KEY)["evidence"][0] == {
            "kind": "seed",
            "rank": ids(before).index(document.id) + 1,
        }
        assert metadata == document.metadata
        assert documents_by_id[document.id].page_content == document.page_content


def test_documents_that_the_graph_does_not_know_keep_their_place(
    graph: SageGraph,
) -> None:
    stranger, other = (
        Document("A stranger.", id="s"),
        Document("Another.", metadata={"when": {1}}),
    )
    expansion = SageExpansion(graph=graph, k=4)
    documents = expansion.compress_documents(
        [stranger, *by_id("milwaukee"), other], CITY
    )
    assert len(documents) == 4
    assert documents[0].page_content == "A stranger."
    assert documents[2].page_content == "Another."
    assert documents[2].metadata["when"] == {1}
    (evidence,) = evidence_of(documents[0])
    assert (evidence.kind, evidence.rank, evidence.properties) == (
        "seed",
        1,
        {"known": False},
    )
    scores = [document.metadata[KEY]["score"] for document in documents]
    assert scores == sorted(scores, reverse=True)


def test_a_graph_of_other_documents_is_told(
    graph: SageGraph, caplog: pytest.LogCaptureFixture
) -> None:
    strangers = [Document(f"Stranger {i}.", id=f"s{i}") for i in range(3)]
    documents = SageExpansion(graph=graph, k=2).compress_documents(strangers, CITY)
    assert ids(documents) == ["s0", "s1"]
    assert "knows none of the documents" in caplog.text
    with pytest.raises(RetrievalFailed, match="knows none of the documents"):
        SageExpansion(graph=graph, on_failure="raise").compress_documents(
            strangers, CITY
        )


def test_a_filter_holds_for_documents_and_neighbours(graph: SageGraph) -> None:
    stranger = Document("A stranger.", id="s", metadata={"tenant": "a"})
    inputs = [*by_id("milwaukee", "sicks"), stranger, Document("None of ours.", id="t")]
    expansion = SageExpansion(graph=graph, where={"tenant": "a"})
    assert set(ids(expansion.compress_documents(inputs, CITY))) == {
        "milwaukee",
        "pilots",
        "opera",
        "s",
    }


async def test_it_is_a_runnable_after_any_retriever(graph: SageGraph) -> None:
    retriever = ListRetriever(documents=by_id("milwaukee"))
    expansion = SageExpansion(graph=graph, k=2)
    expected = expansion.compress_documents(by_id("milwaukee"), CITY)
    assert await expansion.acompress_documents(by_id("milwaukee"), CITY) == expected
    for chain in (
        {"query": RunnablePassthrough(), "documents": retriever} | expansion,
        expansion.after(retriever),
    ):
        assert chain.batch([CITY, CITY]) == [expected, expected]
        assert await chain.ainvoke(CITY) == expected
    assert set(retriever.asked) == {"invoke", "ainvoke"}
    assert (
        SageExpansion(graph=graph, on_failure="raise").invoke(
            {"query": CITY, "documents": []}
        )
        == []
    )
    with pytest.raises(InvalidInput, match="'query' and 'documents'"):
        expansion.invoke({"query": CITY})


class WordEmbeddings(Embeddings):
    """Counts a few words."""

    words = ("ballpark", "city", "baseball", "opera")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [
            [float(text.lower().count(word)) + 0.01 for word in self.words]
            for text in texts
        ]

    def embed_query(self, text: str) -> list[float]:
        return [2 * number for number in self.embed_documents([text])[0]]


async def test_a_langchain_retriever_is_a_graphret_retriever(graph: SageGraph) -> None:
    inner = ListRetriever(documents=by_id("opera", "pilots", "opera"))
    seeds = LangChainSeeds(inner, name="mine")
    retrieval = seeds.retrieve(QUESTION, 5)
    assert retrieval.ids == ["opera", "pilots"]
    assert [hit.score for hit in retrieval] == sorted(
        (hit.score for hit in retrieval), reverse=True
    )
    assert [(e.rank, e.retriever) for hit in retrieval for e in hit.evidence] == [
        (1, "mine"),
        (2, "mine"),
    ]
    assert (await seeds.aretrieve(QUESTION, 1)).ids == ["opera"]
    assert inner.asked == ["invoke", "ainvoke"]
    assert seeds.retrieve(QUESTION, 5, {"year": {"$lt": 1900}}).ids == ["opera"]


async def test_graphrets_own_retrievers_get_k_and_where(graph: SageGraph) -> None:
    seeds = LangChainSeeds(graph.as_retriever(k=1))
    assert set((await seeds.aretrieve(QUESTION, 3, {"tenant": "a"})).ids) == {
        "pilots",
        "milwaukee",
        "opera",
    }


def test_documents_become_the_nodes_of_a_graph() -> None:
    nameless = [
        Document(document.page_content, metadata=document.metadata)
        for document in DOCUMENTS
    ]
    graph = SageGraph.from_documents(nameless, None)
    store = InMemoryVectorStore.from_documents(nameless, WordEmbeddings())
    node_ids = {node.id for node in graph.nodes}
    vector_retriever = store.as_retriever(
        search_kwargs={"k": 1}
    )  # it is asked for as many as are needed
    seed_ids = LangChainSeeds(vector_retriever, graph=graph).retrieve("ballpark", 3).ids
    assert len(seed_ids) == 3
    assert set(seed_ids) <= node_ids
    assert (
        not set(LangChainSeeds(store.as_retriever()).retrieve("ballpark", 3).ids)
        & node_ids
    )
    retriever = graph.as_retriever(k=5, seeds=store.as_retriever(), on_failure="raise")
    assert {document.id for document in retriever.invoke(QUESTION)} == node_ids


async def test_any_runnable_to_documents_will_do(graph: SageGraph) -> None:
    seeds = LangChainSeeds(RunnableLambda(lambda query: by_id("sicks")), graph=graph)
    assert (
        seeds.retrieve(QUESTION).ids
        == (await seeds.aretrieve(QUESTION)).ids
        == ["sicks"]
    )
    with pytest.raises(RetrievalFailed, match="a list of documents"):
        LangChainSeeds(RunnableLambda(lambda query: [1, 2])).retrieve(QUESTION)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="retriever"):
        LangChainSeeds(print)  # type: ignore[arg-type]


def test_an_encoder_is_langchain_embeddings(encoder: Any) -> None:
    embeddings = EncoderEmbeddings(encoder)
    texts = ["one two", "three"]
    np.testing.assert_allclose(
        embeddings.embed_documents(texts), encoder.encode_documents(texts)
    )
    np.testing.assert_allclose(
        embeddings.embed_query("one"), encoder.encode_queries(["one"])[0]
    )
    assert embeddings.embed_documents([]) == []
    with pytest.raises(InvalidInput, match="encoder"):
        EncoderEmbeddings(None)


# -- reranking and fusion


class Likes:
    """A cross-encoder that likes one text."""

    def __init__(self, liked: str) -> None:
        self.liked = liked

    def predict(self, pairs: list[tuple[str, str]], **_: object) -> list[float]:
        return [float(self.liked in text) for _, text in pairs]


async def test_documents_are_reranked_and_keep_their_evidence(graph: SageGraph) -> None:
    documents = SageRetriever(graph, k=4).invoke(QUESTION)
    reranker = GraphReranker(Likes(documents[-1].page_content), weight=1.0, k=2)
    best = reranker.compress_documents(documents, QUESTION)
    assert best == await reranker.acompress_documents(documents, QUESTION)
    assert (len(best), best[0].id) == (2, documents[-1].id)
    before, gained = evidence_of(documents[-1]), evidence_of(best[0])
    assert [evidence for evidence in gained if evidence in before] == before
    assert len(gained) > len(before)
    assert reranker.compress_documents([], QUESTION) == []


async def test_several_retrievers_are_fused(graph: SageGraph) -> None:
    first, second = (
        ListRetriever(documents=[graph_document(graph, name)])
        for name in ("pilots", "sicks")
    )
    fused = RRFFusionRetriever([first, second, BrokenRetriever()], weights=[1, 2, 1])
    assert ids(fused.invoke(QUESTION)) == ["sicks", "pilots"]
    assert ids(await fused.ainvoke(QUESTION, k=1)) == ["sicks"]


def graph_document(graph: SageGraph, id_: str) -> Document:
    return next(to_document(node) for node in graph.nodes if node.id == id_)

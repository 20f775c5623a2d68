"""`SageRetriever` as LangChain sees it, and `SageExpansion` around retrievers that are not graphret's."""

from __future__ import annotations

import json
from typing import Any, TypedDict

import pytest
from corpora import QUESTION
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_parts import DOCUMENTS, BrokenRetriever, ListRetriever, by_id
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from pydantic import ValidationError

from graphret.errors import InvalidInput, RetrievalFailed
from langchain_graphret import KEY, SageExpansion, SageGraph, SageRetriever, evidence_of

CITY = "Which ballpark is in the city of Wisconsin on Lake Michigan?"


@pytest.fixture(scope="module")
def graph() -> SageGraph:
    return SageGraph.from_documents(DOCUMENTS, None)


class TestRetrieverSuite(RetrieversIntegrationTests):
    """LangChain's own suite, over a graph without an encoder."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return SageRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"graph": SageGraph.from_documents(DOCUMENTS, None)}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


async def test_k_and_where_at_a_call_mean_the_same_in_both_forms(graph: SageGraph) -> None:
    retriever = SageRetriever(graph=graph)
    for options in ({"k": 1}, {"k": 2, "where": {"tenant": "a"}}, {"where": {"year": {"$lt": 1950}}}):
        blocking = retriever.invoke(QUESTION, **options)
        assert ids(await retriever.ainvoke(QUESTION, **options)) == ids(blocking)
        assert blocking == (await retriever.abatch([QUESTION], **options))[0]
    with pytest.raises(InvalidInput, match="'top_k'"):
        retriever.invoke(QUESTION, top_k=3)
    assert len(retriever.invoke(QUESTION, k=2)) == 2
    assert set(ids(retriever.invoke(QUESTION, where={"year": {"$lt": 1950}}))) == {"sicks", "opera"}
    narrow = SageRetriever(graph=graph, where={"tenant": "a"})
    assert ids(narrow.invoke(QUESTION, where={"year": 1969})) == ["pilots"]
    assert narrow.invoke(QUESTION, where={"tenant": "b"}) == []


def test_malformed_constructions_are_refused(graph: SageGraph) -> None:
    for wrong, named in (
        ({}, "'retriever' alone"),
        ({"retriever": graph.retriever(), "ranking": "paper"}, "'retriever' alone"),
        ({"graph": graph, "seeds": "bm25"}, "seeds"),
        ({"graph": graph, "where": {"year": {"$near": 3}}}, r"\$near"),
        ({"graph": graph, "top_k": 3}, "top_k"),
    ):
        with pytest.raises(ValidationError, match=named):
            SageRetriever(**wrong)


async def test_a_node_that_two_questions_find_is_one_document(graph: SageGraph) -> None:
    retriever = SageRetriever(graph, k=5)
    first, second = (retriever.invoke(question) for question in (QUESTION, CITY))
    assert [one.metadata[KEY]["score"] for one in first] != [one.metadata[KEY]["score"] for one in second]
    other = first[0].model_copy(deep=True)
    assert other == first[0]
    other.metadata[KEY]["name"] = "another node"
    assert other != first[0]
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    several = retrievers.MultiQueryRetriever(retriever=retriever, llm_chain=RunnableLambda(lambda _: [QUESTION, CITY]))
    for found in (several.invoke(QUESTION), await several.ainvoke(QUESTION)):
        assert len(set(ids(found))) == len(found)
        assert all(map(evidence_of, found))


class Events(BaseCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[tuple[str, Any, Any]] = []
        self.parents: dict[Any, Any] = {}

    def on_retriever_start(self, serialized: Any, query: str, *, run_id: Any, parent_run_id: Any, **_: Any) -> None:
        self.parents[run_id] = parent_run_id
        self.seen.append(("start", run_id, query))

    def on_retriever_end(self, documents: Any, *, run_id: Any, **_: Any) -> None:
        self.seen.append(("end", run_id, ids(documents)))

    def on_custom_event(self, name: str, data: Any, *, run_id: Any, **_: Any) -> None:
        self.seen.append((name, run_id, data))


@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_callbacks_hear_of_start_trace_and_end(graph: SageGraph, form: str) -> None:
    retriever = SageRetriever(graph=graph, k=2, seeds=ListRetriever(documents=by_id("opera", "pilots")))
    events = Events()
    if form == "blocking":
        found = retriever.invoke(QUESTION, config={"callbacks": [events]})
    else:
        found = await retriever.ainvoke(QUESTION, config={"callbacks": [events]})
    outer = events.seen[0][1]
    assert [(kind, run == outer) for kind, run, _ in events.seen] == [
        ("start", True),
        ("start", False),  # the seeds, below
        ("end", False),
        ("graphret_trace", True),
        ("end", True),
    ]
    inner = events.seen[1][1]
    assert events.parents == {outer: None, inner: outer}
    assert {"seeds", "expand"} <= {stage["name"] for stage in events.seen[3][2]["stages"]}
    json.dumps(events.seen[3][2])
    assert events.seen[-1][2] == ids(found)


async def test_seeds_that_fail_fall_back_or_raise(graph: SageGraph, caplog: pytest.LogCaptureFixture) -> None:
    falling = SageRetriever(graph=graph, k=3, seeds=BrokenRetriever())
    assert ids(falling.invoke(QUESTION)) == ids(SageRetriever(graph=graph, k=3).invoke(QUESTION))
    assert "the vector store is down" in caplog.text
    raising = SageRetriever(graph=graph, seeds=BrokenRetriever(), on_failure="raise")
    with pytest.raises(RetrievalFailed, match="the vector store is down"):
        await raising.ainvoke(QUESTION)


# -- as a node of a LangGraph graph


class State(TypedDict, total=False):
    query: str
    documents: list[Document]


async def test_evidence_survives_a_strict_checkpointer_and_traces_are_streamed() -> None:
    retriever = SageRetriever(SageGraph.from_documents(DOCUMENTS, None), k=3)

    def retrieve(state: State) -> State:
        return {"documents": retriever.invoke(state["query"])}

    async def aretrieve(state: State) -> State:
        return {"documents": await retriever.ainvoke(state["query"])}

    builder = StateGraph(State)
    builder.add_node("retrieve", RunnableLambda(retrieve, aretrieve))
    builder.add_edge(START, "retrieve")
    compiled = builder.compile(checkpointer=InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None)))
    first, second = ({"configurable": {"thread_id": one}} for one in "12")
    given: Any = {"query": CITY}
    compiled.invoke(given, first)  # type: ignore[arg-type]
    events = [event async for event in compiled.astream_events(given, second, version="v2")]  # type: ignore[arg-type]
    for config in (first, second):
        kept = compiled.get_state(config).values["documents"]  # type: ignore[arg-type]
        assert kept == retriever.invoke(CITY)
        assert any(evidence.kind == "neighbor" for document in kept for evidence in evidence_of(document))
    [trace] = [event for event in events if event["event"] == "on_custom_event"]
    assert (trace["name"], trace["metadata"]["langgraph_node"]) == ("graphret_trace", "retrieve")


# -- expansion


def test_documents_keep_id_text_and_metadata(graph: SageGraph) -> None:
    given = by_id("milwaukee", "opera")
    given[0].metadata.update(score=0.7, tags={"mine"})  # not JSON, and the user's own business
    before = [document.model_copy(deep=True) for document in given]
    found = {document.id: document for document in SageExpansion(graph=graph, k=5).compress_documents(given, CITY)}
    assert given == before
    for document in before:
        metadata = dict(found[document.id].metadata)
        assert metadata.pop(KEY)["evidence"][0] == {"kind": "seed", "rank": ids(before).index(document.id) + 1}
        assert metadata == document.metadata
        assert found[document.id].page_content == document.page_content


def test_documents_that_the_graph_does_not_know_keep_their_place(graph: SageGraph) -> None:
    stranger, other = Document("A stranger.", id="s"), Document("Another.", metadata={"when": {1}})
    expansion = SageExpansion(graph=graph, k=4)
    found = expansion.compress_documents([stranger, *by_id("milwaukee"), other], CITY)
    assert len(found) == 4
    assert found[0].page_content == "A stranger."
    assert found[2].page_content == "Another."
    assert found[2].metadata["when"] == {1}
    (evidence,) = evidence_of(found[0])
    assert (evidence.kind, evidence.rank, evidence.properties) == ("seed", 1, {"known": False})
    scores = [document.metadata[KEY]["score"] for document in found]
    assert scores == sorted(scores, reverse=True)


def test_a_graph_of_other_documents_is_told(graph: SageGraph, caplog: pytest.LogCaptureFixture) -> None:
    strangers = [Document(f"Stranger {i}.", id=f"s{i}") for i in range(3)]
    found = SageExpansion(graph=graph, k=2).compress_documents(strangers, CITY)
    assert ids(found) == ["s0", "s1"]
    assert "knows none of the documents" in caplog.text
    with pytest.raises(RetrievalFailed, match="knows none of the documents"):
        SageExpansion(graph=graph, on_failure="raise").compress_documents(strangers, CITY)


def test_a_filter_holds_for_documents_and_neighbours(graph: SageGraph) -> None:
    stranger = Document("A stranger.", id="s", metadata={"tenant": "a"})
    given = [*by_id("milwaukee", "sicks"), stranger, Document("None of ours.", id="t")]
    expansion = SageExpansion(graph=graph, where={"tenant": "a"})
    assert set(ids(expansion.compress_documents(given, CITY))) == {"milwaukee", "pilots", "opera", "s"}


async def test_it_is_a_runnable_after_any_retriever(graph: SageGraph) -> None:
    retriever = ListRetriever(documents=by_id("milwaukee"))
    expansion = SageExpansion(graph=graph, k=2)
    expected = expansion.compress_documents(by_id("milwaukee"), CITY)
    assert await expansion.acompress_documents(by_id("milwaukee"), CITY) == expected
    for chain in ({"query": RunnablePassthrough(), "documents": retriever} | expansion, expansion.after(retriever)):
        assert chain.batch([CITY, CITY]) == [expected, expected]
        assert await chain.ainvoke(CITY) == expected
    assert set(retriever.asked) == {"invoke", "ainvoke"}
    assert SageExpansion(graph=graph, on_failure="raise").invoke({"query": CITY, "documents": []}) == []
    with pytest.raises(InvalidInput, match="'query' and 'documents'"):
        expansion.invoke({"query": CITY})

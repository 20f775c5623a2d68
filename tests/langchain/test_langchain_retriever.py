"""`SageRetriever` as LangChain sees it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from corpora import QUESTION
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_parts import DOCUMENTS, BrokenRetriever, ListRetriever, by_id
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError

from graphret.errors import InvalidInput, RetrievalFailed
from langchain_graphret import KEY, SageGraph, SageRetriever, evidence_of

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


def test_connected_evidence_is_returned_with_its_reason(graph: SageGraph) -> None:
    found = SageRetriever(graph=graph, k=2).invoke(CITY)
    assert set(ids(found)) == {"milwaukee", "county"}
    county = next(document for document in found if document.id == "county")
    block = county.metadata[KEY]
    assert block["name"] == "County Stadium (Milwaukee)"
    assert block["labels"] == ["Document"]
    assert isinstance(block["score"], float)
    assert any(e.kind == "neighbor" and e.source == "milwaukee" for e in evidence_of(county))
    assert json.loads(json.dumps(county.metadata)) == county.metadata


async def test_k_and_where_at_a_call_mean_the_same_in_both_forms(graph: SageGraph) -> None:
    retriever = SageRetriever(graph=graph)
    for options in ({"k": 1}, {"k": 2, "where": {"tenant": "a"}}, {"where": {"year": {"$lt": 1950}}}):
        blocking = retriever.invoke(QUESTION, **options)
        assert ids(await retriever.ainvoke(QUESTION, **options)) == ids(blocking)
        assert (
            blocking == (await retriever.abatch([QUESTION], **options))[0] == retriever.batch([QUESTION], **options)[0]
        )
    for asked in (retriever.invoke, retriever.batch):
        with pytest.raises(InvalidInput, match="'top_k'"):
            asked([QUESTION] if asked == retriever.batch else QUESTION, top_k=3)
    assert retriever.invoke(QUESTION, k=1, verbose=False)  # LangChain's own
    assert len(retriever.invoke(QUESTION, k=2)) == 2
    assert set(ids(retriever.invoke(QUESTION, where={"year": {"$lt": 1950}}))) == {"sicks", "opera"}
    narrow = SageRetriever(graph=graph, where={"tenant": "a"})
    assert ids(narrow.invoke(QUESTION, where={"year": 1969})) == ["pilots"]
    assert narrow.invoke(QUESTION, where={"tenant": "b"}) == []


def test_malformed_constructions_are_refused(graph: SageGraph) -> None:
    plain = graph.retriever()
    for wrong, named in (
        ({}, "'graph' or 'retriever'"),
        ({"graph": graph, "retriever": plain}, "'graph' or 'retriever'"),
        ({"retriever": plain, "ranking": "paper"}, "belong to a graph"),
        ({"graph": graph, "ranking": "best"}, "ranking"),
        ({"graph": graph, "seeds": "bm25"}, "seeds"),
        ({"graph": graph, "where": {"year": {"$near": 3}}}, r"\$near"),
        ({"graph": graph, "on_failure": "ignore"}, "on_failure"),
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

    def on_retriever_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        self.seen.append(("error", run_id, str(error)))

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
    assert len(await falling.ainvoke(QUESTION)) == 3
    raising = SageRetriever(graph=graph, seeds=BrokenRetriever(), on_failure="raise")
    with pytest.raises(RetrievalFailed, match="the vector store is down"):
        raising.invoke(QUESTION)
    with pytest.raises(RetrievalFailed, match="the vector store is down"):
        await raising.ainvoke(QUESTION)

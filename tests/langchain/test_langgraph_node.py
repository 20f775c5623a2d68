"""The retriever and the expansion as nodes of a LangGraph graph, with evidence in its checkpoints."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from corpora import QUESTION
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_parts import DOCUMENTS
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph

from langchain_graphret import SageGraph, SageRetriever, evidence_of

CITY = "Which ballpark is in the city of Wisconsin on Lake Michigan?"


class State(TypedDict, total=False):
    query: str
    documents: list[Document]
    answer: str


@pytest.fixture(scope="module")
def graph() -> SageGraph:
    return SageGraph.from_documents(DOCUMENTS, None)


def app(retriever: SageRetriever, answers: list[str]) -> Any:
    """Retrieve, then answer; the model is shown the evidence."""
    model = GenericFakeChatModel(messages=iter([AIMessage(answer) for answer in answers]))

    def retrieve(state: State) -> State:
        return {"documents": retriever.invoke(state["query"])}

    async def aretrieve(state: State) -> State:
        return {"documents": await retriever.ainvoke(state["query"])}

    def prompt(state: State) -> str:
        lines = [f"{d.page_content} ({'; '.join(map(str, evidence_of(d)))})" for d in state["documents"]]
        return "\n".join([*lines, state["query"]])

    def answer(state: State) -> State:
        return {"answer": str(model.invoke(prompt(state)).text)}

    async def aanswer(state: State) -> State:
        return {"answer": str((await model.ainvoke(prompt(state))).text)}

    builder = StateGraph(State)
    builder.add_node("retrieve", RunnableLambda(retrieve, aretrieve))
    builder.add_node("respond", RunnableLambda(answer, aanswer))
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "respond")
    builder.add_edge("respond", END)
    return builder.compile(checkpointer=InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None)))


async def test_a_graph_retrieves_and_answers_and_its_evidence_survives_the_checkpointer(graph: SageGraph) -> None:
    retriever = SageRetriever(graph=graph, k=3)
    compiled = app(retriever, ["In 1938.", "In 1938, again."])
    expected = retriever.invoke(CITY)
    first: Any = {"configurable": {"thread_id": "1"}}
    second: Any = {"configurable": {"thread_id": "2"}}
    assert compiled.invoke({"query": CITY}, first)["answer"] == "In 1938."
    assert (await compiled.ainvoke({"query": CITY}, second))["answer"] == "In 1938, again."
    for config in (first, second):
        kept = compiled.get_state(config).values["documents"]
        assert kept == expected
        assert any(evidence.kind == "neighbor" for document in kept for evidence in evidence_of(document))


async def test_traces_are_streamed_while_a_graph_runs(graph: SageGraph) -> None:
    compiled = app(SageRetriever(graph=graph, k=3), ["In 1938."])
    events = [
        event
        async for event in compiled.astream_events(
            {"query": QUESTION}, {"configurable": {"thread_id": "1"}}, version="v2"
        )
    ]
    (trace,) = [event for event in events if event["event"] == "on_custom_event"]
    assert trace["name"] == "graphret_trace"
    assert {"seeds", "expand"} <= {stage["name"] for stage in trace["data"]["stages"]}
    ends = [event for event in events if event["event"] == "on_retriever_end"]
    assert [len(event["data"]["output"]) for event in ends] == [3]
    assert ends[0]["metadata"]["langgraph_node"] == "retrieve"

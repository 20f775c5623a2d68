"""The retriever as a node of a LangGraph graph, with evidence in its checkpoints."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_parts import DOCUMENTS
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph

from langchain_graphret import SageGraph, SageRetriever, evidence_of

CITY = "Which ballpark is in the city of Wisconsin on Lake Michigan?"


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
    assert trace["name"] == "graphret_trace"
    assert {"seeds", "expand"} <= {stage["name"] for stage in trace["data"]["stages"]}
    [end] = [event for event in events if event["event"] == "on_retriever_end"]
    assert end["metadata"]["langgraph_node"] == "retrieve"

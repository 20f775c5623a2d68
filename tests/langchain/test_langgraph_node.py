"""The retriever and the expansion as nodes of a LangGraph graph, with evidence in its checkpoints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
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


STRICT = """
from typing import TypedDict
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langchain_graphret import SageGraph

class State(TypedDict, total=False):
    query: str
    documents: list[Document]

documents = [
    Document("The Pilots played at Sick's Stadium.", id="pilots", metadata={"title": "Seattle Pilots"}),
    Document("It was opened in 1938.", id="sicks", metadata={"title": "Sick's Stadium"}),
]
retriever = SageGraph.from_documents(documents, None).as_retriever()
builder = StateGraph(State)
builder.add_node("retrieve", lambda state: {"documents": retriever.invoke(state["query"])})
builder.add_edge(START, "retrieve")
compiled = builder.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
found = compiled.invoke({"query": "When was the stadium of the Pilots opened?"}, config)["documents"]
kept = compiled.get_state(config).values["documents"]
assert kept == found and all(type(document) is Document for document in kept), kept
print([evidence["kind"] for document in kept for evidence in document.metadata["graphret"]["evidence"]])
"""


def test_evidence_survives_where_only_safe_types_may_be_read(tmp_path: Path) -> None:
    environment = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"}
    done = subprocess.run(
        [sys.executable, "-c", STRICT], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "neighbor" in done.stdout
    assert "msgpack" not in done.stderr.lower()

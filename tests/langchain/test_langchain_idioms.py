"""What users of LangChain and LangGraph write: chains, tools, compressors, ensembles
and states of messages, over a graph.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
)
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from langchain_parts import DOCUMENTS, ListRetriever, by_id, graph, models
from langchain_parts import QUESTION as FILMS
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from spark_parts import EDGES, NODES, plan
from tests_support import QUESTION

from graphret.errors import InvalidInput
from graphret.search import BM25Index
from graphret.stores import LadybugStore, MemoryStore
from langchain_graphret import (
    GraphReranker,
    RRFFusionRetriever,
    SageExpansion,
    SageGraph,
    SageRetriever,
    create_graphraft_graph,
    create_spark_graph,
)

PAPERS = "Which papers did Ada Ames write?"
BY_ADA = "MATCH (:Author {name: 'Ada Ames'})-[:WROTE]->(p:Paper) RETURN p.id AS id"


@pytest.fixture(scope="module")
def ballparks() -> SageGraph:
    return SageGraph.from_documents(DOCUMENTS, None)


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


# -- chains, ensembles, tools


class Longest:
    """A cross-encoder that prefers long texts."""

    def predict(self, pairs: list[tuple[str, str]]) -> list[float]:
        return [float(len(text)) for _, text in pairs]


async def test_a_reranker_compresses_what_a_retriever_finds(
    ballparks: SageGraph,
) -> None:
    reranker = GraphReranker(Longest(), rrf_k=60, k=2)
    retriever = ballparks.as_retriever(k=4)
    pipeline = DocumentCompressorPipeline(
        transformers=[SageExpansion(ballparks, k=4), reranker]
    )
    for compressor in (reranker, pipeline):
        compressed = ContextualCompressionRetriever(
            base_compressor=compressor, base_retriever=retriever
        )
        documents = compressed.invoke(QUESTION)
        assert ids(documents) == ids(await compressed.ainvoke(QUESTION))
        assert len(documents) == 2
    ranks = documents[0].metadata["graphret"]["evidence"][-2:]
    score = sum(0.5 / (60 + evidence["rank"]) for evidence in ranks)
    assert documents[0].metadata["graphret"]["score"] == pytest.approx(score)


def test_a_graph_goes_into_ensembles_chains_and_tools(ballparks: SageGraph) -> None:
    retriever = ballparks.as_retriever(search_kwargs={"k": 3})
    assert len(retriever.invoke(QUESTION)) == 3
    other = ListRetriever(documents=by_id("opera", "sicks"))
    both = EnsembleRetriever(retrievers=[retriever, other], weights=[0.5, 0.5]).invoke(
        QUESTION
    )
    assert set(ids(both)) == {"opera", "sicks", *ids(retriever.invoke(QUESTION))}
    chain = RunnablePassthrough.assign(
        found=(lambda asked: asked["question"]) | retriever
    )
    assert len(chain.invoke({"question": QUESTION})["found"]) == 3
    theirs = create_retriever_tool(retriever, "ballparks", "Finds ballparks.")
    assert retriever.invoke(QUESTION)[0].page_content in theirs.invoke(QUESTION)
    ours = ballparks.as_tool(description="Finds ballparks.", k=3)
    call = {"name": ours.name, "args": {"query": QUESTION}, "id": "1"}
    message = ours.invoke({**call, "type": "tool_call"})
    assert ids(message.artifact) == ids(retriever.invoke(QUESTION))
    assert message.content == theirs.invoke(QUESTION)


def test_search_kwargs_are_those_of_vector_stores(ballparks: SageGraph) -> None:
    where = {"tenant": "a"}
    filtered = ballparks.as_retriever(search_kwargs={"k": 9, "filter": where})
    assert ids(filtered.invoke(QUESTION)) == ids(
        ballparks.as_retriever(k=9, where=where).invoke(QUESTION)
    )
    with pytest.raises(InvalidInput, match="expected one of k, filter, got 'fetch_k'"):
        ballparks.as_retriever(search_kwargs={"fetch_k": 20})
    with pytest.raises(InvalidInput, match="expected k and filter once"):
        ballparks.as_retriever(k=3, search_kwargs={"k": 3})


@pytest.mark.parametrize(
    ("call", "wrong", "right"),
    [
        (lambda g, **k: SageRetriever(g, **k), "top_k", "k"),
        (lambda g, **k: SageRetriever(g, **k), "filter", "where"),
        (lambda g, **k: SageRetriever(g).invoke(QUESTION, **k), "top_k", "k"),
        (lambda g, **k: SageExpansion(g, **k), "top_n", "k"),
        (lambda g, **k: GraphReranker("m", **k), "weigth", "weight"),
        (lambda g, **k: g.as_retriever(search_kwargs=k), "where", "filter"),
    ],
)
def test_a_wrong_keyword_is_answered_with_the_right_one(
    ballparks: SageGraph, call: Any, wrong: str, right: str
) -> None:
    with pytest.raises(InvalidInput, match=f"got '{wrong}'; did you mean '{right}'"):
        call(ballparks, **{wrong: 3})


async def test_dates_in_metadata_go_through_everything_as_they_are() -> None:
    when = {"at": datetime(2024, 5, 1, 12, tzinfo=UTC), "day": date(2024, 5, 1)}
    dated = [
        Document(
            document.page_content,
            id=document.id,
            metadata={**document.metadata, **when},
        )
        for document in DOCUMENTS
    ]
    stranger = Document("A stranger.", id="s", metadata=dict(when))
    built = SageGraph.from_documents(dated, None)
    inner = ListRetriever(documents=[dated[0], stranger])
    inputs = {"query": QUESTION, "documents": inner.documents}
    fused = RRFFusionRetriever([inner, built.as_retriever()])
    for documents in (
        SageExpansion(built, k=4).invoke(inputs),
        GraphReranker(Longest()).invoke(inputs),
        fused.invoke(QUESTION),
        await fused.ainvoke(QUESTION),
        built.as_retriever(seeds=inner).invoke(QUESTION),
    ):
        assert {"at": when["at"], "day": when["day"]}.items() <= documents[
            0
        ].metadata.items()
        assert all(document.metadata["at"] == when["at"] for document in documents)
    late = built.as_retriever(where={"day": {"$gte": "2024-05-02"}})
    assert not late.invoke(QUESTION)


# -- LangGraph


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LadybugStore]:
    with LadybugStore(tmp_path_factory.mktemp("papers") / "papers.lbug") as store:
        store.upsert(NODES, EDGES)
        yield store


class State(MessagesState):
    hits: list[dict[str, Any]]


def conversation(node: Any, saver: Any = None) -> Any:
    """A graph that looks up what was said, and has a model answer from it."""
    model = GenericFakeChatModel(messages=iter(["So it is."] * 9))

    def respond(state: State) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(State)
    builder.add_node("look_up", node)
    builder.add_node("respond", respond)
    builder.add_edge(START, "look_up")
    builder.add_edge("look_up", "respond")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("method", ["ark", "spark", "graphraft"])
async def test_a_method_is_a_node_over_messages(
    method: str, request: pytest.FixtureRequest
) -> None:
    store = MemoryStore.of(NODES, EDGES)
    question = PAPERS
    if method == "ark":
        compiled, question = graph(models(), k=3), FILMS
    elif method == "spark":
        database = request.getfixturevalue("papers")
        writer = GenericFakeChatModel(messages=iter([plan(BY_ADA)] * 9))
        index = BM25Index.of_store(database)
        compiled = create_spark_graph(writer, database, index, k=3)
    else:
        compiled = create_graphraft_graph(store, BM25Index.of_store(store), k=3)
    expected = compiled.invoke({"question": question})
    assert "messages" not in expected
    messages = [SystemMessage("Be brief."), HumanMessage(question), AIMessage("Hm.")]
    thread: Any = {"configurable": {"thread_id": "1"}}
    app = conversation(compiled, InMemorySaver())
    state = await app.ainvoke({"messages": messages}, thread)
    assert [m.type for m in state["messages"]] == ["system", "human", *["ai"] * 3]
    reply = state["messages"][3]
    assert reply.name == method
    assert [hit["id"] for hit in state["hits"]] == [h["id"] for h in expected["hits"]]
    lines = [json.loads(line) for line in reply.text.splitlines()[1:]]
    assert [line["id"] for line in lines] == [hit["id"] for hit in expected["hits"]]
    other = {"messages": [("user", "no such thing")]}  # the next question of the thread
    state = app.invoke(other, thread)
    assert state["messages"][-2].name == method
    assert len(state["messages"]) == 8
    with pytest.raises(InvalidInput, match="question: expected words, got None"):
        compiled.invoke({"messages": [AIMessage("Hello.")]})


def test_what_was_asked_in_words_goes_before_messages() -> None:
    inputs = {"messages": [HumanMessage("And him?")], "question": FILMS}
    state = graph(models(), k=1).invoke(inputs)
    assert state["question"] == FILMS
    assert "messages" not in state


class Names(BaseCallbackHandler):
    """Hears the names of runs."""

    def __init__(self) -> None:
        self.heard: set[str] = set()

    def on_chain_start(self, *_: Any, name: str = "", **more: Any) -> None:
        self.heard.add(name)


@pytest.mark.parametrize("awaited", [False, True])
async def test_runs_are_called_by_what_they_do(awaited: bool) -> None:
    names = Names()
    config: Any = {"callbacks": [names]}
    store = MemoryStore.of(NODES, EDGES)
    queries = create_graphraft_graph(store, BM25Index.of_store(store))
    apps: list[Any] = [graph(models()), queries]
    for app in apps:
        if awaited:
            await app.ainvoke({"question": FILMS}, config)
        else:
            app.invoke({"question": FILMS}, config)
    agents = {"ark", "begin", "fan_out", "agent", "ark_agent", "model", "tools", "vote"}
    steps = {"graphraft", "entities", "paths", "write", "run", "reason"}
    assert names.heard == agents | steps

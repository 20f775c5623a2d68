"""GraphRAFT in LangChain and LangGraph: the retriever, and its steps as nodes."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.language_models import FakeListChatModel
from langchain_parts import RetrieverSuite
from langgraph.checkpoint.memory import InMemorySaver
from spark_parts import EDGES, NODES

from graphret.search import BM25Index
from graphret.stores import MemoryStore
from langchain_graphret import GraphRAFTRetriever, create_graphraft_graph

STORE = MemoryStore.of(NODES, EDGES)
INDEX = BM25Index.of_store(STORE)
QUESTION = "Which papers did Ada Ames write?"


class TestGraphRAFT(RetrieverSuite):
    kind, parts, question = (
        GraphRAFTRetriever,
        {"store": STORE, "index": INDEX},
        QUESTION,
    )


async def test_each_document_says_which_queries_found_it() -> None:
    names, chosen = (
        json.dumps(one) for one in ({"names": ["Ada Ames"]}, {"numbers": [2]})
    )
    models = {
        "entities": FakeListChatModel(responses=[names]),
        "reasoner": FakeListChatModel(responses=[chosen]),
    }
    for options in ({}, models):
        retriever = GraphRAFTRetriever(STORE, INDEX, k=3, **options)
        for found in (retriever.invoke(QUESTION), await retriever.ainvoke(QUESTION)):
            assert {one.id for one in found} == {"p0", "p3", "p6"}
            why = found[0].metadata["graphret"]["evidence"]
            assert (
                why[0]["properties"]["pattern"]
                == '(a1:Author {name: "Ada Ames"})-[:WROTE]-(T:Paper)'
            )
            assert (why[-1].get("retriever") == "reasoner") == bool(options)
    assert [
        one.id for one in retriever.invoke(QUESTION, k=1, where={"year": {"$gt": 2014}})
    ] == ["p6"]


async def test_the_steps_are_nodes_and_the_state_is_json_that_can_be_kept() -> None:
    graph = create_graphraft_graph(STORE, INDEX, k=4, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    steps = [next(iter(step)) for step in graph.stream({"question": QUESTION}, config)]
    assert steps == ["entities", "paths", "write", "run", "reason"]
    kept = graph.get_state(config).values
    assert kept == json.loads(json.dumps(kept))
    assert kept["entities"][0]["name"] == "Ada Ames"
    core = GraphRAFTRetriever(STORE, INDEX).core.retrieve(QUESTION, 4)
    answer = await graph.ainvoke(
        {"question": QUESTION}, {"configurable": {"thread_id": "2"}}
    )
    assert (
        [hit["id"] for hit in answer["hits"]]
        == [hit["id"] for hit in kept["hits"]]
        == core.ids
    )
    assert [one["name"] for one in answer["trace"]["stages"]] == [
        stage.name for stage in core.trace.stages
    ]
    narrowed = graph.invoke(
        {"question": QUESTION, "k": 1, "where": {"year": {"$gt": 2014}}}, config
    )
    assert [hit["id"] for hit in narrowed["hits"]] == ["p6"]
    again = graph.invoke(
        {"question": QUESTION}, config
    )  # how many and of which kind was said of that question alone
    assert again["hits"] == answer["hits"]

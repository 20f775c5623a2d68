"""SPARK as a LangGraph graph and as a LangChain retriever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command
from spark_parts import EDGES, NODES, plan

from graphret.errors import InvalidInput
from graphret.search import BM25Index
from graphret.spark import SparkSettings
from graphret.stores.ladybug import LadybugStore
from langchain_graphret import SparkRetriever, create_spark_graph

BY_ADA = "MATCH (a:Author)-[:WROTE]->(p:Paper) WHERE a.name = 'ada ames' RETURN p ORDER BY p.year"
ASKED = {"question": "papers by Ada Ames"}
THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LadybugStore, BM25Index]]:
    with LadybugStore(tmp_path_factory.mktemp("papers") / "papers.lbug") as store:
        store.upsert(NODES, EDGES)
        yield store, BM25Index.of_store(store)


def model_of(*replies: str) -> GenericFakeChatModel:
    """A model that gives these replies, and fails where it is asked once more."""
    return GenericFakeChatModel(messages=iter(replies))


async def test_a_question_becomes_a_plan_and_hits(parts: Any) -> None:
    graph = create_spark_graph(model_of(*[plan(BY_ADA)] * 4), *parts, k=3)
    assert [name for update in graph.stream(ASKED) for name in update] == ["plan", "check", "run", "expand"]
    for answer in (graph.invoke(ASKED), await graph.ainvoke({**ASKED, "k": 2})):
        assert [hit["id"] for hit in answer["hits"]][:2] == ["p0", "p3"]
        assert answer["hits"][0]["evidence"][0]["kind"] == "query"
        assert answer["plan"] == {"steps": [{"cypher": BY_ADA}]}
        assert [stage["name"] for stage in answer["trace"]["stages"]] == ["plan", "step 1", "rank"]
    filtered = graph.invoke({**ASKED, "where": {"year": {"$gt": 2012}}, "k": 2})
    assert [hit["id"] for hit in filtered["hits"]] == ["p3", "p6"]
    expanded = create_spark_graph(model_of(plan(BY_ADA)), *parts, k=6, expand="auto").invoke(ASKED)
    assert len(expanded["hits"]) == 6
    assert any(e["kind"] == "neighbor" for hit in expanded["hits"] for e in hit["evidence"])


@pytest.mark.parametrize(("reply", "reason"), [("no idea", "no plan"), (plan("MATCH (p:Planet) RETURN p"), "Planet")])
def test_what_fails_goes_to_the_fallback_and_one_more_call_where_it_is_allowed(
    parts: Any, reply: str, reason: str
) -> None:
    updates = list(create_spark_graph(model_of(reply), *parts, k=3).stream(ASKED))
    [(last, answer)] = updates[-1].items()
    [fallback] = [stage for stage in answer["trace"]["stages"] if stage["name"] == "fallback"]
    assert last == "fallback"
    assert reason in fallback["error"]
    assert len(answer["hits"]) == 3
    if reason == "Planet":
        settings = SparkSettings(repair_calls=1)
        graph = create_spark_graph(model_of(reply, plan(BY_ADA)), *parts, k=3, settings=settings)
        assert [hit["id"] for hit in graph.invoke(ASKED)["hits"]] == ["p0", "p3", "p6"]
    with pytest.raises(InvalidInput, match="question"):
        create_spark_graph(model_of(), *parts).invoke({"question": " "})


@pytest.mark.parametrize(("word", "run"), [(True, True), ("too broad", False)])
def test_a_person_approves_queries_before_they_run(parts: Any, word: Any, run: bool) -> None:
    model = model_of(plan(BY_ADA), plan(BY_ADA))
    graph = create_spark_graph(model, *parts, k=3, approve=True, checkpointer=MemorySaver())
    [waiting] = graph.invoke(ASKED, THREAD)["__interrupt__"]
    assert waiting.value["steps"][0]["cypher"].startswith("MATCH (a:Author)")
    answer = graph.invoke(Command(resume=word), THREAD)
    assert ("step 1" in [stage["name"] for stage in answer["trace"]["stages"]]) is run
    assert len(answer["hits"]) == 3
    assert "__interrupt__" in graph.invoke({"question": "another"}, THREAD)
    assert not list(model.messages)  # the model was not paid twice


class TestRetrieverSuite(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _parts(self, parts: Any) -> None:
        self.parts = parts

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return SparkRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        store, index = self.parts
        model = FakeListChatModel(responses=[plan(BY_ADA)])
        return {"model": model, "store": store, "index": index, "expand": "auto"}

    @property
    def retriever_query_example(self) -> str:
        return "papers by Ada Ames"

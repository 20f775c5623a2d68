"""GRASP in LangChain: the retriever, with the frameworks' own suite, and the plan as a node."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph.graph import END, START, StateGraph
from spark_parts import EDGES, NODES
from typing_extensions import TypedDict

from graphret.errors import InvalidInput
from graphret.grasp import GraspSettings, PlanRetriever, StaticWeights
from graphret.planning import GraphPlan
from graphret.search import BM25Index
from graphret.stores import MemoryStore
from langchain_graphret import GraspRetriever, SageRetriever, create_plan_node

STORE = MemoryStore.of(NODES, EDGES)
INDEX = BM25Index.of_store(STORE)
BY_ADA = {
    "anchors": [{"var": "a", "text": "Ada Ames", "label": "Author"}],
    "hops": [{"from": "a", "rel": "WROTE", "to_var": "T"}],
    "target": {"labels": ["Paper"]},
}


def model(*plans: Any) -> FakeListChatModel:
    return FakeListChatModel(responses=[one if isinstance(one, str) else json.dumps(one) for one in plans])


class TestRetrieverSuite(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return GraspRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"planner": None, "store": STORE, "index": INDEX}

    @property
    def retriever_query_example(self) -> str:
        return "papers by Ada Ames"


async def test_a_model_or_none_plans_and_each_document_says_why() -> None:
    for planner in (model(BY_ADA), None):
        retriever = GraspRetriever(planner, STORE, INDEX, k=3)
        for found in (
            retriever.invoke("Which papers did Ada Ames write?"),
            await retriever.ainvoke("Which papers did Ada Ames write?"),
        ):
            assert {one.id for one in found} == {"p0", "p3", "p6"}
            kinds = {evidence["kind"] for evidence in found[0].metadata["graphret"]["evidence"]}
            assert {"rank", "path"} <= kinds
    narrowed = retriever.invoke("Which papers did Ada Ames write?", k=1, where={"year": {"$gt": 2014}})
    assert [one.id for one in narrowed] == ["p6"]


def test_the_second_opinion_may_be_a_retriever_of_langchain() -> None:
    search = SageRetriever(retriever=PlanRetriever(GraspRetriever(None, STORE, INDEX).core.plan.planner, STORE), k=5)
    options = {"settings": GraspSettings(weights=StaticWeights(0.0))}
    found = GraspRetriever(model("no plan"), STORE, search, options=options, k=3).invoke("papers by Ada Ames")
    assert {one.id for one in found} == {"p0", "p3", "p6"}


class State(TypedDict, total=False):
    question: str
    plan: Any
    bindings: Any
    problem: str


@pytest.mark.parametrize("reply", [BY_ADA, "no plan"])
async def test_the_plan_is_a_node(reply: Any) -> None:
    builder = StateGraph(State)
    builder.add_node("plan", create_plan_node(model(reply), STORE))
    builder.add_edge(START, "plan")
    builder.add_edge("plan", END)
    graph = builder.compile()
    for state in (graph.invoke({"question": "papers by Ada"}), await graph.ainvoke({"question": "papers by Ada"})):
        if reply == "no plan":
            assert state["plan"] is None
            assert "JSON" in state["problem"]
        else:
            assert GraphPlan.model_validate(state["plan"]) == GraphPlan.model_validate(BY_ADA)
    with pytest.raises(InvalidInput, match="store"):
        create_plan_node(model(reply))

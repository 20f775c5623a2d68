"""GRASP in a LlamaIndex query engine."""

from __future__ import annotations

import json

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import MockLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from spark_parts import EDGES, NODES

from graphret.grasp import PlanRetriever
from graphret.planning import PathPlanner
from graphret.search import BM25Index
from graphret.stores import MemoryStore
from llama_index_graphret import GraspRetriever, as_llama_index_retriever, evidence_of

BY_ADA = {
    "anchors": [{"var": "a", "text": "Ada Ames", "label": "Author"}],
    "hops": [{"from": "a", "rel": "WROTE", "to_var": "T"}],
    "target": {"labels": ["Paper"]},
}
STORE = MemoryStore.of(NODES, EDGES)
INDEX = BM25Index.of_store(STORE)


@pytest.mark.parametrize("planned", ["by a model", "by none"])
def test_a_query_engine_answers_from_what_a_plan_finds(planned: str) -> None:
    said = ChatMessage(json.dumps(BY_ADA), role="assistant")
    llm = MockFunctionCallingLLM(response_generator=lambda messages, **_: said) if planned == "by a model" else None
    retriever = GraspRetriever(llm, STORE, INDEX, similarity_top_k=4)
    found = (
        RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query("Which papers did Ada Ames write?").source_nodes
    )
    assert {one.node.node_id for one in found[:3]} == {"p0", "p3", "p6"}
    assert len(found) == 4
    assert "path" in {one.kind for one in evidence_of(found[0])}


def test_the_first_stage_alone_and_a_second_opinion_of_llama_index() -> None:
    plan = as_llama_index_retriever(PlanRetriever(PathPlanner(STORE), STORE), k=3)
    assert {one.node.node_id for one in plan.retrieve("Which papers did Ada Ames write?")} == {"p0", "p3", "p6"}
    search = as_llama_index_retriever(GraspRetriever(None, STORE, INDEX).core.text, k=3)
    found = GraspRetriever(None, STORE, search, k=4).retrieve("Which papers did Ada Ames write?")
    assert {one.node.node_id for one in found[:3]} == {"p0", "p3", "p6"}

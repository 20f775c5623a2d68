"""SPARK in a LlamaIndex query engine."""

from __future__ import annotations

from pathlib import Path

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import MockLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from spark_parts import EDGES, NODES, plan

from graphret.search import BM25Index
from graphret.stores.ladybug import LadybugStore
from llama_index_graphret import SparkRetriever, evidence_of

BY_ADA = "MATCH (a:Author)-[:WROTE]->(p:Paper) WHERE a.name = 'Ada Ames' RETURN p ORDER BY p.year"


def test_a_query_engine_answers_from_what_a_plan_finds(tmp_path: Path) -> None:
    said = ChatMessage(plan(BY_ADA), role="assistant")
    with LadybugStore(tmp_path / "papers.lbug") as store:
        store.upsert(NODES, EDGES)
        llm = MockFunctionCallingLLM(response_generator=lambda messages, **_: said)
        retriever = SparkRetriever(llm, store, BM25Index.of_store(store), similarity_top_k=6, expand="auto")
        found = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query("papers by Ada Ames").source_nodes
    assert [one.node.node_id for one in found][:3] == ["p0", "p3", "p6"]
    assert evidence_of(found[0])[0].kind == "query"
    assert len(found) == 6

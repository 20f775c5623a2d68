"""GraphRAFT in a LlamaIndex query engine."""

from __future__ import annotations

import json

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import MockLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from spark_parts import EDGES, NODES

from graphret.search import BM25Index
from graphret.stores import MemoryStore
from llama_index_graphret import GraphRAFTRetriever, evidence_of

STORE = MemoryStore.of(NODES, EDGES)


@pytest.mark.parametrize("with_model", [False, True])
def test_a_query_engine_answers_from_what_queries_find(with_model: bool) -> None:
    said = ChatMessage(json.dumps({"names": ["Ada Ames"]}), role="assistant")
    options = (
        {
            "entities": MockFunctionCallingLLM(
                response_generator=lambda messages, **_: said
            )
        }
        if with_model
        else {}
    )
    retriever = GraphRAFTRetriever(
        STORE, BM25Index.of_store(STORE), similarity_top_k=4, **options
    )
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    found = engine.query("Which papers did Ada Ames write?").source_nodes
    assert {one.node.node_id for one in found[:3]} == {"p0", "p3", "p6"}
    assert len(found) == 4
    assert evidence_of(found[0])[0].properties["probability"] > 0

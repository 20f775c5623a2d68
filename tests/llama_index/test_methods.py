"""ARK, GRASP and SPARK in LlamaIndex: their retrievers, and ARK's operations as tools of agents."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import spark_parts
from chat_clients import llama_index_openai
from llama_index.core.agent.workflow import AgentStream, FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import MockLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.tools import FunctionTool
from llama_index.core.tools.calling import acall_tool, call_tool
from llama_support import INDEX, QUESTION, STORE, ids

from graphret.ark import Ark, ArkSettings, Toolbox
from graphret.ark.scripted import ScriptedExplorer as Policy
from graphret.grasp import PlanRetriever
from graphret.planning import PathPlanner
from graphret.search import BM25Index
from graphret.stores import LadybugStore, MemoryStore
from graphret.testing.openai_server import OpenAIServer, text, tool_calls
from llama_index_graphret import (
    ArkRetriever,
    GraspRetriever,
    ScriptedExplorer,
    SparkRetriever,
    ark_tools,
    as_llama_index_retriever,
    evidence_of,
)

STARRED = ["m0", "m1", "m2"]


@pytest.mark.parametrize(("k", "awaited"), [(1, False), (5, True)])
def test_what_agents_select_comes_first_and_k_is_the_total(k: int, awaited: bool) -> None:
    settings = ArkSettings(early_stop=False)  # or the last of three that agree may not get to vote
    retriever = ArkRetriever(ScriptedExplorer(), STORE, INDEX, settings=settings, similarity_top_k=k)
    found = asyncio.run(retriever.aretrieve(QUESTION)) if awaited else retriever.retrieve(QUESTION)
    core = Ark(Policy(), STORE, INDEX, settings=settings).retrieve(QUESTION, k)
    assert ids(found) == core.ids
    assert ids(found)[:3] == STARRED[:k]
    assert [one.score for one in found] == [hit.relevance for hit in core.hits]
    assert [evidence_of(one) for one in found] == [list(hit.evidence) for hit in core.hits]
    assert evidence_of(found[0])[0].properties == {"votes": 3, "of": 3, "agents": [1, 2, 3]}


def test_the_temperature_is_the_model_s_own_unless_given() -> None:
    """Providers refuse others than theirs for models that reason."""
    heard: list[Any] = []

    def answer(messages: Any, **options: Any) -> Any:
        heard.append(options.get("temperature"))
        return ChatMessage(role="assistant", content="I give up.")

    llm = MockFunctionCallingLLM(response_generator=answer)
    one = ArkSettings(n_agents=1, max_steps=1)
    for options in ({}, {"temperature": 0.3}):
        ArkRetriever(llm, STORE, INDEX, settings=one, **options).retrieve("?")
    assert heard[0] is None
    assert heard[-1] == 0.3


# -- the tools


def tools() -> list[FunctionTool]:
    return ark_tools(STORE, INDEX)


def test_they_are_described_as_the_core_describes_them() -> None:
    described = [tool.metadata.to_openai_tool()["function"] for tool in tools()]
    for shown, tool in zip(described, Toolbox(STORE, INDEX).tools, strict=False):
        assert (shown["name"], shown["description"]) == (tool.name, tool.description)
        assert shown["parameters"].items() <= tool.parameters.items()
        assert shown["parameters"]["properties"]
    assert [tool.metadata.name for tool in tools()] == ["global_search", "explore_neighborhood"]


@pytest.mark.parametrize("awaited", [False, True])
def test_they_answer_as_the_core_does(awaited: bool) -> None:
    search, explore = tools()
    for tool, arguments in (
        (search, {"query": "film", "k": 2}),
        (explore, {"node": "p1", "relation_types": ["starred_actors"], "query": "Big", "k": 1}),
    ):
        output = asyncio.run(acall_tool(tool, arguments)) if awaited else call_tool(tool, arguments)
        assert output.content == Toolbox(STORE, INDEX).run(tool.metadata.get_name(), arguments).text
        assert not output.is_error


# -- agents


async def answer(llm: Any, streaming: bool) -> tuple[str, list[ToolCallResult], str]:
    agent = FunctionAgent(tools=tools(), llm=llm, streaming=streaming)
    handler, results, streamed = agent.run(QUESTION), [], ""
    async for event in handler.stream_events():
        if isinstance(event, ToolCallResult):
            results.append(event)
        if isinstance(event, AgentStream):
            streamed += event.delta
    return str(await handler), results, streamed


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_agent_with_llama_index_s_own_model_behind_http(streaming: bool) -> None:
    """LlamaIndex's package runs a call whose arguments it could not read with what it made of them, or with none."""
    script = [
        tool_calls(("global_search", {"query": "Tom Hanks"}), ("explore_neighborhood", {"node": "nobody"})),
        tool_calls(*(("explore_neighborhood", raw) for raw in ('{"node": ', '["p1"]', "{}{}", "5"))),
        tool_calls(("explore_neighborhood", {"node": "p1"})),
        text("Big, Cast Away and Splash."),
    ]
    with OpenAIServer(script) as server:
        said, results, streamed = await answer(llama_index_openai(server.base_url, retries=0), streaming)
        assert [bool(request.body.get("stream")) for request in server.requests] == [streaming] * 4
        told = [message["content"] for message in server.requests[-1].messages if message["role"] == "tool"]
    assert said == "Big, Cast Away and Splash."
    assert streamed == (said if streaming else "")
    assert sorted(told) == sorted(one.tool_output.content for one in results)  # each reply's come as they are done
    assert ["There is no node" in one for one in sorted(told[:2])] == [True, False]
    assert all("Field required" in one for one in told[2:6])
    assert '"m0"' in told[6]


# -- plans

PAPERS = MemoryStore.of(spark_parts.NODES, spark_parts.EDGES)
PAPER_INDEX = BM25Index.of_store(PAPERS)
ASKED = "Which papers did Ada Ames write?"
BY_ADA = {
    "anchors": [{"var": "a", "text": "Ada Ames", "label": "Author"}],
    "hops": [{"from": "a", "rel": "WROTE", "to_var": "T"}],
    "target": {"labels": ["Paper"]},
}


def saying(text: str) -> MockFunctionCallingLLM:
    said = ChatMessage(text, role="assistant")
    return MockFunctionCallingLLM(response_generator=lambda messages, **_: said)


@pytest.mark.parametrize("llm", [saying(json.dumps(BY_ADA)), None], ids=["by a model", "by none"])
def test_a_query_engine_answers_from_what_a_plan_finds(llm: Any) -> None:
    retriever = GraspRetriever(llm, PAPERS, PAPER_INDEX, similarity_top_k=4)
    found = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query(ASKED).source_nodes
    assert (set(ids(found[:3])), len(found)) == ({"p0", "p3", "p6"}, 4)
    assert "path" in {one.kind for one in evidence_of(found[0])}


def test_the_first_stage_alone_and_a_second_opinion_of_llama_index() -> None:
    plan = as_llama_index_retriever(PlanRetriever(PathPlanner(PAPERS), PAPERS), k=3)
    assert set(ids(plan.retrieve(ASKED))) == {"p0", "p3", "p6"}
    search = as_llama_index_retriever(GraspRetriever(None, PAPERS, PAPER_INDEX).core.text, k=3)
    assert set(ids(GraspRetriever(None, PAPERS, search, k=4).retrieve(ASKED)[:3])) == {"p0", "p3", "p6"}


def test_a_query_engine_answers_from_what_a_query_finds(tmp_path: Path) -> None:
    query = "MATCH (a:Author)-[:WROTE]->(p:Paper) WHERE a.name = 'Ada Ames' RETURN p ORDER BY p.year"
    with LadybugStore(tmp_path / "papers.lbug") as store:
        store.upsert(spark_parts.NODES, spark_parts.EDGES)
        index = BM25Index.of_store(store)
        retriever = SparkRetriever(saying(spark_parts.plan(query)), store, index, similarity_top_k=6, expand="auto")
        found = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query("papers by Ada Ames").source_nodes
    assert (ids(found)[:3], len(found)) == (["p0", "p3", "p6"], 6)
    assert evidence_of(found[0])[0].kind == "query"

"""LlamaIndex's models as graphret's; ARK, GRASP and SPARK as its retrievers and
tools.
"""

from __future__ import annotations

import asyncio
import doctest
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import spark_parts
from ark_support import films, index_of
from chat_clients import llama_index_openai
from llama_index.core.agent.workflow import AgentStream, FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode
from llama_index.core.tools import FunctionTool
from llama_index.core.tools.calling import acall_tool, call_tool
from llama_support import INDEX, QUESTION, STORE, ids

from graphret.ark import Ark, ArkSettings, Toolbox
from graphret.ark.scripted import ScriptedExplorer
from graphret.grasp import PlanRetriever
from graphret.llm import ChatError, Message, Reply, Tool, ToolCall, Usage
from graphret.planning import PathPlanner
from graphret.search import BM25Index
from graphret.stores import LadybugStore, MemoryStore
from graphret.testing.openai_server import OpenAIServer, text, tool_calls
from llama_index_graphret import (
    ArkRetriever,
    GraspRetriever,
    LlamaIndexChat,
    SparkRetriever,
    ark_tools,
    as_llama_index_retriever,
    chat,
    evidence_of,
    retrieval_of,
)

STARRED = ["m0", "m1", "m2"]


@pytest.mark.parametrize(("k", "awaited"), [(1, False), (5, True)])
def test_what_agents_select_comes_first_and_k_is_the_total(
    k: int, awaited: bool
) -> None:
    settings = ArkSettings(
        early_stop=False
    )  # or the last of three that agree may not get to vote
    retriever = ArkRetriever(
        ScriptedExplorer(), STORE, INDEX, settings=settings, similarity_top_k=k
    )
    nodes = (
        asyncio.run(retriever.aretrieve(QUESTION))
        if awaited
        else retriever.retrieve(QUESTION)
    )
    core = Ark(ScriptedExplorer(), STORE, INDEX, settings=settings).retrieve(
        QUESTION, k
    )
    assert ids(nodes) == core.ids
    assert ids(nodes)[:3] == STARRED[:k]
    assert [scored.score for scored in nodes] == [hit.relevance for hit in core.hits]
    assert [evidence_of(scored) for scored in nodes] == [
        list(hit.evidence) for hit in core.hits
    ]
    assert evidence_of(nodes[0])[0].properties == {
        "votes": 3,
        "of": 3,
        "agents": [1, 2, 3],
    }


def test_the_temperature_is_the_model_s_own_unless_given() -> None:
    """Providers refuse others than theirs for models that reason."""
    heard: list[Any] = []

    def answer(messages: Any, **options: Any) -> Any:
        heard.append(options.get("temperature"))
        return ChatMessage(role="assistant", content="I give up.")

    llm = MockFunctionCallingLLM(response_generator=answer)
    settings = ArkSettings(n_agents=1, max_steps=1)
    for options in ({}, {"temperature": 0.3}):
        ArkRetriever(llm, STORE, INDEX, settings=settings, **options).retrieve("?")
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
    assert [tool.metadata.name for tool in tools()] == [
        "global_search",
        "explore_neighborhood",
    ]


@pytest.mark.parametrize("awaited", [False, True])
def test_they_answer_as_the_core_does(awaited: bool) -> None:
    search, explore = tools()
    for tool, arguments in (
        (search, {"query": "film", "k": 2}),
        (
            explore,
            {
                "node": "p1",
                "relation_types": ["starred_actors"],
                "query": "Big",
                "k": 1,
            },
        ),
    ):
        output = (
            asyncio.run(acall_tool(tool, arguments))
            if awaited
            else call_tool(tool, arguments)
        )
        assert (
            output.content
            == Toolbox(STORE, INDEX).run(tool.metadata.get_name(), arguments).text
        )
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
async def test_an_agent_with_llama_index_s_own_model_behind_http(
    streaming: bool,
) -> None:
    """LlamaIndex's package runs a call whose arguments it could not read with what it
    made of them, or with none.
    """
    script = [
        tool_calls(
            ("global_search", {"query": "Tom Hanks"}),
            ("explore_neighborhood", {"node": "nobody"}),
        ),
        tool_calls(
            *(
                ("explore_neighborhood", raw)
                for raw in ('{"node": ', '["p1"]', "{}{}", "5")
            )
        ),
        tool_calls(("explore_neighborhood", {"node": "p1"})),
        text("Big, Cast Away and Splash."),
    ]
    with OpenAIServer(script) as server:
        answer_text, results, streamed = await answer(
            llama_index_openai(server.base_url, retries=0), streaming
        )
        assert [bool(request.body.get("stream")) for request in server.requests] == [
            streaming
        ] * 4
        outputs = [
            message["content"]
            for message in server.requests[-1].messages
            if message["role"] == "tool"
        ]
    assert answer_text == "Big, Cast Away and Splash."
    assert streamed == (answer_text if streaming else "")
    assert sorted(outputs) == sorted(
        result.tool_output.content for result in results
    )  # each reply's come as they are done
    assert ["There is no node" in result for result in sorted(outputs[:2])] == [
        True,
        False,
    ]
    assert all("Field required" in result for result in outputs[2:6])
    assert '"m0"' in outputs[6]


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
    message = ChatMessage(text, role="assistant")
    return MockFunctionCallingLLM(response_generator=lambda messages, **_: message)


@pytest.mark.parametrize(
    "llm", [saying(json.dumps(BY_ADA)), None], ids=["by a model", "by none"]
)
def test_a_query_engine_answers_from_what_a_plan_finds(llm: Any) -> None:
    retriever = GraspRetriever(llm, PAPERS, PAPER_INDEX, similarity_top_k=4)
    nodes = (
        RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
        .query(ASKED)
        .source_nodes
    )
    assert (set(ids(nodes[:3])), len(nodes)) == ({"p0", "p3", "p6"}, 4)
    assert "path" in {evidence.kind for evidence in evidence_of(nodes[0])}


def test_the_first_stage_alone_and_a_second_opinion_of_llama_index() -> None:
    plan = as_llama_index_retriever(PlanRetriever(PathPlanner(PAPERS), PAPERS), k=3)
    assert set(ids(plan.retrieve(ASKED))) == {"p0", "p3", "p6"}
    search = as_llama_index_retriever(
        GraspRetriever(None, PAPERS, PAPER_INDEX).core.text, k=3
    )
    assert set(ids(GraspRetriever(None, PAPERS, search, k=4).retrieve(ASKED)[:3])) == {
        "p0",
        "p3",
        "p6",
    }


def test_a_query_engine_answers_from_what_a_query_finds(tmp_path: Path) -> None:
    query = (
        "MATCH (a:Author)-[:WROTE]->(p:Paper) WHERE a.name = 'Ada Ames' RETURN p ORDER"
        " BY p.year"
    )
    with LadybugStore(tmp_path / "papers.lbug") as store:
        store.upsert(spark_parts.NODES, spark_parts.EDGES)
        index = BM25Index.of_store(store)
        retriever = SparkRetriever(
            saying(spark_parts.plan(query)),
            store,
            index,
            similarity_top_k=6,
            expand="auto",
        )
        nodes = (
            RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
            .query("papers by Ada Ames")
            .source_nodes
        )
    assert (ids(nodes)[:3], len(nodes)) == (["p0", "p3", "p6"], 6)
    assert evidence_of(nodes[0])[0].kind == "query"


def test_a_query_engine_reads_a_number_that_a_query_returns(tmp_path: Path) -> None:
    query = "MATCH (p:Paper) RETURN max(p.year) AS latest, count(p) AS papers"
    with LadybugStore(tmp_path / "papers.lbug") as store:
        store.upsert(spark_parts.NODES, spark_parts.EDGES)
        retriever = SparkRetriever(
            saying(spark_parts.plan(query)), store, BM25Index.of_store(store), k=2
        )
        nodes = retriever.retrieve("How many papers are there?")
    row = nodes[0].node
    assert row.get_content(MetadataMode.LLM) == "latest: 2018; papers: 9"
    assert (row.metadata["latest"], row.metadata["papers"]) == (2018, 9)
    retrieval = retrieval_of(nodes)
    assert retrieval is not None
    assert retrieval.rows == [{"latest": 2018, "papers": 9}]


TOOL = Tool(
    "search",
    "Find nodes.",
    {"type": "object", "properties": {"query": {"type": "string"}}},
)
CALL = ToolCall("c1", "search", '{"query": "x"}')
FILMS = films()


def scripted(
    *replies: Any,
) -> tuple[LlamaIndexChat, list[list[ChatMessage]], list[dict[str, Any]]]:
    """A model that gives the replies in turn; the messages and options that it got."""
    conversations: list[list[ChatMessage]] = []
    options: list[dict[str, Any]] = []
    left = list(replies)

    def answer(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
        conversations.append(list(messages))
        options.append(kwargs)
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return (
            reply
            if isinstance(reply, ChatMessage)
            else ChatMessage(role="assistant", content=reply)
        )

    return (
        LlamaIndexChat(MockFunctionCallingLLM(response_generator=answer)),
        conversations,
        options,
    )


async def said(
    chat: LlamaIndexChat, awaited: bool, messages: Sequence[Message], **options: Any
) -> Reply:
    return (
        await chat.achat(messages, **options)
        if awaited
        else chat.chat(messages, **options)
    )


@pytest.mark.parametrize("awaited", [False, True])
async def test_a_conversation_goes_over_whole(awaited: bool) -> None:
    chat, conversations, options = scripted("done")
    broken = ToolCall("c2", "search", "{")
    messages = [
        Message.system("be brief"),
        Message.user("find x"),
        Message.assistant("looking", [CALL, broken]),
        Message.tool(CALL, "nothing"),
        Message.tool(broken, "no JSON"),
    ]
    reply = await said(chat, awaited, messages, max_tokens=7)
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("done", (), "stop")
    [got] = conversations
    assert [m.role.value for m in got] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
    ]
    assert got[2].blocks == [
        TextBlock(text="looking"),
        ToolCallBlock(
            tool_call_id="c1", tool_name="search", tool_kwargs='{"query": "x"}'
        ),
        ToolCallBlock(
            tool_call_id="c2", tool_name="search", tool_kwargs='{"malformed": "{"}'
        ),
    ]
    assert (got[3].content, got[3].additional_kwargs["tool_call_id"]) == (
        "nothing",
        "c1",
    )
    assert (options[0]["max_tokens"], "temperature" in options[0]) == (7, False)


@pytest.mark.parametrize(
    ("arguments", "awaited"), [({"query": "x"}, False), ('{"query": ', True)]
)
async def test_tools_are_offered_and_calls_come_back(
    arguments: Any, awaited: bool
) -> None:
    block = ToolCallBlock(tool_call_id="c9", tool_name="search", tool_kwargs=arguments)
    chat, _, options = scripted(ChatMessage(role="assistant", blocks=[block]))
    reply = await said(chat, awaited, [Message.user("find x")], tools=[TOOL])
    [call] = reply.tool_calls
    parsed = None if arguments == '{"query": ' else {"query": "x"}
    assert (call.id, call.name, call.parsed, reply.finish_reason) == (
        "c9",
        "search",
        parsed,
        "tool_calls",
    )
    [offered] = options[0]["tools"]
    function = {
        "name": "search",
        "description": "Find nodes.",
        "parameters": dict(TOOL.parameters),
    }
    assert offered.metadata.to_openai_tool()["function"] == function


class Spending(MockLLM):
    """Says what it spent and why it stopped, or never answers where it is awaited."""

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        spent = dict(zip(str(messages[0].content).split(), (3, 4), strict=True))
        raw = {"usage": spent, "choices": [{"finish_reason": "length"}]}
        return ChatResponse(message=ChatMessage(role="assistant", content="x"), raw=raw)

    async def achat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponse:
        await asyncio.Event().wait()
        raise AssertionError


def test_what_was_spent_and_why_it_stopped_are_read() -> None:
    for names in ("prompt_tokens completion_tokens", "input_tokens output_tokens"):
        reply = LlamaIndexChat(Spending()).chat([Message.user(names)])
        assert (reply.usage, reply.finish_reason) == (Usage(3, 4), "length")


@pytest.mark.parametrize("awaited", [False, True])
async def test_failures_are_chat_errors(awaited: bool) -> None:
    with pytest.raises(ChatError, match="away"):
        await said(scripted(ConnectionError("away"))[0], awaited, [Message.user("x")])
    with pytest.raises(ChatError, match="does not support tool calls"):
        await said(
            LlamaIndexChat(MockLLM()), awaited, [Message.user("x")], tools=[TOOL]
        )
    if awaited:
        with pytest.raises(ChatError, match="timeout"):
            await LlamaIndexChat(Spending()).achat([Message.user("x")], timeout=0.01)


# -- reasoning, handed back as it came

STEPS = (
    ("global_search", {"query": "Bob Bell"}),
    ("select", {"nodes": ["p1"]}),
    ("finish", {}),
)


def thinks(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
    """Refuse a conversation in which a turn of its own lost its signature, as
    Anthropic's models do.
    """
    turns = [
        message.blocks[0]
        for message in messages
        if message.role == MessageRole.ASSISTANT
    ]
    signed = [
        getattr(first, "additional_information", {}).get("signature") for first in turns
    ]
    if signed != [f"s{turn}" for turn in range(len(turns))]:
        raise ValueError(
            "400: a thinking block, with its signature, is expected before tool_use"
        )
    n, (name, arguments) = len(turns), STEPS[len(turns)]
    thought = ThinkingBlock(content="hm", additional_information={"signature": f"s{n}"})
    call = ToolCallBlock(tool_call_id=f"c{n}", tool_name=name, tool_kwargs=arguments)
    return ChatMessage(role="assistant", blocks=[thought, call])


def test_agents_of_thinking_models_come_to_their_ends() -> None:
    model = MockFunctionCallingLLM(response_generator=thinks)
    retriever = ArkRetriever(
        model, FILMS, index_of(FILMS), settings=ArkSettings(n_agents=1)
    )
    nodes = retriever.retrieve("films by Bob Bell")
    retrieval = retrieval_of(nodes)
    assert retrieval is not None
    assert nodes[0].node.node_id == "p1"
    assert retrieval.trace.stages[0].details["stopped"] == {"finished": 1}


def test_the_examples_of_docstrings_run() -> None:
    failed, tried = doctest.testmod(chat)
    assert (failed, tried > 0) == (0, True)

"""ARK's operations as tools of LlamaIndex agents, and graphret's chat models as LlamaIndex LLMs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from chat_clients import chat_model, llama_index_openai
from llama_index.core.agent.workflow import (
    AgentStream,
    AgentWorkflow,
    CodeActAgent,
    FunctionAgent,
    ReActAgent,
    ToolCallResult,
)
from llama_index.core.base.llms.types import (
    ChatMessage,
    CompletionResponse,
    ImageBlock,
    LLMMetadata,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool
from llama_index.core.tools.calling import acall_tool, call_tool

from graphret import BM25Index, MemoryStore
from graphret.ark import ArkSettings, Toolbox
from graphret.ark.scripted import ScriptedExplorer as Policy
from graphret.errors import InvalidInput, StoreUnavailable
from graphret.llm import Message, OpenAIChat, Reply, Tool, ToolCall, Usage
from graphret.testing.openai_server import OpenAIServer, text, tool_call, tool_calls
from graphret.types import Edge, Node
from llama_index_graphret import CoreLLM, LlamaIndexChat, ScriptedExplorer, ark_tools

QUESTION = "Which films did Tom Hanks star in?"
NODES = [
    Node("p1", ("person",), "Tom Hanks"),
    *(Node(f"m{i}", ("movie",), name, "A film.") for i, name in enumerate(("Big", "Cast Away", "Splash", "Heat"))),
]
EDGES = [Edge(f"m{i}", "starred_actors", "p1") for i in range(3)]
STORE = MemoryStore.of(NODES, EDGES)
INDEX = BM25Index.build(NODES)
NAMES = ["global_search", "explore_neighborhood"]


def tools(**options: Any) -> list[FunctionTool]:
    return ark_tools(STORE, INDEX, **options)


# -- the tools


def test_they_are_described_as_the_core_describes_them() -> None:
    described = [tool.metadata.to_openai_tool() for tool in tools()]
    assert described == [tool.to_dict() for tool in Toolbox(STORE, INDEX).tools[:2]]
    assert [tool.metadata.name for tool in tools()] == NAMES


class Reacts(CustomLLM):
    """Calls no tools: it writes what to do, after what it is told that it can."""

    prompts: list[str] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=False)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        if len(self.prompts) == 1:
            wanted = {"node": "p1", "relation_types": ["starred_actors"], "k": 1}
            return CompletionResponse(
                text=f"Thought: I look.\nAction: explore_neighborhood\nAction Input: {json.dumps(wanted)}"
            )
        return CompletionResponse(text="Thought: I can answer.\nAnswer: Big")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        raise NotImplementedError


async def test_a_react_agent_reads_their_schema_and_runs_them() -> None:
    llm = Reacts()
    answer = await ReActAgent(tools=tools(), llm=llm, streaming=False).run(QUESTION)
    assert str(answer) == "Big"
    assert '"relation_types"' in llm.prompts[0]
    assert "Show only neighbours by these relations" in llm.prompts[0]
    assert "Big" in answer.tool_calls[0].tool_output.content


class Codes(Reacts):
    """Writes Python that calls what it is told of."""

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        wanted = "explore_neighborhood('p1', k=1, node_types=None)"
        return CompletionResponse(text=f"<execute>{wanted}</execute>" if len(self.prompts) == 1 else "Big")


async def test_a_code_agent_reads_their_signatures_and_calls_them() -> None:
    llm, said = Codes(), []

    async def execute(code: str) -> Any:
        said.append(eval(code, {tool.real_fn.__name__: tool.real_fn for tool in tools()}))
        return said[-1]

    await CodeActAgent(tools=tools(), llm=llm, code_execute_fn=execute, streaming=False).run(QUESTION)
    assert "def explore_neighborhood(node: str, query: str | None = None, node_types: list" in llm.prompts[0]
    assert "Show the neighbours of one node" in llm.prompts[0]
    assert said == [Toolbox(STORE, INDEX).run("explore_neighborhood", {"node": "p1", "k": 1}).text]
    with pytest.raises(TypeError, match="too many positional"):
        tools()[0].real_fn("Big", 1, "Splash")


def test_their_models_take_what_their_schemas_take() -> None:
    explore = tools()[1].metadata.fn_schema
    assert explore is not None
    assert explore(node="p1", k=2).model_dump(exclude_unset=True) == {"node": "p1", "k": 2}
    for wrong in ({}, {"node": 1}, {"node": "p1", "node_types": "movie"}):
        with pytest.raises(ValueError, match="validation error"):
            explore(**wrong)


@pytest.mark.parametrize("awaited", [False, True])
def test_they_answer_as_the_core_does(awaited: bool) -> None:
    search, explore = tools()
    for tool, arguments in (
        (search, {"query": "Tom Hanks"}),
        (search, {"query": "film", "k": 2}),
        (explore, {"node": "p1"}),
        (
            explore,
            {"node": "p1", "relation_types": ["starred_actors"], "node_types": ["movie"], "query": "Big", "k": 1},
        ),
    ):
        output = asyncio.run(acall_tool(tool, arguments)) if awaited else call_tool(tool, arguments)
        assert output.content == Toolbox(STORE, INDEX).run(tool.metadata.get_name(), arguments).text
        assert not output.is_error


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [{"node": "Tom Hank"}, {"nodes": ["p1"]}, {}, {"node": "p1", "relation_types": ["acted"]}, {"node": 3.5}],
)
def test_what_makes_no_sense_is_answered_with_an_instruction(arguments: dict[str, Any], awaited: bool) -> None:
    _, explore = tools()
    output = asyncio.run(acall_tool(explore, arguments)) if awaited else call_tool(explore, arguments)
    assert json.loads(output.content)["error"]


def test_settings_and_views_hold() -> None:
    search, explore = tools(settings=ArkSettings(search_k=1), where={"name": {"$ne": "Big"}})
    assert json.loads(search(query="film").content.split("\n")[0])["found"] == 1
    assert "m0" not in explore(node="p1").content
    assert json.loads(explore(node="p1").content.split("\n")[0])["of"] == 2
    assert "There is no node" in explore(node="m0").content


# -- agents


async def answer(llm: Any, streaming: bool = True, **options: Any) -> tuple[str, list[ToolCallResult], str]:
    agent = FunctionAgent(tools=tools(), llm=llm, streaming=streaming, **options)
    handler, results, streamed = agent.run(QUESTION), [], ""
    async for event in handler.stream_events():
        if isinstance(event, ToolCallResult):
            results.append(event)
        if isinstance(event, AgentStream):
            streamed += event.delta
    return str(await handler), results, streamed


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("prompt", [None, "You find nodes."])
async def test_an_agent_explores_offline(streaming: bool, prompt: str | None) -> None:
    said, results, streamed = await answer(ScriptedExplorer(), streaming, system_prompt=prompt)
    assert {one.tool_name for one in results} == set(NAMES)
    assert not any(one.tool_output.is_error for one in results)
    for film in ("m0", "m1", "m2"):
        assert film in said
    assert "m3" not in said
    assert (streamed == said) is streaming


async def test_an_agent_that_may_call_one_tool_at_a_time_does() -> None:
    said, results, _ = await answer(ScriptedExplorer(), allow_parallel_tool_calls=False)
    assert all(film in said for film in ("m0", "m1", "m2"))
    assert results


@pytest.mark.parametrize("agent", [ReActAgent, CodeActAgent])
async def test_the_policy_says_at_once_that_it_reads_no_tools_in_a_prompt(agent: Any) -> None:
    async def execute(code: str) -> None:
        raise AssertionError("nothing is to be run")

    options = {"code_execute_fn": execute} if agent is CodeActAgent else {}
    with pytest.raises(InvalidInput, match="offered by function calling"):
        await agent(tools=tools(), llm=ScriptedExplorer(), **options).run(QUESTION)


def test_the_policy_puts_nothing_into_words() -> None:
    for ask in (ScriptedExplorer().complete, lambda asked: ScriptedExplorer().chat([ChatMessage(asked)])):
        with pytest.raises(InvalidInput, match="no language model"):
            ask(QUESTION)
    with pytest.raises(InvalidInput, match="no language model"):
        ScriptedExplorer().chat_with_tools([FunctionTool.from_defaults(tools)], user_msg=QUESTION)
    assert ScriptedExplorer().chat_with_tools(tools()[1:], user_msg=QUESTION)


async def test_several_agents_share_a_workflow() -> None:
    agents = [FunctionAgent(name="graph", description="Reads the graph.", tools=tools(), llm=ScriptedExplorer())]
    said = str(await AgentWorkflow(agents=agents, root_agent="graph").run(user_msg=QUESTION))
    assert all(film in said for film in ("m0", "m1", "m2"))


async def test_an_agent_with_a_model_behind_http() -> None:
    """LlamaIndex's agent, graphret's client of any OpenAI-compatible endpoint."""
    script = [
        tool_calls(("global_search", {"query": "Tom Hanks"}), ("explore_neighborhood", {"node": "nobody"})),
        tool_call("explore_neighborhood", '{"node": '),
        tool_call("explore_neighborhood", {"node": "p1"}),
        text("Big, Cast Away and Splash."),
    ]
    with OpenAIServer(script) as server:
        said, results, _ = await answer(CoreLLM(OpenAIChat("tiny", server.base_url, max_retries=0)))
        roles = [message["role"] for message in server.requests[-1].messages]
        assert {tool["function"]["name"] for tool in server.requests[0].body["tools"]} == set(NAMES)
    assert said == "Big, Cast Away and Splash."
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "tool"]
    outputs = [one.tool_output.content for one in results]
    assert any("There is no node" in one for one in outputs)
    assert any("malformed" in one for one in outputs)
    assert '"m0"' in outputs[-1]


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_agent_with_llama_index_s_own_model_behind_http(streaming: bool) -> None:
    """LlamaIndex's package runs a call whose arguments it could not read with what it made of them, or with none."""
    script = [
        tool_calls(("global_search", {"query": "Tom Hanks"}), ("explore_neighborhood", {"node": "nobody"})),
        tool_calls(*(("explore_neighborhood", raw) for raw in ('{"node": ', '["p1"]', "{}{}", "5"))),
        tool_call("explore_neighborhood", {"node": "p1"}),
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


async def test_a_graph_that_fails_is_told_to_the_agent_s_model() -> None:
    class Away(MemoryStore):
        def get(self, ids: Sequence[str]) -> list[Node | None]:
            raise StoreUnavailable("the database is away")

    store = MemoryStore.of(NODES, EDGES)
    store.__class__ = Away
    agent = FunctionAgent(tools=ark_tools(store, INDEX), llm=ScriptedExplorer())
    handler = agent.run(QUESTION)
    errors = [
        event.tool_output
        async for event in handler.stream_events()
        if isinstance(event, ToolCallResult) and event.tool_output.is_error
    ]
    assert errors
    assert all("the database is away" in one.content for one in errors)
    await handler


# -- graphret's chat models as LLMs

TOOL = Tool("search", "Find nodes.", {"type": "object", "properties": {"query": {"type": "string"}}})


class Told:
    """A chat model that remembers what it was told."""

    name = "told"

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.messages: list[Message] = []
        self.options: dict[str, Any] = {}

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        self.messages, self.options = list(messages), options
        return self.replies.pop(0)

    async def achat(self, messages: Sequence[Message], **options: Any) -> Reply:
        return self.chat(messages, **options)


WAYS = ["chat", "achat", "stream_chat", "astream_chat"]


def ask(llm: CoreLLM, way: str, messages: list[ChatMessage], **options: Any) -> ChatMessage:
    async def awaited() -> ChatMessage:
        if way == "achat":
            return (await llm.achat(messages, **options)).message
        pieces = [piece async for piece in await llm.astream_chat(messages, **options)]
        assert "".join(piece.delta or "" for piece in pieces) == (pieces[-1].message.content or "")
        return pieces[-1].message

    if way.startswith("a"):
        return asyncio.run(awaited())
    if way == "stream_chat":
        return list(llm.stream_chat(messages, **options))[-1].message
    return llm.chat(messages, **options).message


@pytest.mark.parametrize("way", WAYS)
def test_a_conversation_goes_over_whole_and_the_reply_comes_back(way: str) -> None:
    call = ToolCall("c2", "search", '{"query": "y"}')
    model = Told(Reply("looking", (call,), Usage(3, 4)))
    block = ToolCallBlock(tool_call_id="c1", tool_name="search", tool_kwargs={"query": "x"})
    messages = [
        ChatMessage("be brief", role="system"),
        ChatMessage("find x", role="user"),
        ChatMessage(role="assistant", blocks=[TextBlock(text="well"), block]),
        ChatMessage("nothing", role="tool", additional_kwargs={"tool_call_id": "c1"}),
    ]
    said = ask(CoreLLM(model), way, messages, temperature=0.5, max_tokens=7, tool_choice="search")
    assert model.messages == [
        Message.system("be brief"),
        Message.user("find x"),
        Message.assistant("well", [ToolCall("c1", "search", '{"query": "x"}')]),
        Message("tool", "nothing", tool_call_id="c1", name="search"),
    ]
    assert model.options == {"tools": None, "temperature": 0.5, "max_tokens": 7}
    assert (said.role, said.content) == (MessageRole.ASSISTANT, "looking")
    assert [one.tool_kwargs for one in said.blocks if isinstance(one, ToolCallBlock)] == ['{"query": "y"}']


@pytest.mark.parametrize("way", ["complete", "acomplete", "stream_complete", "astream_complete"])
def test_it_completes_prompts(way: str) -> None:
    model = Told(Reply("hello"))
    llm = CoreLLM(model)

    async def awaited() -> str:
        if way == "acomplete":
            return (await llm.acomplete("hi")).text
        return "".join([piece.delta or "" async for piece in await llm.astream_complete("hi")])

    if way.startswith("a"):
        said = asyncio.run(awaited())
    elif way == "complete":
        said = llm.complete("hi").text
    else:
        said = "".join(piece.delta or "" for piece in llm.stream_complete("hi"))
    assert said == "hello"
    assert model.messages == [Message.user("hi")]


def test_tools_are_offered_and_calls_come_back() -> None:
    calls = [ToolCall("a", "search", '{"query": "x"}'), ToolCall("b", "search", '{"query": ')]
    model = Told(Reply("", tuple(calls)), Reply("", tuple(calls)), Reply("no"))
    llm = CoreLLM(model)
    offered = tools()[:1]
    response = llm.chat_with_tools(offered, user_msg="find x", allow_parallel_tool_calls=True)
    assert model.options["tools"] == [Toolbox(STORE, INDEX).tools[0]]
    selected = llm.get_tool_calls_from_response(response)
    assert [(one.tool_id, one.tool_kwargs) for one in selected] == [
        ("a", {"query": "x"}),
        ("b", {"malformed": '{"query": '}),
    ]
    one = llm.chat_with_tools(offered, user_msg="find x")
    assert len(llm.get_tool_calls_from_response(one)) == 1
    none = llm.chat_with_tools(offered, user_msg="find x")
    assert llm.get_tool_calls_from_response(none, error_on_no_tool_call=False) == []
    with pytest.raises(ValueError, match="called no tool"):
        llm.get_tool_calls_from_response(none)


def test_what_it_cannot_read_is_refused() -> None:
    with pytest.raises(InvalidInput, match="image"):
        CoreLLM(Told()).chat([ChatMessage(role="user", blocks=[ImageBlock(url="http://localhost/x.png")])])
    with pytest.raises(InvalidInput, match="ChatModel"):
        CoreLLM("gpt")  # type: ignore[arg-type]


def test_adapters_both_ways_cancel_out() -> None:
    policy = LlamaIndexChat(ScriptedExplorer())
    direct, messages = Policy(), [Message.user(QUESTION)]
    offered = Toolbox(STORE, INDEX).tools
    for _ in range(3):
        reply = policy.chat(messages, tools=offered)
        expected = direct.chat(messages, tools=offered)
        assert reply == expected
        messages += [
            expected.message,
            *(
                Message.tool(call, Toolbox(STORE, INDEX).run(call.name, call.parsed or {}).text)
                for call in expected.tool_calls
            ),
        ]


@pytest.mark.parametrize("client", ["openai", "langchain"])
def test_any_chat_model_is_an_llm(client: str) -> None:
    with OpenAIServer(default="hello") as server:
        assert CoreLLM(chat_model(client, server.base_url)).complete("hi").text == "hello"


def test_a_mock_is_one_as_well() -> None:
    assert CoreLLM(LlamaIndexChat(MockFunctionCallingLLM())).complete("hi").text == "hi"

"""``graphret mcp`` as its clients meet it: the SDK's own, LangChain's and LlamaIndex's,
over stdio and HTTP.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from itertools import chain
from pathlib import Path
from signal import SIGINT
from threading import Event
from typing import Any
from urllib.parse import quote

import anyio
import httpx
import pytest
from ark_support import films, index_of
from chat_clients import langchain_openai, llama_index_openai
from cli_helpers import graphret, refused
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import CallToolResult, TextContent, TextResourceContents
from pydantic import AnyUrl
from spark_parts import EDGES, NODES, plan

from graphret import Document, SageGraph
from graphret.ark import Toolbox
from graphret.graphs import import_graph
from graphret.graphs.example import KB
from graphret.methods import MethodOptions, OpenGraph, opened_graph
from graphret.search import BM25Index
from graphret.serve.mcp_server import GraphTools, make_server
from graphret.stores import LadybugStore
from graphret.testing.openai_server import Behaviour, OpenAIServer, Request, tool_calls

TEN_MB = "word " * 2_000_000
FILMS = OpenGraph(films(), index_of(films()))


@pytest.fixture(scope="module")
def movies(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = str(tmp_path_factory.mktemp("graphs") / "movies")
    import_graph(KB, out)
    return out


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "graphret.cli", "mcp", *arguments]


@contextmanager
def over_http(graph: str) -> Iterator[str]:
    with subprocess.Popen(
        command("--graph", graph, "--transport", "http", "--port", "0"),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "serving at" in line)
        yield line.split()[-1]
        process.terminate()


@pytest.fixture(scope="module")
def url(movies: str) -> Iterator[str]:
    with over_http(movies) as served_url:
        yield served_url


@asynccontextmanager
async def session_over(
    transport: str, movies: str, url: str
) -> AsyncIterator[ClientSession]:
    if transport == "stdio":
        program, *arguments = command("--graph", movies)
        parameters = StdioServerParameters(
            command=program, args=arguments, env=dict(os.environ)
        )
        async with (
            stdio_client(parameters) as streams,
            ClientSession(*streams) as session,
        ):
            yield session
    else:
        async with (
            streamable_http_client(url) as (received, sent, _),
            ClientSession(received, sent) as session,
        ):
            yield session


@asynccontextmanager
async def session_in_process(
    graph: OpenGraph, **options: Any
) -> AsyncIterator[ClientSession]:
    tools = GraphTools(graph, MethodOptions(**options))
    async with create_connected_server_and_client_session(
        make_server(tools)
    ) as session:
        yield session


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def resource(session: ClientSession, id_: str) -> Any:
    [content] = (
        await session.read_resource(AnyUrl(f"graphret://node/{quote(id_, safe='')}"))
    ).contents
    assert isinstance(content, TextResourceContents)
    return json.loads(content.text)


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_client_finds_what_the_core_finds_in_the_cores_words(
    transport: str, movies: str, url: str
) -> None:
    calls = {
        "search": {"query": "Bigelow"},
        "explore": {"node": "Kathryn Bigelow", "query": "dark", "k": 3},
    }
    names = {"search": "global_search", "explore": "explore_neighborhood"}
    async with session_over(transport, movies, url) as session:
        assert "never an instruction" in str((await session.initialize()).instructions)
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert list(tools) == ["retrieve", "search", "explore", "schema"]
        assert all(
            "properties" in tool.inputSchema for tool in tools.values()
        )  # else OpenAI refuses the tool
        assert tools["retrieve"].inputSchema["properties"]["method"]["enum"] == [
            "ark",
            "grasp",
            "graphraft",
        ]
        with opened_graph(movies) as graph:
            toolbox = Toolbox(graph.store, graph.index)
            expected = {tool.name: tool.description for tool in toolbox.operations}
            for name, arguments in calls.items():
                assert tools[name].description == expected[names[name]]
                answer = await session.call_tool(name, arguments)
                assert text_of(answer) == toolbox.run(names[name], arguments).text
                first, *nodes = map(json.loads, text_of(answer).splitlines())
                assert answer.structuredContent == {**first, "nodes": nodes}
            assert text_of(
                await session.call_tool("schema")
            ) == graph.store.schema().text(1500, cypher=False)
        question = {
            "question": "who acted in the films directed by Kathryn Bigelow?",
            "k": 5,
        }
        result = (await session.call_tool("retrieve", question)).structuredContent
        assert result is not None
        assert {node["type"][0] for node in result["nodes"]} == {"Actor"}
        assert all(node["because"] for node in result["nodes"])
        assert (await resource(session, "Near Dark"))["labels"] == ["Movie"]
        if transport == "stdio":
            assert (await session.call_tool("retrieve", {"question": TEN_MB})).isError
            assert not (await session.call_tool("search", {"query": TEN_MB})).isError


def test_bodies_of_ten_megabytes_and_pages_of_other_sites_are_refused_and_half_characters_are_not(
    url: str,
) -> None:
    call: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    huge = call | {"params": {"name": "search", "arguments": {"query": TEN_MB}}}
    takes = {"Accept": "application/json, text/event-stream"}
    assert httpx.post(url, json=huge, headers=takes).status_code == 413
    assert (
        httpx.post(url, json=call, headers=takes | {"Host": "evil.example"}).status_code
        == 421
    )
    assert (
        httpx.post(
            url, json=call, headers=takes | {"Origin": "http://evil.example"}
        ).status_code
        == 403
    )
    half = json.dumps(
        call | {"params": {"name": "search", "arguments": {"query": "Bigelow \ud800"}}}
    )
    answer = httpx.post(
        url, content=half, headers=takes | {"Content-Type": "application/json"}
    )
    assert (
        answer.json()["result"]["structuredContent"]["nodes"][0]["id"]
        == "Kathryn Bigelow"
    )


@pytest.mark.parametrize("interrupted", [False, True])
def test_stdout_has_the_protocol_alone_whatever_comes_until_it_is_to_end(
    movies: str, interrupted: bool
) -> None:
    noisy = (
        "import os; from graphret.ark import Toolbox; from graphret.cli import main;"
        " run = Toolbox.run\nToolbox.run = lambda *given: (print('noise'), os.write(1,"
        " b'noise'), run(*given))[-1]\nmain()"
    )
    about = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "0"},
    }
    messages: list[Any] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": "é"}},
        },
    ]
    with subprocess.Popen(
        [sys.executable, "-c", noisy, "mcp", "--graph", movies],
        **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE),  # type: ignore[call-overload]
        text=True,
    ) as process:
        lines = ["no JSON", *map(json.dumps, messages)]
        process.stdin.write("\n".join(lines) + "\n")
        process.stdin.flush()
        said: list[Any] = []
        while not said or said[-1].get("id") != 2:
            said.append(json.loads(process.stdout.readline()))
        if interrupted:
            process.send_signal(SIGINT)
            process.wait(20)
        output, errors = process.communicate(timeout=20)  # which closes its stdin
    assert (process.returncode, output) == (130 if interrupted else 0, "")
    assert [message["id"] for message in said if "id" in message] == [1, 2]
    assert errors.count("noise") == 2


BAD: dict[str, tuple[str, Any, str]] = {
    "k": ("retrieve", {"question": "who", "k": 10**9}, "less than or equal to 100"),
    "no question": ("retrieve", {}, '"question" Field required'),
    "an empty one": ("retrieve", {"question": " "}, "empty"),
    "a long one": ("retrieve", {"question": TEN_MB}, "at most 10000 characters"),
    "method": (
        "retrieve",
        {"question": "who", "method": "magic"},
        "There are ark, grasp, graphraft",
    ),
    "sage": (
        "retrieve",
        {"question": "who", "method": "sage"},
        "There are ark, grasp, graphraft",
    ),
    "spark": (
        "retrieve",
        {"question": "who", "method": "spark"},
        "There are ark, grasp, graphraft",
    ),
    "a long method": (
        "retrieve",
        {"question": "who", "method": TEN_MB},
        "There are ark, grasp, graphraft",
    ),
    "no such argument": (
        "search",
        {"query": "red", "limit": 3},
        "The tool takes query, node_types, where, k",
    ),
    "no query": ("search", {"query": ""}, "needs a query"),
    "no such node": ("explore", {"node": "Bob"}, 'Closest: "p1"'),
    "a long node": ("explore", {"node": TEN_MB}, "There is no node"),
    "no such type": (
        "explore",
        {"node": "p1", "node_types": ["film"]},
        'There is no node type "film"',
    ),
    "no such tool": (
        "drop_everything",
        {},
        "There are retrieve, search, explore and schema",
    ),
}


async def test_what_cannot_be_run_is_answered_with_what_to_do_instead() -> None:
    async with session_in_process(FILMS) as session:
        for what, (tool, arguments, error) in BAD.items():
            answer = await session.call_tool(tool, arguments)
            assert answer.isError, what
            assert error in json.loads(text_of(answer))["error"], what
            assert len(text_of(answer)) < 2_000, what
        many = (
            await session.call_tool("search", {"query": "film number", "k": 10**9})
        ).structuredContent
        assert many is not None
        assert many["found"] == len(many["nodes"]) == 6
        for uri in (
            "graphret://node/",
            "graphret://node/nobody",
            "graphret://else",
            "file:///etc/passwd",
        ):
            with pytest.raises(McpError, match="There is no resource"):
                await session.read_resource(AnyUrl(uri))


async def test_a_store_that_fails_is_told_without_its_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LadybugStore(tmp_path / "g.lbug")
    store.upsert(NODES, EDGES)
    graph = OpenGraph(store, BM25Index.of_store(store))
    async with session_in_process(graph) as session:
        store.close()
        for tool, arguments in (
            ("explore", {"node": "p1"}),
            ("search", {"query": "graph"}),
            ("schema", {}),
        ):
            answer = await session.call_tool(tool, arguments)
            assert answer.isError
            assert json.loads(text_of(answer)) == {
                "error": "The graph could not be read. Try again later."
            }
        with pytest.raises(McpError, match="could not be read"):
            await resource(session, "p1")
    assert caplog.text.count("a call failed") == 4


async def test_a_graph_in_a_database_is_served_and_a_model_plans_for_it(
    database: Any,
) -> None:
    database.upsert(NODES, EDGES)
    query = "MATCH (a:Author {name: 'Ada Ames'})-[:WROTE]->(p:Paper) RETURN p"
    graph = OpenGraph(database, BM25Index.of_store(database))
    with OpenAIServer([plan(query)]) as model:
        async with session_in_process(
            graph, model="m", base_url=model.base_url
        ) as session:
            explored = (
                await session.call_tool(
                    "explore", {"node": "p1", "relation_types": ["CITES"]}
                )
            ).structuredContent
            assert explored is not None
            assert [node["id"] for node in explored["nodes"]] == ["p0"]
            question = {"question": "papers by Ada Ames", "k": 3, "method": "spark"}
            result = (await session.call_tool("retrieve", question)).structuredContent
            assert result is not None
            assert {node["id"] for node in result["nodes"]} <= {"p0", "p3", "p6"}
            assert "note" not in result
            again = (
                await session.call_tool("retrieve", question)
            ).structuredContent  # the model fails
            assert again is not None
            assert again["note"] == "spark fell back to a plainer search"
            assert (await resource(session, "p1"))["properties"]["year"] == 2011


async def test_a_model_that_thinks_keeps_nobody_waiting() -> None:
    was_asked, go_on = Event(), Event()

    def think(request: Request) -> Behaviour:
        was_asked.set()
        assert go_on.wait(30)
        return tool_calls(("finish", {}))

    with OpenAIServer(think) as model:
        async with (
            session_in_process(FILMS, model="m", base_url=model.base_url) as session,
            anyio.create_task_group() as group,
        ):
            group.start_soon(
                session.call_tool, "retrieve", {"question": "films by Bob Bell"}
            )
            await anyio.to_thread.run_sync(was_asked.wait)
            assert not (await session.call_tool("search", {"query": "red"})).isError
            go_on.set()


# -- tenants

PLANS = [
    Document(
        "Acme plans a stadium in Split. Boris Magaš draws it.",
        id="a",
        title="Plan A",
        metadata={"tenant": "acme"},
    ),
    Document(
        "Globex buys Hajduk in Split, says Zorro.",
        id="g",
        title="Secret G",
        metadata={"tenant": "globex"},
    ),
    Document(
        "Globex hires Boris Magaš for Zorro.",
        id="h",
        title="Secret H",
        metadata={"tenant": "globex"},
    ),
]
HIDDEN = ("globex", "secret", "hajduk", "zorro")


@pytest.fixture(params=["documents", "database"])
def tenants(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenGraph]:
    graph = SageGraph.build(PLANS, encoder=None)
    if request.param == "documents":
        yield OpenGraph(graph.store, graph.index, graph)
        return
    with closing(LadybugStore(tmp_path / "g.lbug")) as store:
        store.upsert(
            *(
                list(chain.from_iterable(part))
                for part in (graph.store.nodes(), graph.store.edges())
            )
        )
        yield OpenGraph(store, BM25Index.of_store(store))


async def everything(
    session: ClientSession, words: Sequence[str], ids: Sequence[str]
) -> AsyncIterator[str]:
    """All that a client comes to see, whatever it asks for."""
    yield str((await session.initialize()).model_dump())
    tools = (await session.list_tools()).tools
    yield str(tools)
    yield text_of(await session.call_tool("schema"))
    methods = tools[0].inputSchema["properties"]["method"]["enum"]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search", {"query": word, "k": 100}) for word in words
    ]
    calls += [
        ("retrieve", {"question": word, "k": 100, "method": method})
        for word in words
        for method in methods
    ]
    calls += [
        ("explore", {"node": id_, "query": word, "node_types": ["x"]})
        for id_ in ids
        for word in words
    ]
    calls += [("explore", {"node": id_, "k": 100}) for id_ in ids]
    for tool, arguments in calls:
        answer = await session.call_tool(tool, arguments)
        text = str(answer.model_dump())
        for argument in filter(None, map(str, arguments.values())):
            text = text.replace(argument, "")  # what was asked is said back
        yield text
    for id_ in ids:
        try:
            yield str(await resource(session, id_))
        except McpError as error:
            yield str(error).replace(quote(id_, safe=""), "")


@pytest.mark.parametrize("where", [{"tenant": "acme"}, {"tenant": "nobody"}], ids=str)
async def test_a_tenants_server_shows_nothing_of_others(
    tenants: OpenGraph, where: Any
) -> None:
    words = ["Split Boris Magaš", "hajduk zorro", "globex", "secret"]
    ids = ["a#0", "g#0", "h#0"]
    served = (
        ["sage", "ark", "grasp", "graphraft"] if tenants.documents else ["ark"]
    )  # others write queries
    async with session_in_process(tenants.view(where)) as session:
        method_schema = (
            (await session.list_tools()).tools[0].inputSchema["properties"]["method"]
        )
        assert method_schema["enum"] == served
        texts = [text async for text in everything(session, words, ids)]
    assert not {
        (word, text) for text in texts for word in HIDDEN if word in text.lower()
    }
    assert any("Plan A" in text for text in texts) == (where["tenant"] == "acme")
    async with session_in_process(
        tenants
    ) as session:  # all of that is there to be seen
        everything_shown = "".join(
            [text async for text in everything(session, words, ids)]
        ).lower()
    assert not {word for word in HIDDEN if word not in everything_shown}


# -- frameworks

SCRIPT = [
    tool_calls(("search", {"query": "Kathryn Bigelow"})),
    tool_calls(("explore", {"node": "Katherine Bigelow"})),
    tool_calls(("explore", {"node": "Kathryn Bigelow", "query": "dark", "k": 1})),
    Behaviour("Near Dark"),
]


async def langgraph_agent(url: str, base_url: str) -> tuple[str, list[str]]:
    tools = await MultiServerMCPClient(
        {"graph": {"transport": "streamable_http", "url": url}}
    ).get_tools()
    model = langchain_openai(base_url).bind_tools(tools)
    builder = StateGraph(MessagesState)
    builder.add_node(
        "model", lambda state: {"messages": [model.invoke(state["messages"])]}
    )
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    done = await builder.compile().ainvoke(
        {"messages": [("user", "a dark film by Kathryn Bigelow?")]}
    )
    return done["messages"][-1].text, [
        str(message.content) for message in done["messages"] if message.type == "tool"
    ]


async def llama_index_agent(url: str, base_url: str) -> tuple[str, list[str]]:
    tools = await McpToolSpec(BasicMCPClient(url)).to_tool_list_async()
    agent = FunctionAgent(
        tools=tools, llm=llama_index_openai(base_url), streaming=False
    )  # type: ignore[arg-type]
    running = agent.run("a dark film by Kathryn Bigelow?")
    texts = [
        event.tool_output.content
        async for event in running.stream_events()
        if isinstance(event, ToolCallResult)
    ]
    return str(await running), texts


@pytest.mark.parametrize("agent", [langgraph_agent, llama_index_agent])
async def test_an_agent_of_a_framework_explores(
    agent: Callable[..., Any], url: str
) -> None:
    with OpenAIServer(SCRIPT) as model:
        answer, texts = await agent(url, model.base_url)
        offered = [tool["function"] for tool in model.requests[0].body["tools"]]
    assert answer == "Near Dark"
    assert [one["name"] for one in offered] == [
        "retrieve",
        "search",
        "explore",
        "schema",
    ]
    assert all(one["description"] for one in offered)
    assert len(texts) == 3
    assert "There is no node" in texts[1]
    assert "Near Dark" in texts[2]


# -- the command


def test_a_wrong_command_is_one_line(movies: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server_socket:
        port = server_socket.getsockname()[1]
        assert f"port {port}" in refused(
            2, "mcp", "--graph", movies, "--transport", "http", "--port", port
        )
    assert "--model" in refused(
        2, "mcp", "--graph", movies, "--base-url", "http://localhost/v1"
    )
    assert "--where" in refused(2, "mcp", "--graph", movies, "--where", "{tenant")
    assert "tenant" in refused(
        2, "mcp", "--graph", movies, "--where", '{"tenant": {"$like": 1}}'
    )
    refused(3, "mcp", "--graph", tmp_path / "nothing")
    assert "Model Context Protocol" in graphret("mcp", "--help").out

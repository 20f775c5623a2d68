"""Calls of tools as real models and servers write them: run where their meaning is
clear, else an error that the model is told.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from ark_support import films, index_of
from chat_clients import chat_model

from graphret.ark import Ark, ArkRun, ArkSettings, Toolbox
from graphret.llm import ChatError, Message, Tool
from graphret.stores import MemoryStore
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    Request,
    body,
    status,
    text,
)
from graphret.types import Node

STORE = films()
INDEX = index_of(STORE)
SEARCH = {"name": "global_search", "arguments": '{"query": "Bob Bell"}'}
EXPLORE: dict[str, Any] = {"name": "explore_neighborhood"}
SELECT: dict[str, Any] = {"name": "select"}
FINISH = {"name": "finish", "arguments": "{}"}


def calls(*written: Any) -> Behaviour:
    """A reply with tool calls as they are written, of which a dict with a name is the
    function.
    """
    tool_calls = [
        {"id": f"c{i}", "type": "function", "function": written_call}
        if isinstance(written_call, dict) and "name" in written_call
        else written_call
        for i, written_call in enumerate(written)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": tool_calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    about = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
    return body(json.dumps({**about, "choices": [choice]}))


def told(request: Request) -> list[str]:
    """What the tools answered to the last reply."""
    return [
        message["content"] for message in request.messages if message["role"] == "tool"
    ]


def run(
    *turns: Behaviour, client: str = "openai", **options: Any
) -> tuple[list[str], ArkRun, OpenAIServer]:
    """Let an agent answer by these replies; its ids, its run and what was asked."""
    runs = list[ArkRun]()
    with OpenAIServer(list(turns)) as server:
        ark = Ark(
            chat_model(client, server.base_url, retries=0),
            STORE,
            INDEX,
            settings=ArkSettings(n_agents=1, max_steps=6),
            fill=False,
            on_run=runs.append,
            **options,
        )
        ids = ark.retrieve("films by Bob Bell", 4).ids
    return ids, runs[0], server


@pytest.mark.parametrize(
    "name",
    [
        "global_search<|channel|>commentary",
        "functions.global_search",
        "functions.global_search:0",
        "default_api.global_search",
        "tools/global_search",
        "Global-Search",
        "globalSearch",
        "GLOBAL_SEARCH",
        "global_search()",
        "`global_search`",
        "global search",
        "<function=global_search>",
    ],
)
def test_a_tool_is_known_by_a_name_that_is_nearly_its_own(name: str) -> None:
    first = calls({**SEARCH, "name": name})
    choose = calls({**SELECT, "arguments": '{"nodes": ["p1"]}'})
    ids, ark_run, server = run(first, choose, calls(FINISH))
    assert ids == ["p1"]
    assert not any(
        call.failed for step in ark_run.sessions[0].steps for call in step.calls
    )
    [tool_call] = server.requests[1].messages[2]["tool_calls"]
    assert tool_call["function"]["name"] == "global_search"


@pytest.mark.parametrize("name", ["web_search", "unselect", "select_finish", "", None])
def test_another_tool_is_none(name: str | None) -> None:
    _, _, server = run(calls({**SELECT, "name": name, "arguments": "{}"}))
    [answer] = told(server.requests[1])
    assert "There is no tool" in answer


@pytest.mark.parametrize(
    "listed",
    [
        ["{}", "{}"],
        '["{}", "{}"]',
        "['{}', '{}']",
        "{}, {}",
        "{},{}",
        "[{}, {}]",
        ["{}, {}"],
        '"{}", "{}"',
    ],
)
@pytest.mark.parametrize("in_json", [False, True])
def test_lists_are_read_as_they_are_written(listed: Any, in_json: bool) -> None:
    def written(first: str, second: str) -> Any:
        names = json.dumps(listed).replace("{}", first, 1).replace("{}", second, 1)
        return json.loads(names)

    explore = {
        "node": "p1",
        "node_types": written("movie", "genre"),
        "relation_types": written("<-[directed_by]-", "has_genre"),
    }
    arguments = [
        json.dumps(value) for value in (explore, {"nodes": written("f4", "f1")})
    ]
    if in_json:
        arguments = [json.dumps(value) for value in arguments]
    ids, ark_run, _ = run(
        calls({**EXPLORE, "arguments": arguments[0]}),
        calls({**SELECT, "arguments": arguments[1]}),
        calls(FINISH),
    )
    explored = ark_run.sessions[0].steps[0].calls[0]
    assert (explored.failed, sorted(explored.nodes)) == (False, ["f1", "f4"])
    assert ids == ["f4", "f1"]


def test_a_name_with_a_comma_is_one_name() -> None:
    store = MemoryStore.of([Node("Paris, Texas", ("film, long",), "Paris, Texas")])
    box = Toolbox(store, index_of(store))
    observation = box.run(
        "explore_neighborhood", {"node": "Paris, Texas", "node_types": "film, long"}
    )
    assert not observation.failed


@pytest.mark.parametrize(
    "arguments",
    [
        '{"query": "Bob Bell",}',
        "{'query': 'Bob Bell'}",
        '{"query": "Bob Bell"}<|im_end|>',
        '```json\n{"query": "Bob Bell"}\n```',
        '{"query": "Bob Bell"}{"query": "Bob Bell"}',
        {"query": "Bob Bell"},
    ],
)
def test_arguments_are_read_as_they_are_written(arguments: Any) -> None:
    _, ark_run, server = run(calls({**SEARCH, "arguments": arguments}))
    assert ark_run.sessions[0].steps[0].calls[0].nodes == ["p1"]
    [sent] = server.requests[1].messages[2]["tool_calls"]
    assert json.loads(sent["function"]["arguments"]) == {"query": "Bob Bell"}


ODD: dict[str, Any] = {
    "function: null": {"id": "c0", "type": "function", "function": None},
    "no function": {"id": "c0", "type": "function"},
    "no name": {"id": "c0", "type": "function", "function": {"arguments": "{}"}},
    "of its own kind": {"id": "c0", "type": "web_search_call", "status": "done"},
    "a custom tool": {
        "id": "c0",
        "type": "custom",
        "custom": {"name": "shell", "input": "ls"},
    },
    "a text": "global_search",
    "null": None,
    "no id": {"type": "function", "function": {"name": "nothing", "arguments": None}},
    "a number for an id": {"id": 7, "function": {"name": 5, "arguments": [1]}},
}


@pytest.mark.parametrize("kind", ODD)
def test_a_call_that_lacks_its_parts_is_told_to_the_model(kind: str) -> None:
    _, ark_run, server = run(calls(ODD[kind]), calls(SEARCH))
    [answer] = told(server.requests[1])
    assert '"error"' in answer
    assert ark_run.sessions[0].steps[1].calls[0].nodes == ["p1"]


@pytest.mark.parametrize("client", ["openai", "langchain", "llama_index"])
@pytest.mark.parametrize("kind", ["function: null", "no name", "no function"])
def test_a_client_reads_it_or_says_that_it_cannot(client: str, kind: str) -> None:
    with OpenAIServer(default=calls(ODD[kind])) as server:
        model = chat_model(client, server.base_url, retries=0)
        try:
            reply = model.chat(
                [Message.user("films")], tools=[Tool("global_search", "Search.")]
            )
            problem = ""
        except ChatError as error:
            problem = str(error)
    if client == "openai" or kind == "no name":
        assert [call.name for call in reply.tool_calls] == [""]
    else:
        assert "invalid_reply: the reply lacks what its client reads" in problem


def test_a_model_without_tools_may_write_its_calls_in_any_format() -> None:
    written = [
        [{"name": "global_search", "arguments": {"query": "Bob Bell"}}],
        {"tool": "functions.select", "parameters": {"nodes": "p1"}},
        {"calls": [{"function": {"name": "finish", "arguments": "{}"}}]},
    ]
    replies = [
        f"<think>{{}}</think><tool_call>{json.dumps(written_call)}"
        for written_call in written
    ]
    refuses = status(400, "this model does not support tools")
    ids, ark_run, _ = run(refuses, *map(text, replies))
    assert ids == ["p1"]
    assert ark_run.sessions[0].stop == "finished"

"""The contract of chat models, the real `openai` client against a server that
misbehaves, and JSON out of answers.
"""

from __future__ import annotations

import asyncio
import gc
import warnings
from dataclasses import dataclass, field

import httpx
import openai
import pytest
from pydantic import BaseModel, TypeAdapter

from graphret.errors import InvalidInput, ModelError
from graphret.llm import (
    ChatError,
    ChatModel,
    Message,
    OpenAIChat,
    Reply,
    Tool,
    ToolCall,
    Usage,
    aask_json,
    ask_json,
)
from graphret.llm.errors import as_chat_error
from graphret.llm.structured import parse_json
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    body,
    cut,
    json_text,
    slow,
    status,
    text,
    tool_calls,
)

HELLO = [Message.user("hello there")]
SEARCH = Tool(
    "search",
    "Find nodes.",
    {"type": "object", "properties": {"query": {"type": "string"}}},
)
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "default": ""}}}


def chat(server: OpenAIServer, **options) -> OpenAIChat:
    return OpenAIChat(
        "tiny", server.base_url, **{"max_retries": 1, "timeout": 5, **options}
    )


def test_reply_and_request() -> None:
    with OpenAIServer(default="hi") as server:
        reply = chat(server, parameters={"seed": 7}).chat(
            [Message.system("Be brief."), *HELLO],
            tools=[SEARCH],
            max_tokens=9,
            temperature=0.5,
        )
        chat(server).chat(HELLO)
        chat(server, temperature=None).chat(HELLO)
    assert (reply.text, reply.usage, reply.finish_reason, reply.model) == (
        "hi",
        Usage(4, 1),
        "stop",
        "scripted",
    )
    sent, plain, untold = (request.body for request in server.requests)
    assert (
        sent.items()
        >= {
            "model": "tiny",
            "max_tokens": 9,
            "temperature": 0.5,
            "seed": 7,
        }.items()
    )
    assert sent["tools"] == [SEARCH.to_dict()]
    assert server.requests[0].headers["authorization"] == "Bearer none"
    assert "response_format" not in plain
    assert plain["temperature"] == 0
    assert "temperature" not in untold


def test_one_object_serves_several_event_loops(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gc.collect()  # what other tests left open
    with OpenAIServer(default="hi") as server:
        model = chat(server)
        for _ in range(3):
            assert asyncio.run(model.achat(HELLO)).text == "hi"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            del model
            gc.collect()
    assert "Event loop is closed" not in caplog.text


@pytest.mark.parametrize(
    ("failing", "reason", "retries"),
    [
        (status(500, "on fire", retry_after=0.01), "server", 1),
        (
            status(401, "no: my-own-secret-key and Bearer abcdef and sk-abcdefgh"),
            "authentication",
            0,
        ),
        (status(404), "not_found", 0),
        (status(400), "bad_request", 0),
        (cut(), "connection", 1),
        (slow(30), "timeout", 1),
    ],
)
def test_what_fails_is_retried_where_that_may_help(
    failing: Behaviour, reason: str, retries: int
) -> None:
    with OpenAIServer(default=failing) as server, pytest.raises(ChatError) as caught:
        chat(server, api_key="my-own-secret-key").chat(HELLO, timeout=0.3)
    assert len(server.requests) == 1 + retries
    assert (caught.value.model, caught.value.reason) == ("tiny", reason)
    assert isinstance(caught.value, ModelError)
    if reason == "authentication":
        assert (
            str(caught.value)
            == "tiny: HTTP 401, authentication: no: *** and *** and ***"
        )


def test_a_retry_may_succeed_and_nobody_may_listen() -> None:
    with OpenAIServer([cut(), text("whole")]) as server:
        model = chat(server)
        assert model.chat(HELLO).text == "whole"
    with pytest.raises(
        ChatError, match=r"no answer from http://127\.0\.0\.1"
    ) as caught:
        chat(server, max_retries=0).chat(HELLO)
    assert caught.value.reason == "connection"


async def test_cancelling_abandons_the_request() -> None:
    with OpenAIServer(default=slow(30)) as server:
        model = chat(server)
        task = asyncio.create_task(model.achat(HELLO))
        while not server.in_flight:  # noqa: ASYNC110 - the server runs in a thread
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "<html>gateway</html>",
        '{"choices": [{"mess',
        "{}",
        '{"choices": []}',
        '{"choices": [{"message": "text"}]}',
    ],
)
def test_a_body_that_is_no_completion(answer: str) -> None:
    content_type = "text/html" if answer.startswith("<") else "application/json"
    with (
        OpenAIServer(default=body(answer, content_type)) as server,
        pytest.raises(ChatError) as caught,
    ):
        chat(server).chat(HELLO)
    assert caught.value.reason == "invalid_reply"


def test_an_empty_reply_a_refusal_and_text_in_parts_are_replies() -> None:
    parts = (
        '{"choices": [{"message": {"content": [{"type": "thinking"}, {"type": "text",'
        ' "text": "a"}]}}]}'
    )
    refusal = (
        '{"choices": [{"message": {"content": null, "refusal": "I will not."},'
        ' "finish_reason": "stop"}]}'
    )
    with OpenAIServer(
        [text(""), body('{"choices": [{"message": {}}]}'), body(parts), body(refusal)]
    ) as server:
        model = chat(server)
        replies = [model.chat(HELLO) for _ in range(4)]
    assert [reply.text for reply in replies] == ["", "", "a", "I will not."]
    assert replies[3].finish_reason == "refusal"


def test_tool_calls_with_broken_arguments_can_be_answered() -> None:
    script = [
        tool_calls(
            ("search", '{"query": '), ("search", {"query": "x"}), ("finish", "")
        ),
        text("done"),
    ]
    with OpenAIServer(script) as server:
        model = chat(server)
        reply = model.chat(HELLO, tools=[SEARCH])
        broken, good, bare = reply.tool_calls
        answers = [
            Message.tool(call, call.error or "found nothing")
            for call in reply.tool_calls
        ]
        assert (
            model.chat([*HELLO, reply.message, *answers], tools=[SEARCH]).text == "done"
        )
    assert reply.finish_reason == "tool_calls"
    assert broken.parsed is None
    assert "not valid JSON" in (broken.error or "")
    assert (good.parsed, bare.parsed) == ({"query": "x"}, {})
    sent = [
        call["function"]["arguments"]
        for call in server.requests[1].body["messages"][1]["tool_calls"]
    ]
    assert sent == ['{"malformed": "{\\"query\\": "}', '{"query": "x"}', "{}"]


def test_a_refused_parameter_is_dropped_and_remembered_but_not_one_whose_value_is_bad() -> (
    None
):
    with OpenAIServer(default="hi", refuses=["temperature", "max_tokens"]) as server:
        model = chat(server, max_tokens=5)
        assert [model.chat(HELLO).text, model.chat(HELLO).text] == ["hi", "hi"]
    assert len(server.requests) == 4
    assert server.requests[3].body["max_completion_tokens"] == 5
    too_large = status(400, "max_tokens is too large: 5000", param="max_tokens")
    with (
        OpenAIServer(default=too_large) as server,
        pytest.raises(ChatError, match="too large"),
    ):
        chat(server).chat(HELLO, max_tokens=5000)
    assert len(server.requests) == 1


def test_json_schema_steps_down_where_it_is_refused() -> None:
    with OpenAIServer(default="{}", refuses=["response_format"]) as server:
        model = chat(server)
        model.chat(HELLO, json_schema=SCHEMA)
        model.chat(HELLO, json_schema=SCHEMA)
    formats = [
        request.body.get("response_format", {}).get("type")
        for request in server.requests
    ]
    assert formats == ["json_schema", "json_object", None, None]
    sent = server.requests[0].body["response_format"]["json_schema"]
    assert sent["strict"] is True
    assert sent["schema"]["required"] == ["name"]


def test_keys_are_found_and_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OpenAIChat(
        "tiny", "http://user:pw-hidden@localhost:1/v1", "sk-secret-123456"
    )
    assert isinstance(model, ChatModel)
    assert not any(secret in repr(model) for secret in ("hidden", "secret"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ChatError, match="OPENAI_API_KEY"):
        OpenAIChat("tiny").chat(HELLO)
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    with OpenAIServer(default="hi") as server:
        chat(server).chat(HELLO)
    assert server.requests[0].headers["authorization"] == "Bearer from-the-environment"


def test_what_cannot_be_sent_is_refused_before_anything_is_asked() -> None:
    with OpenAIServer() as server, pytest.raises(ChatError, match="UnicodeEncodeError"):
        chat(server).chat([Message.user("\ud800")])
    assert not server.requests
    for url in (
        "localhost:8000/v1",
        "http://",
        "http://host:port/v1",
        "htp://user:secret@host/v1",
    ):
        with pytest.raises(
            InvalidInput, match="base_url: expected an address"
        ) as refused:
            OpenAIChat("tiny", url)
        assert "secret" not in str(refused.value)
    OpenAIChat("tiny", "HTTP://user:secret@[::1]:8000/v1")


REQUEST = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [
        ('{"a": 1}', {"a": 1}),
        ("  ", {}),
        (" null\n", {}),
        ("[1]", None),
        ('{"a": NaN}', None),
        ('{"k": 1e400}', None),
        ("[" * 99_999, None),
    ],
)
def test_arguments_of_a_tool_call(raw: str, parsed: dict | None) -> None:
    call = ToolCall("1", "walk", raw)
    assert call.parsed == parsed
    assert (call.error is None) == (parsed is not None)


def test_messages_go_to_openai_format_and_back() -> None:
    call = ToolCall("c1", "walk", '{"hops": 1}')
    reply = Reply("", (call,), Usage(1, 2) + Usage(3, 4))
    assert reply.usage.total_tokens == 10
    messages = [
        Message.system("s"),
        Message.user("u"),
        reply.message,
        Message.tool(call, "found"),
    ]
    assert [Message.from_dict(message.to_dict()) for message in messages] == messages
    assert messages[3].to_dict() == {
        "role": "tool",
        "content": "found",
        "tool_call_id": "c1",
        "name": "walk",
    }


@pytest.mark.parametrize(
    "make",
    [
        lambda: Message("robot", "x"),
        lambda: Message("user", "x", (ToolCall("1", "f"),)),
        lambda: Message("tool", "x"),
        lambda: Message.from_dict({"content": "x"}),
        lambda: Message.from_dict({"role": "assistant", "tool_calls": [{"id": "1"}]}),
    ],
)
def test_malformed_is_refused(make) -> None:
    with pytest.raises(InvalidInput):
        make()


@pytest.mark.parametrize(
    ("error", "reason", "status"),
    [
        (
            openai.RateLimitError(
                "slow", response=httpx.Response(429, request=REQUEST), body=None
            ),
            "rate_limit",
            429,
        ),
        (
            openai.InternalServerError(
                "oh", response=httpx.Response(503, request=REQUEST), body=None
            ),
            "server",
            503,
        ),
        (openai.APITimeoutError(REQUEST), "timeout", None),
        (openai.APIConnectionError(request=REQUEST), "connection", None),
        (httpx.RemoteProtocolError("peer closed connection"), "connection", None),
        (ConnectionResetError("reset"), "connection", None),
        (TimeoutError(), "timeout", None),
        (ValueError("odd"), "server", None),
    ],
)
def test_the_reason_of_a_client_s_error_is_told(
    error: Exception, reason: str, status: int | None
) -> None:
    made = as_chat_error(error, "m", timeout=2.0)
    assert isinstance(made, ChatError)
    assert (made.reason, made.status, made.model) == (reason, status, "m")


def test_keys_stay_out_of_it_and_errors_of_ours_stay_as_they_are() -> None:
    response = httpx.Response(401, request=REQUEST)
    refused = openai.AuthenticationError(
        "Incorrect API key: sk-abcdefghij", response=response, body=None
    )
    assert "sk-abc" not in str(as_chat_error(refused, "m"))
    ours = InvalidInput("messages: none")
    assert as_chat_error(ours, "m") is ours


@dataclass
class City:
    title: str
    people: int | None = None
    rivers: list[str] = field(default_factory=list)


WHERE = [Message.user("Where is it?")]
ULM = City("Ulm", 126_000)
CITY = TypeAdapter(City)


def asked_once(server: OpenAIServer) -> OpenAIChat:
    return OpenAIChat("tiny", server.base_url, max_retries=0, timeout=5)


@pytest.mark.parametrize(
    "said",
    [
        ' \n{"title": "Ulm", "people": 126000}\n',
        '```\n{"title": "Ulm", "people": 126000}',
        (
            'Sure! Here it is:\n```JSON\n{"title": "Ulm", "people":'
            " 126000}\n```\nAnything else?"
        ),
        'The set {x} has it: {"title": "Ulm", "people": 126000} (see [1]).',
        '<think>Is it {"title": "Bonn"}?</think>{"title": "Ulm", "people": 126000}',
        '{"note": "not this"} but {"title": "Ulm", "people": 126000, "unasked": true}',
    ],
)
def test_json_is_found(said: str) -> None:
    assert parse_json(said, CITY) == (ULM, None)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("", "empty"),
        ("I do not know.", "Invalid JSON"),
        ('{"title": "Ulm", "peo', "Invalid JSON"),
        ('See: {"title": 5}', "title: Input should be a valid string"),
        ('{"title": "Ulm", "people": NaN}', "people: "),
        ('{"title": ' + "[" * 100_000, "Invalid JSON"),
        ("{" * 300_000, "Invalid JSON"),
    ],
)
def test_what_cannot_be_used_is_explained(said: str, problem: str) -> None:
    value, found = parse_json(said, CITY)
    assert value is None
    assert problem in (found or "")
    assert len(found or "") < 500


def test_schema_is_asked_for_twice_over() -> None:
    with OpenAIServer([json_text({"title": "Ulm", "people": 126_000})]) as server:
        value, usage, attempts = ask_json(
            asked_once(server), [Message.system("Be exact."), *WHERE], City
        )
    assert (value, attempts) == (ULM, 1)
    assert usage.input_tokens > 5
    sent = server.requests[0].body
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert sent["messages"][0]["content"].startswith(
        "Be exact.\n\nAnswer with one JSON value"
    )
    assert sent["response_format"]["json_schema"]["strict"] is True


async def test_malformed_truncated_and_empty_replies_are_repaired() -> None:
    wrong = [
        text('{"title": "Ulm", "people": "many"}'),
        text(""),
        text('{"title": "U', finish_reason="length"),
    ]
    with OpenAIServer([*wrong, json_text({"title": "Ulm"})]) as server:
        answer = await aask_json(asked_once(server), WHERE, City, repairs=3)
    assert (answer.value, answer.attempts) == (City("Ulm"), 4)
    asked = [
        [message["role"] for message in request.messages] for request in server.requests
    ]
    assert asked[1:3] == [
        ["system", "user", "assistant", "user"],
        ["system", "user", "user"],
    ]
    said = [request.messages[-1]["content"] for request in server.requests]
    assert "people: Input should be a valid integer" in said[1]
    assert "token limit" in said[3]


@pytest.mark.parametrize(
    ("then", "reason", "tokens"),
    [(text("no idea"), "invalid_reply", 4), (status(500), "server", 2)],
)
def test_what_fails_in_the_end_still_counts_what_it_cost(
    then: Behaviour, reason: str, tokens: int
) -> None:
    with (
        OpenAIServer([text("no idea"), then]) as server,
        pytest.raises(ChatError) as caught,
    ):
        ask_json(asked_once(server), WHERE, City)
    assert (
        caught.value.reason,
        caught.value.usage.output_tokens,
        len(server.requests),
    ) == (reason, tokens, 2)


def test_any_type_will_do() -> None:
    class Model(BaseModel):
        x: int

    with OpenAIServer([text("[1, 2]"), text('{"x": 3}')]) as server:
        model = asked_once(server)
        assert ask_json(model, WHERE, list[int]).value == [1, 2]
        assert ask_json(model, WHERE, Model).value == Model(x=3)
    formats = [
        request.body.get("response_format", {}).get("type")
        for request in server.requests
    ]
    assert formats == [None, "json_schema"]
    with pytest.raises(InvalidInput, match="empty"):
        ask_json(model, [], City)

"""The real `openai` client against a real local server that misbehaves."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest

from graphret.errors import InvalidInput, ModelError
from graphret.llm import ChatError, ChatModel, Message, OpenAIChat, Tool, Usage
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    body,
    cut,
    slow,
    status,
    text,
    tool_calls,
)

HELLO = [Message.user("hello there")]
SEARCH = Tool("search", "Find nodes.", {"type": "object", "properties": {"query": {"type": "string"}}})
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "default": ""}}}


def chat(server: OpenAIServer, **options) -> OpenAIChat:
    return OpenAIChat("tiny", server.base_url, **{"max_retries": 1, "timeout": 5, **options})


def test_reply_and_request() -> None:
    with OpenAIServer(default="hi") as server:
        reply = chat(server, parameters={"seed": 7}).chat(
            [Message.system("Be brief."), *HELLO], tools=[SEARCH], max_tokens=9, temperature=0.5
        )
        chat(server).chat(HELLO)
        chat(server, temperature=None).chat(HELLO)
    assert (reply.text, reply.usage, reply.finish_reason, reply.model) == ("hi", Usage(4, 1), "stop", "scripted")
    sent, plain, untold = (request.body for request in server.requests)
    assert sent.items() >= {"model": "tiny", "max_tokens": 9, "temperature": 0.5, "seed": 7}.items()
    assert sent["tools"] == [SEARCH.to_dict()]
    assert server.requests[0].headers["authorization"] == "Bearer none"
    assert "response_format" not in plain
    assert plain["temperature"] == 0
    assert "temperature" not in untold


def test_one_object_serves_several_event_loops(caplog: pytest.LogCaptureFixture) -> None:
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
        (status(401, "no: my-own-secret-key and Bearer abcdef and sk-abcdefgh"), "authentication", 0),
        (status(404), "not_found", 0),
        (status(400), "bad_request", 0),
        (cut(), "connection", 1),
        (slow(30), "timeout", 1),
    ],
)
def test_what_fails_is_retried_where_that_may_help(failing: Behaviour, reason: str, retries: int) -> None:
    with OpenAIServer(default=failing) as server, pytest.raises(ChatError) as caught:
        chat(server, api_key="my-own-secret-key").chat(HELLO, timeout=0.3)
    assert len(server.requests) == 1 + retries
    assert (caught.value.model, caught.value.reason) == ("tiny", reason)
    assert isinstance(caught.value, ModelError)
    if reason == "authentication":
        assert str(caught.value) == "tiny: HTTP 401, authentication: no: *** and *** and ***"


def test_a_retry_may_succeed_and_nobody_may_listen() -> None:
    with OpenAIServer([cut(), text("whole")]) as server:
        model = chat(server)
        assert model.chat(HELLO).text == "whole"
    with pytest.raises(ChatError, match=r"no answer from http://127\.0\.0\.1") as caught:
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
        await model.aclose()
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    ["<html>gateway</html>", '{"choices": [{"mess', "{}", '{"choices": []}', '{"choices": [{"message": "text"}]}'],
)
def test_a_body_that_is_no_completion(answer: str) -> None:
    content_type = "text/html" if answer.startswith("<") else "application/json"
    with OpenAIServer(default=body(answer, content_type)) as server, pytest.raises(ChatError) as caught:
        chat(server).chat(HELLO)
    assert caught.value.reason == "invalid_reply"


def test_an_empty_reply_a_refusal_and_text_in_parts_are_replies() -> None:
    parts = '{"choices": [{"message": {"content": [{"type": "thinking"}, {"type": "text", "text": "a"}]}}]}'
    refusal = '{"choices": [{"message": {"content": null, "refusal": "I will not."}, "finish_reason": "stop"}]}'
    with OpenAIServer([text(""), body('{"choices": [{"message": {}}]}'), body(parts), body(refusal)]) as server:
        model = chat(server)
        replies = [model.chat(HELLO) for _ in range(4)]
    assert [reply.text for reply in replies] == ["", "", "a", "I will not."]
    assert replies[3].finish_reason == "refusal"


def test_tool_calls_with_broken_arguments_can_be_answered() -> None:
    script = [tool_calls(("search", '{"query": '), ("search", {"query": "x"}), ("finish", "")), text("done")]
    with OpenAIServer(script) as server:
        model = chat(server)
        reply = model.chat(HELLO, tools=[SEARCH])
        broken, good, bare = reply.tool_calls
        answers = [Message.tool(call, call.error or "found nothing") for call in reply.tool_calls]
        assert model.chat([*HELLO, reply.message, *answers], tools=[SEARCH]).text == "done"
    assert reply.finish_reason == "tool_calls"
    assert broken.parsed is None
    assert "not valid JSON" in (broken.error or "")
    assert (good.parsed, bare.parsed) == ({"query": "x"}, {})
    sent = [call["function"]["arguments"] for call in server.requests[1].body["messages"][1]["tool_calls"]]
    assert sent == ['{"malformed": "{\\"query\\": "}', '{"query": "x"}', "{}"]


def test_a_refused_parameter_is_dropped_and_remembered_but_not_one_whose_value_is_bad() -> None:
    with OpenAIServer(default="hi", refuses=["temperature", "max_tokens"]) as server:
        model = chat(server, max_tokens=5)
        assert [model.chat(HELLO).text, model.chat(HELLO).text] == ["hi", "hi"]
    assert len(server.requests) == 4
    assert server.requests[3].body["max_completion_tokens"] == 5
    too_large = status(400, "max_tokens is too large: 5000", param="max_tokens")
    with OpenAIServer(default=too_large) as server, pytest.raises(ChatError, match="too large"):
        chat(server).chat(HELLO, max_tokens=5000)
    assert len(server.requests) == 1


def test_json_schema_steps_down_where_it_is_refused() -> None:
    with OpenAIServer(default="{}", refuses=["response_format"]) as server:
        model = chat(server)
        model.chat(HELLO, json_schema=SCHEMA)
        model.chat(HELLO, json_schema=SCHEMA)
    formats = [request.body.get("response_format", {}).get("type") for request in server.requests]
    assert formats == ["json_schema", "json_object", None, None]
    sent = server.requests[0].body["response_format"]["json_schema"]
    assert sent["strict"] is True
    assert sent["schema"]["required"] == ["name"]


def test_keys_are_found_and_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OpenAIChat("tiny", "http://user:pw-hidden@localhost:1/v1", "sk-secret-123456")
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
    for url in ("localhost:8000/v1", "http://", "http://host:port/v1", "htp://user:secret@host/v1"):
        with pytest.raises(InvalidInput, match=r"base_url: .* is no address of an endpoint") as refused:
            OpenAIChat("tiny", url)
        assert "secret" not in str(refused.value)
    OpenAIChat("tiny", "HTTP://user:secret@[::1]:8000/v1")

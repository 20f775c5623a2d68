"""The shapes of the chat-model contract, and what clients raise, as `ChatError`."""

from __future__ import annotations

import httpx
import openai
import pytest

from graphret.errors import InvalidInput
from graphret.llm import ChatError, Message, Reply, Tool, ToolCall, Usage
from graphret.llm.errors import as_chat_error

REQUEST = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [('{"a": 1}', {"a": 1}), ("  ", {}), (" null\n", {}), ("[1]", None), ('{"a": NaN}', None), ("[" * 99_999, None)],
)
def test_arguments_of_a_tool_call(raw: str, parsed: dict | None) -> None:
    call = ToolCall("1", "walk", raw)
    assert call.parsed == parsed
    assert (call.error is None) == (parsed is not None)


def test_messages_go_to_openai_format_and_back() -> None:
    call = ToolCall("c1", "walk", '{"hops": 1}')
    reply = Reply("", (call,), Usage(1, 2) + Usage(3, 4))
    assert reply.usage.total_tokens == 10
    messages = [Message.system("s"), Message.user("u"), reply.message, Message.tool(call, "found")]
    assert [Message.from_dict(message.to_dict()) for message in messages] == messages
    assert messages[3].to_dict() == {"role": "tool", "content": "found", "tool_call_id": "c1", "name": "walk"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Message("robot", "x"),
        lambda: Message("user", "x", (ToolCall("1", "f"),)),
        lambda: Message("tool", "x"),
        lambda: Message.from_dict({"content": "x"}),
        lambda: Message.from_dict({"role": "assistant", "tool_calls": [{"id": "1"}]}),
        lambda: Tool("two words", "x"),
    ],
)
def test_malformed_is_refused(make) -> None:
    with pytest.raises(InvalidInput):
        make()


@pytest.mark.parametrize(
    ("error", "reason", "status"),
    [
        (openai.RateLimitError("slow", response=httpx.Response(429, request=REQUEST), body=None), "rate_limit", 429),
        (openai.InternalServerError("oh", response=httpx.Response(503, request=REQUEST), body=None), "server", 503),
        (openai.APITimeoutError(REQUEST), "timeout", None),
        (openai.APIConnectionError(request=REQUEST), "connection", None),
        (httpx.RemoteProtocolError("peer closed connection"), "connection", None),
        (ConnectionResetError("reset"), "connection", None),
        (TimeoutError(), "timeout", None),
        (ValueError("odd"), "server", None),
    ],
)
def test_the_reason_of_a_client_s_error_is_told(error: Exception, reason: str, status: int | None) -> None:
    made = as_chat_error(error, "m", timeout=2.0)
    assert isinstance(made, ChatError)
    assert (made.reason, made.status, made.model) == (reason, status, "m")


def test_keys_stay_out_of_it_and_errors_of_ours_stay_as_they_are() -> None:
    response = httpx.Response(401, request=REQUEST)
    refused = openai.AuthenticationError("Incorrect API key: sk-abcdefghij", response=response, body=None)
    assert "sk-abc" not in str(as_chat_error(refused, "m"))
    ours = InvalidInput("messages: none")
    assert as_chat_error(ours, "m") is ours

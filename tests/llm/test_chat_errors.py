"""What other packages' clients raise, as `ChatError`."""

from __future__ import annotations

import httpx
import openai
import pytest

from graphret.errors import InvalidInput
from graphret.llm.chat import ChatError
from graphret.llm.errors import as_chat_error

REQUEST = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")


@pytest.mark.parametrize(
    ("error", "reason", "status"),
    [
        (
            openai.RateLimitError("slow down", response=httpx.Response(429, request=REQUEST), body=None),
            "rate_limit",
            429,
        ),
        (openai.InternalServerError("oh", response=httpx.Response(503, request=REQUEST), body=None), "server", 503),
        (openai.APITimeoutError(REQUEST), "timeout", None),
        (openai.APIConnectionError(request=REQUEST), "connection", None),
        (httpx.RemoteProtocolError("peer closed connection"), "connection", None),
        (httpx.ReadTimeout("slow"), "timeout", None),
        (ConnectionResetError("reset"), "connection", None),
        (TimeoutError(), "timeout", None),
        (ValueError("odd"), "server", None),
    ],
)
def test_the_reason_is_told(error: Exception, reason: str, status: int | None) -> None:
    made = as_chat_error(error, "m", timeout=2.0)
    assert isinstance(made, ChatError)
    assert (made.reason, made.status, made.model) == (reason, status, "m")


def test_keys_stay_out_of_it_and_errors_of_ours_stay_as_they_are() -> None:
    response = httpx.Response(401, request=REQUEST)
    refused = openai.AuthenticationError("Incorrect API key: sk-abcdefghij", response=response, body=None)
    assert "sk-abc" not in str(as_chat_error(refused, "m"))
    ours = InvalidInput("messages: none")
    assert as_chat_error(ours, "m") is ours

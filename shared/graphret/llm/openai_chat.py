"""Any OpenAI-compatible endpoint as a `ChatModel`: OpenAI, vLLM, Ollama, llama.cpp."""

from __future__ import annotations

import asyncio
import os
import weakref
from asyncio import run_coroutine_threadsafe
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import urlsplit

from graphret.errors import InvalidInput
from graphret.llm.chat import ChatError, ChatOptions, Message, Reply, Tool
from graphret.llm.errors import as_chat_error, redacted, status_of
from graphret.llm.event_loop import elsewhere, run_sync
from graphret.llm.openai_wire import (
    content_text,
    native_parts,
    response_format,
    token_logprobs,
    token_usage,
    tool_calls,
    wire_message,
)
from graphret.llm.refusals import MAX_TOKENS, TEMPERATURE, Refusals

if TYPE_CHECKING:
    from openai import AsyncOpenAI


@dataclass(eq=False, repr=False)
class OpenAIChat:
    """A model behind the chat completions API.

    Calls are retried by the official client. An endpoint that refuses an optional part
    of a request (``response_format``, ``temperature``, ``max_tokens``, the reasoning of
    earlier replies) with HTTP 400, 422, 500 or 501 is asked again without it or with
    its successor, and the object remembers that. A complaint that names no part costs
    one request more. It serves any number of threads, tasks and event loops.

    Parameters
    ----------
    model
        The model's name at the endpoint.
    base_url
        The endpoint, usually ending in ``/v1``; by default ``OPENAI_BASE_URL``, or
        OpenAI.
    api_key
        By default ``OPENAI_API_KEY``, or ``"none"`` where `base_url` is given and that
        is not set. Never appears in messages or in ``repr``.
    timeout
        Seconds that each attempt may wait for the endpoint to connect, or to send
        something.
    max_seconds
        Seconds that a call may take in all, whatever the endpoint sends.
    max_retries
        How often an attempt is repeated.
    temperature, max_tokens
        Defaults for calls that name none; `None` leaves them to the endpoint.
    parameters
        More fields of the request body, as they are: ``{"seed": 0, "reasoning_effort":
        "low"}``.
    headers
        More HTTP headers.

    Raises
    ------
    InvalidInput
        If `base_url` is not an HTTP address.

    Examples
    --------
    >>> model = OpenAIChat("qwen3-8b", base_url="http://localhost:8000/v1")
    >>> model.chat([Message.user("Name one graph database.")]).text  # doctest: +SKIP
    'Neo4j'
    """

    model: str
    base_url: str | None = None
    api_key: str | None = None
    _: KW_ONLY
    timeout: float = 60.0
    max_seconds: float = 600.0
    max_retries: int = 3
    temperature: float | None = 0.0
    max_tokens: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if endpoint := self.base_url or os.environ.get("OPENAI_BASE_URL"):
            _require_address(endpoint)
        self.name = self.model
        self._refusals = Refusals(self.name)
        # Connections belong to the event loop that opened them: all calls run in one,
        # and in another once forked.
        self._clients: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}

    def __repr__(self) -> str:
        return (
            f"OpenAIChat({self.name!r},"
            f" base_url={self.base_url and _without_secrets(self.base_url)!r})"
        )

    def _client(self) -> AsyncOpenAI:
        from openai import (
            AsyncOpenAI,
            DefaultAsyncHttpxClient,
        )  # here, because it takes more than a second

        key = self.api_key or os.environ.get("OPENAI_API_KEY")
        if not key and not (self.base_url or os.environ.get("OPENAI_BASE_URL")):
            raise ChatError(
                "no API key: set OPENAI_API_KEY, or pass api_key",
                model=self.name,
                reason="authentication",
            )
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            client = self._clients[loop] = AsyncOpenAI(
                api_key=key or "none",
                base_url=self.base_url,
                timeout=self.timeout,
                max_retries=self.max_retries,
                default_headers=self.headers,
                http_client=DefaultAsyncHttpxClient(follow_redirects=False),
            )
            weakref.finalize(
                self, lambda: run_coroutine_threadsafe(client.close(), loop)
            ).atexit = False
        return self._clients[loop]

    def chat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """Answer a conversation; see `ChatModel.chat`."""
        return run_sync(self._ask(messages, **options))

    async def achat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """`chat` without blocking the event loop; see `ChatModel.achat`."""
        return await elsewhere(self._ask(messages, **options))

    def body(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> dict[str, Any]:
        """Return the body of a request as it is first sent to the endpoint.

        It is for requests that are sent in another way, such as in a file.
        """
        request = self._request(messages, (), **options)
        request.pop("timeout", None)
        parameters: dict[str, Any] = request.pop("extra_body", {})
        return {**request, **parameters}

    async def _ask(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        attempt = self._refusals.attempt()
        while True:
            request = self._request(messages, attempt.left_out, **options)
            try:
                async with asyncio.timeout(self.max_seconds):
                    completion = await self._client().chat.completions.create(**request)
            except Exception as error:
                if not attempt.failed(error, request):
                    raise self._failure(attempt.problem or error) from None
            else:
                attempt.succeeded(request)
                return self._reply(completion)

    def _request(
        self,
        messages: Sequence[Message],
        left_out: Collection[str],
        *,
        tools: Sequence[Tool] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        json_schema: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        top_logprobs: int | None = None,
    ) -> dict[str, Any]:
        temperature = self.temperature if temperature is None else temperature
        limit = MAX_TOKENS if MAX_TOKENS not in left_out else "max_completion_tokens"
        optional = {
            "tools": [tool.to_dict() for tool in tools or ()] or None,
            TEMPERATURE: None if TEMPERATURE in left_out else temperature,
            limit: self.max_tokens if max_tokens is None else max_tokens,
            "response_format": (
                response_format(json_schema, left_out)
                if json_schema is not None
                else None
            ),
            "timeout": timeout,
            "logprobs": True if top_logprobs else None,
            "top_logprobs": top_logprobs,
            "extra_body": self.parameters or None,
        }
        thinks = "reasoning" not in left_out
        wired = [
            wire_message(
                message,
                (message.native or {}).get(f"openai:{self.name}") if thinks else None,
            )
            for message in messages
        ]
        settings = {
            name: value for name, value in optional.items() if value is not None
        }
        return {"model": self.name, "messages": wired, **settings}

    def _reply(self, completion: Any) -> Reply:
        choices = getattr(completion, "choices", None)
        if (
            not isinstance(choices, list)
            or not choices
            or not hasattr(getattr(choices[0], "message", None), "content")
        ):
            problem = redacted(
                str(getattr(completion, "error", None) or type(completion).__name__),
                self._secrets,
            )
            problem = f"the endpoint's answer is not a chat completion ({problem})"
            raise ChatError(problem, model=self.name, reason="invalid_reply")
        choice, message = choices[0], choices[0].message
        refusal, native = getattr(message, "refusal", None), native_parts(message)
        return Reply(
            text=content_text(message.content) or refusal or "",
            tool_calls=tool_calls(message),
            usage=token_usage(getattr(completion, "usage", None)),
            finish_reason=(
                "refusal"
                if refusal
                else str(getattr(choice, "finish_reason", None) or "stop")
            ),
            model=str(getattr(completion, "model", None) or self.name),
            native=None if native is None else {f"openai:{self.name}": native},
            logprobs=token_logprobs(choice),
        )

    def _failure(self, error: Exception) -> Exception:
        if goes_to := getattr(getattr(error, "response", None), "headers", {}).get(
            "location"
        ):
            problem = (
                f"the endpoint redirects to {_without_secrets(goes_to)}: not followed,"
                " give it as base_url"
            )
            return ChatError(
                problem, model=self.name, reason="bad_request", status=status_of(error)
            )
        endpoint = _without_secrets(self.base_url) if self.base_url else "the endpoint"
        return as_chat_error(
            error,
            self.name,
            timeout=self.max_seconds,
            endpoint=endpoint,
            secrets=self._secrets,
        )

    @property
    def _secrets(self) -> tuple[str | None, ...]:
        return self.api_key, os.environ.get("OPENAI_API_KEY"), *self.headers.values()


def _require_address(endpoint: str) -> None:
    from pydantic import HttpUrl, TypeAdapter, ValidationError

    try:
        TypeAdapter(HttpUrl).validate_python(endpoint)
    except ValidationError as error:
        shown = endpoint.rpartition("@")[2]  # without user and password
        raise InvalidInput(
            "base_url: expected an address such as http://localhost:8000/v1, got"
            f" {shown!r}"
        ) from error


def _without_secrets(url: str) -> str:
    """The endpoint without user, password and query, which may hold keys."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

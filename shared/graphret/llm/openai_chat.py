"""Any OpenAI-compatible endpoint as a `ChatModel`: OpenAI itself, vLLM, Ollama, llama.cpp, a gateway."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from graphret.errors import InvalidInput
from graphret.llm.chat import ChatError, Message, Reply, Tool
from graphret.llm.openai_clients import Clients
from graphret.llm.openai_wire import (
    FORMAT_REFUSED,
    NATIVE,
    JSONMode,
    content_text,
    native_parts,
    redacted,
    require_endpoint,
    response_format,
    token_usage,
    tool_calls,
    wire_message,
    without_secrets,
)

_log = logging.getLogger(__name__)
_WEAKER: dict[JSONMode, JSONMode] = {"schema": "object", "object": "none"}

_UNSUPPORTED = re.compile(r"unsupported|not support|unrecognized|unknown|not permitted|not allowed", re.IGNORECASE)
_REASONS = {400: "bad_request", 401: "authentication", 403: "authentication", 404: "not_found", 408: "timeout"}
_REASONS |= {422: "bad_request", 429: "rate_limit"}
_REASONING = "reasoning"
# Whose exceptions are failures of the endpoint; others are bugs of ours.
_FOREIGN = ("openai", "httpx", "httpx2", "httpcore", "anyio")


class OpenAIChat:
    """A model behind the chat completions API.

    Calls are retried by the official client: on 408, 409, 429, 5xx, lost connections and time-outs, after the
    ``Retry-After`` that the endpoint names or an exponential wait. An endpoint that refuses an optional parameter with
    HTTP 400 (``response_format``, ``temperature``, ``max_tokens``) is asked again without it or with its successor,
    and the object remembers that. So it is with the reasoning that a reply came with (``reasoning_content`` and the
    like), which is sent back within a conversation.

    One object serves any number of threads, tasks and event loops. It opens no connection before its first call.

    Parameters
    ----------
    model
        The model's name at the endpoint.
    base_url
        The endpoint, usually ending in ``/v1``; by default ``OPENAI_BASE_URL``, or OpenAI.
    api_key
        By default ``OPENAI_API_KEY``, or ``"none"`` where `base_url` is given and that is not set. Never appears in
        messages or in ``repr``.
    timeout
        Seconds that each attempt may wait for the endpoint to connect, or to send something.
    max_retries
        How often an attempt is repeated.
    temperature
        Default for calls that name none; `None` leaves it to the endpoint.
    max_tokens
        Default for calls that name none; `None` leaves it to the endpoint.
    json_mode
        How `json_schema` is handed over at first: by ``schema``, as any JSON ``object``, or ``none``, not at all.
    parameters
        More fields of the request body, as they are: ``{"seed": 0, "reasoning_effort": "low"}``.
    headers
        More HTTP headers.

    Raises
    ------
    InvalidInput
        If there is no name, `base_url` is no HTTP address, or `json_mode` is none of these.

    Examples
    --------
    >>> model = OpenAIChat("qwen3-8b", base_url="http://localhost:8000/v1")
    >>> model.chat([Message.user("Name one graph database.")]).text  # doctest: +SKIP
    'Neo4j'
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 60.0,
        max_retries: int = 3,
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
        json_mode: JSONMode = "schema",
        parameters: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if not model:
            raise InvalidInput("OpenAIChat.model: a name is needed")
        if json_mode not in ("schema", "object", "none"):
            raise InvalidInput(f"OpenAIChat.json_mode: {json_mode!r} is none of schema, object, none")
        if base_url:
            require_endpoint("OpenAIChat.base_url", base_url)
        self.name = model
        self.base_url = base_url
        self.timeout = timeout
        self.max_retries = max_retries
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.json_mode: JSONMode = json_mode
        self.parameters = dict(parameters or {})
        self.headers = dict(headers or {})
        self._api_key = api_key
        self._refused: frozenset[str] = frozenset()
        self._clients = Clients()

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r}, base_url={without_secrets(self.base_url)!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_clients"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._clients = Clients()

    def _key(self) -> str:
        key = self._api_key or os.environ.get("OPENAI_API_KEY")
        if not key and not (self.base_url or os.environ.get("OPENAI_BASE_URL")):
            raise ChatError("no API key: set OPENAI_API_KEY, or pass api_key", model=self.name, reason="authentication")
        return key or "none"

    def _options(self) -> dict[str, Any]:
        return {
            "api_key": self._key(),
            "base_url": self.base_url,
            "timeout": self.timeout,
            "max_retries": self.max_retries,
            "default_headers": self.headers,
        }

    def close(self) -> None:
        """Close the connections of `chat`; a later call opens new ones."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the connections of `achat` in the running event loop; ``asyncio.run`` does so by itself at its end."""
        await self._clients.aclose()

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        json_schema: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """Answer a conversation; see `ChatModel.chat`."""
        while True:
            request = self._request(messages, tools, temperature, max_tokens, json_schema, timeout)
            try:
                client = self._clients.sync(self._options)
                return self._reply(client.chat.completions.create(**request))
            except Exception as error:
                if not self._adapt(error, request):
                    raise self._failure(error) from None

    async def achat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        json_schema: Mapping[str, Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the endpoint's limit, for each attempt
    ) -> Reply:
        """`chat` without blocking the event loop; see `ChatModel.achat`."""
        while True:
            request = self._request(messages, tools, temperature, max_tokens, json_schema, timeout)
            try:
                client = await self._clients.of_loop(self._options)
                return self._reply(await client.chat.completions.create(**request))
            except Exception as error:
                if not self._adapt(error, request):
                    raise self._failure(error) from None

    def _request(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        temperature: float | None,
        max_tokens: int | None,
        json_schema: Mapping[str, Any] | None,
        timeout: float | None,
    ) -> dict[str, Any]:
        temperature = self.temperature if temperature is None else temperature
        max_tokens = self.max_tokens if max_tokens is None else max_tokens
        request: dict[str, Any] = {"model": self.name, "messages": [self._wire(message) for message in messages]}
        if tools:
            request["tools"] = [tool.to_dict() for tool in tools]
        if temperature is not None and "temperature" not in self._refused:
            request["temperature"] = temperature
        if max_tokens is not None:
            limit = "max_completion_tokens" if "max_tokens" in self._refused else "max_tokens"
            request[limit] = max_tokens
        if json_schema is not None and self.json_mode != "none":
            request["response_format"] = response_format(self.json_mode, json_schema)
        if timeout is not None:
            request["timeout"] = timeout
        if self.parameters:
            request["extra_body"] = self.parameters
        return request

    @property
    def _origin(self) -> str:
        return f"openai:{self.name}"

    def _wire(self, message: Message) -> dict[str, Any]:
        native = None if _REASONING in self._refused else (message.native or {}).get(self._origin)
        return wire_message(message, native)

    def _adapt(self, error: Exception, request: Mapping[str, Any]) -> bool:
        """Note what optional parameter the endpoint refuses; true if there is a request that does without."""
        if getattr(error, "status_code", None) not in (400, 422):
            return False
        named, text = str(getattr(error, "param", None) or ""), str(error)
        if "response_format" in request and FORMAT_REFUSED.search(f"{named} {text}"):
            # From what was sent: another thread may have stepped down meanwhile.
            sent: JSONMode = "schema" if request["response_format"]["type"] == "json_schema" else "object"
            if self.json_mode == sent:
                self.json_mode = _WEAKER[sent]
                _log.info("%s refuses JSON by %s; going on with %s", self.name, sent, self.json_mode)
            return True
        if _REASONING not in self._refused and any(name in f"{named} {text}" for name in _sent_back(request)):
            _log.info("%s does not take its reasoning back; going on without it", self.name)
            self._refused |= {_REASONING}
            return True
        for parameter in ("temperature", "max_tokens"):
            complained = re.search(rf"\b{parameter}\b", f"{named} {text}")
            if parameter in request and complained and _UNSUPPORTED.search(text):
                _log.warning("%s does not take %s as it was given; going on without it", self.name, parameter)
                self._refused |= {parameter}
                return True
        return False

    def _reply(self, completion: Any) -> Reply:
        choices = getattr(completion, "choices", None)
        if not isinstance(choices, list) or not choices or not hasattr(getattr(choices[0], "message", None), "content"):
            said = getattr(completion, "error", None) or type(completion).__name__
            raise self._invalid(f"the endpoint's answer is no chat completion ({said})")
        choice, message = choices[0], choices[0].message
        refusal, native = getattr(message, "refusal", None), native_parts(message)
        return Reply(
            text=content_text(message.content) or refusal or "",
            tool_calls=tuple(tool_calls(getattr(message, "tool_calls", None))),
            usage=token_usage(getattr(completion, "usage", None)),
            finish_reason="refusal" if refusal else str(getattr(choice, "finish_reason", None) or "stop"),
            model=str(getattr(completion, "model", None) or self.name),
            native=None if native is None else {self._origin: native},
        )

    def _failure(self, error: Exception) -> Exception:
        """What to raise for `error`: a `ChatError` without secrets, or `error` itself if it is a bug of ours."""
        kind, family = type(error).__name__, type(error).__module__.partition(".")[0]
        if isinstance(error, ChatError):
            return error
        if isinstance(error, UnicodeEncodeError):
            return ChatError(
                f"the messages are not Unicode text: {error.reason}", model=self.name, reason="bad_request"
            )
        if isinstance(error, ValueError) or kind == "APIResponseValidationError":
            return self._invalid("the endpoint's answer is not JSON")
        if family not in _FOREIGN:
            return error
        status = getattr(error, "status_code", None)
        if status is not None:
            reason = _REASONS.get(status, "server" if status >= 500 else "bad_request")
        else:
            reason = "timeout" if "Timeout" in kind else "connection"
        return ChatError(self._redacted(self._describe(error)), model=self.name, reason=reason, status=status)

    def _describe(self, error: Exception) -> str:
        if getattr(error, "status_code", None) is None:
            cause = error.__cause__ or error
            where = without_secrets(self.base_url) or "the endpoint"
            return f"no answer from {where}, retries included ({type(cause).__name__}: {cause})"
        body = getattr(error, "body", None)
        text = body.get("message") if isinstance(body, Mapping) else body
        return str(text or error)

    def _invalid(self, message: str) -> ChatError:
        return ChatError(self._redacted(message), model=self.name, reason="invalid_reply")

    def _redacted(self, text: str) -> str:
        return redacted(text, (self._api_key, os.environ.get("OPENAI_API_KEY")))


def _sent_back(request: Mapping[str, Any]) -> set[str]:
    """What a request has of `NATIVE`."""
    turns = request["messages"]
    return {
        name for held in (*turns, *(call for one in turns for call in one.get("tool_calls", ()))) for name in held
    } & {*NATIVE}

"""Any OpenAI-compatible endpoint as a `ChatModel`: OpenAI itself, vLLM, Ollama, llama.cpp, a gateway."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import urlsplit

from graphret.errors import InvalidInput
from graphret.llm.chat import ChatError, ChatOptions, Message, Reply, Tool
from graphret.llm.errors import reason_of, redacted, status_of
from graphret.llm.openai_wire import (
    FORMAT_REFUSED,
    JSONMode,
    content_text,
    native_parts,
    response_format,
    sends_back,
    token_usage,
    tool_calls,
    wire_message,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

_log = logging.getLogger(__name__)
_WEAKER: dict[JSONMode, JSONMode] = {"schema": "object", "object": "none"}
_UNSUPPORTED = re.compile(r"unsupported|not support|unrecognized|unknown|not permitted|not allowed", re.IGNORECASE)
_REASONING = "reasoning"


class OpenAIChat:
    """A model behind the chat completions API.

    Calls are retried by the official client: on 408, 409, 429, 5xx, lost connections and time-outs, after the
    ``Retry-After`` that the endpoint names or an exponential wait. An endpoint that refuses an optional parameter with
    HTTP 400 (``response_format``, ``temperature``, ``max_tokens``) is asked again without it or with its successor,
    and the object remembers that. So it is with the reasoning that a reply came with (``reasoning_content`` and the
    like), which is sent back within a conversation.

    One object serves any number of threads, tasks and event loops.

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
    max_seconds
        Seconds that the body of a reply may take from its first byte to its last, in each attempt. One that takes
        longer, or has more than 16 MiB, is a `ChatError`.
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
        max_seconds: float = 600.0,
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
        self.max_seconds = max_seconds
        self.max_retries = max_retries
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.json_mode: JSONMode = json_mode
        self.parameters = dict(parameters or {})
        self.headers = dict(headers or {})
        self._api_key = api_key
        self._refused: frozenset[str] = frozenset()
        # An asynchronous client's connections belong to the event loop that opened them.
        self._clients: dict[asyncio.AbstractEventLoop, tuple[AsyncOpenAI, AsyncGenerator[None, None]]] = {}

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r}, base_url={_without_secrets(self.base_url)!r})"

    def _options(self) -> dict[str, Any]:
        key = self._api_key or os.environ.get("OPENAI_API_KEY")
        if not key and not (self.base_url or os.environ.get("OPENAI_BASE_URL")):
            raise ChatError("no API key: set OPENAI_API_KEY, or pass api_key", model=self.name, reason="authentication")
        return {
            "api_key": key or "none",
            "base_url": self.base_url,
            "timeout": self.timeout,
            "max_retries": self.max_retries,
            "default_headers": {"Accept-Encoding": "identity", **self.headers},  # what is counted is what is read
        }

    def _transport(self, bound: Callable[..., Any]) -> dict[str, Any]:
        hook = partial(bound, model=self.name, most_seconds=self.max_seconds)
        return {"follow_redirects": False, "event_hooks": {"response": [hook]}}

    @cached_property
    def _client(self) -> OpenAI:
        from openai import DefaultHttpxClient, OpenAI  # here, because it takes more than a second

        from graphret.llm.bounds import bound

        return OpenAI(**self._options(), http_client=DefaultHttpxClient(**self._transport(bound)))

    async def _client_of_loop(self) -> AsyncOpenAI:
        """Return the client of the running event loop, which closes it when it ends."""
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        from graphret.llm.bounds import abound

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            for ended in [one for one in list(self._clients) if one.is_closed()]:
                self._clients.pop(ended, None)
            # The connections that `AsyncOpenAI` would make by itself complain when they outlive their loop.
            client = AsyncOpenAI(**self._options(), http_client=DefaultAsyncHttpxClient(**self._transport(abound)))
            self._clients[loop] = client, _closing(client)
            await anext(self._clients[loop][1])
        return self._clients[loop][0]

    def close(self) -> None:
        """Close the connections of `chat`; a later call opens new ones."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the connections of `achat` in the running event loop; ``asyncio.run`` does so by itself at its end."""
        mine = self._clients.pop(asyncio.get_running_loop(), None)
        if mine is not None:
            await mine[1].aclose()

    def chat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Reply:
        """Answer a conversation; see `ChatModel.chat`."""
        while True:
            request = self._request(messages, **options)
            try:
                completion = self._client.chat.completions.create(**request)
            except Exception as error:
                self._adapt(error, request)
            else:
                return self._reply(completion)

    async def achat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Reply:
        """`chat` without blocking the event loop; see `ChatModel.achat`."""
        while True:
            request = self._request(messages, **options)
            try:
                client = await self._client_of_loop()
                completion = await client.chat.completions.create(**request)
            except Exception as error:
                self._adapt(error, request)
            else:
                return self._reply(completion)

    def _request(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        json_schema: Mapping[str, Any] | None = None,
        timeout: float | None = None,
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

    def _adapt(self, error: Exception, request: Mapping[str, Any]) -> None:
        """Note what optional parameter the endpoint refuses, and raise where no other request would do without it."""
        complaint = f"{getattr(error, 'param', None) or ''} {error}"
        if status_of(error) not in (400, 422):
            raise self._failure(error) from None
        if "response_format" in request and FORMAT_REFUSED.search(complaint):
            # From what was sent: another thread may have stepped down meanwhile.
            sent: JSONMode = "schema" if request["response_format"]["type"] == "json_schema" else "object"
            if self.json_mode == sent:
                self.json_mode = _WEAKER[sent]
                _log.info("%s refuses JSON by %s; going on with %s", self.name, sent, self.json_mode)
            return
        if _REASONING not in self._refused and sends_back(request, complaint):
            _log.info("%s does not take its reasoning back; going on without it", self.name)
            self._refused |= {_REASONING}
            return
        for parameter in ("temperature", "max_tokens"):
            complained = re.search(rf"\b{parameter}\b", complaint) and _UNSUPPORTED.search(str(error))
            if parameter in request and complained:
                _log.warning("%s does not take %s as it was given; going on without it", self.name, parameter)
                self._refused |= {parameter}
                return
        raise self._failure(error) from None

    def _reply(self, completion: Any) -> Reply:
        choices = getattr(completion, "choices", None)
        if not isinstance(choices, list) or not choices or not hasattr(getattr(choices[0], "message", None), "content"):
            said = getattr(completion, "error", None) or type(completion).__name__
            raise self._invalid(f"the endpoint's answer is no chat completion ({said})")
        choice, message = choices[0], choices[0].message
        refusal, native = getattr(message, "refusal", None), native_parts(message)
        return Reply(
            text=content_text(message.content) or refusal or "",
            tool_calls=tool_calls(message),
            usage=token_usage(getattr(completion, "usage", None)),
            finish_reason="refusal" if refusal else str(getattr(choice, "finish_reason", None) or "stop"),
            model=str(getattr(completion, "model", None) or self.name),
            native=None if native is None else {self._origin: native},
        )

    def _failure(self, error: Exception) -> Exception:
        """What to raise for `error`: a `ChatError` without secrets, or `error` itself if it is a bug of ours."""
        import openai

        if isinstance(error, ChatError):
            return error
        if isinstance(error.__cause__, ChatError):
            return error.__cause__
        if isinstance(error, UnicodeEncodeError):
            return ChatError(
                f"the messages are not Unicode text: {error.reason}", model=self.name, reason="bad_request"
            )
        if isinstance(error, ValueError):
            return self._invalid("the endpoint's answer is not JSON")
        if not isinstance(error, openai.OpenAIError):
            return error
        if status_of(error) is None:
            where = _without_secrets(self.base_url) or "the endpoint"
            cause = error.__cause__ or error
            said = f"no answer from {where}, retries included ({type(cause).__name__}: {cause})"
        else:
            body = getattr(error, "body", None)
            if goes_to := getattr(getattr(error, "response", None), "headers", {}).get("location"):
                body = f"the endpoint redirects to {_without_secrets(goes_to)}: not followed, give it as base_url"
            said = str((body.get("message") if isinstance(body, Mapping) else body) or error)
        return ChatError(self._redacted(said), model=self.name, reason=reason_of(error), status=status_of(error))

    def _invalid(self, message: str) -> ChatError:
        return ChatError(self._redacted(message), model=self.name, reason="invalid_reply")

    def _redacted(self, text: str) -> str:
        return redacted(text, (self._api_key, os.environ.get("OPENAI_API_KEY"), *self.headers.values()))


async def _closing(client: AsyncOpenAI) -> AsyncGenerator[None, None]:
    """Close `client` when this generator is closed, as event loops do with theirs before they end."""
    try:
        yield
    finally:
        await client.close()


def require_endpoint(what: str, url: str) -> None:
    """Raise an `InvalidInput` of `what` and the value, without user and password, where it is no HTTP address."""
    from pydantic import HttpUrl, TypeAdapter, ValidationError

    try:
        TypeAdapter(HttpUrl).validate_python(url)
    except ValidationError as error:
        shown = url.rpartition("@")[2]
        said = f"{what}: {shown!r} is no address of an endpoint, such as http://localhost:8000/v1"
        raise InvalidInput(said) from error


def _without_secrets(url: str | None) -> str | None:
    """The endpoint without user, password and query, which may hold keys."""
    if not url:
        return None
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

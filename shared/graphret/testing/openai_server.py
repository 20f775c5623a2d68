"""A local server that speaks OpenAI's chat completions API and misbehaves to order.

It listens on 127.0.0.1 at a free port, so that what is under test is the real client
over real HTTP::

    from graphret.testing.openai_server import OpenAIServer, status, text

    with OpenAIServer([status(429, retry_after=0.01), text("hello")]) as server:
        model = OpenAIChat("any", base_url=server.base_url)
        assert model.chat([Message.user("hi")]).text == "hello"
        assert len(server.requests) == 2

The script is a list, each behaviour for one request in the order of arrival, or a
function that is called with every `Request` (from several threads at once) and returns
a behaviour. A plain string stands for `text` of it. A conversation that the real API
refuses is refused here with HTTP 400.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How one request is answered: by a message, or by a `body` as it is.

    The functions below create one.
    """

    content: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    finish_reason: str = "stop"
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay: float = 0.0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived; header names are in lower case."""

    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        return self.body.get("messages", ())  # type: ignore[no-any-return]

    @property
    def prompt(self) -> str:
        """All that the conversation says, for scripts that look for something in it."""
        return "\n".join(str(message.get("content") or "") for message in self.messages)


#: Answers in turn, or whatever is to be answered to a request.
Script = Iterable[Behaviour | str] | Callable[[Request], Behaviour | str]


def text(content: str, *, finish_reason: str = "stop") -> Behaviour:
    """A reply; give it malformed JSON to play a model that writes some."""
    return Behaviour(content, finish_reason=finish_reason)


def json_text(value: Any) -> Behaviour:
    return text(json.dumps(value))


def tool_calls(*calls: tuple[str, Mapping[str, Any] | str]) -> Behaviour:
    """A reply of tool calls; arguments given as a string are sent unchanged."""
    raw = tuple(
        (name, arguments if isinstance(arguments, str) else json.dumps(dict(arguments)))
        for name, arguments in calls
    )
    return Behaviour(calls=raw, finish_reason="tool_calls")


def status(
    code: int,
    message: str = "",
    *,
    retry_after: float | None = None,
    param: str | None = None,
) -> Behaviour:
    """An error, such as 429 with ``Retry-After`` in seconds, about a field."""
    error = {"message": message or f"scripted error {code}", "param": param}
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Behaviour(
        code=code, headers=headers, body=json.dumps({"error": error}).encode()
    )


def cut(content: str = "this reply is never finished") -> Behaviour:
    """A reply whose connection is lost half-way."""
    return Behaviour(content, cut=True)


def slow(seconds: float, then: Behaviour | None = None) -> Behaviour:
    """An answer that takes its time; closing the server ends the wait."""
    return replace(then or text("late"), delay=seconds)


def body(content: str, content_type: str = "application/json") -> Behaviour:
    """A response that is no chat completion: half a JSON object, an HTML page."""
    return Behaviour(body=content.encode(), headers={"Content-Type": content_type})


class OpenAIServer(ThreadingHTTPServer):
    """The server; use it as a context manager.

    Parameters
    ----------
    script, default
        How requests are answered, and what is when a list is used up: by default, HTTP
        400.
    refuses
        Request fields that this endpoint does not support: it answers HTTP 400 to
        requests that have them.

    A client is given ``base_url``; ``requests`` has what came in, in order, and
    ``in_flight`` and ``most_in_flight`` say how many are being answered now, and were
    at most.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(
        self,
        script: Script = (),
        *,
        default: Behaviour | str | None = None,
        refuses: Collection[str] = (),
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.base_url = f"http://127.0.0.1:{self.server_port}/v1"
        self.requests: list[Request] = []
        self.in_flight = self.most_in_flight = 0
        self.closing, self.lock = threading.Event(), threading.Lock()
        self._script = script if callable(script) else iter(script)
        self._default = (
            status(400, "the script is used up") if default is None else default
        )
        self._refuses = frozenset(refuses)

    def __enter__(self) -> OpenAIServer:
        threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.closing.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the game."""

    def answer(self, request: Request) -> Behaviour:
        if problem := _problem(request):
            return status(400, problem, param="messages")
        for name in sorted(self._refuses & request.body.keys()):
            return status(
                400,
                f"Unsupported parameter: '{name}' is not supported with this model.",
                param=name,
            )
        if callable(self._script):
            behaviour = self._script(request)
        else:
            with self.lock:
                behaviour = next(self._script, self._default)
        return text(behaviour) if isinstance(behaviour, str) else behaviour


def _problem(request: Request) -> str | None:
    """What the real API would refuse.

    No messages, impossible names of tools, or calls and results that do not match.
    """
    open_calls: set[str] = set()
    for message in request.messages:
        calls = message.get("tool_calls") or ()
        if (message["role"] == "tool") != bool(open_calls):
            return (
                "tool messages must answer a preceding tool call, and each call"
                " needs one"
            )
        open_calls -= {message.get("tool_call_id", "")}
        open_calls |= {call["id"] for call in calls}
        if any(not _NAME.fullmatch(call["function"]["name"]) for call in calls):
            return "tool_calls: a name does not match '^[a-zA-Z0-9_-]+$'"
    return (
        f"tool calls have no answer: {sorted(open_calls)}"
        if open_calls or not request.messages
        else None
    )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: OpenAIServer

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""

    def do_POST(self) -> None:
        server, sent = (
            self.server,
            json.loads(self.rfile.read(int(self.headers["Content-Length"]))),
        )
        request = Request(
            {name.lower(): value for name, value in self.headers.items()}, sent
        )
        with server.lock:
            server.requests.append(request)
            server.in_flight += 1
            server.most_in_flight = max(server.most_in_flight, server.in_flight)
        try:
            behaviour = server.answer(request)
            if behaviour.delay and server.closing.wait(behaviour.delay):
                return
            streamed = behaviour.body is None and sent.get("stream")
            kind = "text/event-stream" if streamed else "application/json"
            data = (
                _completion(behaviour, request)
                if behaviour.body is None
                else behaviour.body
            )
            self.send_response(behaviour.code)
            for name, value in {
                "Content-Type": kind,
                "Content-Length": len(data),
                **behaviour.headers,
            }.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if behaviour.cut else data)
            self.close_connection |= behaviour.cut
        finally:
            with server.lock:
                server.in_flight -= 1
            self.close_connection |= server.closing.is_set()


def _completion(behaviour: Behaviour, request: Request) -> bytes:
    """A reply as one object or a stream, with its usage in words instead of tokens."""
    message: dict[str, Any] = {"role": "assistant", "content": behaviour.content}
    if behaviour.calls:
        message["tool_calls"] = [
            {
                "index": i,
                "id": f"call_{i}",
                "type": "function",
                "function": {"name": name, "arguments": raw},
            }
            for i, (name, raw) in enumerate(behaviour.calls)
        ]
    n_read = len(request.prompt.split())
    n_written = sum(
        len(some.split())
        for some in (behaviour.content or "", *(raw for _, raw in behaviour.calls))
    )
    usage = {
        "prompt_tokens": n_read,
        "completion_tokens": n_written,
        "total_tokens": n_read + n_written,
    }
    about = {"id": "chatcmpl-scripted", "created": 0, "model": "scripted"}
    end = {"index": 0, "finish_reason": behaviour.finish_reason}
    if not request.body.get("stream"):
        completion = {
            **about,
            "object": "chat.completion",
            "choices": [{**end, "message": message}],
            "usage": usage,
        }
        return json.dumps(completion).encode()
    calls = message.pop(
        "tool_calls", ()
    )  # one a chunk, as the real API has it: LlamaIndex's client reads no more
    deltas = [message, *({"tool_calls": [call]} for call in calls)]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    chunks += [{"choices": [{**end, "delta": {}}]}, {"choices": [], "usage": usage}]
    events = [
        *(
            json.dumps({**about, "object": "chat.completion.chunk", **chunk})
            for chunk in chunks
        ),
        "[DONE]",
    ]
    return "".join(f"data: {event}\n\n" for event in events).encode()

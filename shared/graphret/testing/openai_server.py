"""A local server that speaks OpenAI's chat completions API and misbehaves to order.

It listens on 127.0.0.1 at a free port, so that what is under test is the real client over real HTTP::

    from graphret.testing.openai_server import OpenAIServer, status, text, tool_call

    with OpenAIServer([status(429, retry_after=0.01), text("hello")]) as server:
        model = OpenAIChat("any", base_url=server.base_url)
        assert model.chat([Message.user("hi")]).text == "hello"
        assert len(server.requests) == 2

The script is a list, each behaviour for one request in the order of arrival, or a function that is called with every
`Request` (from several threads at once) and returns a behaviour. A plain string stands for `text` of it. What the
real API refuses is refused here with HTTP 400: unknown roles, tool calls that are left without an answer or have names
that no tool can have, answers to calls that nobody made.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from graphret.testing.openai_replies import completion_of, events_of

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How one request is answered; `text`, `tool_call` and the other functions here make the common ones.

    Parameters
    ----------
    content
        The text of the reply.
    calls
        The tool calls of the reply: names and raw arguments.
    code, headers
        The HTTP status and more headers; a status other than 200 sends an error body with `content` as its message.
    body, content_type
        What is sent instead of all that, as it is.
    delay
        Seconds to wait before answering.
    cut
        How the reply ends before its end: ``""`` not at all, ``reset`` by a lost connection half-way through,
        ``quiet`` by a stream that simply stops (in a reply that is not streamed, as ``reset``).
    finish_reason
        By default ``stop``, or ``tool_calls`` where there are calls; empty for a server that gives none.
    param
        In an error: the request field that it complains of.
    says_usage
        Whether the reply says what it cost; a stream says so only where it is asked to.
    """

    content: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    delay: float = 0.0
    cut: str = ""
    finish_reason: str | None = None
    param: str | None = None
    says_usage: bool = True


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at: float

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The conversation."""
        messages: Sequence[Mapping[str, Any]] = self.body.get("messages", ())
        return messages

    @property
    def prompt(self) -> str:
        """All that the conversation says, for scripts that look for something in it."""
        return "\n".join(str(message.get("content") or "") for message in self.messages)


Script = Iterable[Behaviour | str] | Callable[[Request], Behaviour | str]


def text(content: str, *, finish_reason: str = "stop") -> Behaviour:
    """A reply; give it malformed JSON to play a model that writes some."""
    return Behaviour(content=content, finish_reason=finish_reason)


def json_text(value: Any) -> Behaviour:
    """A reply that is this value as JSON."""
    return text(json.dumps(value))


def tool_call(name: str, arguments: Mapping[str, Any] | str = "{}") -> Behaviour:
    """A reply with one tool call; arguments that are a string are sent as they are, valid or not."""
    return tool_calls((name, arguments))


def tool_calls(*calls: tuple[str, Mapping[str, Any] | str]) -> Behaviour:
    """A reply with several tool calls."""
    raw = tuple((name, given if isinstance(given, str) else json.dumps(dict(given))) for name, given in calls)
    return Behaviour(calls=raw)


def status(code: int, message: str = "", *, retry_after: float | None = None, param: str | None = None) -> Behaviour:
    """An error: 429 with ``Retry-After`` in seconds, 500, 401."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Behaviour(content=message or f"scripted error {code}", code=code, headers=headers, param=param)


def cut(content: str = "this reply is never finished", *, quiet: bool = False) -> Behaviour:
    """A reply that breaks off half-way: by a lost connection, or quietly, as if that were all."""
    return Behaviour(content=content, cut="quiet" if quiet else "reset")


def slow(seconds: float, then: Behaviour | str = "late") -> Behaviour:
    """An answer that takes its time; closing the server ends the wait."""
    return replace(_behaviour(then), delay=seconds)


def empty() -> Behaviour:
    """A reply that says nothing."""
    return Behaviour(content="")


def body(content: bytes | str, content_type: str = "application/json") -> Behaviour:
    """A response that is no chat completion: half a JSON object, an HTML page."""
    return Behaviour(body=content.encode() if isinstance(content, str) else content, content_type=content_type)


class OpenAIServer:
    """The server; use it as a context manager, or call `start` and `close`.

    Parameters
    ----------
    script
        How requests are answered; see the module.
    default
        What is answered when a list is used up: by default, HTTP 400.
    refuses
        Request fields that this endpoint does not support: it answers HTTP 400 to requests that have them.
    model
        The model's name in replies and in ``GET /v1/models``.

    Attributes
    ----------
    requests
        What came in, in the order of arrival, including what was answered with an error.
    in_flight, most_in_flight
        How many requests are being answered now, and at most so far.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        default: Behaviour | str | None = None,
        refuses: Collection[str] = (),
        model: str = "scripted",
    ) -> None:
        self.model = model
        self.requests: list[Request] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self._script = script if callable(script) else iter(script)
        self._default = status(400, "the script is used up") if default is None else default
        self._refuses = frozenset(refuses)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http: _Server | None = None

    @property
    def base_url(self) -> str:
        """What a client is given: ``http://127.0.0.1:PORT/v1``."""
        if self._http is None:
            raise RuntimeError("the server is not started")
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def start(self) -> OpenAIServer:
        """Begin to listen."""
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def close(self) -> None:
        """Stop listening and end every wait."""
        self._closing.set()
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()

    def __enter__(self) -> OpenAIServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self, request: Request) -> Behaviour:
        """Record a request and say how it is answered."""
        with self._lock:
            self.requests.append(request)
        if problem := _problem(request.body):
            return status(400, problem, param="messages")
        for name in sorted(self._refuses & request.body.keys()):
            return status(400, f"Unsupported parameter: '{name}' is not supported with this model.", param=name)
        if callable(self._script):
            return _behaviour(self._script(request))
        with self._lock:
            return _behaviour(next(self._script, self._default))

    def _enter(self, step: int) -> None:
        with self._lock:
            self.in_flight += step
            self.most_in_flight = max(self.most_in_flight, self.in_flight)


def _behaviour(given: Behaviour | str) -> Behaviour:
    return text(given) if isinstance(given, str) else given


def _problem(request: Mapping[str, Any]) -> str | None:
    """What the real API would refuse in a request."""
    messages = request.get("messages")
    if not isinstance(request.get("model"), str) or not isinstance(messages, list) or not messages:
        return "'model' and a non-empty 'messages' are required"
    open_calls: set[str] = set()
    for position, message in enumerate(messages):
        where, role = f"messages[{position}]", message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                return f"{where}: a tool message must answer a preceding tool call"
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            return f"{where}: the tool calls {sorted(open_calls)} have no answer"
        if role not in ("system", "developer", "user", "assistant"):
            return f"{where}: unknown role {role!r}"
        open_calls = {call["id"] for call in message.get("tool_calls") or ()}
        for call in message.get("tool_calls") or ():
            if not _NAME.fullmatch(call["function"]["name"]):
                return f"{where}.tool_calls: {call['function']['name']!r} does not match the pattern '^[a-zA-Z0-9_-]+$'"
        if message.get("content") is None and not open_calls:
            return f"{where}: 'content' is required"
    return f"the tool calls {sorted(open_calls)} have no answer" if open_calls else None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    owner: OpenAIServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the game."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        if not self.path.endswith("/models"):
            return self._send(404, _error("no such path"))
        model = {"id": self.server.owner.model, "object": "model", "created": 0, "owned_by": "graphret"}
        return self._send(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        owner = self.server.owner
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.endswith("/chat/completions"):
            return self._send(404, _error("no such path"))
        try:
            sent = json.loads(raw)
        except ValueError:
            return self._send(400, _error("the request is not JSON"))
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner._enter(+1)
        try:
            behaviour = owner._answer(Request(self.path, headers, sent, time.monotonic()))
            if behaviour.delay and owner._closing.wait(behaviour.delay):
                return self._hang_up()
            return self._play(behaviour, sent)
        finally:
            owner._enter(-1)

    def _play(self, behaviour: Behaviour, sent: Mapping[str, Any]) -> None:
        if behaviour.body is not None:
            return self._send(behaviour.code, behaviour.body, behaviour)
        if behaviour.code != 200:
            return self._send(behaviour.code, _error(behaviour.content or "", behaviour.param), behaviour)
        completion = completion_of(behaviour, sent, self.server.owner.model)
        if sent.get("stream"):
            return self._stream(behaviour, completion, sent)
        return self._send(200, completion, behaviour)

    def _send(self, code: int, content: Mapping[str, Any] | bytes, behaviour: Behaviour | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(code)
        for name, value in (behaviour.headers if behaviour else {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", behaviour.content_type if behaviour else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if behaviour and behaviour.cut:
            self.wfile.write(data[: len(data) // 2])
            return self._hang_up()
        self.wfile.write(data)
        return None

    def _stream(self, behaviour: Behaviour, completion: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        events = events_of(completion, bool((sent.get("stream_options") or {}).get("include_usage")))
        for event in events[: len(events) // 2] if behaviour.cut else events:
            self._chunk(f"data: {json.dumps(event)}\n\n")
        if behaviour.cut == "reset":
            return self._hang_up()
        if not behaviour.cut:
            self._chunk("data: [DONE]\n\n")
        self._chunk("")
        return None

    def _chunk(self, data: str) -> None:
        raw = data.encode()
        self.wfile.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")
        self.wfile.flush()

    def _hang_up(self) -> None:
        """Drop the connection after what was written: not an orderly end, so the client sees that it was lost."""
        self.close_connection = True
        try:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass


def _error(message: str, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "scripted", "param": param, "code": None}}

"""What graphret knows of a language model: messages in, a reply out.

`ChatModel` is the whole contract.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import (
    Any,
    Literal,
    Protocol,
    TypedDict,
    Unpack,
    get_args,
    runtime_checkable,
)

from graphret.errors import InvalidInput, ModelError

Role = Literal["system", "user", "assistant", "tool"]
#: Most characters of a call's arguments, and of what an agent keeps of a reply's text.
MOST_CHARS = 100_000


@dataclass(frozen=True)
class ToolCall:
    """A model's request to run a tool.

    The answer to the call refers to its `id`; its `name` need not be that of a tool
    that was offered. `arguments` are as the model wrote them, so they can be anything.
    The empty string and ``null`` count as none.

    Examples
    --------
    >>> ToolCall("1", "search", '{"query": "ionic"}').parsed
    {'query': 'ionic'}
    >>> ToolCall("1", "search", '["ionic"]').error
    'the arguments of search are a list, not a JSON object'
    """

    id: str
    name: str
    arguments: str = "{}"

    @property
    def parsed(self) -> dict[str, Any] | None:
        """The arguments as an object; `None` where they are not one."""
        return self._read if isinstance(self._read, dict) else None

    @property
    def error(self) -> str | None:
        """Why the arguments are no JSON object, for the model; `None` if they are."""
        return self._read if isinstance(self._read, str) else None

    @cached_property
    def _read(self) -> dict[str, Any] | str:
        from pydantic_core import from_json

        from graphret.llm.json_text import json_values, read_object

        # how some endpoints write that a tool without arguments is called
        if self.arguments.strip() in ("", "null"):
            return {}
        if len(self.arguments) > MOST_CHARS:
            return (
                f"the arguments of {self.name} have more than {MOST_CHARS:,} characters"
            )
        try:
            value = from_json(self.arguments, allow_inf_nan=False)
        except ValueError as problem:
            value = next(json_values(self.arguments), None)
            if not isinstance(value, dict):
                return f"the arguments of {self.name} are not valid JSON: {problem}"
        value = read_object(value)  # some write the object as a text in JSON
        try:  # 1e400 is read as infinite, and half a character as one
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except ValueError as problem:
            return f"the arguments of {self.name} are not valid JSON: {problem}"
        if not isinstance(value, dict):
            return (
                f"the arguments of {self.name} are a {type(value).__name__}, not a JSON"
                " object"
            )
        return value

    def to_dict(self) -> dict[str, Any]:
        """The call in the format of OpenAI's chat messages."""
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": self.arguments},
        }


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `system`, `user`, `assistant` and `tool` make them.

    `tool_calls` is what an assistant asks to be run; `tool_call_id` and `name`, in a
    ``tool`` message, are the id of the call that this answers and the tool that ran.
    `native` is as in `Reply`; what another model left there is ignored. An
    `InvalidInput` says that the role is unknown, calls stand outside an assistant's
    message, or a tool's answers no call.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    native: Mapping[str, Any] | None = field(default=None, hash=False, repr=False)

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise InvalidInput(
                f"Message.role: {self.role!r} is none of {', '.join(get_args(Role))}"
            )
        if self.tool_calls and self.role != "assistant":
            raise InvalidInput(
                f"Message.tool_calls: only an assistant calls tools, not a {self.role}"
            )
        if (self.role == "tool") != (self.tool_call_id is not None):
            raise InvalidInput(
                "Message.tool_call_id: a tool message, and no other, names the call"
                " that it answers"
            )

    @classmethod
    def system(cls, content: str) -> Message:
        """Instructions to the model."""
        return cls("system", content)

    @classmethod
    def user(cls, content: str) -> Message:
        """What is asked."""
        return cls("user", content)

    @classmethod
    def assistant(
        cls,
        content: str = "",
        tool_calls: Sequence[ToolCall] = (),
        native: Mapping[str, Any] | None = None,
    ) -> Message:
        """What the model said; `Reply.message` makes this of a reply."""
        return cls("assistant", content, tuple(tool_calls), native=native)

    @classmethod
    def tool(cls, call: ToolCall, content: str) -> Message:
        """The result of running `call`, or what went wrong."""
        return cls("tool", content, tool_call_id=call.id, name=call.name)

    def to_dict(self, *, native: bool = False) -> dict[str, Any]:
        """The message in OpenAI's format; with `native` on request.

        Chat templates and fine-tuning files share this format.
        """
        out: dict[str, Any] = {"role": self.role, "content": self.content}
        out |= {
            "tool_calls": [call.to_dict() for call in self.tool_calls] or None,
            "tool_call_id": self.tool_call_id,
        }
        out |= {
            "name": self.name,
            "native": dict(self.native) if native and self.native is not None else None,
        }
        return {key: value for key, value in out.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """The inverse of `to_dict`; raises `InvalidInput` on malformed data."""
        try:
            id_and_function = [
                (call["id"], call["function"]) for call in data.get("tool_calls") or ()
            ]
            calls = tuple(
                ToolCall(str(id_), str(call["name"]), str(call["arguments"]))
                for id_, call in id_and_function
            )
            content, native = data.get("content") or "", data.get("native")
            return cls(
                data["role"],
                content,
                calls,
                data.get("tool_call_id"),
                data.get("name"),
                native,
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise InvalidInput(
                f"Message: malformed, {type(problem).__name__}: {problem}"
            ) from problem


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model may call.

    Its name has at most 64 letters, digits, ``_`` and ``-``.

    The model reads the description; the parameters are a JSON schema of the arguments,
    an object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}}, hash=False
    )

    def to_dict(self) -> dict[str, Any]:
        """The tool in OpenAI's format."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that were read and written; add them up with ``+``.

    Zero where the endpoint does not say.
    """

    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer.

    The `text` is empty when it only calls tools, or said nothing. `finish_reason` says
    why it stopped: ``stop``, ``length`` (cut at the token limit), ``tool_calls``,
    ``content_filter``, ``refusal``; `model` is the one that answered, as the endpoint
    names it. `native` is what its provider wants handed back with this turn, as its
    reasoning or a signature: JSON, by the name of the adapter and the model that alone
    read it; `None` where the rest says all. `logprobs` has for each token of the text
    the likeliest tokens there with their log-probabilities; it is empty where none were
    asked for or the endpoint gives none.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish_reason: str = "stop"
    model: str = ""
    native: Mapping[str, Any] | None = field(default=None, hash=False, repr=False)
    logprobs: Sequence[Mapping[str, float]] = field(default=(), hash=False, repr=False)

    @property
    def message(self) -> Message:
        """The reply as a message, to be appended to the conversation."""
        return Message.assistant(self.text, self.tool_calls, self.native)


class ChatOptions(TypedDict, total=False):
    """The options of a chat call; omitted ones are up to the implementation.

    `json_schema` asks for JSON of this schema. That is a wish, not a guarantee: a model
    that cannot enforce it ignores it, so say it in the messages too and validate the
    answer; `ask_json` does both. `timeout` is in seconds. `top_logprobs` asks for the
    log-probabilities of so many tokens at each place of the reply.
    """

    tools: Sequence[Tool] | None
    temperature: float | None
    max_tokens: int | None
    json_schema: Mapping[str, Any] | None
    timeout: float | None
    top_logprobs: int | None


@runtime_checkable
class ChatModel(Protocol):
    """A language model that answers a conversation, synchronously and asynchronously.

    Implementations are safe to call from several threads and tasks at once, retry what
    is worth retrying themselves, and raise `ChatError` for what remains; they return
    the model's output unchecked.
    """

    @property
    def name(self) -> str:
        """The model's name, as traces and cache keys show it."""

    def chat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """Answer a conversation in which every tool call has been answered.

        A `ModelError` says that the model cannot be reached, refuses the request, or
        answers with something that is not a reply.
        """

    async def achat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """`chat` without blocking the event loop; cancelling abandons the request."""


class ChatError(ModelError):
    """A chat model failed.

    Attributes
    ----------
    model
        The model's name.
    reason
        ``authentication``, ``bad_request``, ``not_found``, ``rate_limit``, ``server``,
        ``timeout``, ``connection`` (unreachable, or cut), or ``invalid_reply`` (it
        answered with what cannot be used).
    status
        The HTTP status, where there was one.
    usage
        Tokens that were spent all the same.
    """

    def __init__(
        self,
        message: str,
        *,
        model: str,
        reason: str,
        status: int | None = None,
        usage: Usage | None = None,
    ) -> None:
        shown = f"HTTP {status}, {reason}" if status is not None else reason
        super().__init__(f"{model}: {shown}: {message}")
        self.model = model
        self.reason = reason
        self.status = status
        self.usage = usage or Usage()

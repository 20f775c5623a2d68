"""Tool calls of any chat model: native ones, or JSON in their place."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    Field,
    TypeAdapter,
    model_validator,
)

from graphret.llm.chat import ChatError, ChatModel, Message, Reply, Tool, ToolCall
from graphret.llm.json_text import read_object
from graphret.llm.schema import plain_schema
from graphret.llm.structured import (
    StructuredReply,
    aask_json,
    ask_json,
    with_schema,
)
from graphret.retriever import Call, adrive, drive

_REFUSED = re.compile(r"\btools?\b|\bfunctions?\b", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context|too long|length of the messages", re.IGNORECASE
)  # "long in the functions"
# How endpoints say that they have no tools: most by 400 or 422, routers by 404, and
# some servers by 500 or 501.
_REFUSALS = ("bad_request", "not_found", "server")
_INSTRUCTION = """\
You act by calling tools. They are:

{tools}

Answer each turn with the calls to make now: {{"calls": [{{"tool": "name", "arguments": {{…}}}}]}}. What they
return comes in the next turn."""

_IN_SHORT = """\
Answer each turn with calls, in JSON alone: {{"calls": [{{"tool": "name", "arguments": {{…}}}}]}}
{tools}"""


# What is around a name: a namespace, a number, tokens of the chat format, brackets.
_AROUND_NAME = re.compile(r"[^\w-]+")


class _Call(BaseModel):
    """A call as JSON, also by the names that other formats have for its parts."""

    tool: str = Field(validation_alias=AliasChoices("tool", "name", "tool_name"))
    arguments: Annotated[dict[str, Any], BeforeValidator(read_object)] = Field(
        {}, validation_alias=AliasChoices("arguments", "parameters", "args", "input")
    )

    @model_validator(mode="before")
    @classmethod
    def _function(cls, written: Any) -> Any:
        """OpenAI's format, in which the call is in a part of its own."""
        function = written.get("function") if isinstance(written, Mapping) else None
        if isinstance(function, str):
            return {"tool": function, **written}
        return function or written


class _Calls(BaseModel):
    calls: list[_Call]

    @model_validator(mode="before")
    @classmethod
    def _one_call(cls, written: Any) -> Any:
        if isinstance(written, Mapping) and "calls" not in written:
            return {"calls": [written]}
        return written


class ToolCaller:
    """A chat model that calls tools, made of one that may not be able to.

    The model's own tool calls are tried first. Where it has called none so far, and
    refuses tools or answers in words as if there were none, it is asked for the calls
    as JSON from then on, with the tools described in the system message and what they
    returned in user messages. A `ChatError` says that it fails, or can do neither.

    Parameters
    ----------
    short
        Whether the tools are described in a line each, without the schema of the JSON.
    """

    def __init__(self, model: ChatModel, *, short: bool = False) -> None:
        self.model, self.short = model, short
        self.name = model.name
        self._calls_tools = False  # it has called some
        self._by_json = ""  # why it is asked for JSON, once it is

    def chat(
        self, messages: Sequence[Message], *, tools: Sequence[Tool] = (), **options: Any
    ) -> Reply:
        """Answer a conversation; see `ChatModel.chat`."""
        return drive(self._plan(messages, tools, options))

    async def achat(
        self, messages: Sequence[Message], *, tools: Sequence[Tool] = (), **options: Any
    ) -> Reply:
        """Answer a conversation; see `ChatModel.achat`."""
        return await adrive(self._plan(messages, tools, options))

    def _plan(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        options: dict[str, Any],
    ) -> Generator[Call[Any], Any, Reply]:
        """What to ask the model, and what to make of its answers."""
        in_words = Reply()
        if not self._by_json:
            offer: dict[str, Any] = {"tools": tuple(tools), **options}
            try:
                reply: Reply = yield Call(
                    partial(self.model.chat, messages, **offer),
                    partial(self.model.achat, messages, **offer),
                )
            except ChatError as error:
                if self._calls_tools or not _refuses_tools(error):
                    raise
                self._by_json, in_words = str(error), Reply(usage=error.usage)
            else:
                reply = _with_offered_names(reply, tools)
                self._calls_tools = self._calls_tools or bool(reply.tool_calls)
                if self._calls_tools or not reply.text.strip():
                    return reply
                in_words = reply
        request: Any = {
            "messages": _as_text(messages, tools, self.short),
            "schema": _Calls,
            "state_schema": not self.short,
            **options,
        }
        try:
            answer: StructuredReply[_Calls] = yield Call(
                partial(ask_json, self.model, **request),
                partial(aask_json, self.model, **request),
            )
        except ChatError as error:
            return self._without_calls(error, in_words)
        self._by_json = self._by_json or "it answered in words"
        turn = sum(message.role == "assistant" for message in messages)
        calls = _tool_calls(answer.value.calls, turn)
        reply = Reply(
            "",
            calls,
            answer.usage + in_words.usage,
            "tool_calls" if calls else "stop",
            self.name,
        )
        return _with_offered_names(reply, tools)

    def _without_calls(self, error: ChatError, in_words: Reply) -> Reply:
        """Return what the model said in words when it could not say calls in JSON."""
        error.usage += in_words.usage
        if error.reason not in ("invalid_reply", "bad_request"):
            raise error
        if in_words.text:
            return replace(in_words, usage=error.usage)
        why = (
            f"the model neither takes tools ({self._by_json}) nor answers in JSON"
            f" ({error})"
        )
        raise ChatError(
            why, model=self.name, reason=error.reason, usage=error.usage
        ) from error


def _refuses_tools(error: ChatError) -> bool:
    """Whether an endpoint says that it has no tools."""
    reason = str(error)
    return (
        error.reason in _REFUSALS
        and _REFUSED.search(reason) is not None
        and _TOO_LONG.search(reason) is None
    )


def _with_offered_names(reply: Reply, tools: Sequence[Tool]) -> Reply:
    """A reply whose calls name the tools as offered, where it is clear which one it is.

    ``functions.global_search:0`` and ``Global-Search`` are ``global_search``.
    """
    offered = {_plain(tool.name): tool.name for tool in tools}
    calls = tuple(
        replace(call, name=_offered_name(call.name, offered))
        for call in reply.tool_calls
    )
    if calls == reply.tool_calls:
        return reply
    return replace(reply, tool_calls=calls, native=None)  # which has the other names


def _offered_name(name: str, offered: Mapping[str, str]) -> str:
    if name in offered.values():
        return name
    matches = {
        offered[_plain(part)]
        for part in (name, *_AROUND_NAME.split(name))
        if _plain(part) in offered
    }
    return matches.pop() if len(matches) == 1 else name


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def _tool_calls(calls: Sequence[_Call], turn: int) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(
            f"call_{turn}_{number}",
            call.tool,
            json.dumps(call.arguments, ensure_ascii=False),
        )
        for number, call in enumerate(calls)
    )


def as_json_calls(
    messages: Sequence[Message], tools: Sequence[Tool], *, short: bool = False
) -> list[Message]:
    """Return a conversation as a model without tools has it, its calls as JSON."""
    conversation = _as_text(messages, tools, short)
    schema = plain_schema(TypeAdapter(_Calls).json_schema())
    return conversation if short else with_schema(conversation, schema)


def _as_text(
    messages: Sequence[Message], tools: Sequence[Tool], short: bool
) -> list[Message]:
    """A conversation without tool calls: they are JSON, results are user messages."""
    described = "\n".join(map(_line if short else _definition, tools))
    instruction = _IN_SHORT if short else _INSTRUCTION
    out = [Message.system(instruction.format(tools=described))]
    for message in messages:
        content = (
            f"{message.name} returned:\n{message.content}"
            if message.role == "tool"
            else message.content
        )
        if message.role == "system":
            out[0] = Message.system(f"{content}\n\n{out[0].content}")
        elif message.role == "assistant":
            calls = [
                {"tool": call.name, "arguments": call.parsed or {}}
                for call in message.tool_calls
            ]
            out.append(
                Message.assistant(
                    json.dumps({"calls": calls}, ensure_ascii=False)
                    if calls
                    else content
                )
            )
        elif out[-1].role == "user" and len(out) > 2:
            out.append(Message.user(f"{out.pop().content}\n\n{content}"))
        else:
            out.append(Message.user(content))
    return out


def _definition(tool: Tool) -> str:
    return json.dumps(tool.to_dict()["function"], ensure_ascii=False)


def _line(tool: Tool) -> str:
    arguments = ", ".join(tool.parameters.get("properties", ()))
    return f"{tool.name}({arguments}): {tool.description}"

"""Tool calls of any chat model: its own where it has them, JSON that stands for them where it has not."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from typing_extensions import TypedDict

from graphret.ark.observation import encodable
from graphret.llm.chat import ChatError, ChatModel, Message, Reply, Tool, ToolCall, Usage
from graphret.llm.openai_wire import FORMAT_REFUSED
from graphret.llm.structured import Answer, aask_json, ask_json
from graphret.retriever import Call, adrive, drive
from graphret.schema.text import estimate_tokens

_REFUSED = re.compile(r"\btools?\b|\bfunctions?\b", re.IGNORECASE)
_TOO_LONG = re.compile(r"context|too long|length of the messages", re.IGNORECASE)
# How endpoints say that they have no tools: most by 400 or 422, routers by 404, and some servers by 500 or 501.
_REFUSALS = ("bad_request", "not_found", "server")
_UNUSABLE = ("invalid_reply", "bad_request")
_INSTRUCTION = """\
You act by calling tools. They are:

{tools}

Answer each turn with the calls to make now: {{"calls": [{{"tool": "name", "arguments": {{…}}}}]}}. What they
return comes in the next turn."""


class _Call(TypedDict):
    tool: str
    arguments: dict[str, Any]


class _Calls(TypedDict):
    calls: list[_Call]


class ToolCaller:
    """A chat model that calls tools, made of one that may not be able to.

    The model's own tool calls are tried first. Where it has called none so far, and refuses tools or answers in words
    as if there were none, it is asked for the calls as JSON from then on, with the tools described in the system
    message and what they returned in user messages. Where its endpoint does not say what a reply cost, the tokens are
    estimated.

    Parameters
    ----------
    model
        Any `ChatModel`.
    """

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self.name = model.name
        self._calls_tools = False  # it has called some
        self._by_json = ""  # why it is asked for JSON, once it is
        self._native_schema = True  # whether the endpoint takes the schema of the answer

    def chat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        """Answer a conversation; see `achat`."""
        return _counted(drive(self._plan(messages, tools or (), options), _work), messages, tools or ())

    async def achat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        """Answer a conversation; see `ChatModel.achat`.

        Raises
        ------
        ChatError
            When the model fails, or neither takes tools nor answers in JSON.
        """
        return _counted(await adrive(self._plan(messages, tools or (), options), _awaited), messages, tools or ())

    def _plan(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: dict[str, Any]
    ) -> Generator[Call[Any], Any, Reply]:
        """What to ask the model, and what to make of its answers; errors of the model come back as values."""
        said, spent = None, Usage()
        if not self._by_json:
            given = {"tools": tuple(tools) or None, **options}
            outcome = yield Call(
                partial(self.model.chat, messages, **given), partial(self.model.achat, messages, **given)
            )
            if isinstance(outcome, ChatError):
                if not tools or self._calls_tools or not _refuses(outcome, _REFUSED):
                    raise outcome
                self._by_json, spent = str(outcome), outcome.usage
            else:
                said = cast("Reply", outcome)
                self._calls_tools = self._calls_tools or bool(said.tool_calls)
                if not tools or self._calls_tools or not said.text.strip():
                    return said
                said = _counted(said, messages, tools)
                spent = said.usage
        asked = _as_text(messages, tools)
        while True:
            native = self._native_schema
            outcome = yield Call(
                partial(ask_json, self.model, asked, _Calls, native=native, **options),
                partial(aask_json, self.model, asked, _Calls, native=native, **options),
            )
            if not isinstance(outcome, ChatError):
                self._by_json = self._by_json or "it answered in words"
                return _reply(outcome, messages, spent, self.name)
            spent += outcome.usage
            if native and (_refuses(outcome, _REFUSED) or _refuses(outcome, FORMAT_REFUSED)):
                self._native_schema = False
            elif said is not None and outcome.reason in _UNUSABLE:
                return replace(said, usage=spent)
            elif outcome.reason not in _UNUSABLE:
                outcome.usage = spent
                raise outcome
            else:
                why = f"the model neither takes tools ({self._by_json}) nor answers in JSON ({outcome})"
                raise ChatError(why, model=self.name, reason=outcome.reason, usage=spent) from outcome


def _work(step: Call[Any]) -> Any:
    """Ask; an error of the model comes back as a value."""
    try:
        return step.work()
    except ChatError as error:
        return error


async def _awaited(step: Call[Any]) -> Any:
    try:
        return await step.awaited()
    except ChatError as error:
        return error


def _reply(answer: Answer[_Calls], messages: Sequence[Message], spent: Usage, model: str) -> Reply:
    turn = sum(message.role == "assistant" for message in messages)
    calls = tuple(
        ToolCall(f"call_{turn}_{number}", call["tool"], json.dumps(call["arguments"], ensure_ascii=False))
        for number, call in enumerate(answer.value["calls"])
    )
    return Reply("", calls, answer.usage + spent, "tool_calls" if calls else "stop", model)


def _refuses(error: ChatError, what: re.Pattern[str]) -> bool:
    """Whether a model refused something as such; a conversation that is too long can be "long in the functions"."""
    said = str(error)
    return error.reason in _REFUSALS and bool(what.search(said)) and not _TOO_LONG.search(said)


def _as_text(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """A conversation with tool calls as one without: calls as JSON, what they returned in the next user message."""
    described = "\n".join(
        f"- {tool.name}: {tool.description}\n  arguments: {json.dumps(tool.parameters, ensure_ascii=False)}"
        for tool in tools
    )
    out = [Message.system(_INSTRUCTION.format(tools=described))]
    for message in messages:
        content = f"{message.name} returned:\n{message.content}" if message.role == "tool" else message.content
        if message.role == "system":
            out[0] = Message.system(f"{content}\n\n{out[0].content}")
        elif message.role == "assistant":
            calls = [{"tool": call.name, "arguments": call.parsed or {}} for call in message.tool_calls]
            out.append(Message.assistant(json.dumps({"calls": calls}, ensure_ascii=False) if calls else content))
        elif out[-1].role == "user" and len(out) > 2:
            out.append(Message.user(f"{out.pop().content}\n\n{content}"))
        else:
            out.append(Message.user(content))
    return out


def _counted(reply: Reply, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
    """The reply with its tokens: the endpoint's, or an estimate that says that it is one."""
    if reply.usage.total_tokens:
        return reply
    offered = sum(estimate_tokens(json.dumps(tool.to_dict(), ensure_ascii=False)) for tool in tools)
    usage = Usage(offered + sum(map(_tokens, messages)), _tokens(reply.message), estimated=True)
    return replace(reply, usage=usage)


def _tokens(message: Message) -> int:
    said = estimate_tokens(
        encodable(message.content + "".join(call.name + call.arguments for call in message.tool_calls))
    )
    native = json.dumps(message.native, ensure_ascii=False, default=str) if message.native else ""
    return max(said, estimate_tokens(encodable(native)))  # of what was thought, with or without what was said

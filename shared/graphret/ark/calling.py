"""Tool calls of any chat model: its own where it has them, JSON that stands for them where it has not."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from typing_extensions import TypedDict

from graphret.ark.spending import Counted
from graphret.llm.chat import ChatError, ChatModel, Message, Reply, Tool, ToolCall, Usage
from graphret.llm.openai_wire import FORMAT_REFUSED
from graphret.llm.structured import Answer, aask_json, ask_json
from graphret.retriever import Call

_REFUSED = re.compile(r"\btools?\b|\bfunctions?\b", re.IGNORECASE)
_TOO_LONG = re.compile(r"context|too long|length of the messages", re.IGNORECASE)
_UNUSABLE = ("invalid_reply", "bad_request")
# How endpoints say that they have no tools: most by 400 or 422, routers by 404, and some servers by 500 or 501.
_REFUSALS = ("bad_request", "not_found", "server")
_TALKED_OFTEN = 2
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
    as if there were none, it is asked for the calls as JSON, with the tools described in the system message and what
    they returned in user messages: from then on where it refused, or where it was the second time. Where its endpoint
    does not say what a reply cost, the tokens of that are estimated.

    Parameters
    ----------
    model
        Any `ChatModel`.
    """

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self._counted = Counted(model)
        self.name = model.name
        self._calls_tools = False  # it has called some
        self._by_json = ""  # why it is asked for JSON, once it is
        self._schema_as_such = True  # whether the schema is handed over, and not only told
        self._wrote_json = False
        self._talked = 0  # how often it answered in words to an offer of tools

    def chat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        """Answer a conversation; see `achat`."""
        plan = self._plan(messages, tools or (), options)
        outcome: Any = None
        while True:
            try:
                step = plan.send(outcome)
            except StopIteration as done:
                return cast("Reply", done.value)
            try:
                outcome = step.work()
            except ChatError as error:
                outcome = error

    async def achat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        """Answer a conversation; see `ChatModel.achat`.

        Raises
        ------
        ChatError
            When the model fails, or neither takes tools nor answers in JSON.
        """
        plan = self._plan(messages, tools or (), options)
        outcome: Any = None
        while True:
            try:
                step = plan.send(outcome)
            except StopIteration as done:
                return cast("Reply", done.value)
            try:
                outcome = await step.awaited()
            except ChatError as error:
                outcome = error

    def _plan(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: dict[str, Any]
    ) -> Generator[Call[Any], Any, Reply]:
        """What to ask the model, and what to make of its answers; errors of the model come back as values."""
        model, said, spent = self._counted, None, Usage()
        if not tools or not self._by_json:
            given = tuple(tools) or None
            outcome = yield Call(
                partial(model.chat, messages, tools=given, **options),
                partial(model.achat, messages, tools=given, **options),
            )
            if isinstance(outcome, ChatError):
                if not tools or self._calls_tools or not _refuses_tools(outcome):
                    raise outcome
                self._by_json = str(outcome)
                spent = outcome.usage
            else:
                said = cast("Reply", outcome)
                spent = said.usage
                self._calls_tools = self._calls_tools or bool(said.tool_calls)
                if not tools or self._calls_tools or not said.text.strip():
                    return said
                self._talked += 1
        asked = _as_text(messages, tools)
        options = {name: value for name, value in options.items() if name != "json_schema"}
        while True:
            native = self._schema_as_such
            outcome = yield Call(
                partial(ask_json, model, asked, _Calls, native=native, **options),
                partial(aask_json, model, asked, _Calls, native=native, **options),
            )
            if not isinstance(outcome, ChatError):
                return self._reply(outcome, messages, spent)
            spent += outcome.usage
            if native and _refuses_schema(outcome):
                self._schema_as_such = False
            elif said is not None and outcome.reason in _UNUSABLE:
                return replace(said, usage=spent)
            else:
                raise self._hopeless(outcome, spent)

    def _hopeless(self, error: ChatError, spent: Usage) -> ChatError:
        """What is raised where the model did not answer in JSON: one error that says both, the first time."""
        if error.reason not in _UNUSABLE or self._wrote_json:
            error.usage = spent
            return error
        return ChatError(
            f"the model neither takes tools ({self._by_json}) nor answers in JSON ({error})",
            model=self.name,
            reason=error.reason,
            usage=spent,
        )

    def _reply(self, answer: Answer[_Calls], messages: Sequence[Message], spent: Usage) -> Reply:
        self._wrote_json = True
        if self._talked >= _TALKED_OFTEN:
            self._by_json = self._by_json or "it answered in words"
        turn = sum(message.role == "assistant" for message in messages)
        calls = tuple(
            ToolCall(f"call_{turn}_{number}", call["tool"], json.dumps(call["arguments"], ensure_ascii=False))
            for number, call in enumerate(answer.value["calls"])
        )
        return Reply("", calls, answer.usage + spent, "tool_calls" if calls else "stop", self.name)


def _refuses_tools(error: ChatError) -> bool:
    """Whether a model refused tools as such; a conversation that is too long can be "long in the functions" too."""
    return _refuses(error, _REFUSED)


def _refuses_schema(error: ChatError) -> bool:
    """Whether a model refused the schema of its answer as such, which may have been handed over as a tool."""
    return _refuses(error, _REFUSED) or _refuses(error, FORMAT_REFUSED)


def _refuses(error: ChatError, what: re.Pattern[str]) -> bool:
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
        if message.role == "system":
            out[0] = Message.system(f"{message.content}\n\n{out[0].content}")
        elif message.tool_calls:
            calls = [{"tool": call.name, "arguments": call.parsed or {}} for call in message.tool_calls]
            out.append(Message.assistant(json.dumps({"calls": calls}, ensure_ascii=False)))
        elif message.role == "tool":
            told = f"{message.name} returned:\n{message.content}"
            if out[-1].role == "user" and len(out) > 2:
                told = f"{out.pop().content}\n\n{told}"
            out.append(Message.user(told))
        elif message.role == "user" and out[-1].role == "user":
            out.append(Message.user(f"{out.pop().content}\n\n{message.content}"))
        else:
            out.append(message)
    return out

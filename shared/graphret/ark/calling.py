"""Tool calls of any chat model: its own where it has them, JSON that stands for them where it has not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from graphret.llm.chat import ChatError, ChatModel, Message, Reply, Tool, ToolCall
from graphret.llm.structured import Answer, aask_json, ask_json

_REFUSED = re.compile(r"\btools?\b|\bfunctions?\b", re.IGNORECASE)
_TOO_LONG = re.compile(r"context|too long|length of the messages", re.IGNORECASE)
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

    The model's own tool calls are tried first. Where it refuses tools it is asked for the calls as JSON from then on,
    with the tools described in the system message and what they returned in user messages.

    Parameters
    ----------
    model
        Any `ChatModel`.
    """

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self.name = model.name
        self._refusal: ChatError | None = None
        self._answered = False
        self._native = True
        self._calls_tools = False

    def chat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        """Answer a conversation; see `achat`."""
        if self._refusal is None or not tools:
            try:
                return self._took(self.model.chat(messages, tools=tools, **options))
            except ChatError as error:
                self._note_refusal(error, tools)
        asked, options = _as_text(messages, tools or ()), _without_schema(options)
        while True:
            native = self._native
            try:
                return self._reply(ask_json(self.model, asked, _Calls, native=native, **options), messages)
            except ChatError as error:
                self._step_down(error, native)

    async def achat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        """Answer a conversation; see `ChatModel.achat`.

        Raises
        ------
        ChatError
            When the model fails, or neither takes tools nor answers in JSON.
        """
        if self._refusal is None or not tools:
            try:
                return self._took(await self.model.achat(messages, tools=tools, **options))
            except ChatError as error:
                self._note_refusal(error, tools)
        asked, options = _as_text(messages, tools or ()), _without_schema(options)
        while True:
            native = self._native
            try:
                return self._reply(await aask_json(self.model, asked, _Calls, native=native, **options), messages)
            except ChatError as error:
                self._step_down(error, native)

    def _took(self, reply: Reply) -> Reply:
        self._calls_tools = self._calls_tools or bool(reply.tool_calls)
        return reply

    def _note_refusal(self, error: ChatError, tools: Sequence[Tool] | None) -> None:
        """Remember that the model takes no tools; raise what is another error."""
        if not tools or self._calls_tools or not _refuses_tools(error):
            raise error
        self._refusal = error

    def _step_down(self, error: ChatError, native: bool) -> None:
        """Go on by words alone where the schema was handed over as a tool; raise any other error."""
        if native and _refuses_tools(error):
            self._native = False
            return
        if error.reason not in ("invalid_reply", "bad_request") or self._answered:
            raise error
        raise ChatError(
            f"the model neither takes tools ({self._refusal}) nor answers in JSON ({error})",
            model=self.name,
            reason=error.reason,
            usage=error.usage,
        ) from error

    def _reply(self, answer: Answer[_Calls], messages: Sequence[Message]) -> Reply:
        self._answered = True
        turn = sum(message.role == "assistant" for message in messages)
        calls = tuple(
            ToolCall(f"call_{turn}_{number}", call["tool"], json.dumps(call["arguments"], ensure_ascii=False))
            for number, call in enumerate(answer.value["calls"])
        )
        return Reply("", calls, answer.usage, "tool_calls" if calls else "stop", self.name)


def _refuses_tools(error: ChatError) -> bool:
    """Whether a model refused tools as such; a conversation that is too long can be "long in the functions" too."""
    said = str(error)
    return error.reason == "bad_request" and bool(_REFUSED.search(said)) and not _TOO_LONG.search(said)


def _without_schema(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "json_schema"}


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

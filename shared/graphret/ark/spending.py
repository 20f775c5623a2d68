"""What replies cost: what the endpoint says, and an estimate where it says nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from graphret.ark.sendable import encodable
from graphret.llm.chat import ChatModel, Message, Reply, Tool, Usage
from graphret.schema.text import estimate_tokens


class Counted:
    """A chat model each of whose replies has its tokens: the endpoint's, or an estimate that says that it is one.

    Many endpoints tell nothing of what a reply cost, or only where they are asked to, as in a stream.

    Parameters
    ----------
    model
        Any `ChatModel`.
    """

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self.name = model.name

    def chat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        """Answer a conversation; see `ChatModel.chat`."""
        return _counted(self.model.chat(messages, tools=tools, **options), messages, tools or ())

    async def achat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        """Answer a conversation; see `ChatModel.achat`."""
        return _counted(await self.model.achat(messages, tools=tools, **options), messages, tools or ())


def _counted(reply: Reply, messages: Iterable[Message], tools: Iterable[Tool]) -> Reply:
    if reply.usage.total_tokens:
        return reply
    read = sum(map(_of_message, messages)) + sum(map(_of_tool, tools))
    return replace(reply, usage=Usage(read, _of_message(reply.message), estimated=True))


def _of_message(message: Message) -> int:
    """The tokens of a message, counted once: a conversation is read again with each turn."""
    known = message._tokens
    if known is None:
        said = message.content + "".join(call.name + call.arguments for call in message.tool_calls)
        known = estimate_tokens(encodable(said))
        if message.native:  # what was thought, with or without what was said
            known = max(known, estimate_tokens(_json(message.native)))
        object.__setattr__(message, "_tokens", known)
    return known


@lru_cache(maxsize=64)
def _of_tool(tool: Tool) -> int:
    return estimate_tokens(_json(tool.to_dict()))


def _json(value: Any) -> str:
    return encodable(json.dumps(value, ensure_ascii=False, default=str))

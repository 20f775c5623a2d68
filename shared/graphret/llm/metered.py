"""`MeteredChat`: a chat model that counts what is asked of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Unpack

from graphret.llm.chat import ChatError, ChatModel, ChatOptions, Message, Reply, Usage
from graphret.llm.errors import usage_of

#: Reasons of a `ChatError` that are no answer to what was asked.
_OUTAGES = frozenset(
    ("authentication", "connection", "not_found", "rate_limit", "server", "timeout")
)


@dataclass(frozen=True, slots=True)
class Spent:
    """How often a model was asked, and the tokens that it took."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)

    def __sub__(self, earlier: Spent) -> Spent:
        """Return what was spent since `earlier`."""
        return Spent(
            self.calls - earlier.calls,
            Usage(
                self.usage.input_tokens - earlier.usage.input_tokens,
                self.usage.output_tokens - earlier.usage.output_tokens,
            ),
        )


class MeteredChat:
    """A chat model that adds up its calls and tokens, also of failed calls.

    `outage` is the last failure that is none of what was asked: the endpoint cannot be
    reached, is too slow, or refuses the key; `None` where there was none.
    """

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self.spent = Spent()
        self.outage: ChatError | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.model.name

    def chat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """Answer a conversation, and count it."""
        try:
            reply = self.model.chat(messages, **options)
        except Exception as error:
            self._add(usage_of(error))
            if isinstance(error, ChatError) and error.reason in _OUTAGES:
                self.outage = error
            raise
        self._add(reply.usage)
        return reply

    async def achat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """`chat` without blocking the event loop."""
        try:
            reply = await self.model.achat(messages, **options)
        except Exception as error:
            self._add(usage_of(error))
            if isinstance(error, ChatError) and error.reason in _OUTAGES:
                self.outage = error
            raise
        self._add(reply.usage)
        return reply

    def _add(self, usage: Usage) -> None:
        with self._lock:  # agents ask from several threads
            self.spent = Spent(self.spent.calls + 1, self.spent.usage + usage)

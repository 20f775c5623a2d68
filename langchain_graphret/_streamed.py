"""The tool calls of a streamed reply as the model wrote them: LangChain completes arguments that break off, quietly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.tracers.context import register_configure_hook

from graphret.llm.chat import ToolCall
from langchain_graphret._arguments import written


class Streamed(BaseCallbackHandler):
    """Takes down the pieces of tool calls; of a model that is asked again, or has fallbacks, those that came last."""

    run_inline = True

    def __init__(self) -> None:
        self._pieces: dict[UUID, list[AIMessageChunk]] = {}
        self._ended: list[AIMessageChunk] = []

    def on_chat_model_start(self, *given: Any, **said: Any) -> None:
        """Do nothing; without this the conversation would be made a text."""

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **said: Any) -> None:
        """Keep a piece with something of a call."""
        message = getattr(chunk, "message", None)
        if isinstance(message, AIMessageChunk) and message.tool_call_chunks:
            self._pieces.setdefault(run_id, []).append(message)

    def on_llm_end(self, response: Any, *, run_id: UUID, **said: Any) -> None:
        """Take note of a stream that came to its end."""
        self._ended = self._pieces.pop(run_id, [])

    def calls(self, message: AIMessage) -> tuple[ToolCall, ...]:
        """Return the calls of a message as they were written; none where it was not streamed, or is another's."""
        if not self._ended:
            return ()
        pieces = add_ai_message_chunks(*self._ended).tool_call_chunks
        known = [*message.tool_calls, *message.invalid_tool_calls]
        if sorted(str(call["id"]) for call in pieces) != sorted(str(call["id"]) for call in known):
            return ()
        return tuple(
            ToolCall(call["id"] or f"call_{i}", call["name"] or "", _arguments(call["args"] or ""))
            for i, call in enumerate(pieces)
        )


def _arguments(text: str) -> str:
    """Return arguments with line breaks within strings, which are no JSON, as LangChain reads them of a whole reply."""
    try:
        return written(json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return text


_streamed: ContextVar[Streamed | None] = ContextVar("graphret_streamed", default=None)
register_configure_hook(_streamed, inheritable=True)


@contextmanager
def streamed() -> Iterator[Streamed]:
    """Take down what the models asked within stream, also in the threads and tasks begun there."""
    taken = Streamed()
    before = _streamed.set(taken)
    try:
        yield taken
    finally:
        _streamed.reset(before)

"""`CachedChat`: a chat model whose replies are kept in a folder."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Unpack

from graphret.errors import StorageError
from graphret.llm.cache import AnswerCache, cache_key
from graphret.llm.chat import ChatModel, ChatOptions, Message, Reply, ToolCall, Usage


class CachedChat:
    """A chat model that answers each conversation once and keeps its replies.

    Agents of one model ask the same and are to differ, so that the second time that a
    conversation is asked in a process has a reply of its own, which is kept too.

    Parameters
    ----------
    model
        Who is asked what the folder does not have.
    folder
        Where the replies are kept; several processes may share it.
    """

    def __init__(self, model: ChatModel, folder: str | os.PathLike[str]) -> None:
        self.model = model
        self.cache = AnswerCache(folder)
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.model.name

    def chat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """Answer a conversation, from the folder if it has the reply.

        A `StorageError` says that the folder cannot be read or written.
        """
        key = self._key(messages, options)
        if (cached := self.cache.get(key)) is not None:
            return self._read(key, cached)
        reply = self.model.chat(messages, **options)
        self.cache.put(key, json.dumps(asdict(reply)))
        return reply

    async def achat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """`chat` without blocking the event loop."""
        key = self._key(messages, options)
        if (cached := self.cache.get(key)) is not None:
            return self._read(key, cached)
        reply = await self.model.achat(messages, **options)
        self.cache.put(key, json.dumps(asdict(reply)))
        return reply

    def _key(self, messages: Sequence[Message], options: ChatOptions) -> str:
        """Return the key of a conversation; its time-out is no part of it."""
        settings: dict[str, Any] = {
            name: value
            for name, value in options.items()
            if value is not None and name != "timeout"
        }
        if tools := options.get("tools"):
            settings["tools"] = [tool.to_dict() for tool in tools]
        dialogue = [message.to_dict(native=True) for message in messages]
        conversation = cache_key(self.name, dialogue, settings)
        with self._lock:
            self._counts[conversation] += 1
            time = self._counts[conversation]
        return conversation if time == 1 else f"{conversation}.{time}"

    def _read(self, key: str, cached: str) -> Reply:
        try:
            fields: Mapping[str, Any] = json.loads(cached)
            calls = tuple(ToolCall(**call) for call in fields["tool_calls"])
            usage = Usage(**fields["usage"])
            return Reply(**{**fields, "tool_calls": calls, "usage": usage})
        except (ValueError, TypeError, KeyError) as error:
            raise StorageError(
                f"{self.cache.folder / key}.json: expected a reply that was kept, got"
                f" {type(error).__name__}: {error}"
            ) from error

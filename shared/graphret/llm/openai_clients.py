"""The official clients behind an `OpenAIChat`: one for all threads, and one for each event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

#: What a client is made with, asked for when one is made: that may fail for want of a key.
Options: TypeAlias = Callable[[], dict[str, Any]]


class _LoopClient(NamedTuple):
    loop: asyncio.AbstractEventLoop
    client: AsyncOpenAI
    closing: AsyncGenerator[None, None]


async def _closing(client: AsyncOpenAI) -> AsyncGenerator[None, None]:
    """Close `client` when this generator is closed, as event loops do with theirs before they end."""
    try:
        yield
    finally:
        await client.close()


class Clients:
    """Makes clients when they are first needed, from any thread and any event loop, and closes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sync: OpenAI | None = None
        # An asynchronous client's connections belong to the event loop that opened them.
        self._async: list[_LoopClient] = []

    def sync(self, options: Options) -> Any:
        """Return the client of all threads."""
        with self._lock:
            if self._sync is None:
                # Imported here, because it takes more than a second.
                from openai import OpenAI

                from graphret.llm.openai_http import Connections

                self._sync = OpenAI(**options(), http_client=Connections())
            return self._sync

    async def of_loop(self, options: Options) -> Any:
        """Return the client of the running event loop, which closes it when it ends."""
        from openai import AsyncOpenAI

        from graphret.llm.openai_http import AsyncConnections

        loop = asyncio.get_running_loop()
        with self._lock:
            self._async = [each for each in self._async if not each.loop.is_closed()]
            for each in self._async:
                if each.loop is loop:
                    return each.client
            # The connections that `AsyncOpenAI` would make by itself complain when they outlive their loop.
            client = AsyncOpenAI(**options(), http_client=AsyncConnections())
            mine = _LoopClient(loop, client, _closing(client))
            self._async.append(mine)
        await anext(mine.closing)
        return client

    def close(self) -> None:
        """Close the client of threads; a later call makes a new one."""
        with self._lock:
            client, self._sync = self._sync, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the client of the running event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            mine = [each for each in self._async if each.loop is loop]
            self._async = [each for each in self._async if each.loop is not loop]
        for each in mine:
            await each.closing.aclose()

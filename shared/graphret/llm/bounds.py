"""Bounds on what an endpoint may send as one reply: bytes, and seconds until the last of them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx

from graphret.llm.chat import ChatError

_MOST_BYTES = 16 * 2**20


class BoundedStream(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The body of a response, until it is too much: then a `ChatError`."""

    def __init__(self, stream: Any, model: str, most_seconds: float) -> None:
        self._stream, self._model, self._most_seconds = stream, model, most_seconds
        self._until, self._read = time.monotonic() + most_seconds, 0

    def _count(self, chunk: bytes) -> bytes:
        self._read += len(chunk)
        late = time.monotonic() > self._until
        if late or self._read > _MOST_BYTES:
            why = f"did not end within {self._most_seconds:g} s" if late else f"has more than {_MOST_BYTES:,} bytes"
            raise ChatError(f"the reply {why}", model=self._model, reason="invalid_reply")
        return chunk

    def __iter__(self) -> Iterator[bytes]:
        return map(self._count, self._stream)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield self._count(chunk)

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()

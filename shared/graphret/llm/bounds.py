"""Bounds on what an endpoint may send as one reply: bytes, and seconds until the last of them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import httpx

from graphret.llm.chat import ChatError

_MOST_BYTES = 16 * 2**20


class BoundedStream(httpx.AsyncByteStream):
    """The body of a response, until it is too much: then a `ChatError`."""

    def __init__(self, stream: Any, model: str, most_seconds: float) -> None:
        self._stream, self._model, self._most_seconds = stream, model, most_seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        until, read = time.monotonic() + self._most_seconds, 0
        async for chunk in self._stream:
            read += len(chunk)
            late = time.monotonic() > until
            if late or read > _MOST_BYTES:
                why = f"did not end within {self._most_seconds:g} s" if late else f"has more than {_MOST_BYTES:,} bytes"
                raise ChatError(f"the reply {why}", model=self._model, reason="invalid_reply")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()

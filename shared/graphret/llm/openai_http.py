"""The connections of `OpenAIChat`, which tell what became of each attempt; imported late, as `openai` is."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import httpx
from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

from graphret.llm.failing import note_attempt
from graphret.llm.openai_wire import redacted


class Connections(DefaultHttpxClient):
    """The official client's connections."""

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request, and note where that fails."""
        try:
            response = super().send(request, **options)
        except httpx.HTTPError as error:
            note_attempt(_failed(error))
            raise
        _note(response)
        return response

    def __del__(self) -> None:
        """Close what nobody can close any more, as the official client's own do."""
        with suppress(Exception):
            self.close()


class AsyncConnections(DefaultAsyncHttpxClient):
    """The official asynchronous client's connections."""

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request, and note where that fails."""
        try:
            response = await super().send(request, **options)
        except httpx.HTTPError as error:
            note_attempt(_failed(error))
            raise
        _note(response)
        return response


def _failed(error: httpx.HTTPError) -> str:
    return f"the last attempt got no answer ({type(error).__name__})"


def _note(response: httpx.Response) -> None:
    """Note a refusal: its status, what it says and when to come again, without the key."""
    if response.status_code < 400:
        return note_attempt("")
    said = f"{response.status_code} {response.reason_phrase}".strip()
    with suppress(ValueError, TypeError, KeyError, httpx.StreamError):
        said += f": {response.json()['error']['message']}"
    if again := response.headers.get("retry-after"):
        said += f" (Retry-After: {again})"
    key = response.request.headers.get("authorization", "").removeprefix("Bearer ")
    return note_attempt(redacted(f"the last answer was {said}", (key,)))

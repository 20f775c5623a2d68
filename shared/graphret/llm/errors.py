"""What the clients of models raise, as `ChatError`, without keys."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphret.errors import GraphretError
from graphret.llm.chat import ChatError, Usage

_REASONS = {400: "bad_request", 401: "authentication", 403: "authentication", 404: "not_found", 408: "timeout"}
_REASONS |= {422: "bad_request", 429: "rate_limit"}
# Parts of the names that httpx, httpcore, aiohttp and the providers' clients give to the errors of a lost connection.
_CONNECTION = ("Connect", "Protocol", "ReadError", "WriteError", "Disconnected", "PayloadError")
# What a client's "Connection error" does not tell.
_ENDED = "its connections are of an event loop that has ended; ask within one loop, or give each a client of its own"
_KEY = re.compile(r"\b(?:sk|pk|key|gsk|xai)-[A-Za-z0-9_*.-]{6,}|(?i:bearer)\s+\S+")


def as_chat_error(error: Exception, model: str, *, timeout: float | None = None) -> Exception:
    """Return what to raise for what a client raised: its kind, status and message, without keys.

    Parameters
    ----------
    model
        The model's name.
    timeout
        The seconds that it was given, for the message of a `TimeoutError`.
    """
    if isinstance(error, GraphretError):
        return error
    status = status_of(error)
    if isinstance(error, TimeoutError):
        waited = f"no answer within {timeout:g} s" if timeout is not None else "no answer in time"
        return ChatError(waited, model=model, reason="timeout", status=status)
    said = f"{type(error).__name__}: {redacted(str(error))}"
    if "loop is closed" in " ".join(map(str, _chain(error))):
        said += f" ({_ENDED})"
    return ChatError(said, model=model, reason=reason_of(error), status=status)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that a client's error tells of, if any."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def reason_of(error: Exception) -> str:
    """Return the `ChatError.reason` of a client's error, by its status or by what its class is called."""
    status, kind = status_of(error), type(error).__name__
    if status is not None:
        return _REASONS.get(status, "server" if status >= 500 else "bad_request")
    if "Timeout" in kind:
        return "timeout"
    if isinstance(error, ConnectionError) or any(part in kind for part in _CONNECTION):
        return "connection"
    return "invalid_reply" if "Pars" in kind else "server"


def usage_of(error: object) -> Usage:
    """Return the tokens that were spent before an error was raised: its own, or those of what it was raised from."""
    while isinstance(error, BaseException):
        if isinstance(error, ChatError):
            return error.usage
        error = error.__cause__
    return Usage()


def redacted(text: str, secrets: Iterable[str | None] = (), most: int = 400) -> str:
    """Return a message in one line of at most `most` characters, without `secrets` and what looks like one."""
    for secret in secrets:
        if secret and len(secret) > 4:
            text = text.replace(secret, "***")
    text = _KEY.sub("***", " ".join(text.split()))
    return text if len(text) <= most else text[: most - 1] + "…"


def _chain(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__

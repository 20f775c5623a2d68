"""What the clients of other packages raise, as `ChatError`, and what is known of a request that failed."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from graphret.errors import GraphretError
from graphret.llm.chat import ChatError, Usage
from graphret.llm.openai_wire import redacted

_REASONS = {400: "bad_request", 401: "authentication", 403: "authentication", 404: "not_found", 408: "timeout"}
_REASONS |= {422: "bad_request", 429: "rate_limit"}
# Parts of the names that httpx, httpcore, aiohttp and the providers' clients give to the errors of a lost connection.
_CONNECTION = ("Connect", "Protocol", "ReadError", "WriteError", "Disconnected", "PayloadError")
# What a client's "Connection error" does not tell.
_ENDED = "its connections are of an event loop that has ended; ask within one loop, or give each a client of its own"


def as_chat_error(error: Exception, model: str, *, timeout: float | None = None) -> Exception:
    """Return what to raise for what a client of another package raised: its kind, status and message, without keys.

    Parameters
    ----------
    model
        The model's name.
    timeout
        The seconds that it was given, for the message of a `TimeoutError`.
    """
    if isinstance(error, GraphretError):
        return error
    kind = type(error).__name__
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    if isinstance(error, TimeoutError):
        waited = f"no answer within {timeout:g} s" if timeout is not None else "no answer in time"
        return ChatError(waited, model=model, reason="timeout", status=status)
    if status is not None:
        reason = _REASONS.get(status, "server" if status >= 500 else "bad_request")
    elif "Timeout" in kind:
        reason = "timeout"
    elif isinstance(error, ConnectionError) or any(part in kind for part in _CONNECTION):
        reason = "connection"
    else:
        reason = "invalid_reply" if "Pars" in kind else "server"
    said = f"{kind}: {redacted(str(error), ())}" + (f" ({_ENDED})" if _of_an_ended_loop(error) else "")
    return ChatError(said, model=model, reason=reason, status=status)


def _of_an_ended_loop(error: BaseException | None) -> bool:
    """Whether an asynchronous client failed over a connection that the event loop of an earlier call has left it."""
    while error is not None:
        if isinstance(error, RuntimeError) and "loop is closed" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def usage_of(error: object) -> Usage:
    """Return the tokens that were spent before an error was raised: its own, or those of what it was raised from."""
    while isinstance(error, BaseException):
        if isinstance(error, ChatError):
            return error.usage
        error = error.__cause__
    return Usage()


@dataclass(slots=True)
class _Attempts:
    last: str = ""


_attempts: ContextVar[_Attempts | None] = ContextVar("graphret_attempts", default=None)


def watch_attempts() -> None:
    """From here on, and in the threads and tasks begun from here, keep what `note_attempt` says; forget what it said.

    To be called before a request that may be given up while its client still asks again: `last_attempt` then says why
    it did. It holds for the context at hand (`contextvars`).
    """
    _attempts.set(_Attempts())


def note_attempt(failure: str) -> None:
    """Note how an attempt of a request failed, in words without keys; empty for one that was answered."""
    if (held := _attempts.get()) is not None:
        held.last = failure


def last_attempt() -> str:
    """Return how the last attempt failed since `watch_attempts`; empty where none has, or nobody said so."""
    held = _attempts.get()
    return "" if held is None else held.last

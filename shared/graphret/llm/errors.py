"""What the clients of models raise, as `ChatError`, without keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from graphret.errors import GraphretError
from graphret.llm.chat import ChatError, Usage

_REASONS = {
    400: "bad_request",
    401: "authentication",
    403: "authentication",
    404: "not_found",
    408: "timeout",
}
_REASONS |= {422: "bad_request", 429: "rate_limit"}
# By parts of the names that Python, httpx, httpcore, aiohttp and the providers' clients
# give to their errors.
_KINDS = {
    "Timeout": "timeout",
    "Pars": "invalid_reply",
    "Decode": "invalid_reply",
    "Encode": "bad_request",
}
_LOST = (
    "Connect",
    "Protocol",
    "ReadError",
    "WriteError",
    "Disconnected",
    "PayloadError",
    "Pipe",
)
_KINDS |= dict.fromkeys(_LOST, "connection")
# What clients raise that read a reply without a look at it.
_UNREADABLE = (TypeError, AttributeError, KeyError, IndexError)
_KINDS |= {kind.__name__: "invalid_reply" for kind in _UNREADABLE}
_ENDED = (
    "its connections are of an event loop that has ended; ask within one loop, or give"
    " each a client of its own"
)
_KEY = re.compile(r"\b(?:sk|pk|key|gsk|xai)-[A-Za-z0-9_*.-]{6,}|(?i:bearer)\s+\S+")
_MOST_CHARS = 400


def as_chat_error(
    error: Exception,
    model: str,
    *,
    timeout: float | None = None,
    endpoint: str = "",
    secrets: Iterable[str | None] = (),
) -> GraphretError:
    """Return what to raise for what a client raised: its kind, status and message.

    The message has the seconds that were given where they are over, the address of an
    endpoint that did not answer, and none of the `secrets`, nor what looks like a key.
    """
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, GraphretError):
            return cause
    status, body, kind = (
        status_of(error),
        getattr(error, "body", None),
        type(error).__name__,
    )
    if isinstance(error, TimeoutError):
        message = (
            f"no answer within {timeout:g} s"
            if timeout is not None
            else "no answer in time"
        )
    elif isinstance(error, _UNREADABLE):
        message = f"the reply lacks what its client reads ({kind}: {error})"
    elif status is not None and isinstance(body, Mapping) and body.get("message"):
        message = str(body["message"])
    else:
        root = causes[-1]
        message = f"{kind}: {error}" + (
            f" ({type(root).__name__}: {root})" if root is not error else ""
        )
        message += f" ({_ENDED})" if "loop is closed" in message else ""
        message = (
            f"no answer from {endpoint}, retries included: {message}"
            if endpoint and status is None
            else message
        )
    return ChatError(
        redacted(message, secrets),
        model=model,
        reason=_reason(status, kind),
        status=status,
    )


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that a client's error tells of, if any."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def usage_of(error: BaseException) -> Usage:
    """Return the tokens spent before an error: its own, or those of its cause."""
    return next(
        (cause.usage for cause in _causes(error) if isinstance(cause, ChatError)),
        Usage(),
    )


def redacted(text: str, secrets: Iterable[str | None] = ()) -> str:
    """Return a message in one line of at most 400 characters, without secrets."""
    for secret in secrets:
        if secret and len(secret) > 4:
            text = text.replace(secret, "***")
    text = _KEY.sub("***", " ".join(text.split()))
    return text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS - 1] + "…"


def _reason(status: int | None, kind: str) -> str:
    if status is not None:
        return _REASONS.get(status, "server" if status >= 500 else "bad_request")
    return next((reason for part, reason in _KINDS.items() if part in kind), "server")


def _causes(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__

"""What an endpoint does not take of a request: found out by asking again without it."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from graphret.llm.errors import status_of

_log = logging.getLogger(__name__)

#: Where endpoints put a model's reasoning and its signatures: DeepSeek, vLLM and
#: OpenRouter in the message, Google in each call, LiteLLM in both.
REASONING = (
    "reasoning_content reasoning reasoning_details thinking_blocks extra_content"
    " provider_specific_fields".split()
)
JSON_SCHEMA, JSON_OBJECT = "json_schema", "json_object"
TEMPERATURE, MAX_TOKENS = "temperature", "max_tokens"

# With which status endpoints refuse a part of a request: most by 400 or 422, some
# servers by 500, where they fail at it, or by 501.
_STATUSES = (400, 422, 500, 501)
_FORMAT = re.compile(
    r"response.?format|response.?(?:json.?)?schema|json.?(?:schema|object|mode|output)"
    r"|structured|\bschema|guided|grammar|gbnf|\bjson\b",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"unsupported|not support|unrecognized|unknown|not permitted|not allowed"
    r"|max_completion_tokens",
    re.IGNORECASE,
)
_OUT_OF_RANGE = re.compile(
    r"between|range|at (?:most|least)|(?:less|greater) than|[<>]"
    r"|too (?:large|high|small|low)",
    re.IGNORECASE,
)
# Complaints of a parameter that is not named, and of something else for certain.
_OF_A_PARAMETER = re.compile(
    r"param|argument|field|option|sampling|unsupported|not support|not implement"
    r"|extra input|unrecognized|unexpected|not permitted",
    re.IGNORECASE,
)
_OF_OTHERS = re.compile(
    r"context|too (?:long|many|large)|length|quota|credit|billing|moderation|safety"
    r"|content.?(?:filter|policy|management)|tool|function|messages|max_tokens|logprobs"
    r"|api.?key|does not exist|temperature",
    re.IGNORECASE,
)


class Refusals:
    """What an endpoint has refused, and taken, of the optional parts of requests.

    A request is made by an `Attempt`. A part that is refused in it, or seems to be, is
    left out of all later requests once a request without it is answered.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.refused: set[str] = set()
        self.takes_schemas = False

    def attempt(self) -> Attempt:
        """Begin a request, without what was refused before."""
        return Attempt(self)


class Attempt:
    """A request that is made again without what the endpoint does not take of it.

    Attributes
    ----------
    left_out
        The parts to leave out: ``json_schema`` and ``json_object``, the types of the
        format; ``reasoning``, that of earlier replies; ``temperature``; ``max_tokens``.
    problem
        The error that stands where no request is answered.
    """

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals
        self._guessing = False
        self.left_out = set(refusals.refused)
        self.problem: Exception | None = None

    def failed(self, error: Exception, request: Mapping[str, Any]) -> bool:
        """Return whether to ask again, after an error that a request has brought.

        `request` has what was sent, by the names of OpenAI's API.
        """
        if not self._guessing:
            self.problem = error
        if status_of(error) not in _STATUSES:
            return False
        parts = _refused_parts(error, request)
        if not parts and not self._guessing:
            parts = self._guessed(error, request)
            self._guessing = bool(parts)
        asks_again = bool(parts - self.left_out)
        self.left_out |= parts
        return asks_again

    def _guessed(self, error: Exception, request: Mapping[str, Any]) -> set[str]:
        """The part that is most likely refused by a complaint that names none."""
        complaint = _complaint(error)
        if _OF_OTHERS.search(complaint):
            return set()
        if "response_format" in request and not self._refusals.takes_schemas:
            return {JSON_SCHEMA, JSON_OBJECT}
        unnamed = status_of(error) == 501 or _OF_A_PARAMETER.search(complaint)
        sent = request.get(TEMPERATURE) is not None
        return {TEMPERATURE} if sent and unnamed else set()

    def succeeded(self, request: Mapping[str, Any]) -> None:
        """Remember what was left out of a request that was answered."""
        sent = request.get("response_format") or {}
        self._refusals.takes_schemas |= sent.get("type") == JSON_SCHEMA
        for part in sorted(self.left_out - self._refusals.refused):
            _log.warning(
                "%s does not take %s as it was given; going on without it",
                self._refusals.endpoint,
                part,
            )
        self._refusals.refused |= self.left_out


def _refused_parts(error: Exception, request: Mapping[str, Any]) -> set[str]:
    """The part that an endpoint says it does not take; empty for other errors."""
    message = _complaint(error)
    complaint = f"{getattr(error, 'param', None) or ''} {message}"
    if re.search(r"\btemperature\b", complaint, re.IGNORECASE):
        sent = request.get(TEMPERATURE)
        wrong_value = sent != 0 and _OUT_OF_RANGE.search(message)
        return {TEMPERATURE} if sent is not None and not wrong_value else set()
    if "response_format" in request and _FORMAT.search(complaint):
        return {str(request["response_format"]["type"])}
    turns = request.get("messages", ())
    holders = [*turns, *(call for turn in turns for call in turn.get("tool_calls", ()))]
    returned = {name for name in REASONING for holder in holders if name in holder}
    if any(name in complaint for name in returned):
        return {"reasoning"}
    unsupported = MAX_TOKENS in complaint and _UNSUPPORTED.search(message)
    return {MAX_TOKENS} if MAX_TOKENS in request and unsupported else set()


def _complaint(error: Exception) -> str:
    """What the endpoint says, without what its client adds."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, Mapping) else None
    return str(message or body or error)

"""The chat completions format of OpenAI: messages to what is sent, and back.

Replies may lack any part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from graphret.llm.chat import Message, ToolCall, Usage
from graphret.llm.schema import strict_schema

# Where endpoints put a model's reasoning and its signatures: DeepSeek, vLLM and
# OpenRouter in the message, Google in each call, LiteLLM in both.
_NATIVE = (
    "reasoning_content reasoning reasoning_details thinking_blocks extra_content"
    " provider_specific_fields".split()
)

# How endpoints say that they do not take a JSON schema, or JSON as a format; and a
# parameter.
_FORMAT_REFUSED = re.compile(
    r"response_format|json_schema|json_object|json mode|structured output",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"unsupported|not support|unrecognized|unknown|not permitted|not allowed",
    re.IGNORECASE,
)


def wire_message(
    message: Message, native: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a message as it is sent: servers that render arguments into a prompt fail
    on ones that are not JSON.

    `native` is what `native_parts` found in it.
    """
    out = message.to_dict()
    of_message, of_calls = (
        (native["message"], native["tool_calls"]) if native else ({}, {})
    )
    for call, sent in zip(message.tool_calls, out.get("tool_calls", ()), strict=True):
        if not call.parsed:
            sent["function"]["arguments"] = json.dumps(
                {"malformed": call.arguments} if call.error else {}
            )
        sent.update(of_calls.get(call.id, {}))
    if message.tool_calls and not message.content:
        out["content"] = None
    return out | of_message


def native_parts(message: Any) -> dict[str, Any] | None:
    """Return what an endpoint wants back of a reply beside text and calls, by where it
    stands; `None` if nothing.
    """
    of_calls = {
        call.id: _native(call) for call in getattr(message, "tool_calls", None) or ()
    }
    found = {
        "message": _native(message),
        "tool_calls": {name: parts for name, parts in of_calls.items() if parts},
    }
    return found if any(found.values()) else None


def _native(holder: Any) -> dict[str, Any]:
    extra = getattr(holder, "model_extra", None) or {}
    return {name: extra[name] for name in _NATIVE if extra.get(name)}


def refused_part(
    request: Mapping[str, Any], message: str, parameter: str | None
) -> str | None:
    """Return what an endpoint does not take of a request, by its complaint; `None` if
    it complains of something else.

    That is ``json_schema`` or ``json_object``, the type of the format; ``reasoning``;
    ``temperature``; ``max_tokens``.
    """
    complaint = f"{parameter or ''} {message}"
    if "response_format" in request and _FORMAT_REFUSED.search(complaint):
        return str(request["response_format"]["type"])
    turns = request["messages"]
    parts = [*turns, *(call for turn in turns for call in turn.get("tool_calls", ()))]
    if any(name in part and name in complaint for name in _NATIVE for part in parts):
        return "reasoning"
    for name in ("temperature", "max_tokens"):
        if (
            name in request
            and re.search(rf"\b{name}\b", complaint)
            and _UNSUPPORTED.search(message)
        ):
            return name
    return None


def response_format(
    schema: Mapping[str, Any], refused: set[str]
) -> dict[str, Any] | None:
    """Return how a JSON schema is asked for: by schema, as any JSON object, or, if both
    are `refused`, not at all.
    """
    if "json_schema" not in refused:
        strict = strict_schema(schema)
        described = {
            "name": "answer",
            "schema": dict(strict or schema),
            "strict": strict is not None,
        }
        return {"type": "json_schema", "json_schema": described}
    return None if "json_object" in refused else {"type": "json_object"}


def content_text(content: Any) -> str:
    """Return the text of a message, also where an endpoint sends a list of parts."""
    if isinstance(content, list):
        return "".join(
            part["text"]
            for part in content
            if isinstance(part, Mapping) and part.get("type") == "text"
        )
    return content if isinstance(content, str) else ""


def tool_calls(message: Any) -> tuple[ToolCall, ...]:
    """Return the calls of a reply; local servers may leave out their ids, or send
    arguments that are no string.
    """
    calls = []
    for position, call in enumerate(getattr(message, "tool_calls", None) or ()):
        name, arguments = call.function.name, call.function.arguments
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        calls.append(ToolCall(call.id or f"call_{position}", name, raw))
    return tuple(calls)


def token_logprobs(choice: Any) -> list[dict[str, float]]:
    """Return the likeliest tokens at each place of a reply, as far as an endpoint gives
    them.
    """
    places = getattr(getattr(choice, "logprobs", None), "content", None)
    told = (
        [getattr(place, "top_logprobs", None) for place in places if place]
        if isinstance(places, list)
        else []
    )
    return [
        {
            one.token: one.logprob
            for one in top
            if isinstance(getattr(one, "logprob", None), int | float)
        }
        for top in told
        if isinstance(top, list)
    ]


def token_usage(usage: Any) -> Usage:
    """Return the tokens that an endpoint counted, zero where it did not."""
    counts = (
        getattr(usage, key, None) for key in ("prompt_tokens", "completion_tokens")
    )
    read, written = (count if isinstance(count, int) else 0 for count in counts)
    return Usage(read, written)

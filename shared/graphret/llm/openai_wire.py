"""The chat completions format of OpenAI: messages to what is sent, and back.

Replies may lack any part.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from graphret.llm.chat import Message, ToolCall, Usage
from graphret.llm.refusals import JSON_OBJECT, JSON_SCHEMA, REASONING
from graphret.llm.schema import strict_schema


def wire_message(
    message: Message, native: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a message as it is sent, its tool arguments always valid JSON.

    Servers that render them into a prompt fail on anything else.

    `native` is what `native_parts` found in it.
    """
    out = message.to_dict()
    of_message, of_calls = (
        (native["message"], native["tool_calls"]) if native else ({}, {})
    )
    for call, sent in zip(message.tool_calls, out.get("tool_calls", ()), strict=True):
        sent["function"]["arguments"] = _sent_arguments(call)
        sent.update(of_calls.get(call.id, {}))
    if message.tool_calls and not message.content:
        out["content"] = None
    return out | of_message


def _sent_arguments(call: ToolCall) -> str:
    """The arguments of a call as they came where they are an object, else as one."""
    if call.parsed is None:
        return json.dumps({"malformed": call.arguments})
    try:
        as_it_came = isinstance(json.loads(call.arguments), dict)
    except ValueError:
        as_it_came = False
    return call.arguments if as_it_came else json.dumps(call.parsed)


def native_parts(message: Any) -> dict[str, Any] | None:
    """Return the further parts of a reply that an endpoint wants back, by place.

    `None` without any.
    """
    of_calls = {
        call_id: _native(call)
        for call in _calls_of(message)
        if (call_id := _part(call, "id"))
    }
    parts_by_place = {
        "message": _native(message),
        "tool_calls": {name: parts for name, parts in of_calls.items() if parts},
    }
    return parts_by_place if any(parts_by_place.values()) else None


def _native(holder: Any) -> dict[str, Any]:
    extra = getattr(holder, "model_extra", None) or {}
    return {name: extra[name] for name in REASONING if extra.get(name)}


def response_format(
    schema: Mapping[str, Any], refused: Collection[str]
) -> dict[str, Any] | None:
    """Return how to ask for JSON: by schema, as an object, or not at all.

    What is in `refused` is not asked for.
    """
    if JSON_SCHEMA not in refused:
        strict = strict_schema(schema)
        described = {
            "name": "answer",
            "schema": dict(strict or schema),
            "strict": strict is not None,
        }
        return {"type": JSON_SCHEMA, "json_schema": described}
    return None if JSON_OBJECT in refused else {"type": JSON_OBJECT}


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
    """Return the calls of a reply; servers may leave out any part of one.

    A call without a name is one of an unknown tool.
    """
    calls = []
    for position, call in enumerate(_calls_of(message)):
        called = _part(call, "function") or _part(call, "custom") or call
        arguments = _part(called, "arguments") or _part(called, "input") or {}
        calls.append(
            ToolCall(
                str(_part(call, "id") or f"call_{position}"),
                str(_part(called, "name") or ""),
                arguments if isinstance(arguments, str) else json.dumps(arguments),
            )
        )
    return tuple(calls)


def _calls_of(message: Any) -> list[Any]:
    """The calls in a message, also in the field that preceded ``tool_calls``."""
    calls = getattr(message, "tool_calls", None)
    calls = calls or getattr(message, "function_call", None) or []
    return calls if isinstance(calls, list) else [calls]


def _part(holder: Any, name: str) -> Any:
    """A part of what an endpoint sent, which may be an object, JSON or anything."""
    if isinstance(holder, Mapping):
        return holder.get(name)
    return getattr(holder, name, None)


def token_logprobs(choice: Any) -> list[dict[str, float]]:
    """Return the likeliest tokens at each place of a reply, if given."""
    places = getattr(getattr(choice, "logprobs", None), "content", None)
    likeliest = (
        [getattr(place, "top_logprobs", None) for place in places if place]
        if isinstance(places, list)
        else []
    )
    return [
        {
            token.token: token.logprob
            for token in top
            if isinstance(getattr(token, "logprob", None), int | float)
        }
        for top in likeliest
        if isinstance(top, list)
    ]


def token_usage(usage: Any) -> Usage:
    """Return the tokens that an endpoint counted, zero where it did not."""
    counts = (
        getattr(usage, key, None) for key in ("prompt_tokens", "completion_tokens")
    )
    read, written = (count if isinstance(count, int) else 0 for count in counts)
    return Usage(read, written)

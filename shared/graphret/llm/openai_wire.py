"""The chat completions format of OpenAI: messages to what is sent, and back. Replies may lack any part."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from graphret.llm.chat import Message, ToolCall, Usage
from graphret.llm.schema import strict_schema

#: How a JSON schema is handed over: by schema, as any JSON object, or not at all.
JSONMode = Literal["schema", "object", "none"]

#: Where endpoints put a model's reasoning and its signatures: DeepSeek, vLLM and OpenRouter in the message, Google in
#: each call, LiteLLM in both.
NATIVE = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking_blocks",
    "extra_content",
    "provider_specific_fields",
)

#: How endpoints say that they do not take a JSON schema, or JSON as a format.
FORMAT_REFUSED = re.compile(r"response_format|json_schema|json_object|json mode|structured output", re.IGNORECASE)


def wire_message(message: Message, native: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a message as it is sent: servers that render arguments into a prompt fail on ones that are not JSON.

    `native` is what `native_parts` found in it.
    """
    out = message.to_dict()
    of_calls = native["tool_calls"] if native else {}
    for call, sent in zip(message.tool_calls, out.get("tool_calls", ()), strict=True):
        if not call.parsed:
            sent["function"]["arguments"] = json.dumps({"malformed": call.arguments} if call.error else {})
        sent.update(of_calls.get(call.id, {}))
    if native:
        out.update(native["message"])
    if message.tool_calls and not message.content:
        out["content"] = None
    return out


def native_parts(message: Any) -> dict[str, Any] | None:
    """Return what an endpoint wants back of a reply beside text and calls, by where it stands; `None` if nothing."""
    of_calls = {call.id: _native(call) for call in getattr(message, "tool_calls", None) or ()}
    found = {"message": _native(message), "tool_calls": {name: parts for name, parts in of_calls.items() if parts}}
    return found if any(found.values()) else None


def _native(holder: Any) -> dict[str, Any]:
    return {name: value for name in NATIVE if (value := (getattr(holder, "model_extra", None) or {}).get(name))}


def sends_back(request: Mapping[str, Any], complaint: str) -> bool:
    """Whether a request has one of `NATIVE` that a complaint names."""
    turns = request["messages"]
    parts = [*turns, *(call for turn in turns for call in turn.get("tool_calls", ()))]
    return any(name in part and name in complaint for name in NATIVE for part in parts)


def response_format(mode: JSONMode, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a JSON schema is asked for."""
    if mode == "object":
        return {"type": "json_object"}
    strict = strict_schema(schema)
    described = {"name": "answer", "schema": dict(strict or schema), "strict": strict is not None}
    return {"type": "json_schema", "json_schema": described}


def content_text(content: Any) -> str:
    """Return the text of a message, also where an endpoint sends a list of parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, Mapping) and part.get("type") == "text")
    return content if isinstance(content, str) else ""


def tool_calls(message: Any) -> tuple[ToolCall, ...]:
    """Return the calls of a reply; local servers may leave out their ids, or send arguments that are no string."""
    calls = []
    for position, call in enumerate(getattr(message, "tool_calls", None) or ()):
        name, arguments = call.function.name, call.function.arguments
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        calls.append(ToolCall(call.id or f"call_{position}", name, raw))
    return tuple(calls)


def token_usage(usage: Any) -> Usage:
    """Return the tokens that an endpoint counted, zero where it did not."""
    counts = (getattr(usage, key, None) for key in ("prompt_tokens", "completion_tokens"))
    read, written = (count if isinstance(count, int) else 0 for count in counts)
    return Usage(read, written)

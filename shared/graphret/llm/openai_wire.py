"""The chat completions format of OpenAI: messages to what is sent, and back. Replies may lack any part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
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
    calls = getattr(message, "tool_calls", None)
    of_calls = {call.id: _native(call) for call in calls or () if isinstance(getattr(call, "id", None), str)}
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
    if mode == "object":
        return {"type": "json_object"}
    strict = strict_schema(schema)
    described = {"name": "answer", "schema": dict(strict or schema), "strict": strict is not None}
    return {"type": "json_schema", "json_schema": described}


def content_text(content: Any) -> str:
    """Return the text of a message, also where an endpoint sends a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def tool_calls(calls: Any) -> Iterator[ToolCall]:
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        function = getattr(call, "function", None)
        name, arguments = getattr(function, "name", None), getattr(function, "arguments", None)
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else json.dumps(arguments)
        yield ToolCall(str(getattr(call, "id", None) or f"call_{position}"), str(name or ""), arguments)


def token_usage(usage: Any) -> Usage:
    counts = (getattr(usage, key, None) for key in ("prompt_tokens", "completion_tokens"))
    read, written = (count if isinstance(count, int) else 0 for count in counts)
    return Usage(read, written)

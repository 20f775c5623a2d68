"""What `graphret.testing.openai_server` replies: a behaviour as a chat completion, whole or as a stream."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphret.testing.openai_server import Behaviour


def completion_of(behaviour: Behaviour, sent: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return a chat completion; its token counts are counts of words."""
    message: dict[str, Any] = {"role": "assistant", "content": behaviour.content, "refusal": None}
    if behaviour.calls:
        message["tool_calls"] = [
            {"id": f"call_{position}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for position, (name, arguments) in enumerate(behaviour.calls)
        ]
    usual = "tool_calls" if behaviour.calls else "stop"
    reason = usual if behaviour.finish_reason is None else behaviour.finish_reason or None
    read = sum(len(str(each.get("content") or "").split()) for each in sent["messages"])
    written = len((behaviour.content or "").split()) + sum(len(raw.split()) for _, raw in behaviour.calls)
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage if behaviour.says_usage else None,
    }


def events_of(completion: Mapping[str, Any], with_usage: bool) -> list[dict[str, Any]]:
    """Return a completion as chunks of a stream: the role, the text word by word, the calls in two pieces, the end."""
    choice = completion["choices"][0]
    message = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in re.findall(r"\S+\s*", message["content"] or "")]
    for position, call in enumerate(message.get("tool_calls", ())):
        raw, half = call["function"]["arguments"], len(call["function"]["arguments"]) // 2
        opening = {**call, "index": position, "function": {"name": call["function"]["name"], "arguments": raw[:half]}}
        deltas += [{"tool_calls": [opening]}]
        deltas += [{"tool_calls": [{"index": position, "function": {"arguments": raw[half:]}}]}]
    base = {key: completion[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    events = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    if with_usage and completion["usage"] is not None:
        events.append({**base, "choices": [], "usage": completion["usage"]})
    return events

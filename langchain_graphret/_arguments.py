"""The tool calls of LangChain's messages, and of what it raises where a reply's arguments let it make none."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import ValidationError

from graphret.llm.chat import ToolCall

_LEVELS_KEPT = 80  # more than a `ToolCall` may have


def tool_calls(message: AIMessage) -> tuple[ToolCall, ...]:
    """Return the calls of a message, with those whose arguments LangChain could not read after the others."""
    calls = [
        ToolCall(call["id"] or f"call_{i}", call["name"], written(call["args"]))
        for i, call in enumerate(message.tool_calls)
    ]
    for i, broken in enumerate(message.invalid_tool_calls, start=len(calls)):
        calls.append(ToolCall(broken["id"] or f"call_{i}", broken["name"] or "", broken["args"] or ""))
    return tuple(calls)


def unreadable_calls(error: Exception) -> tuple[ToolCall, ...]:
    """Return the calls of a reply of which LangChain made no message since their arguments are no objects.

    The packages of many providers take whatever is JSON for arguments, which a message then refuses. The error has the
    arguments, and no names: what else the reply said is lost. There are none of an error that is another one.
    """
    if not isinstance(error, ValidationError):
        return ()
    wrong = error.errors(include_url=False, include_context=False)
    if any(one["type"] != "dict_type" or (*one["loc"][:1], *one["loc"][2:]) != ("tool_calls", "args") for one in wrong):
        return ()
    return tuple(ToolCall(f"call_{i}", "", written(one["input"])) for i, one in enumerate(wrong))


def written(value: Any) -> str:
    """Return what was read of a reply as JSON; of what is nested too deeply to be written, more levels than are run."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return json.dumps(_upper(value, _LEVELS_KEPT), ensure_ascii=False, default=str)


def _upper(value: Any, levels: int) -> Any:
    if isinstance(value, dict):
        return {key: _upper(one, levels - 1) for key, one in value.items()} if levels else {}
    if isinstance(value, list):
        return [_upper(one, levels - 1) for one in value] if levels else []
    return value

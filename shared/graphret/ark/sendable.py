"""A reply as endpoints take it back in the next request, whatever a model wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from graphret.llm.chat import ToolCall

_NAME, _NOT_IN_NAMES = re.compile(r"[a-zA-Z0-9_-]{1,64}"), re.compile(r"[^a-zA-Z0-9_-]")


def sendable(calls: Sequence[ToolCall], step: int) -> list[ToolCall]:
    """Return the calls of a reply, by its number, with ids that differ, names and text that can be sent."""
    taken: set[str] = set()
    out = []
    for number, call in enumerate(calls):
        own = call.id if call.id and call.id not in taken else f"call_{step}_{number}"
        taken.add(own)
        name = call.name if _NAME.fullmatch(call.name) else _NOT_IN_NAMES.sub("_", call.name)[:64] or "unnamed"
        arguments = _arguments(call)
        same = (own, name, arguments) == (call.id, call.name, call.arguments)
        out.append(call if same else ToolCall(own, name, arguments))
    return out


def encodable(text: str) -> str:
    """Return the text without lone surrogates, which JSON can hold and no other encoding can."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _arguments(call: ToolCall) -> str:
    """The arguments as the model wrote them, where they can be encoded; a client may write them anew."""
    if call.parsed is None:
        return encodable(call.arguments)
    written = json.dumps(call.parsed, ensure_ascii=False)
    kept = encodable(written)
    return call.arguments if kept == written else kept

"""Why a reply of a LangChain chat model ended, where its provider says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# How providers say why a reply ended; what is not here is handed on in lower case.
_FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
_FINISH |= {"function_call": "tool_calls", "safety": "content_filter", "model_length": "length"}
_FINISH |= {"completed": "", "max_output_tokens": "length"}
_SAID_IN = ("finish_reason", "stop_reason", "done_reason")

#: Why a reply ended that is without the end which its provider's replies have.
INCOMPLETE = "incomplete"


class Endings:
    """Why the replies of one model ended.

    A stream that breaks off quietly leaves a message that looks whole but for the reason of its end. Such a reply is
    told only from a provider that has given a reason before, from this model: there are some that never do.
    """

    def __init__(self) -> None:
        self._saying: set[str] = set()

    def reason(self, said: Mapping[str, Any]) -> str:
        """Return why the reply of this ``response_metadata`` ended, as `Reply` has it; empty where that is not said."""
        reason = str(next((said[key] for key in _SAID_IN if said.get(key)), "") or _of_response(said)).lower()
        provider = str(said.get("model_provider") or "")
        if reason:
            if provider:
                self._saying.add(provider)
        elif provider in self._saying and not any(key in said for key in _SAID_IN):
            return INCOMPLETE
        return _FINISH.get(reason, reason)


def _of_response(said: Mapping[str, Any]) -> str:
    """How OpenAI's other API, of responses, says it."""
    details = said.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return str(reason or (said.get("object") == "response" and said.get("status")) or "")

"""Why a reply of a LangChain chat model ended, and whether it came to its end at all."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.runnables import RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable

# How providers say why a reply ended; what is not here is handed on in lower case.
_FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
_FINISH |= {"function_call": "tool_calls", "safety": "content_filter", "model_length": "length"}
_FINISH |= {"completed": "", "max_output_tokens": "length"}
_SAID_IN = ("finish_reason", "stop_reason", "done_reason")


class Endings:
    """Why the replies of one model ended.

    A stream that breaks off quietly leaves a message that looks whole but for the reason of its end. OpenAI's protocol
    has one in every reply. Of other providers a cut reply is told only from one that has given a reason before, from
    this model: there are some that never do.

    Parameters
    ----------
    model
        The chat model, or what stands for one.
    said
        Whether its server says why a reply ended; where it never does, no reply counts as cut.
    """

    def __init__(self, model: object, *, said: bool = True) -> None:
        self._said = said
        self._openai = _speaks_openai(model)
        self._saying: set[str] = set()

    def reason(self, said: Mapping[str, Any]) -> str | None:
        """Return why the reply of this ``response_metadata`` ended, as `Reply` has it; `None` where it broke off.

        It is empty where that is not said. A body that came whole has a field for the reason, even if it names none.
        """
        reason = str(next((said[key] for key in _SAID_IN if said.get(key)), "") or _of_response(said)).lower()
        provider = str(said.get("model_provider") or "")
        if reason:
            if provider:
                self._saying.add(provider)
        elif not any(key in said for key in _SAID_IN) and not self._may_end_so(provider):
            return None
        return _FINISH.get(reason, reason)

    def _may_end_so(self, provider: str) -> bool:
        """Whether a whole reply of a provider may be without a field for the reason of its end."""
        return not self._said or not (provider in self._saying or provider == "openai" or self._openai)


def _of_response(said: Mapping[str, Any]) -> str:
    """How OpenAI's other API, of responses, says it."""
    details = said.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return str(reason or (said.get("object") == "response" and said.get("status")) or "")


def _speaks_openai(model: object) -> bool:
    """Whether it is of LangChain's package for OpenAI, or built on it: many give a provider of their own."""
    kind = getattr(sys.modules.get("langchain_openai.chat_models.base"), "BaseChatOpenAI", None)
    return kind is not None and all(isinstance(one, kind) for one in _inside(model))


def _inside(model: object) -> Iterator[object]:
    """The models that may answer where one is asked that is bound, configured when called, or has fallbacks."""
    if isinstance(model, RunnableBindingBase):
        yield from _inside(model.bound)
    elif isinstance(model, RunnableWithFallbacks):
        for one in (model.runnable, *model.fallbacks):
            yield from _inside(one)
    elif isinstance(model, DynamicRunnable):
        for one in (model.default, *getattr(model, "alternatives", {}).values()):
            yield from _inside(one)
    else:
        yield model

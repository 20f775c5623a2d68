"""A person's word on tool calls before they are run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from langgraph.types import interrupt

from graphret.ark import ArkSession
from graphret.ark.prompt import EXPLORE, SEARCH
from graphret.errors import InvalidInput
from graphret.llm.chat import ToolCall

#: Which calls that read the graph a person must approve: all, those of the tools named, or those for which a function
#: says so.
Approve: TypeAlias = bool | Collection[str] | Callable[[ToolCall], bool]


def asks_for(approve: Approve | None) -> Callable[[ToolCall], bool] | None:
    """Return the function that says which calls need approval, or `None` where none does."""
    if approve is None or approve is False:
        return None
    if approve is True:
        return lambda call: True
    if callable(approve):
        return approve
    if isinstance(approve, str) or not set(approve) <= {SEARCH, EXPLORE}:
        raise InvalidInput(
            f"approve: true, a list of {SEARCH} and {EXPLORE} or a function is expected, not {approve!r}"
        )
    return lambda call: call.name in approve


def refused(session: ArkSession, calls: Sequence[ToolCall]) -> dict[str, str]:
    """Interrupt the graph until a person has decided, and return the ids of the calls not approved, and why.

    The interrupt's value is ``{"agent", "step", "question", "calls": [{"id", "tool", "arguments"}]}``. It is resumed
    with `True` for all calls, or with an object that has for each id `True`, `False` or the reason why not. What it is
    resumed with otherwise approves nothing.
    """
    asked = [{"id": call.id, "tool": call.name, "arguments": call.parsed} for call in calls]
    about = {"agent": session.agent + 1, "step": len(session.steps), "question": session.question}
    answer = interrupt({**about, "calls": asked})
    by_id = answer if isinstance(answer, Mapping) else dict.fromkeys((call.id for call in calls), answer)
    words = {call.id: by_id.get(call.id) for call in calls}
    return {
        one: word if isinstance(word, str) else "it was not approved" for one, word in words.items() if word is not True
    }

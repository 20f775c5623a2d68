"""A person's word on tool calls before they are run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from langgraph.types import interrupt

from graphret.ark import ArkSession
from graphret.ark.prompt import EXPLORE, SEARCH
from graphret.errors import InvalidInput
from graphret.llm.chat import ToolCall

#: Which calls that read the graph a person must approve: all, those of the tools named, or those for which a function
#: says so.
Approve: TypeAlias = bool | Collection[str] | Callable[[ToolCall], bool]

_REFUSED = "it was not approved"


def asks_for(approve: Approve | None) -> Callable[[ToolCall], bool] | None:
    """Return the function that says which calls need approval, or `None` where none does."""
    if approve is None or approve is False:
        return None
    if approve is True:
        return lambda call: True
    if callable(approve):
        return approve
    named = isinstance(approve, Collection) and not isinstance(approve, str)
    if not named or not all(isinstance(name, str) for name in approve):
        raise InvalidInput(f"approve: True, names of tools or a function is expected, not {approve!r}")
    names = frozenset(approve)
    if unknown := sorted(names - {SEARCH, EXPLORE}):
        raise InvalidInput(f"approve: {unknown[0]!r} is no tool that reads the graph; {SEARCH} and {EXPLORE} are")
    return lambda call: call.name in names


def refused(session: ArkSession, calls: Sequence[ToolCall]) -> dict[str, str]:
    """Interrupt the graph until a person has decided, and return the ids of the calls not approved, and why.

    The interrupt's value is ``{"agent", "step", "question", "calls": [{"id", "tool", "arguments"}]}``. It is resumed
    with `True` or `False` for all calls, or with an object that has for each id `True`, `False` or the reason why not;
    calls that it leaves out are not approved. Anything else is asked again, with an ``error``.
    """
    asked = {
        "agent": session.agent + 1,
        "step": len(session.steps),
        "question": session.question,
        "calls": [{"id": call.id, "tool": call.name, "arguments": call.parsed} for call in calls],
    }
    while True:
        decided = _decided(interrupt(asked), [call.id for call in calls])
        if not isinstance(decided, str):
            return decided
        asked["error"] = decided


def _decided(answer: Any, ids: Sequence[str]) -> dict[str, str] | str:
    """The calls that an answer refuses, or what is wrong with the answer."""
    if isinstance(answer, bool):
        return {} if answer else dict.fromkeys(ids, _REFUSED)
    if not isinstance(answer, Mapping) or not all(isinstance(value, (bool, str)) for value in answer.values()):
        return "true, false, or an object with true, false or a reason for each call's id is expected"
    if unknown := [one for one in answer if one not in ids]:
        return f"no call with the id {unknown[0]!r} waits; those that do are {', '.join(ids)}"
    words = {one: answer.get(one, False) for one in ids}
    return {one: word if isinstance(word, str) else _REFUSED for one, word in words.items() if word is not True}

"""What exploring agents did, in words: a call and what came of it, why an agent stopped, what it spent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphret.ark.definitions import FINISH, SELECT
from graphret.ark.records import CallRecord, StepRecord
from graphret.types import Stage

if TYPE_CHECKING:
    from graphret.explain.timeline import Lane

_LONGEST = 60
_STOPS = {
    "finished": "finished",
    "steps": "out of steps",
    "tokens": "out of tokens",
    "seconds": "out of time",
    "settled": "stopped, the vote was settled",
    "silent": "given up, it called no tools",
    "failed": "failed",
    "cancelled": "cancelled",
}


def call_text(call: CallRecord) -> str:
    """Return a call as one line.

    Examples
    --------
    >>> call_text(CallRecord("explore_neighborhood", {"node": "Dusk", "relation_types": ["directed_by"]}))
    'explore_neighborhood("Dusk", relation_types=["directed_by"])'
    """
    if not isinstance(call.arguments, Mapping):
        return f"{call.tool} {_short(str(call.arguments))}"
    first = {"global_search": "query", "explore_neighborhood": "node", SELECT: "nodes"}.get(call.tool)
    given = {name: value for name, value in call.arguments.items() if value is not None}
    shown = [_value(given.pop(first))] if first in given else []
    return f"{call.tool}({', '.join([*shown, *(f'{name}={_value(value)}' for name, value in given.items())])})"


def outcome_text(call: CallRecord) -> str:
    """Return what came of a call in a few words: how many nodes of how many, or that it could not be run.

    Where nodes follow it ends in what they are.
    """
    if call.failed and not call.tokens and not call.seconds and call.error:
        return "not answered, the agent was stopped"
    if call.failed:
        return "refused, and the model told why" + ("; close to it" if call.nodes else "")
    if call.remembered:
        return "from memory"
    if call.tool == FINISH:
        return ""
    said = f"{call.shown} of {call.total}" if call.total > call.shown else str(call.shown)
    return said + (" selected" if call.tool == SELECT else " shown")


def trouble_text(step: StepRecord) -> str:
    """Return why a step's request brought no reply, or one that was cut off; nothing where it brought a whole one."""
    if step.error:
        return f"no reply: {step.error}"
    return f"the reply was cut off: {step.finish_reason}" if step.finish_reason else ""


def names_text(ids: Sequence[str], most: int) -> str:
    """Return the first ids and how many more there are."""
    more = f" + {len(ids) - most} more" if len(ids) > most else ""
    return "; ".join(map(_short, ids[:most])) + more


def counted(number: int, what: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "step"), counted(1200, "token")
    ('1 step', '1,200 tokens')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def tokens_text(number: int, estimated: bool) -> str:
    """Return tokens that were spent, marked where they are estimates.

    Examples
    --------
    >>> tokens_text(1200, estimated=True)
    '~1,200 tokens'
    """
    return f"{'~' if estimated else ''}{counted(number, 'token')}"


def lane_text(lane: Lane) -> str:
    """Return what an agent spent."""
    said = [counted(len(lane.steps), "step"), counted(len(lane.calls), "call")]
    said += [tokens_text(lane.tokens, lane.tokens_estimated)]
    return ", ".join([*said, f"model {duration(lane.model_seconds)}", f"tools {duration(lane.tool_seconds)}"])


def duration(seconds: float) -> str:
    """Return seconds for a reader.

    Examples
    --------
    >>> duration(0.00042), duration(0.25), duration(12.345)
    ('0.42 ms', '250 ms', '12.35 s')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.01 or not seconds else f"{1000 * seconds:.2f} ms"


def stop_text(stop: str, error: str = "") -> str:
    """Return in words why an agent stopped."""
    said = _STOPS.get(stop, stop or "did not stop")
    return f"{said}: {error}" if error else said


def fallback_text(stage: Stage) -> str:
    """Return a degradation in words."""
    given = stage.details
    said = str(given.get("error") or given.get("reason") or given)
    return f"{given['failed']}: {said}" if given.get("failed") else said


def _value(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(_short(value), ensure_ascii=False)
    if isinstance(value, list):
        most = 3
        more = f", … {len(value) - most} more" if len(value) > most else ""
        return f"[{', '.join(map(_value, value[:most]))}{more}]"
    return _short(json.dumps(value, ensure_ascii=False, default=str))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

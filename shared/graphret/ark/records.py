"""What is kept of an agent's steps and of the calls in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphret.ark.definitions import SELECT
from graphret.ark.observation import Observation
from graphret.llm.chat import ToolCall
from graphret.schema.text import estimate_tokens


@dataclass(slots=True)
class CallRecord:
    """A tool call and what came of it; `tokens` is the estimated size of the observation, `error` what it told of."""

    tool: str
    arguments: Any
    seconds: float = 0.0
    tokens: int = 0
    shown: int = 0
    total: int = 0
    failed: bool = False
    remembered: bool = False
    nodes: list[str] = field(default_factory=list)
    edges: list[list[str]] = field(default_factory=list)
    error: str | None = None

    @property
    def explored(self) -> str | None:
        """The node whose neighbours were asked for: the one that all edges share, or the one that the call names."""
        if self.tool == SELECT:
            return None
        named = self.arguments.get("node") if isinstance(self.arguments, Mapping) else None
        if isinstance(named, str) and all(named in (edge[0], edge[-1]) for edge in self.edges):
            return named
        shared = set.intersection(*({edge[0], edge[-1]} for edge in self.edges)) if self.edges else set()
        return min(shared) if shared else named if isinstance(named, str) else None

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON values; it shares lists with the record, which never change."""
        return {
            "tool": self.tool,
            "arguments": self.arguments,
            "seconds": self.seconds,
            "tokens": self.tokens,
            "shown": self.shown,
            "total": self.total,
            "failed": self.failed,
            "remembered": self.remembered,
            "nodes": self.nodes,
            "edges": self.edges,
            "error": self.error,
        }


@dataclass(slots=True)
class StepRecord:
    """A reply of the model and its calls, or why a request brought none.

    `started` counts seconds since the run began, `seconds` those that the model took; `selected` holds the nodes that
    the agent added to its selection. `tokens_estimated` says that the endpoint did not count the tokens. `error` says
    why there was no reply, and is empty where there was one; `finish_reason` why the reply ended before its end
    (``length``, ``content_filter``), and is empty where it did not.
    """

    number: int
    started: float = 0.0
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    text: str = ""
    calls: list[CallRecord] = field(default_factory=list)
    selected: list[str] = field(default_factory=list)
    error: str = ""
    finish_reason: str = ""
    tokens_estimated: bool = False

    @property
    def tokens(self) -> int:
        """Tokens that the model read and wrote."""
        return self.input_tokens + self.output_tokens

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON values."""
        return {
            "number": self.number,
            "started": self.started,
            "seconds": self.seconds,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "text": self.text,
            "calls": [call.to_dict() for call in self.calls],
            "selected": list(self.selected),
            "error": self.error,
            "finish_reason": self.finish_reason,
            "tokens_estimated": self.tokens_estimated,
        }


def answered_call(call: ToolCall, observation: Observation, seconds: float, remembered: bool) -> CallRecord:
    """Return the record of a call that was answered."""
    return CallRecord(
        call.name,
        _given(call),
        seconds,
        estimate_tokens(observation.text),
        len(observation.nodes),
        observation.total,
        observation.failed,
        remembered,
        list(observation.nodes),
        [list(edge) for edge in observation.edges],
        json.loads(observation.text).get("error") if observation.failed else None,
    )


def cut_off(call: ToolCall) -> CallRecord:
    """Return the record of a call to which there was no answer before the agent was stopped."""
    return CallRecord(call.name, _given(call), failed=True, error="the agent was stopped before it was answered")


def _given(call: ToolCall) -> Any:
    return call.arguments if call.parsed is None else call.parsed

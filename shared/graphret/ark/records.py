"""What is kept of an agent's steps and of the calls in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphret.ark.prompt import EXPLORE


def _fields(record: Any) -> dict[str, Any]:
    """The fields by name, not copied as `asdict` copies them: these are asked for after every step."""
    return {name: getattr(record, name) for name in record.__slots__}


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
        """The node whose neighbours were asked for."""
        node = self.arguments.get("node") if self.tool == EXPLORE and isinstance(self.arguments, Mapping) else None
        return None if node is None else str(node)

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON values."""
        return _fields(self)


@dataclass(slots=True)
class StepRecord:
    """A reply of the model and its calls, or why a request brought none.

    `started` counts seconds since the run began, `seconds` those that the model took; `selected` holds the nodes that
    the agent added to its selection. `tokens_estimated` says that the endpoint did not count the tokens. `error` says
    why there was no reply, `finish_reason` why the reply ended before its end (``length``, ``content_filter``); both
    are empty where nothing of the kind happened.
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

    @property
    def ended(self) -> float:
        """Seconds from the start of the run to the end of the step, calls that ran at once added up."""
        return self.started + self.seconds + sum(call.seconds for call in self.calls)

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON values."""
        return _fields(self) | {"calls": [call.to_dict() for call in self.calls]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StepRecord:
        """The inverse of `to_dict`."""
        return cls(**{**data, "calls": [CallRecord(**call) for call in data["calls"]]})

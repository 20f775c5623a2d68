"""The trace of a retrieval: its stages, and a callback for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from graphret.errors import InvalidInput


@dataclass(slots=True)
class Stage:
    """One step of a retrieval: its name, its duration, and its counts and decisions."""

    name: str
    seconds: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)


_listener: ContextVar[Callable[[Stage], object]] = ContextVar(
    "listener", default=lambda stage: None
)


@contextmanager
def on_stage(callback: Callable[[Stage], object]) -> Iterator[None]:
    """Call `callback` with each stage of the retrievals that run inside this context.

    It is called when the stage ends, in the thread that the stage ran in. Stages of
    inner retrievers have their own names, and each step of an agent is a stage.
    """
    token = _listener.set(callback)
    try:
        yield
    finally:
        _listener.reset(token)


def emit(stage: Stage) -> None:
    """Pass a stage that has ended to the callback of `on_stage`."""
    _listener.get()(stage)


@dataclass(slots=True)
class Trace:
    """What happened during a retrieval, in order."""

    stages: list[Stage] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str, **details: Any) -> Iterator[Stage]:
        """Time a stage; details can be added to the `Stage` that this yields."""
        stage = Stage(name, details=dict(details))
        self.stages.append(stage)
        start = time.perf_counter()
        try:
            yield stage
        finally:
            stage.seconds = time.perf_counter() - start
            emit(stage)

    def note(self, name: str, **details: Any) -> None:
        """Record a stage without duration: a decision, a fallback."""
        self.stages.append(Stage(name, details=dict(details)))
        emit(self.stages[-1])

    def extend(self, other: Trace, prefix: str = "") -> None:
        """Append the stages of an inner retrieval, their names after `prefix`."""
        self.stages.extend(
            Stage(prefix + s.name, s.seconds, s.details) for s in other.stages
        )

    @property
    def fallbacks(self) -> list[Stage]:
        """The stages that record a degradation."""
        return [
            stage
            for stage in self.stages
            if stage.name.rsplit("/", 1)[-1] == "fallback"
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as JSON values."""
        outer = (stage.seconds for stage in self.stages if "/" not in stage.name)
        return {
            "stages": [
                {
                    "name": stage.name,
                    "seconds": round(stage.seconds, 6),
                    **stage.details,
                }
                for stage in self.stages
            ],
            "seconds": round(sum(outer), 6),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Trace:
        """Return the trace from the JSON values of `to_dict`, or of a LangGraph run.

        `InvalidInput` is raised without stages, or for one without name or seconds.
        """
        try:
            stages = [{**stage} for stage in data["stages"]]
            return cls(
                [
                    Stage(str(stage.pop("name")), float(stage.pop("seconds")), stage)
                    for stage in stages
                ]
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"trace: expected an object with a list of stages ({error!r})"
            ) from error

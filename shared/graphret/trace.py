"""The trace of a retrieval: its stages, and the callback that is called as they end."""

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
    """One step of a retrieval: its name, how long it took, and what was counted or
    decided.
    """

    name: str
    seconds: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)


_listener: ContextVar[Callable[[Stage], object]] = ContextVar(
    "listener", default=lambda stage: None
)


@contextmanager
def on_stage(callback: Callable[[Stage], object]) -> Iterator[None]:
    """Call `callback` with each stage of the retrievals that run inside this context.

    It is called when the stage ends, in the thread that the stage ran in.

    Stages of a retriever that another asks come under their own names, and each step of
    an agent as a stage.
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
        """Record something that took no time: a decision, a fallback."""
        self.stages.append(Stage(name, details=dict(details)))
        emit(self.stages[-1])

    def extend(self, other: Trace, prefix: str = "") -> None:
        """Append the stages of an inner retrieval, their names behind `prefix`."""
        self.stages.extend(
            Stage(prefix + s.name, s.seconds, s.details) for s in other.stages
        )

    @property
    def fallbacks(self) -> list[Stage]:
        """The stages that record a degradation."""
        return [s for s in self.stages if s.name.rsplit("/", 1)[-1] == "fallback"]

    def to_dict(self) -> dict[str, Any]:
        """The trace as JSON values."""
        return {
            "stages": [
                {"name": s.name, "seconds": round(s.seconds, 6), **s.details}
                for s in self.stages
            ],
            "seconds": round(
                sum(s.seconds for s in self.stages if "/" not in s.name), 6
            ),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Trace:
        """Return the trace that `to_dict` made these JSON values of, such as the
        ``trace`` of a LangGraph run.

        An `InvalidInput` says that there are no stages, or that one has no name or no
        seconds.
        """
        try:
            stages = [{**stage} for stage in data["stages"]]
            return cls(
                [
                    Stage(str(one.pop("name")), float(one.pop("seconds")), one)
                    for one in stages
                ]
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"trace: expected an object with a list of stages ({error!r})"
            ) from error

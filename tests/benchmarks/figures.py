"""Figures of a speed benchmark, each with what it should be."""

from __future__ import annotations

import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A measured figure: its description, its value, and its upper or lower limit."""

    what: str
    value: float
    unit: str = "times"
    target: float | None = None
    at_least: bool = False

    def __str__(self) -> str:
        """A row of a table."""
        target = ""
        if self.target is not None:
            met = (
                self.value >= self.target
                if self.at_least
                else self.value <= self.target
            )
            bound = "at least" if self.at_least else "at most"
            target = f"{bound} {self.target:g} {self.unit}{'' if met else ' (missed)'}"
        return f"| {self.what} | {self.value:.3g} {self.unit} | {target} |"


@dataclass
class Report:
    """All figures of a run, what was counted, and remarks."""

    figures: dict[str, Figure] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, what: str, value: float, **more: Any) -> None:
        """Add a figure; see `Figure`."""
        self.figures[name] = Figure(what, float(value), **more)

    def __str__(self) -> str:
        """The figures as a table for the docs."""
        counts = ", ".join(f"{name} {count:,}" for name, count in self.counts.items())
        rows = [
            "| what | figure | target |",
            "| --- | ---: | ---: |",
            *map(str, self.figures.values()),
        ]
        return "\n".join(
            [*rows, "", f"Counts: {counts}.", *(f"\n{note}" for note in self.notes)]
        )


def timed(work: Callable[[], object]) -> float:
    """Return how long work takes, in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_memory() -> int:
    """The most bytes that this process has taken."""
    status = Path("/proc/self/status")
    if status.exists():  # `resource` counts what the parent took before it started this
        (kilobytes,) = re.findall(r"VmHWM:\s*(\d+) kB", status.read_text())
        return 1024 * int(kilobytes)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def medians(
    contestants: Mapping[str, Callable[[str], object]], questions: Iterable[str]
) -> dict[str, float]:
    """Put each question to each contestant in turn, and return their median times.

    Who begins changes, so that all meet the machine in the same state.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    order = list(contestants.items())
    for nth, question in enumerate(questions):
        for name, work in order[nth % len(order) :] + order[: nth % len(order)]:
            spent = timed(lambda w=work, q=question: w(q))  # type: ignore[misc]
            if nth:
                seconds[name].append(spent)
    return {name: statistics.median(values) for name, values in seconds.items()}

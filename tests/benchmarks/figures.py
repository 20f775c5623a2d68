"""Figures of a speed benchmark, each with what it should be."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A measured figure.

    Parameters
    ----------
    what
        In words.
    value, unit
        What came out.
    target
        What it should be at most, or with `at_least` at least; `None` where it only informs.
    """

    what: str
    value: float
    unit: str = "times"
    target: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; `None` without one."""
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


@dataclass
class Report:
    """All figures of a run."""

    figures: dict[str, Figure] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, what: str, value: float, **more: Any) -> None:
        """Add a figure; see `Figure`."""
        self.figures[name] = Figure(what, float(value), **more)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values, in the shape of every benchmark."""
        rows = {
            name: {
                "value": round(f.value, 3),
                **({"target": f.target, "met": f.met} if f.target is not None else {}),
            }
            for name, f in self.figures.items()
        }
        seconds = {name: round(value, 6) for name, value in self.seconds.items()}
        return {"name": "speed", "rows": rows, "counts": self.counts, "seconds": seconds, "notes": self.notes}

    def to_markdown(self) -> str:
        """The figures as a table for the docs."""
        lines = ["| what | figure | target |", "| --- | ---: | ---: |"]
        for figure in self.figures.values():
            target = ""
            if figure.target is not None:
                bound = "at least" if figure.at_least else "at most"
                target = f"{bound} {figure.target:g} {figure.unit}{'' if figure.met else ' (missed)'}"
            lines.append(f"| {figure.what} | {figure.value:.3g} {figure.unit} | {target} |")
        counts = ", ".join(f"{name} {count:,}" for name, count in self.counts.items())
        return "\n".join([*lines, "", f"Counts: {counts}.", *(f"\n{note}" for note in self.notes)])


def timed(work: Callable[[], object]) -> float:
    """Return how long work takes, in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def medians(contestants: Mapping[str, Callable[[str], object]], asked: Iterable[str]) -> dict[str, float]:
    """Put each question to each contestant in turn, who begins too, so that all meet the machine as it is: medians."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    order = list(contestants.items())
    for nth, question in enumerate(asked):
        for name, work in order[nth % len(order) :] + order[: nth % len(order)]:
            spent = timed(lambda w=work, q=question: w(q))  # type: ignore[misc]
            if nth:
                taken[name].append(spent)
    return {name: statistics.median(values) for name, values in taken.items()}

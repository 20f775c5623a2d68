"""Plots of an evaluation, as shapes that a page draws: bars with intervals, curves of
recall, and quality against time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: The size of a plot, and where its axes are, in units of its view.
WIDTH, HEIGHT = 1000, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 980, 16, 300


@dataclass(frozen=True, slots=True)
class Bar:
    """A value of a method in percent, as a bar with the interval that it lies in."""

    method: str
    measure: str
    value: float
    x: float
    width: float
    top: float
    low: float
    high: float

    @property
    def height(self) -> float:
        return _BOTTOM - self.top

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve of a method, as the points of a polyline."""

    method: str
    points: Sequence[tuple[float, float]]

    @property
    def line(self) -> str:
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)


@dataclass(frozen=True, slots=True)
class Dot:
    """A method as a dot, with what it stands for in words."""

    method: str
    x: float
    y: float
    text: str


def height_of(share: float) -> float:
    """Return where a value in percent lies on the vertical axis."""
    return _BOTTOM - (_BOTTOM - _TOP) * min(max(share, 0.0), 100.0) / 100


def bars(
    rows: Mapping[str, Mapping[str, Mapping[str, float]]], measures: Sequence[str]
) -> list[Bar]:
    """Return a group of bars for each measure, a bar for each method.

    `rows` has of each method and measure ``gain``, ``low`` and ``high`` in percent.
    """
    group = (_RIGHT - _LEFT) / max(1, len(measures))
    width = 0.86 * group / max(1, len(rows))
    drawn = []
    for place, measure in enumerate(measures):
        left = _LEFT + place * group + 0.07 * group
        for number, (method, row) in enumerate(rows.items()):
            about = row[measure]
            drawn.append(
                Bar(
                    method,
                    measure,
                    about["gain"],
                    left + number * width,
                    0.88 * width,
                    height_of(about["gain"]),
                    height_of(about["low"]),
                    height_of(about["high"]),
                )
            )
    return drawn


def curves(recall: Mapping[str, Sequence[float]]) -> list[Curve]:
    """Return the recall of each method at 1, 2, … as a curve."""
    return [
        Curve(
            method,
            [
                (_along((k - 1) / max(1, len(values) - 1)), height_of(value))
                for k, value in enumerate(values, 1)
            ],
        )
        for method, values in recall.items()
    ]


def dots(rows: Mapping[str, Mapping[str, float]], measure: str) -> list[Dot]:
    """Return each method by its seconds a question, on a logarithmic axis, and by a
    measure.
    """
    seconds = {method: max(row["seconds"], 1e-4) for method, row in rows.items()}
    low = math.log10(min(seconds.values()))
    span = max(math.log10(max(seconds.values())) - low, 1e-9)
    return [
        Dot(
            method,
            _along((math.log10(seconds[method]) - low) / span),
            height_of(row[measure]),
            f"{method}: {row[measure]:.1f} % in {seconds[method]:.3f} s",
        )
        for method, row in rows.items()
    ]


def centers(labels: Sequence[str]) -> list[tuple[float, str]]:
    """Return where the labels of equal parts of the horizontal axis stand."""
    part = (_RIGHT - _LEFT) / len(labels)
    return [(_LEFT + (n + 0.5) * part, label) for n, label in enumerate(labels)]


def ticks(most: int) -> list[tuple[float, str]]:
    """Return where 1, 5, 10, … stand below the curves of recall."""
    shown = [k for k in range(1, most + 1) if k == 1 or k % 5 == 0]
    return [(_along((k - 1) / max(1, most - 1)), str(k)) for k in shown]


def _along(share: float) -> float:
    """Return where a share of the horizontal axis lies, a little inside its ends."""
    return _LEFT + 12 + (_RIGHT - _LEFT - 24) * share

"""Plots of an evaluation as shapes: bars, recall curves, and quality against time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: The size of a plot, and the places of its axes, in units of its view.
WIDTH, HEIGHT = 1000, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 980, 16, 300


@dataclass(frozen=True, slots=True)
class Bar:
    """A method's value in percent, as a bar with its interval."""

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
    """A method as a dot, with its meaning in words."""

    method: str
    x: float
    y: float
    text: str


def height_of(share: float) -> float:
    """Return the place of a value in percent on the vertical axis."""
    return _BOTTOM - (_BOTTOM - _TOP) * min(max(share, 0.0), 100.0) / 100


def bars(
    rows: Mapping[str, Mapping[str, Mapping[str, float]]], measures: Sequence[str]
) -> list[Bar]:
    """Return a group of bars for each measure, a bar for each method.

    `rows` has ``gain``, ``low`` and ``high`` in percent by method and measure.
    """
    group = (_RIGHT - _LEFT) / max(1, len(measures))
    width = 0.86 * group / max(1, len(rows))
    drawn = []
    for place, measure in enumerate(measures):
        group_left = _LEFT + place * group + 0.07 * group
        for number, (method, row) in enumerate(rows.items()):
            interval = row[measure]
            drawn.append(
                Bar(
                    method,
                    measure,
                    interval["gain"],
                    group_left + number * width,
                    0.88 * width,
                    height_of(interval["gain"]),
                    height_of(interval["low"]),
                    height_of(interval["high"]),
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
    """Return each method by its seconds a question, logarithmic, and a measure."""
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
    """Return the places of labels for equal parts of the horizontal axis."""
    part = (_RIGHT - _LEFT) / len(labels)
    return [(_LEFT + (n + 0.5) * part, label) for n, label in enumerate(labels)]


def ticks(most: int) -> list[tuple[float, str]]:
    """Return the places of 1, 5, 10, … below the recall curves."""
    shown = [k for k in range(1, most + 1) if k == 1 or k % 5 == 0]
    return [(_along((k - 1) / max(1, most - 1)), str(k)) for k in shown]


def _along(share: float) -> float:
    """Return the place of a share of the horizontal axis, a little inside its ends."""
    return _LEFT + 12 + (_RIGHT - _LEFT - 24) * share

"""Plots of similarity edges as shapes: histograms, scatter plots and curves.

Each is in a small panel of a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

#: The size of a panel in units of its view, and where its axes are.
WIDTH, HEIGHT = 240, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 232, 8, 150

#: A line of the curves: what it is, and the points of a polyline.
Line: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Block:
    """A class of a histogram as a bar, with what it stands for in words."""

    x: float
    top: float
    width: float
    text: str

    @property
    def height(self) -> float:
        return _BOTTOM - self.top


@dataclass(frozen=True, slots=True)
class Panel:
    """A small plot: its title, the ends of its horizontal axis, and what is drawn."""

    title: str
    low: str
    high: str
    blocks: Sequence[Block] = ()
    dots: Sequence[tuple[float, float]] = ()
    lines: Sequence[Line] = ()


def histogram(title: str, drawn: Mapping[str, Any]) -> Panel:
    """Return a histogram: ``low``, ``high``, and ``counts`` of classes of one width."""
    low, high, counts = drawn["low"], drawn["high"], drawn["counts"]
    step = (high - low) / len(counts)
    texts = [
        f"{low + nth * step:.2f} to {low + (nth + 1) * step:.2f}: {count:,}"
        for nth, count in enumerate(counts)
    ]
    return Panel(title, f"{low:.2f}", f"{high:.2f}", _blocks(counts, texts))


def numbers(title: str, counts: Sequence[int], what: str) -> Panel:
    """Return how many nodes have 0, 1, … of something, the last class being open."""
    texts = [f"{count:,} nodes with {nth} {what}" for nth, count in enumerate(counts)]
    return Panel(title, "0", f"{len(counts) - 1} or more", _blocks(counts, texts))


def scatter(title: str, points: Sequence[tuple[float, float]]) -> Panel:
    """Return pairs as dots, each axis from the least to the largest value."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    dots = list(
        zip(_scaled(xs, _LEFT, _RIGHT), _scaled(ys, _BOTTOM, _TOP), strict=True)
    )
    return Panel(title, f"{min(xs):.2f}", f"{max(xs):.2f}", dots=dots)


def curves(
    title: str, values: Mapping[str, Sequence[float]], places: Sequence[float]
) -> Panel:
    """Return curves on one scale, over the same places of the horizontal axis."""
    every = [value for row in values.values() for value in row]
    across, heights = (
        _scaled(places, _LEFT, _RIGHT),
        iter(_scaled(every, _BOTTOM, _TOP)),
    )
    lines = [
        (name, " ".join(f"{x:.1f},{next(heights):.1f}" for x in across))
        for name in values
    ]
    span = f"{min(every):,.6g} to {max(every):,.6g}"
    low, high = f"{min(places):g}", f"{max(places):g}"
    return Panel(f"{title}, {span}", low, high, lines=lines)


def shade(value: float | None) -> str:
    """Return the background of a correlation: the stronger, the darker."""
    strength = 0 if value is None else round(70 * min(abs(value), 1.0))
    hue = "--good" if value is not None and value >= 0 else "--gold"
    return f"color-mix(in srgb, var({hue}) {strength}%, transparent)"


def _blocks(counts: Sequence[int], texts: Sequence[str]) -> list[Block]:
    width = (_RIGHT - _LEFT) / len(counts)
    most = max(*counts, 1)
    return [
        Block(
            _LEFT + nth * width,
            _BOTTOM - (_BOTTOM - _TOP) * count / most,
            0.9 * width,
            text,
        )
        for nth, (count, text) in enumerate(zip(counts, texts, strict=True))
    ]


def _scaled(values: Sequence[float], first: float, last: float) -> list[float]:
    """Return values between the ends of an axis; in its middle where all are one."""
    low, span = min(values), max(values) - min(values)
    shares = [(value - low) / span if span else 0.5 for value in values]
    return [first + (last - first) * share for share in shares]

"""Ladybug's ``PROFILE`` as operators, read from its drawing of boxes.

They are side by side where a plan branches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphret.stores.profile import Operator

_HEAD = re.compile(r"([A-Z_]+)\[(\d+)\]")
_ROWS = re.compile(r"NumOutputTuples: (\d+)")
_TIME = re.compile(r"ExecutionTime: ([\d.]+)")
_WALL = re.compile(r"WallClockTime: ([\d.]+)")
#: Lines of a box that say nothing of what the operator does.
_MEASURES = ("NumOutputTuples", "ExecutionTime", "TotalTime", "WallClockTime", "----")
#: The operator that is the measurement itself.
_ITSELF = "PROFILE"


def operators_of(drawing: str) -> list[Operator]:
    """Return the operators of a drawn plan, the last one to run first."""
    lines = drawing.splitlines()
    # the first box is the title; all others are of one width, with a space between
    title = next((n for n, line in enumerate(lines) if line.startswith("└")), 0)
    boxes = lines[title + 1 :]
    width = next((line.find("┐") + 1 for line in boxes if line.startswith("┌")), 0)
    found: dict[int, Operator] = {}
    longest = max(map(len, boxes), default=0)
    for left in range(0, longest if width else 0, width + 1):
        found |= dict(_boxes([line[left : left + width] for line in boxes]))
    return [found[number] for number in sorted(found, reverse=True)]


def wall_seconds(drawing: str) -> float:
    """Return the seconds that a drawn plan took."""
    told = _WALL.search(drawing)
    return float(told[1]) / 1000 if told else 0.0


def _boxes(column: Sequence[str]) -> list[tuple[int, Operator]]:
    """Return the operators in a column, with their numbers."""
    boxes: list[list[str]] = []
    for line in column:
        if line.startswith("┌"):
            boxes.append([])
        elif line.startswith("│") and boxes:
            boxes[-1].append(line.strip("│ "))
    return [made for lines in boxes if (made := _operator(lines)) is not None]


def _operator(lines: Sequence[str]) -> tuple[int, Operator] | None:
    """Return the operator that a box is of; `None` for a title, and the measurement."""
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if head is None or head[1] == _ITSELF:
        return None
    text = "\n".join(lines)
    rows, time = _ROWS.search(text), _TIME.search(text)
    about = [line for line in lines[1:] if line and not line.startswith(_MEASURES)]
    operator = Operator(
        name=head[1],
        details=" ".join(about),
        rows=int(rows[1]) if rows else 0,
        milliseconds=float(time[1]) if time else None,
    )
    return int(head[2]), operator

"""Texts of users are read in time that grows as they do, whatever runs they hold."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

import graphret
from graphret.corpus import read

#: Those of which a text of users is read; every pattern of these modules is tried.
READERS = ("graphret.corpus", "graphret.linking", "graphret.text", "graphret.search")

#: What a run repeats, and what stands before and behind it.
UNITS = (
    *(
        " ",
        "\t",
        "\n",
        " \n",
        "#",
        "*",
        "_",
        "[",
        "![",
        "]",
        "(",
        "{",
        "<",
        "<h1>",
        "`",
    ),
    *(
        "~",
        "|",
        "-",
        "|-",
        ".",
        '"',
        "'",
        ")",
        "\\",
        "a",
        "A ",
        "a.",
        "a_",
        "*a ",
        "**",
    ),
    *(
        "&",
        ",",
        "1",
        "1.",
        "<!--",
        "```\n",
        "# a\n",
        "\n> ",
        "{#a} ",
        "[a](",
        "](",
        "$",
    ),
)
AROUND = (("", ""), ("# a", "b"), ("<h1>(*a.", "x"))
LENGTH = 6_000
#: Quadratic time is four times as long, linear time a hundredth of it.
LIMIT = 0.1


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for found in pkgutil.walk_packages(graphret.__path__, "graphret."):
        if found.name.startswith(READERS):
            module = importlib.import_module(found.name)
            yield from _patterns_of(module)


def _patterns_of(module: ModuleType) -> Iterator[tuple[str, re.Pattern[str]]]:
    waiting = [(f"{module.__name__}.{name}", own) for name, own in vars(module).items()]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            yield name, value
        elif isinstance(value, tuple | list):
            waiting += [(name, part) for part in value]


def _seconds(work: Callable[[], object]) -> float:
    """Return the least processor time of up to three tries."""
    taken = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        taken = min(taken, time.process_time() - start)
        if taken < LIMIT:
            break
    return taken


def test_no_pattern_takes_more_than_linear_time() -> None:
    patterns = dict(_patterns())
    assert len(patterns) > 30
    texts = [
        f"{before}{unit * (LENGTH // len(unit))}{behind}"
        for unit in UNITS
        for before, behind in AROUND
    ]
    slow = [
        (name, text[:20])
        for name, pattern in patterns.items()
        for text in texts
        if _seconds(partial(pattern.subn, "", text)) > LIMIT
    ]
    assert not slow


MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "# a" + " " * MEGABYTE + "b",
        "# a" + "\t" * MEGABYTE + "b",
        "# " + "*a " * (MEGABYTE // 3),
        "# " + "![" * (MEGABYTE // 2),
        "<h1>" * (MEGABYTE // 4),
        "<!--" * (MEGABYTE // 4),
        "a|b\n" + "|-" * (MEGABYTE // 2),
        "." + '"' * MEGABYTE + "x",
        "---\n" + "a: [" * (MEGABYTE // 4) + "\n---\n",
    ],
    ids=lambda text: repr(text[:8]),
)
def test_a_megabyte_of_odd_markdown_is_read_at_once(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.md"
    path.write_text(text)
    assert _seconds(lambda: read(path)) < 1

"""What commands print: results on stdout, progress and remarks on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def stdout(*, stderr: bool = False) -> Console:
    """Return the console for results.

    It prints no control character of what it shows: names and texts are data, whoever wrote them.
    """
    from rich.console import Console, RenderHook

    from graphret.explain import Plain

    class Hook(RenderHook):
        def process_renderables(self, renderables: list[Any]) -> list[Any]:
            return [Plain(shown) for shown in renderables]

    console = Console(stderr=stderr, highlight=False)
    console.push_render_hook(Hook())
    return console


def stderr() -> Console:
    """Return the console for progress and remarks."""
    return stdout(stderr=True)


def say(text: str) -> None:
    """Print a line on stdout, as it is."""
    stdout().print(text, markup=False, soft_wrap=True)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout, with escapes where its encoding is not UTF-8."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(value, ensure_ascii=plain, allow_nan=False, indent=2) + "\n")


def remark(text: str) -> None:
    """Print a remark on stderr."""
    stderr().print(text, style="yellow", markup=False, soft_wrap=True)


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show bars on stderr while work goes on, one a stage; nothing where stderr is no terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = stderr()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report

"""Output of commands: results on stdout, progress and remarks on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def stdout(*, stderr: bool = False) -> Console:
    """Return the console for results.

    It strips control characters, because names and texts are untrusted data.
    """
    from rich.console import Console, RenderHook

    from graphret.explain import Plain

    class Hook(RenderHook):
        def process_renderables(self, renderables: list[Any]) -> list[Any]:
            return [Plain(renderable) for renderable in renderables]

    console = Console(stderr=stderr, highlight=False)
    console.push_render_hook(Hook())
    return console


def stderr() -> Console:
    return stdout(stderr=True)


def show(as_json: bool, value: Mapping[str, Any], *renderables: RenderableType) -> None:
    """Print one JSON object (ASCII unless stdout is UTF-8), or strings and renderables.

    Strings are printed as they are, without markup or wrapping.
    """
    if as_json:
        ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        sys.stdout.write(
            json.dumps(value, ensure_ascii=ascii_only, allow_nan=False, indent=2) + "\n"
        )
        return
    for renderable in renderables:
        is_line = isinstance(renderable, str)
        stdout().print(renderable, markup=not is_line, soft_wrap=is_line)


def remark(text: str) -> None:
    stderr().print(text, style="yellow", markup=False, soft_wrap=True)


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar for each stage on stderr, if stderr is a terminal."""
    from rich.progress import Progress

    console = stderr()
    with Progress(
        console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report

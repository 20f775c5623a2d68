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

    It prints no control character of what it shows: names and texts are data, whoever
    wrote them.
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
    return stdout(stderr=True)


def show(as_json: bool, value: Mapping[str, Any], *shown: Any) -> None:
    """Print one JSON object, with escapes where stdout is not UTF-8, or else lines as
    they are and what rich draws.
    """
    if as_json:
        plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        sys.stdout.write(
            json.dumps(value, ensure_ascii=plain, allow_nan=False, indent=2) + "\n"
        )
        return
    for one in shown:
        line = isinstance(one, str)
        stdout().print(one, markup=not line, soft_wrap=line)


def remark(text: str) -> None:
    stderr().print(text, style="yellow", markup=False, soft_wrap=True)


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show bars on stderr while work goes on, one a stage; nothing where stderr is no
    terminal.
    """
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

"""``graphret replay``: a recorded run, shown again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphret.cli import options
from graphret.cli.console import print_json, remark, say, stdout
from graphret.cli.errors import writing_to
from graphret.errors import InvalidInput

if TYPE_CHECKING:
    from graphret.ark import Run

_LISTED = 10


def replay(
    file: Annotated[
        Path,
        typer.Argument(metavar="RUN.jsonl", help="What query --method ark --record wrote.", show_default=False),
    ],
    run: Annotated[
        str | None, typer.Option(metavar="ID", help="Which run, by its id or how that begins; by default the last.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Draw it into a page.")] = None,
    json: options.JsonFlag = False,
) -> None:
    """Show a recorded run: each agent's steps and calls, what came back, what was selected, and the vote."""
    from rich.text import Text

    from graphret.ark.trajectory import recorded_runs
    from graphret.explain import render_timeline, write_timeline

    runs = recorded_runs(file)
    found = [id_ for id_ in runs if id_.startswith(run or "")]
    if not found:
        raise InvalidInput(f"{file}: it holds no run{f' {run!r}; there are {list(runs)[-_LISTED:]}' if run else ''}")
    chosen = runs[found[-1]]
    if html is not None:
        with writing_to(html):
            write_timeline(html, chosen)
    if json:
        print_json(_as_dict(found[-1], chosen))
        return
    if run is None and len(runs) > 1:
        remark(f"the last of {len(runs)} runs; --run shows another: {', '.join(list(runs)[-2 : -2 - _LISTED : -1])}")
    console = stdout()
    console.print(Text(chosen.question, style="bold"))
    console.print(Text(f"run {found[-1]}, {chosen.created}\n", style="dim"))
    if chosen.cut_short:
        console.print(Text("It was cut short: this is what was done until then.\n", style="yellow"))
    console.print(render_timeline(chosen))
    if html is not None:
        say(f"drawn in {html}")


def _as_dict(id_: str, run: Run) -> dict[str, Any]:
    agents = [session.to_dict() | {"agent": session.agent + 1} for session in run.sessions]
    about = {name: getattr(run, name) for name in ("question", "created", "seconds", "how", "cut_short")}
    return {"run": id_, **about, "votes": [vote.to_dict() for vote in run.votes], "agents": agents}

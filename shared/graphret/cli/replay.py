"""``graphret replay``: a recorded run, shown again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphret.cli import options
from graphret.cli.console import print_json, remark, stdout
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
    from graphret.ark.trajectory import recorded_runs

    runs = recorded_runs(file)
    id_ = _chosen(runs, run, file)
    chosen = runs[id_]
    if html is not None:
        from graphret.explain import write_timeline

        with writing_to(html):
            write_timeline(html, chosen)
    if json:
        print_json(_as_dict(id_, chosen))
        return
    if run is None and len(runs) > 1:
        others = ", ".join(list(runs)[-2 : -2 - _LISTED : -1])
        more = f" and {len(runs) - 1 - _LISTED} more" if len(runs) > _LISTED + 1 else ""
        remark(f"the last of {len(runs)} runs; --run shows another: {others}{more}")
    _print(id_, chosen)
    if html is not None:
        stdout().print(f"drawn in {html}", markup=False, soft_wrap=True)


def _chosen(runs: dict[str, Run], wanted: str | None, file: Path) -> str:
    if not runs:
        raise InvalidInput(f"{file}: it holds no run")
    if wanted is None:
        return list(runs)[-1]
    found = [id_ for id_ in runs if id_ == wanted] or [id_ for id_ in runs if wanted and id_.startswith(wanted)]
    if len(found) != 1:
        why = f"{len(found)} runs begin so" if found else f"{file} has no such run"
        raise InvalidInput(f"--run {wanted}: {why}; there are {', '.join(list(runs)[:_LISTED])}")
    return found[0]


def _print(id_: str, run: Run) -> None:
    from rich.text import Text

    from graphret.explain import clean, render_timeline

    console = stdout()
    console.print(Text(clean(run.question), style="bold"))
    console.print(Text(clean(f"run {id_}, {run.created}"), style="dim"))
    if run.cut_short:
        console.print(Text("It was cut short: this is what was done until then.", style="yellow"))
    console.print()
    console.print(render_timeline(run))


def _as_dict(id_: str, run: Run) -> dict[str, Any]:
    agents = [
        {name: value for name, value in session.to_dict().items() if name not in ("known", "failures", "seen")}
        | {"agent": session.agent + 1}
        for session in run.sessions
    ]
    about = {"run": id_, "question": run.question, "created": run.created, "seconds": run.seconds, "how": run.how}
    about["cut_short"] = run.cut_short
    return {**about, "votes": [vote.to_dict() for vote in run.votes], "agents": agents}

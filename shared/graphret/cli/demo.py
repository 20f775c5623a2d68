"""``graphret demo``: what a graph finds that flat search misses, on shipped data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphret.cli import options
from graphret.cli.console import progress, remark, show
from graphret.cli.errors import writing_to

PAGE, GRAPH = "demo.html", "graph"
AGENTS_PAGE, FILMS = "agents.html", "films"


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for the pages and graphs.")
    ] = Path("demo-out"),
    encoder: options.EncoderName = "default",
    json: options.JsonFlag = False,
) -> None:
    """Compare a graph with flat search on a small corpus; let agents explore one."""
    from graphret.demo import run
    from graphret.demo.display import draw, draw_explored, page
    from graphret.demo.exploration import explore
    from graphret.explain import store_lookup, write_timeline

    with progress() as report:
        result = run(options.encoder_of(encoder), progress=report)
    if result.note:
        remark(f"searching by words only: {result.note}")
    with writing_to(out / PAGE):
        written = page(result, out / PAGE)
    result.graph.save(out / GRAPH)
    explored = explore(out / FILMS)
    with writing_to(out / AGENTS_PAGE):
        drawn = write_timeline(
            out / AGENTS_PAGE, explored.retrieval, lookup=store_lookup(explored.store)
        )
    agents = {**explored.to_dict(), "page": str(drawn), "graph": str(out / FILMS)}
    show(
        json,
        {
            **result.to_dict(),
            "page": str(written),
            "graph": str(out / GRAPH),
            "ark": agents,
        },
        draw(result),
        f'\npage   {written}\ngraph  {out / GRAPH}: graphret query "…" --graph'
        f" {out / GRAPH}\n",
        draw_explored(explored),
        f'\npage   {drawn}\ngraph  {out / FILMS}: graphret query "…" --method ark'
        f" --graph {out / FILMS}",
    )

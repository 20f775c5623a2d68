"""``graphret demo``: what the graph finds that flat search misses, on the corpus that comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphret.cli import options
from graphret.cli.output import print_json, progress, remark, stdout
from graphret.cli.running import writing_to

PAGE, GRAPH = "demo.html", "graph"


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the page and the graph go.")] = Path("demo-out"),
    encoder: options.EncoderName = "default",
    json: options.JsonFlag = False,
) -> None:
    """Build the graph of a small real corpus, ask it, and compare it with flat search."""
    from graphret.demo import run
    from graphret.demo.show import draw, page

    with progress() as report:
        result = run(options.encoder_of(encoder), progress=report)
    if result.note:
        remark(f"searching by words alone: {result.note}")
    with writing_to(out / PAGE):
        written = page(result, out / PAGE)
    result.graph.save(out / GRAPH)
    if json:
        print_json({**result.to_dict(), "page": str(written), "graph": str(out / GRAPH)})
        return
    console = stdout()
    console.print(draw(result))
    console.print(f"\npage   {written}", markup=False, soft_wrap=True)
    console.print(f'graph  {out / GRAPH}: graphret query "…" --graph {out / GRAPH}', markup=False, soft_wrap=True)

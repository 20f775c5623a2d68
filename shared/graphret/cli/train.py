"""``graphret train``: what is learned of labelled questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphret.cli import options
from graphret.cli.console import print_json, stderr, stdout
from graphret.cli.errors import writing_to
from graphret.cli.options import option

train = typer.Typer(help="Learn of labelled questions.", no_args_is_help=True)

_QA = 'Labelled questions, JSON Lines: {"question": "…", "answers": ["id", …]}.'


@train.callback()
def _group() -> None:
    """Keep ``paths`` a command of its own while it is the only one."""


@train.command()
def paths(
    graph: options.Graph,
    qa: Annotated[Path, option(_QA, metavar="FILE.jsonl")],
    out: Annotated[Path, option("Where it goes, for PathPlanner(scorer=…).", metavar="FILE.npz")],
    limit: Annotated[int | None, option("Only the first so many questions.", min=1)] = None,
    aliases: Annotated[Path | None, option("What else the graph calls things.", metavar="FILE.yaml")] = None,
    json: options.JsonFlag = False,
) -> None:
    """Learn which relation paths questions mean, from nothing but questions and answers: minutes on a CPU."""
    from graphret.graphs.locations import opened
    from graphret.linking import Linker
    from graphret.planning import PathPlanner
    from graphret.training import read_questions, train_paths

    questions = read_questions(qa, limit)
    with opened(graph) as store, stderr().status(f"reading {len(questions):,} questions"):
        scorer = train_paths(PathPlanner(store, Linker.of_store(store), aliases=aliases), questions)
    with writing_to(out):
        scorer.save(out)
    if json:
        print_json(
            {"questions": len(questions), "words": scorer.weights.shape[0] - 1, "parts": scorer.weights.shape[1]}
        )
    else:
        stdout().print(f"what {len(questions):,} questions mean is in {out}", markup=False, soft_wrap=True)

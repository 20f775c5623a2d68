"""``graphret train`` and ``tune``: what is learned of labelled questions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import typer

from graphret.cli import options
from graphret.cli.console import progress, show, stderr
from graphret.cli.errors import writing_to
from graphret.cli.options import option
from graphret.cli.query import opened_for

_QA = 'Labelled questions, JSON Lines: {"question": "…", "answers": ["id", …]}.'
Questions = Annotated[Path, option(_QA, metavar="FILE.jsonl")]
Limit = Annotated[int | None, option("Only the first so many questions.", min=1)]


def paths(
    graph: options.Graph,
    qa: Questions,
    out: Annotated[Path, option("Where it goes, for PathPlanner(scorer=…).", metavar="FILE.npz")],
    limit: Limit = None,
    aliases: options.Aliases = None,
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
    words, parts = scorer.weights.shape
    about = {"questions": len(questions), "words": words - 1, "parts": parts}
    show(json, about, f"what {len(questions):,} questions mean is in {out}")


def tune(
    context: typer.Context,
    graph: options.Graph,
    qa: Questions,
    out: Annotated[Path, option("Where the settings go, for query --settings.", metavar="FILE.json")],
    limit: Limit = None,
    encoder: options.EncoderName = "none",
    aliases: options.Aliases = None,
    scorer: options.Scorer = None,
    model: options.Planning = None,
    base_url: options.PlanningUrl = None,
    json: options.JsonFlag = False,
) -> None:
    """Choose the weights of GRASP's fusion over the paper's grids, by cross-validation, and write them to a file."""
    from rich.table import Table

    from graphret.grasp import Grasp
    from graphret.training import cases_of, read_questions, tune_fusion
    from graphret.training.fusion import STATIC_K

    questions = read_questions(qa, limit)
    usual = {"method": "grasp", "settings": None, "hints": "", "show_values": False, "on_failure": "fallback"}
    given = SimpleNamespace(**context.params | usual)
    with opened_for(given) as (grasp, _, _), progress() as report:
        assert isinstance(grasp, Grasp)
        cases = cases_of(grasp, questions, progress=partial(report, "ask"))
        tuned = tune_fusion(cases, grasp.settings)
    with writing_to(out):
        tuned.settings.save(out)
    metrics, heat = tuned.metrics, tuned.heat
    table = Table("", *next(iter(metrics.values())), title=f"{tuned.questions:,} questions, cross-validated, percent")
    for name, values in metrics.items():
        table.add_row(name, *(f"{value:.1f}" for value in values.values()))
    low, high = float(heat.min()), float(heat.max())
    shown = [f"Hit@1 by the plan's weight (across, 0 to 1) and k (down): {low:.1f} to {high:.1f}"]
    for k, row in zip(STATIC_K, heat.T, strict=True):
        shades = (" ░▒▓█"[min(4, int(5 * (hits - low) / max(high - low, 1e-9)))] * 2 for hits in row.tolist())
        shown.append(f"{k:>4} {''.join(shades)}")
    shown.append(f"chosen: {tuned.settings.weights}, k = {tuned.settings.rrf_k:g}; settings in {out}")
    value = {"settings": tuned.settings.to_dict(), "metrics": metrics, "heat": heat.tolist()}
    show(json, value, table, *shown)

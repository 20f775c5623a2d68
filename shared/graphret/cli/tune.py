"""``graphret tune``: choose how GRASP weighs graph and text, on labelled questions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated

import typer

from graphret.cli import options
from graphret.cli.console import print_json, progress, say, stdout
from graphret.cli.errors import writing_to
from graphret.cli.options import MODELS, option
from graphret.cli.query import opened_for

if TYPE_CHECKING:
    from graphret.training import Tuned

_QA = 'Labelled questions, JSON Lines: {"question": "…", "answers": ["id", …]}.'


def tune(
    context: typer.Context,
    graph: options.Graph,
    qa: Annotated[Path, option(_QA, metavar="FILE.jsonl")],
    out: Annotated[Path, option("Where the settings go, for query --settings.", metavar="FILE.json")],
    limit: Annotated[int | None, option("Only the first so many questions.", min=1)] = None,
    encoder: options.EncoderName = "none",
    aliases: Annotated[Path | None, option("What else the graph calls things.", metavar="FILE.yaml")] = None,
    scorer: Annotated[Path | None, option("What train paths wrote.", metavar="FILE.npz")] = None,
    model: Annotated[str | None, option("A chat model that plans.", metavar="NAME", panel=MODELS)] = None,
    base_url: Annotated[str | None, option("Of --model: an OpenAI-compatible endpoint.", panel=MODELS)] = None,
    json: options.JsonFlag = False,
) -> None:
    """Choose the weights of GRASP's fusion over the paper's grids, by cross-validation, and write them to a file."""
    from graphret.grasp import Grasp
    from graphret.training import cases_of, read_questions, tune_fusion

    questions = read_questions(qa, limit)
    usual = {"method": "grasp", "settings": None, "hints": "", "show_values": False, "on_failure": "fallback"}
    told = SimpleNamespace(**context.params | usual)
    with opened_for(told) as (grasp, _, _), progress() as report:
        assert isinstance(grasp, Grasp)
        cases = cases_of(grasp, questions, progress=lambda done, total: report("ask", done, total))
        tuned = tune_fusion(cases, grasp.settings)
    with writing_to(out):
        tuned.settings.save(out)
    if json:
        metrics = {name: dict(values) for name, values in tuned.metrics.items()}
        print_json({"settings": tuned.settings.to_dict(), "metrics": metrics, "heat": tuned.heat.tolist()})
        return
    _print(tuned)
    say(f"settings in {out}")


def _print(tuned: Tuned) -> None:
    """Print what was chosen, what it is worth, and the heat map of the static weights."""
    from rich.table import Table
    from rich.text import Text

    from graphret.training.fusion import STATIC_K, STATIC_WEIGHTS

    console, metrics = stdout(), tuned.metrics
    table = Table("", *next(iter(metrics.values())), title=f"{tuned.questions:,} questions, cross-validated, percent")
    for name, values in metrics.items():
        table.add_row(name, *(f"{value:.1f}" for value in values.values()))
    console.print(table)
    low, high = float(tuned.heat.min()), float(tuned.heat.max())
    console.print(f"Hit@1 by the plan's weight (across, 0 to 1) and k (down): {low:.1f} to {high:.1f}")
    for column, k in enumerate(STATIC_K):
        line = Text(f"{k:>4} ")
        for row in range(len(STATIC_WEIGHTS)):
            share = (tuned.heat[row, column] - low) / max(high - low, 1e-9)
            line.append(" ░▒▓█"[min(4, int(5 * share))] * 2)
        console.print(line)
    console.print(f"chosen: {tuned.settings.weights}, k = {tuned.settings.rrf_k:g}", markup=False, highlight=False)

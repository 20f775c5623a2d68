"""``graphret train fields``: how much each field counts for which question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from graphret.cli import options
from graphret.cli.console import progress, show
from graphret.cli.evaluate import QuestionsPath, Split, labelled_questions
from graphret.cli.options import option
from graphret.cli.train_models import Seed, spent
from graphret.errors import InvalidInput
from graphret.methods import OpenGraph, opened_graph

_FOLDER = "Where the weights go, for --fields, and an encoder that is trained."


def fields(
    graph: options.Graph,
    questions: QuestionsPath,
    out: Annotated[Path, option(_FOLDER, metavar="DIR")],
    split: Split = None,
    encoder: Annotated[
        str, option("A model by name or path; 'default'.", metavar="NAME")
    ] = "default",
    field: Annotated[
        list[str] | None,
        option("Only these, several times or with commas.", metavar="NAME,…"),
    ] = None,
    limit: Annotated[
        int | None, option("Only so many questions, drawn.", min=2)
    ] = None,
    test: Annotated[
        float,
        option("A share to keep apart, which is measured on.", min=0, max=0.9),
    ] = 0.0,
    epochs: Annotated[float, option("How often each is read.", min=0.01)] = 10.0,
    batch: Annotated[
        int, option("Questions at once; each is held against the others.", min=1)
    ] = 32,
    rate: Annotated[float, option("The learning rate of the weights.")] = 1e-2,
    fine_tune: Annotated[
        bool, option("Train the encoder too, into DIR/encoder.", "--fine-tune")
    ] = False,
    encoder_rate: Annotated[float, option("The learning rate of the encoder.")] = 1e-5,
    negatives: Annotated[
        int, option("Wrong nodes of its own for each question.", min=1)
    ] = 1,
    temperature: Annotated[float, option("What scores are divided by.")] = 0.1,
    seed: Seed = 0,
    json: options.JsonFlag = False,
) -> None:
    """Learn how much each field counts for a question (mFAR); run again, it goes on
    where it was.
    """
    from graphret.training import FieldTuning, train_fields

    tuning = FieldTuning(
        *(epochs, batch, rate, fine_tune, encoder_rate, negatives, temperature, seed)
    )
    with opened_graph(graph, "none") as opened, progress() as report:
        chosen = _chosen(opened, field)
        labelled = labelled_questions(opened, questions, split, limit, seed)
        done = train_fields(
            opened.store,
            labelled,
            out,
            encoder,
            tuning,
            fields=chosen,
            test=test,
            progress=report,
        )
    trained, run = done.trained, done.run
    lines = [
        f"how {len(trained.fields)} fields count is in {out}; it was learned of"
        f" {run.counts['trained']:,} questions",
        spent(run.counts, run.seconds, run.memory),
    ]
    for name, values in trained.metrics.items():
        figures = ", ".join(f"{metric} {value:.1f}" for metric, value in values.items())
        lines.append(f"{name}, on the questions kept apart: {figures}")
    about = {
        "fields": list(trained.fields),
        "counts": {**run.counts, "left_out": done.left_out},
        "curve": run.curve,
        "seconds": round(run.seconds, 1),
        "memory": run.memory,
        "metrics": trained.metrics,
    }
    show(json, about, "\n".join(lines))


def _chosen(opened: OpenGraph, names: list[str] | None) -> Any:
    """Return the fields of some names; `None` where none are named."""
    from graphret.search.adaptive import fields_of

    if names is None:
        return None
    there = fields_of(opened.store)
    wanted = [name.strip() for listed in names for name in listed.split(",")]
    if unknown := [name for name in wanted if name not in there]:
        raise InvalidInput(
            f"--field: expected some of {', '.join(there)}, got {', '.join(unknown)}"
        )
    return {name: there[name] for name in wanted}

"""``graphret train fields``: learn which fields count for which question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from graphret.cli import options
from graphret.cli.console import progress
from graphret.cli.evaluate import QuestionsPath, Split, labelled_questions
from graphret.cli.options import option
from graphret.cli.train_models import Seed, show_run
from graphret.errors import InvalidInput
from graphret.methods import OpenGraph, opened_graph

_FOLDER = "The output folder for the weights, and for a trained encoder."


def fields(
    graph: options.Graph,
    questions: QuestionsPath,
    out: Annotated[Path, option(_FOLDER, metavar="DIR")],
    split: Split = None,
    encoder: Annotated[
        str, option("A model by name or path, or 'default'.", metavar="NAME")
    ] = "default",
    field: Annotated[
        list[str] | None,
        option("Only these fields; can be repeated.", metavar="NAME,…"),
    ] = None,
    limit: Annotated[
        int | None, option("Only N randomly drawn questions.", min=2)
    ] = None,
    test: Annotated[
        float,
        option("Share to hold out and measure on.", min=0, max=0.9),
    ] = 0.0,
    epochs: Annotated[float, option("Passes over the questions.", min=0.01)] = 10.0,
    batch: Annotated[
        int, option("Questions per batch; each has the others' answers to beat.", min=1)
    ] = 32,
    rate: Annotated[float, option("The learning rate of the weights.")] = 0.1,
    fine_tune: Annotated[
        bool, option("Train the encoder too, into DIR/encoder.", "--fine-tune")
    ] = False,
    encoder_rate: Annotated[float, option("The learning rate of the encoder.")] = 1e-5,
    negatives: Annotated[
        int, option("Wrong nodes per question, besides the others' answers.", min=1)
    ] = 1,
    temperature: Annotated[
        float, option("The divisor of scores; lower weighs hard negatives more.")
    ] = 0.1,
    seed: Seed = 0,
    json: options.JsonFlag = False,
) -> None:
    """Learn which fields count for which question (mFAR); run again, it continues."""
    from graphret.search.encoder import CachedEncoder, as_encoder
    from graphret.training import FieldTuning, train_fields

    tuning = FieldTuning(
        *(epochs, batch, rate, fine_tune, encoder_rate, negatives, temperature, seed)
    )
    # Kept embeddings make it quick to continue a training that was stopped.
    model = as_encoder(encoder)
    assert model is not None  # it has a name
    with opened_graph(graph, "none") as opened, progress() as report:
        chosen = _chosen(opened, field)
        labelled = labelled_questions(opened, questions, split, limit, seed)
        done = train_fields(
            opened.store,
            labelled,
            out,
            encoder if fine_tune else CachedEncoder(model),
            tuning,
            source=encoder,
            fields=chosen,
            test=test,
            progress=report,
        )
    trained, counts = done.trained, done.run.counts
    show_run(
        json,
        f"the weights of {len(trained.fields)} fields, trained on"
        f" {counts['trained']:,} questions, are in {out}",
        done.run,
        trained.metrics,
        {
            "fields": list(trained.fields),
            "counts": {**counts, "left_out": done.left_out},
            "metrics": trained.metrics,
        },
    )


def _chosen(opened: OpenGraph, names: list[str] | None) -> Any:
    """Return the fields of some names; `None` where none are named."""
    from graphret.search.adaptive import fields_of

    if names is None:
        return None
    known = fields_of(opened.store)
    wanted = options.listed(names)
    if unknown := [name for name in wanted if name not in known]:
        raise InvalidInput(
            f"--field: expected some of {', '.join(known)}, got {', '.join(unknown)}"
        )
    return {name: known[name] for name in wanted}

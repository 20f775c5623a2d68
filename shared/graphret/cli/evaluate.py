"""``graphret evaluate`` and ``bench stark``: methods side by side on any graph."""

from __future__ import annotations

import json as json_
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphret.cli import options
from graphret.cli.console import progress, remark, show, stderr
from graphret.cli.errors import writing_to
from graphret.cli.options import option
from graphret.cli.query import (
    EncoderName,
    ExpansionPolicy,
    RankingName,
    method_options,
)
from graphret.errors import InvalidInput
from graphret.methods import OpenGraph, index_of, opened_graph

if TYPE_CHECKING:
    from graphret.evaluation import EvaluationQuestion, Prices

_QUESTIONS = (
    "JSON Lines of question and answer_ids, or answers by name; a CSV or a folder of"
    " STaRK's; a folder of MetaQA's."
)
_METHODS = "What answers; several times or with commas. Gains are over the first."
_OUT = (
    "Where the answers are kept, so that the same command goes on, with the result and"
    " a page."
)
#: What is written to the folder of a run.
ANSWERS, RESULT, PAGE = "answers.jsonl", "result.json", "result.html"

Methods = Annotated[list[str], option(_METHODS, "--method", metavar="NAME,…")]
Split = Annotated[
    str | None,
    option("Of STaRK: train, val, test, test-0.1 or human.", metavar="NAME"),
]
Limit = Annotated[int | None, option("Only so many questions, drawn.", min=1)]
Seed = Annotated[int, option("Of the draw.")]
Model = Annotated[str | None, option("A chat model; else rules decide.", "--model")]
BaseUrl = Annotated[
    str | None, option("Of --model: an OpenAI-compatible endpoint.", "--base-url")
]
ReplyFolder = Annotated[
    Path | None,
    option("A folder that keeps the model's replies.", "--llm-cache", metavar="DIR"),
]
Failing = Annotated[
    options.OnFailure, option("Where the model cannot be reached: go on, or stop.")
]
Price = Annotated[
    str | None,
    option("Dollars for a million tokens, read and written.", metavar="IN,OUT"),
]
RerankerName = Annotated[
    str | None,
    option("A cross-encoder that orders what each found.", metavar="MODEL"),
]
OutFolder = Annotated[Path | None, option(_OUT, metavar="DIR")]
Skb = Literal["amazon", "mag", "prime"]


def evaluate(
    context: typer.Context,
    graph: options.Graph,
    questions: Annotated[Path, option(_QUESTIONS, metavar="PATH", exists=True)],
    method: Methods,
    name_property: options.NameProperty = None,
    split: Split = None,
    limit: Limit = None,
    seed: Seed = 0,
    encoder: EncoderName = None,
    model: Model = None,
    base_url: BaseUrl = None,
    llm_cache: ReplyFolder = None,
    on_failure: Failing = "raise",
    price: Price = None,
    reranker: RerankerName = None,
    preset: options.PresetName = "default",
    ranking: RankingName = None,
    agents: options.Agents = 3,
    steps: options.Steps = 20,
    expand: ExpansionPolicy = "auto",
    show_values: options.ShowValues = False,
    repair_calls: options.RepairCalls = 1,
    settings: options.GraspFile = None,
    aliases: options.Aliases = None,
    scorer: options.Scorer = None,
    writer: options.WriterFolder = None,
    out: OutFolder = None,
    json: options.JsonFlag = False,
) -> None:
    """Ask several methods the same questions, and print what they reach and take."""
    from graphret.evaluation import read_evaluation_questions

    methods = _listed(context, method)
    asked = read_evaluation_questions(questions, split, limit=limit, seed=seed)
    told: dict[str, Any] = {"remark": remark, "busy": stderr().status}
    names = options.names_of(name_property)
    with opened_graph(graph, encoder, name_property=names, **told) as opened:
        _evaluated(context, opened, asked, methods)


def stark(
    context: typer.Context,
    data: Annotated[
        Path,
        option(
            "STaRK's folder, with qa/NAME and skb/NAME/processed.",
            metavar="DIR",
            exists=True,
            file_okay=False,
        ),
    ],
    dataset: Annotated[Skb, option("The knowledge base.")],
    method: Methods,
    reviews: options.ReviewForm = "property",
    split: Split = "test",
    limit: Limit = None,
    seed: Seed = 0,
    encoder: EncoderName = None,
    model: Model = None,
    base_url: BaseUrl = None,
    llm_cache: ReplyFolder = None,
    on_failure: Failing = "raise",
    price: Price = None,
    reranker: RerankerName = None,
    preset: options.PresetName = "default",
    ranking: RankingName = None,
    agents: options.Agents = 3,
    steps: options.Steps = 20,
    settings: options.GraspFile = None,
    aliases: options.Aliases = None,
    scorer: options.Scorer = None,
    writer: options.WriterFolder = None,
    out: OutFolder = None,
    json: options.JsonFlag = False,
) -> None:
    """Evaluate methods on a knowledge base of STaRK."""
    from graphret.evaluation import read_evaluation_questions
    from graphret.graphs.stark import read_stark
    from graphret.search.encoder import as_encoder

    methods = _listed(context, method)
    asked = read_evaluation_questions(
        data / "qa" / dataset, split, limit=limit, seed=seed
    )
    with stderr().status(f"reading {dataset}"):
        folder = data / "skb" / dataset / "processed"
        store = read_stark(folder, reviews).store()
    embeds = as_encoder(None if encoder in (None, "none") else encoder)
    index = index_of(store, embeds, busy=stderr().status)
    _evaluated(context, OpenGraph(store, index), asked, methods)


def _listed(context: typer.Context, given: Sequence[str]) -> list[str]:
    """Return the methods that were named, and refuse options of others."""
    from graphret.evaluation.evaluation import require_methods

    methods = [name.strip() for listed in given for name in listed.split(",")]
    require_methods(methods)
    options.refuse_others(context, *methods)
    return methods


def _evaluated(
    context: typer.Context,
    graph: OpenGraph,
    questions: Sequence[EvaluationQuestion],
    methods: Sequence[Any],
) -> None:
    """Evaluate methods as the options of a command say, print the result and write it
    where they say.
    """
    from graphret.evaluation import evaluate, render
    from graphret.explain import write_evaluation

    given = context.params
    out: Path | None = given["out"]
    prices = prices_of(given["price"])
    with progress() as report:
        result = evaluate(
            graph,
            questions,
            methods,
            # what a method does about a model's mistakes is part of the method
            replace(method_options(context), on_failure="fallback"),
            journal=None if out is None else out / ANSWERS,
            prices=prices,
            on_failure=given["on_failure"],
            progress=report,
        )
    if out is not None:
        with writing_to(out / RESULT):
            text = json_.dumps(result, indent=2, ensure_ascii=False) + "\n"
            (out / RESULT).write_text(text, encoding="utf-8")
            write_evaluation(out / PAGE, result, title=f"{', '.join(methods)}")
    written = [] if out is None else [f"drawn in {out / PAGE}"]
    show(given["json"], result, render(result), *written)


def prices_of(given: str | None) -> Prices | None:
    """Return what ``--price`` says."""
    from graphret.evaluation import Prices

    if given is None:
        return None
    try:
        read, written = map(float, given.split(","))
    except ValueError:
        raise InvalidInput(
            f"--price: expected two numbers as 0.15,0.60, got {given!r}"
        ) from None
    return Prices(read, written)

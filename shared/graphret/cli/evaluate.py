"""``graphret evaluate`` and ``bench stark``: methods compared on any graph."""

from __future__ import annotations

import json as json_
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphret.cli import options
from graphret.cli.bench import ResultFile, show_benchmark
from graphret.cli.console import progress, remark, show, stderr
from graphret.cli.errors import writing_to
from graphret.cli.options import option
from graphret.cli.query import (
    EncoderName,
    ExpansionPolicy,
    RankingName,
    method_options,
    opened_for,
)
from graphret.errors import InvalidInput
from graphret.methods import OpenGraph, index_of, opened_graph

if TYPE_CHECKING:
    from graphret.evaluation import EvaluationQuestion, Prices
    from graphret.training import LabelledQuestion

_QUESTIONS = (
    "JSON Lines with question and answer_ids (or answers, by name); a CSV file or"
    " folder of STaRK; or a folder of MetaQA."
)
_METHODS = "The methods to compare; can be repeated. Gains are over the first."
_OUT = (
    "A folder for the answers, from which the same command continues, the result and"
    " a page."
)
#: What is written to the folder of a run.
ANSWERS, RESULT, PAGE = "answers.jsonl", "result.json", "result.html"

QuestionsPath = Annotated[Path, option(_QUESTIONS, metavar="PATH", exists=True)]
Methods = Annotated[list[str], option(_METHODS, "--method", metavar="NAME,…")]
Split = Annotated[
    str | None,
    option("For STaRK: train, val, test, test-0.1 or human.", metavar="NAME"),
]
Limit = Annotated[int | None, option("Ask only N randomly drawn questions.", min=1)]
Seed = Annotated[int, option("The random seed of the draw.")]
Model = Annotated[
    str | None, option("A chat model; without one, rules decide.", "--model")
]
BaseUrl = Annotated[
    str | None, option("The model's OpenAI-compatible endpoint.", "--base-url")
]
ReplyFolder = Annotated[
    Path | None,
    option("A folder to cache the model's replies.", "--llm-cache", metavar="DIR"),
]
Failing = Annotated[
    options.OnFailure, option("What to do if the model cannot be reached.")
]
Price = Annotated[
    str | None,
    option("Dollars per million input and output tokens.", metavar="IN,OUT"),
]
RerankerName = Annotated[
    str | None,
    option("A cross-encoder that reranks each method's hits.", metavar="MODEL"),
]
OutFolder = Annotated[Path | None, option(_OUT, metavar="DIR")]
Skb = Literal["amazon", "mag", "prime"]


def evaluate(
    context: typer.Context,
    graph: options.Graph,
    questions: QuestionsPath,
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
    prompt: options.AgentPrompt = None,
    expand: ExpansionPolicy = "auto",
    show_values: options.ShowValues = False,
    repair_calls: options.RepairCalls = 1,
    settings: options.GraspFile = None,
    aliases: options.Aliases = None,
    scorer: options.Scorer = None,
    writer: options.WriterFolder = None,
    fields: options.FieldsFolder = None,
    guidance: options.Guidance = None,
    out: OutFolder = None,
    json: options.JsonFlag = False,
) -> None:
    """Ask several methods the same questions, and compare quality, time and cost."""
    from graphret.evaluation import read_evaluation_questions

    methods = _method_names(context, method)
    labelled = read_evaluation_questions(questions, split, limit=limit, seed=seed)
    names = options.names_of(name_property)
    with opened_graph(
        graph, encoder, name_property=names, remark=remark, busy=stderr().status
    ) as opened:
        _evaluate(context, opened, labelled, methods)


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
    prompt: options.AgentPrompt = None,
    settings: options.GraspFile = None,
    aliases: options.Aliases = None,
    scorer: options.Scorer = None,
    writer: options.WriterFolder = None,
    fields: options.FieldsFolder = None,
    guidance: options.Guidance = None,
    out: OutFolder = None,
    json: options.JsonFlag = False,
) -> None:
    """Evaluate methods on one of STaRK's knowledge bases."""
    from graphret.evaluation import read_evaluation_questions
    from graphret.graphs.stark import read_stark
    from graphret.search.encoder import as_encoder

    methods = _method_names(context, method)
    labelled = read_evaluation_questions(
        data / "qa" / dataset, split, limit=limit, seed=seed
    )
    with stderr().status(f"reading {dataset}"):
        folder = data / "skb" / dataset / "processed"
        store = read_stark(folder, reviews).store()
    embeddings = as_encoder(None if encoder in (None, "none") else encoder)
    index = index_of(store, embeddings, busy=stderr().status)
    _evaluate(context, OpenGraph(store, index), labelled, methods)


def grasp(
    context: typer.Context,
    graph: options.Graph,
    questions: QuestionsPath,
    split: Split = None,
    limit: Limit = None,
    seed: Seed = 0,
    validation: Annotated[
        Path | None,
        option("Questions on which the fusions are chosen.", metavar="PATH"),
    ] = None,
    validation_split: Annotated[
        str | None, option("The split of --validation.", metavar="NAME")
    ] = None,
    stage_three: Annotated[
        str | None,
        option(
            "A folder from train reranker, which is two rows, or a cross-encoder.",
            "--reranker",
            metavar="DIR|MODEL",
        ),
    ] = None,
    encoder: EncoderName = None,
    model: Model = None,
    base_url: BaseUrl = None,
    llm_cache: ReplyFolder = None,
    preset: options.PresetName = "default",
    show_values: options.ShowValues = False,
    settings: options.GraspFile = None,
    fields: options.FieldsFolder = None,
    guidance: options.Guidance = None,
    aliases: options.Aliases = None,
    scorer: options.Scorer = None,
    json: ResultFile = None,
) -> None:
    """GRASP's stages, added one after another on any graph: section 4.4."""
    from graphret.evaluation import bench_grasp
    from graphret.evaluation.grasp import rerankers_of
    from graphret.grasp import Grasp

    with opened_for(context, "grasp") as (retriever, opened), progress() as report:
        assert isinstance(retriever, Grasp)
        test_questions = labelled_questions(opened, questions, split, limit, seed)
        chosen_on = (
            []
            if validation is None
            else labelled_questions(opened, validation, validation_split, limit, seed)
        )
        result = bench_grasp(
            retriever,
            test_questions,
            rerankers={} if stage_three is None else rerankers_of(stage_three),
            validation=chosen_on,
            progress=report,
        )
    show_benchmark(result, json)


def _method_names(context: typer.Context, values: Sequence[str]) -> list[str]:
    """Return the methods in the values of ``--method``; refuse options of others."""
    from graphret.evaluation.evaluation import require_methods

    methods = options.listed(values)
    require_methods(methods)
    options.refuse_options_of_others(context, *methods)
    return methods


def _evaluate(
    context: typer.Context,
    graph: OpenGraph,
    questions: Sequence[EvaluationQuestion],
    methods: Sequence[Any],
) -> None:
    """Evaluate methods with a command's options; print the result and write it."""
    from graphret.evaluation import evaluate, render
    from graphret.explain import write_evaluation

    params = context.params
    out: Path | None = params["out"]
    prices = prices_of(params["price"])
    with progress() as report:
        result = evaluate(
            graph,
            questions,
            methods,
            # how a method handles a model's mistakes is part of the method
            replace(method_options(context), on_failure="fallback"),
            journal=None if out is None else out / ANSWERS,
            prices=prices,
            on_failure=params["on_failure"],
            progress=report,
        )
    if out is not None:
        with writing_to(out / RESULT):
            text = json_.dumps(result, indent=2, ensure_ascii=False) + "\n"
            (out / RESULT).write_text(text, encoding="utf-8")
            write_evaluation(out / PAGE, result, title=", ".join(methods))
    written = [] if out is None else [f"drawn in {out / PAGE}"]
    show(params["json"], result, render(result), *written)


def labelled_questions(
    graph: OpenGraph, path: Path, split: str | None, limit: int | None, seed: int
) -> list[LabelledQuestion]:
    """Read questions, and say which of their answers are not in the graph."""
    from graphret.evaluation import read_evaluation_questions
    from graphret.evaluation.questions import resolve_answers
    from graphret.training import LabelledQuestion

    read = read_evaluation_questions(path, split, limit=limit, seed=seed)
    questions, remarks = resolve_answers(graph.store, read, graph.documents)
    for text in remarks:
        remark(text)
    return [
        # of a document its parts are nodes
        LabelledQuestion(
            question.text,
            frozenset({*question.answers}.difference(question.parts.values()))
            | frozenset(question.parts),
        )
        for question in questions
    ]


def prices_of(text: str | None) -> Prices | None:
    """Return what ``--price`` says."""
    from graphret.evaluation import Prices

    if text is None:
        return None
    try:
        read, written = map(float, text.split(","))
    except ValueError:
        raise InvalidInput(
            f"--price: expected two numbers such as 0.15,0.60, got {text!r}"
        ) from None
    return Prices(read, written)

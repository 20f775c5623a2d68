"""``graphret train`` and ``tune``: what is learned from labelled questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from graphret.cli import options
from graphret.cli.console import progress, show, stderr
from graphret.cli.errors import writing_to
from graphret.cli.options import option
from graphret.cli.query import EncoderName, opened_for

_QA = 'Labelled questions, JSON Lines: {"question": "…", "answers": ["id", …]}.'
Questions = Annotated[Path, option(_QA, metavar="FILE.jsonl")]
Limit = Annotated[int | None, option("Only the first N questions.", min=1)]


def paths(
    graph: options.Graph,
    qa: Questions,
    out: Annotated[
        Path, option("The output file, for PathPlanner(scorer=…).", metavar="FILE.npz")
    ],
    limit: Limit = None,
    aliases: options.Aliases = None,
    json: options.JsonFlag = False,
) -> None:
    """Learn which relation paths questions mean, only from questions and answers."""
    from graphret.graphs.locations import opened
    from graphret.linking import Linker
    from graphret.planning import PathPlanner
    from graphret.training import read_questions, train_paths

    questions = read_questions(qa, limit)
    with (
        opened(graph) as store,
        stderr().status(f"reading {len(questions):,} questions"),
    ):
        scorer = train_paths(
            PathPlanner(store, Linker.of_store(store), aliases=aliases), questions
        )
    with writing_to(out):
        scorer.save(out)
    words, parts = scorer.weights.shape
    about = {"questions": len(questions), "words": words - 1, "parts": parts}
    show(json, about, f"trained on {len(questions):,} questions, written to {out}")


def ranking(
    graph: options.Graph,
    questions: Annotated[Path, option(_QA, metavar="FILE.jsonl")],
    limit: Limit = None,
    json: options.JsonFlag = False,
) -> None:
    """Train a document graph's ranking; keep it if cross-validation shows a gain."""
    from graphret.sage import SageGraph
    from graphret.training import read_questions, train_ranking

    labelled = read_questions(questions, limit)
    opened = SageGraph.load(graph)
    with progress() as report:
        trained, metrics = train_ranking(
            opened, labelled, progress=partial(report, "ask")
        )
    if trained is not None:
        opened.ranking = trained
        opened.save(graph)
    outcome = (
        "the trained ranking was saved with the graph"
        if trained
        else "no trained ranking was better, so nothing was changed"
    )
    table = _table(metrics, len(labelled))
    show(
        json,
        {"graph": graph, "trained": trained is not None, "metrics": metrics},
        table,
        f"{graph}: {outcome}",
    )


def queries(
    graph: options.Graph,
    qa: Questions,
    out: Annotated[
        Path,
        option(
            "The output file, for 'train writer'; an existing one is continued.",
            metavar="FILE",
        ),
    ],
    limit: Limit = None,
    recall: Annotated[
        float, option("Minimum recall of a question's best query.", max=1)
    ] = 0.0,
    precision: Annotated[
        float, option("Minimum precision of a question's best query.", max=1)
    ] = 0.0,
    target: Annotated[
        list[str] | None,
        option("A label that results may have; can be repeated.", metavar="LABEL"),
    ] = None,
    aliases: options.Aliases = None,
    json: options.JsonFlag = False,
) -> None:
    """Create training queries for GraphRAFT from questions and answers."""
    from graphret.graphraft import CandidateFinder, GraphRAFTSettings
    from graphret.graphraft.entities import mentioned_entities
    from graphret.graphs.locations import opened
    from graphret.linking import Linker
    from graphret.planning import PathPlanner
    from graphret.training import read_questions, synthesize

    questions, settings = (
        read_questions(qa, limit),
        GraphRAFTSettings(targets=tuple(target or ())),
    )
    with opened(graph) as store, writing_to(out), progress() as report:
        planner = PathPlanner(store, Linker.of_store(store), aliases=aliases)
        done = synthesize(
            CandidateFinder(store, planner.space, settings),
            partial(mentioned_entities, planner),
            questions,
            out,
            recall=recall,
            precision=precision,
            progress=partial(report, "queries"),
        )
    summary = (
        f"{done.answerable:,} of {done.questions:,} questions can be answered by a"
        f" query; {done.kept:,} have a good one, in {out}"
    )
    show(json, asdict(done), summary)


def tune(
    context: typer.Context,
    graph: options.Graph,
    qa: Questions,
    out: Annotated[
        Path,
        option("The output file, for 'query --settings'.", metavar="FILE.json"),
    ],
    limit: Limit = None,
    encoder: EncoderName = None,
    aliases: options.Aliases = None,
    scorer: options.Scorer = None,
    fields: options.FieldsFolder = None,
    guidance: options.Guidance = None,
    model: options.Planning = None,
    base_url: options.PlanningUrl = None,
    reranker: Annotated[
        str | None,
        option(
            "A reranker to weight too: from 'train reranker', or a cross-encoder.",
            metavar="DIR|MODEL",
        ),
    ] = None,
    json: options.JsonFlag = False,
) -> None:
    """Tune GRASP's weights of graph and text on labelled questions."""
    from graphret.grasp import Grasp
    from graphret.rerank import load_reranker
    from graphret.training import cases_of, read_questions, tune_fusion
    from graphret.training.fusion import rerank_cases_of, tune_reranking

    questions = read_questions(qa, limit)
    with opened_for(context, "grasp") as (grasp, _), progress() as report:
        assert isinstance(grasp, Grasp)
        settings, metrics = tune_fusion(
            cases_of(grasp, questions, progress=partial(report, "ask")), grasp.settings
        )
        reranked: dict[str, dict[str, float]] = {}
        if reranker is not None:
            rerank_cases = rerank_cases_of(
                grasp,
                settings,
                load_reranker(reranker),
                questions,
                progress=partial(report, "rerank"),
            )
            settings, reranked = tune_reranking(rerank_cases, settings)
    with writing_to(out):
        settings.save(out)
    chosen = f"chosen: {settings}; settings in {out}"
    show(
        json,
        {
            "settings": settings.to_dict(),
            "metrics": metrics,
            **({"reranked": reranked} if reranked else {}),
        },
        _table(metrics, len(questions)),
        *([_table(reranked, len(questions))] if reranked else []),
        chosen,
    )


def _table(metrics: Mapping[str, Mapping[str, float]], questions: int) -> Any:
    from rich.table import Table

    table = Table(
        "",
        *metrics["tuned"],
        title=f"{questions:,} questions, cross-validated, percent",
    )
    for name, values in metrics.items():
        table.add_row(name, *(f"{value:.1f}" for value in values.values()))
    return table

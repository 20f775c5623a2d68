"""``graphret query`` and ``replay``: ask a graph, and show again what agents did."""

from __future__ import annotations

import json as json_
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphret.cli import options
from graphret.cli.console import remark, show, stderr
from graphret.cli.errors import MODEL, writing_to
from graphret.cli.options import (
    ARK,
    EXPANDERS,
    HINTED,
    MODELS,
    SPARK,
    OnFailure,
    option,
)
from graphret.errors import InvalidInput
from graphret.methods import (
    BASELINES,
    Method,
    MethodOptions,
    OpenGraph,
    holds_documents,
    opened_graph,
)

if TYPE_CHECKING:
    from graphret.explain import Lookup
    from graphret.retriever import Retriever
    from graphret.types import Retrieval

Expansion = Literal["no", "+edge", "-edge", "auto"]
_ENCODER = (
    "'saved' (sage's default) for that of the graph, 'none' to search by words alone;"
    " for the others any other."
)
EncoderName = Annotated[str | None, option(_ENCODER, "--encoder", metavar="NAME")]
ExpansionPolicy = Annotated[
    Expansion, option("When the graph around the answer is added.", panel=SPARK)
]
RankingName = Annotated[
    Literal["coverage", "propagate", "paper"] | None,
    option("How it ranks; as trained, or by coverage.", panel=EXPANDERS),
]


def query(
    context: typer.Context,
    text: Annotated[
        str,
        typer.Argument(metavar="QUESTION", help="The question.", show_default=False),
    ],
    graph: options.Graph,
    name_property: options.NameProperty = None,
    method: Annotated[
        Method | None, option("By default sage for documents, else ark.")
    ] = None,
    k: Annotated[int, option("How many hits, in all.", "-k", "--k")] = 10,
    ranking: RankingName = None,
    where: Annotated[
        Any,
        option(
            'Only nodes like {"year": {"$gte": 1990}}.',
            metavar="JSON",
            parser=json_.loads,
        ),
    ] = None,
    encoder: EncoderName = None,
    explain: Annotated[
        Path | None,
        option("Draw how the hits were found into a page.", metavar="FILE.html"),
    ] = None,
    model: options.Planning = None,
    base_url: options.PlanningUrl = None,
    agents: options.Agents = 3,
    steps: options.Steps = 20,
    hints: Annotated[
        str,
        option(
            "What else the model should know of the domain.",
            metavar="TEXT",
            panel=HINTED,
        ),
    ] = "",
    on_failure: Annotated[
        OnFailure, option("Where a model fails: go on, or stop.", panel=MODELS)
    ] = "fallback",
    record: Annotated[
        Path | None,
        option("Append the run, for replay.", metavar="FILE.jsonl", panel=ARK),
    ] = None,
    verbose: Annotated[
        bool, option("Show every step of every agent.", "-v", "--verbose", panel=ARK)
    ] = False,
    expand: ExpansionPolicy = "auto",
    show_values: options.ShowValues = False,
    repair_calls: options.RepairCalls = 1,
    settings: options.GraspFile = None,
    aliases: options.Aliases = None,
    scorer: options.Scorer = None,
    writer: options.WriterFolder = None,
    fields: options.FieldsFolder = None,
    guidance: options.Guidance = None,
    preset: options.PresetName = "default",
    json: options.JsonFlag = False,
) -> None:
    """Ask a graph, and print the hits with the evidence for each."""
    from graphret.explain import Panel, store_lookup, write_html, write_timeline
    from graphret.index_retriever import IndexRetriever

    given = SimpleNamespace(**context.params)
    given.method = method or ("sage" if holds_documents(graph) else "ark")
    options.refuse_others(context, given.method)
    if not text.strip():
        raise InvalidInput("QUESTION: it is empty")
    if given.model is None and given.method in ("spark", *BASELINES):
        raise InvalidInput(
            f"--method {given.method} needs --model, the name of a model"
        )
    on_run: Any = None
    if record is not None:
        from graphret.ark.trajectory import Recorder

        with writing_to(record):  # before the models are asked, not after
            record.open("ab").close()
        on_run = Recorder(record)
    with opened_for(context, given.method, on_run=on_run) as (retriever, opened):
        retrieval, lookup = (
            retriever.retrieve(text, k, where),
            store_lookup(opened.store),
        )
        if explain is not None:
            with writing_to(explain):
                if given.method == "ark":
                    write_timeline(explain, retrieval, lookup=lookup)
                else:
                    flat = IndexRetriever(opened.index, opened.store).retrieve(
                        text, k, where
                    )
                    write_html(explain, Panel(retrieval, flat), lookup=lookup)
        _print(retrieval, lookup, given)
    _require_answers(retrieval, given)


@contextmanager
def opened_for(
    context: typer.Context, method: Method, **more: Any
) -> Iterator[tuple[Retriever, OpenGraph]]:
    """Open the graph of a command and make the retriever that its options describe, and
    `more`.
    """
    given, methods = context.params, method_options(context, **more)
    encoder = given["encoder"] or (None if method == "sage" else "none")
    names = options.names_of(given.get("name_property"))
    told: dict[str, Any] = {"remark": remark, "busy": stderr().status}
    with opened_graph(
        given["graph"],
        encoder,
        documents=method == "sage",
        name_property=names,
        **told,
    ) as graph:
        yield graph.retriever(method, methods), graph


def method_options(context: typer.Context, **more: Any) -> MethodOptions:
    """Return what the options of a command say of methods, and `more`."""
    if (
        context.params.get("base_url") is not None
        and context.params.get("model") is None
    ):
        raise InvalidInput("--base-url needs --model, the name of a model")
    known = {one.name for one in fields(MethodOptions)}
    return MethodOptions(
        **{name: value for name, value in context.params.items() if name in known},
        **more,
    )


def _print(retrieval: Retrieval, lookup: Lookup, given: Any) -> None:
    """Print the hits, of agents that were asked for what they did, and where it was
    drawn and recorded.
    """
    from graphret.explain import render, render_timeline
    from graphret.explain.runs import fallback_text

    for stage in () if given.json else retrieval.trace.fallbacks:
        remark(f"fallback: {fallback_text(stage)}")
    for stage in () if given.json else retrieval.trace.stages:
        if "loosened" in stage.details:
            remark(str(stage.details["outcome"]))
    shown = [render_timeline(retrieval, lookup), ""] if given.verbose else []
    shown.append(render(retrieval) if retrieval.hits else "nothing qualifies")
    shown += [
        f"{what} in {path}"
        for what, path in (("drawn", given.explain), ("recorded", given.record))
        if path
    ]
    show(given.json, retrieval.to_dict(), *shown)


def _require_answers(retrieval: Retrieval, given: Any) -> None:
    """Exit with the code of a model that failed where no agent selected anything, or no
    plan was made.
    """
    plans = [
        stage.details for stage in retrieval.trace.stages if stage.name.endswith("plan")
    ]
    if given.method in ("spark", "grasp") and all("error" in one for one in plans):
        raise typer.Exit(MODEL)
    if given.method == "graphraft" and {"entities", "reasoner"} <= {
        one.details.get("failed") for one in retrieval.trace.fallbacks
    }:
        raise typer.Exit(MODEL)
    if given.method in BASELINES and any(
        one.details.get("failed") == given.model for one in retrieval.trace.fallbacks
    ):
        raise typer.Exit(MODEL)
    failed = [
        one.details
        for one in retrieval.trace.fallbacks
        if "agent " in str(one.details.get("failed"))
    ]
    selected = any(
        evidence.kind == "votes" for hit in retrieval for evidence in hit.evidence
    )
    if (
        given.method == "ark"
        and given.model is not None
        and len(failed) == given.agents
        and not selected
    ):
        why = failed[0]["error"] or "it called no tools"
        remark(
            f"the model {given.model!r} selected nothing, and the hits are those of"
            f" plain search: {why}"
        )
        raise typer.Exit(MODEL)


def replay(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="RUN.jsonl", help="What query --record wrote.", show_default=False
        ),
    ],
    run: Annotated[
        str | None,
        option("Which, by how its id begins; the last by default.", metavar="ID"),
    ] = None,
    html: Annotated[
        Path | None, option("Draw it into a page.", metavar="FILE.html")
    ] = None,
    json: options.JsonFlag = False,
) -> None:
    """Show a recorded run: each agent's steps and calls, what came back, what was
    selected, and the vote.
    """
    from rich.text import Text

    from graphret.ark.trajectory import read_runs
    from graphret.explain import render_timeline, write_timeline

    runs = read_runs(file)
    found = [one for one in runs if one.id.startswith(run or "")]
    if not found:
        there = [one.id for one in runs[-10:]]
        raise InvalidInput(
            f"{file}: it holds no run{f' {run!r}; there are {there}' if run else ''}"
        )
    chosen = found[-1]
    if html is not None:
        with writing_to(html):
            write_timeline(html, chosen)
    if run is None and len(runs) > 1:
        remark(
            f"the last of {len(runs)} runs; --run shows another:"
            f" {', '.join(one.id for one in runs[-2:-12:-1])}"
        )
    if chosen.cut_short:
        remark("it was cut short: this is what was done until then")
    agents = [
        session.to_dict() | {"agent": session.agent + 1} for session in chosen.sessions
    ]
    about = {
        name: getattr(chosen, name)
        for name in ("question", "created", "seconds", "cut_short")
    }
    value = {
        "run": chosen.id,
        **about,
        "votes": [vote.to_dict() for vote in chosen.votes],
        "agents": agents,
    }
    header = Text(chosen.question, style="bold"), f"run {chosen.id}, {chosen.created}\n"
    show(
        json,
        value,
        *header,
        render_timeline(chosen),
        *([f"drawn in {html}"] if html else []),
    )

"""``graphret query`` and ``replay``: ask a graph, and show recorded runs of agents."""

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
    "'saved' is the graph's own (the default for sage), 'none' searches by words only;"
    " other methods also take a model."
)
EncoderName = Annotated[str | None, option(_ENCODER, "--encoder", metavar="NAME")]
ExpansionPolicy = Annotated[
    Expansion, option("When to add the graph around the answer.", panel=SPARK)
]
RankingName = Annotated[
    Literal["coverage", "propagate", "paper"] | None,
    option("The ranking; by default as trained, or coverage.", panel=EXPANDERS),
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
        Method | None, option("By default sage for documents, otherwise ark.")
    ] = None,
    k: Annotated[int, option("Total number of hits.", "-k", "--k")] = 10,
    ranking: RankingName = None,
    where: Annotated[
        Any,
        option(
            'Only nodes that match, such as {"year": {"$gte": 1990}}.',
            metavar="JSON",
            parser=json_.loads,
        ),
    ] = None,
    encoder: EncoderName = None,
    explain: Annotated[
        Path | None,
        option("Write a page that shows how hits were found.", metavar="FILE.html"),
    ] = None,
    model: options.Planning = None,
    base_url: options.PlanningUrl = None,
    agents: options.Agents = 3,
    steps: options.Steps = 20,
    prompt: options.AgentPrompt = None,
    hints: Annotated[
        str,
        option(
            "What the model should know about the domain.",
            metavar="TEXT",
            panel=HINTED,
        ),
    ] = "",
    on_failure: Annotated[
        OnFailure, option("What to do if a model fails.", panel=MODELS)
    ] = "fallback",
    record: Annotated[
        Path | None,
        option("Append the run, for 'replay'.", metavar="FILE.jsonl", panel=ARK),
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
    """Ask a graph a question, and print the hits with the evidence for each."""
    from graphret.explain import Panel, store_lookup, write_html, write_timeline
    from graphret.index_retriever import IndexRetriever

    arguments = SimpleNamespace(**context.params)
    arguments.method = method or ("sage" if holds_documents(graph) else "ark")
    options.refuse_options_of_others(context, arguments.method)
    if not text.strip():
        raise InvalidInput("QUESTION: expected a question, got an empty string")
    if arguments.model is None and arguments.method in ("spark", *BASELINES):
        raise InvalidInput(
            f"--method {arguments.method} needs --model, the name of a model"
        )
    on_run: Any = None
    if record is not None:
        from graphret.ark.trajectory import Recorder

        with writing_to(record):  # before the models are asked, not after
            record.open("ab").close()
        on_run = Recorder(record)
    with opened_for(context, arguments.method, on_run=on_run) as (retriever, opened):
        retrieval, lookup = (
            retriever.retrieve(text, k, where),
            store_lookup(opened.store),
        )
        if explain is not None:
            with writing_to(explain):
                if arguments.method == "ark":
                    write_timeline(explain, retrieval, lookup=lookup)
                else:
                    flat = IndexRetriever(opened.index, opened.store).retrieve(
                        text, k, where
                    )
                    write_html(explain, Panel(retrieval, flat), lookup=lookup)
        _print(retrieval, lookup, arguments)
    _require_answers(retrieval, arguments)


@contextmanager
def opened_for(
    context: typer.Context, method: Method, **more: Any
) -> Iterator[tuple[Retriever, OpenGraph]]:
    """Open a command's graph, and yield its retriever (of its options and `more`)."""
    params, methods = context.params, method_options(context, **more)
    encoder = params["encoder"] or (None if method == "sage" else "none")
    names = options.names_of(params.get("name_property"))
    with opened_graph(
        params["graph"],
        encoder,
        documents=method == "sage",
        name_property=names,
        remark=remark,
        busy=stderr().status,
    ) as graph:
        yield graph.retriever(method, methods), graph


def method_options(context: typer.Context, **more: Any) -> MethodOptions:
    """Return a command's options for methods, and `more`."""
    if (
        context.params.get("base_url") is not None
        and context.params.get("model") is None
    ):
        raise InvalidInput("--base-url needs --model, the name of a model")
    names = {field.name for field in fields(MethodOptions)}
    return MethodOptions(
        **{name: value for name, value in context.params.items() if name in names},
        **more,
    )


def _print(retrieval: Retrieval, lookup: Lookup, arguments: Any) -> None:
    """Print the hits, with ``--verbose`` what agents did, and the files written."""
    from graphret.explain import render, render_timeline
    from graphret.explain.runs import fallback_text

    for stage in () if arguments.json else retrieval.trace.fallbacks:
        remark(f"fallback: {fallback_text(stage)}")
    for stage in () if arguments.json else retrieval.trace.stages:
        if "loosened" in stage.details:
            remark(str(stage.details["outcome"]))
    renderables = [render_timeline(retrieval, lookup), ""] if arguments.verbose else []
    renderables.append(render(retrieval) if retrieval.hits else "nothing qualifies")
    renderables += [
        f"{action} in {path}"
        for action, path in (
            ("drawn", arguments.explain),
            ("recorded", arguments.record),
        )
        if path
    ]
    show(arguments.json, retrieval.to_dict(), *renderables)


def _require_answers(retrieval: Retrieval, arguments: Any) -> None:
    """Exit with code 5 if a model failed and no plan or selection was made."""
    fallbacks = [stage.details for stage in retrieval.trace.fallbacks]
    failed = {details.get("failed") for details in fallbacks}
    plans = [
        stage.details for stage in retrieval.trace.stages if stage.name.endswith("plan")
    ]
    if arguments.method in ("spark", "grasp") and all(
        "error" in plan for plan in plans
    ):
        raise typer.Exit(MODEL)
    if arguments.method == "graphraft" and {"entities", "reasoner"} <= failed:
        raise typer.Exit(MODEL)
    if arguments.method in BASELINES and arguments.model in failed:
        raise typer.Exit(MODEL)
    failed_agents = [
        details for details in fallbacks if "agent " in str(details.get("failed"))
    ]
    selected = any(
        evidence.kind == "votes" for hit in retrieval for evidence in hit.evidence
    )
    if (
        arguments.method == "ark"
        and arguments.model is not None
        and len(failed_agents) == arguments.agents
        and not selected
    ):
        reason = failed_agents[0]["error"] or "it called no tools"
        remark(
            f"the model {arguments.model!r} selected nothing, and the hits are those of"
            f" plain search: {reason}"
        )
        raise typer.Exit(MODEL)


def replay(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="RUN.jsonl",
            help="A file from 'query --record'.",
            show_default=False,
        ),
    ],
    run: Annotated[
        str | None,
        option("The run whose id begins with ID; by default the last.", metavar="ID"),
    ] = None,
    html: Annotated[
        Path | None, option("Write the run as a page.", metavar="FILE.html")
    ] = None,
    json: options.JsonFlag = False,
) -> None:
    """Show a recorded run: what each agent did, found and selected, and the vote."""
    from rich.text import Text

    from graphret.ark.trajectory import read_runs
    from graphret.explain import render_timeline, write_timeline

    runs = read_runs(file)
    matches = [recorded for recorded in runs if recorded.id.startswith(run or "")]
    if not matches:
        last_ids = [recorded.id for recorded in runs[-10:]]
        raise InvalidInput(
            f"{file}: it has no run{f' {run!r}, only {last_ids}' if run else ''}"
        )
    chosen = matches[-1]
    if html is not None:
        with writing_to(html):
            write_timeline(html, chosen)
    if run is None and len(runs) > 1:
        remark(
            f"showing the last of {len(runs)} runs; --run shows another:"
            f" {', '.join(recorded.id for recorded in runs[-2:-12:-1])}"
        )
    if chosen.cut_short:
        remark("the run was cut short: this is what was done until then")
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

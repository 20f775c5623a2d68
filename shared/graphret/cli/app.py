"""The commands of ``graphret``, which import what they need when they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from graphret.cli import (
    bench,
    demo,
    documents,
    evaluate,
    graphs,
    mcp,
    profile,
    query,
    serve,
    similar,
    train,
    train_fields,
    train_models,
)
from graphret.cli.errors import DEBUG, Commands

app = typer.Typer(
    cls=Commands,
    help=(
        "Structure-aware retrieval: connected evidence for RAG, with no LLM and no GPU."
    ),
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(f"graphret {version('graphret')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option(DEBUG, help="Show the traceback if there is an error.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _command in (
    *(demo.demo, query.query, query.replay, graphs.inspect, graphs.schema),
    *(
        documents.build,
        documents.add,
        documents.remove,
        documents.compact,
        graphs.export,
        similar.similar,
        train.tune,
        evaluate.evaluate,
        mcp.mcp,
        serve.serve,
    ),
):
    app.command()(_command)
app.command("import")(graphs.import_)
app.command("list")(documents.list_)
_TRAIN: Mapping[str, Callable[..., None]] = {
    "paths": train.paths,
    "queries": train.queries,
    "ranking": train.ranking,
    "fields": train_fields.fields,
    "conversations": train_models.conversations,
    "pools": train_models.pools,
    "trajectories": train_models.trajectories,
    "writer": train_models.writer,
    "reasoner": train_models.reasoner,
    "reranker": train_models.reranker,
    "student": train_models.student,
}
_GROUPS: Mapping[str, tuple[str, Mapping[str, Callable[..., None]]]] = {
    "bench": (
        "Measure retrieval on public data.",
        {**bench.BENCHMARKS, "grasp": evaluate.grasp, "stark": evaluate.stark},
    ),
    "cypher": (
        "Check Cypher that a model or a person wrote, and see how it runs.",
        {"check": graphs.check, "profile": profile.profile},
    ),
    "train": ("Train rankings and models on labelled questions.", _TRAIN),
}
for _name, (_help, _members) in _GROUPS.items():
    _group = typer.Typer(help=_help, no_args_is_help=True)
    _group.callback()(lambda: None)  # so that a group's only command keeps its name
    for _member_name, _member in _members.items():
        _group.command(_member_name)(_member)
    app.add_typer(_group, name=_name)

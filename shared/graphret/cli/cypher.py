"""``graphret cypher``: what the guard says of a query."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from graphret.cli.console import print_json, say
from graphret.cli.errors import USAGE
from graphret.cli.options import JsonFlag

cypher = typer.Typer(help="Check Cypher that a model or a person wrote.", no_args_is_help=True)


@cypher.callback()
def _group() -> None:
    """Keep ``check`` a command of its own while it is the only one."""


@cypher.command()
def check(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query; '-' reads it from stdin.")],
    graph: Annotated[str | None, typer.Option(metavar="WHERE", help="The graph with the schema.")] = None,
    dialect: Annotated[
        Literal["neo4j", "ladybug"] | None, typer.Option(help="That of the graph by default, or neo4j.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Say what is wrong with a query, and what may not run; without a graph its names are taken as right.

    The exit code is 2 where there is an error.
    """
    from graphret.cypher.check import check as check_query
    from graphret.explain.runs import counted
    from graphret.graphs.locations import opened

    text, schema, spoken = sys.stdin.read() if query == "-" else query, None, None
    if graph is not None:
        with opened(graph) as store:
            schema, spoken = store.schema(), getattr(store, "dialect", None)
    report = check_query(text, schema, dialect=dialect or spoken or "neo4j")
    if json:
        print_json(report.to_dict())
    else:
        for finding in report.findings:
            say(str(finding))
        found = counted(len(report.errors), "error"), counted(len(report.warnings), "warning")
        say(f"the query may {'' if report.ok else 'not '}run: {', '.join(found)}")
    if not report.ok:
        raise typer.Exit(USAGE)

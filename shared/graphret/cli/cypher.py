"""``graphret cypher``: what the guard says of a query."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphret.cli.console import print_json, stdout
from graphret.cli.errors import USAGE
from graphret.cli.options import JsonFlag

if TYPE_CHECKING:
    from rich.text import Text

    from graphret.cypher.report import Finding

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
        console = stdout()
        for finding in report.findings:
            console.print(_shown(text, finding), soft_wrap=True)
        verdict = "the query may run" if report.ok else "the query may not run"
        found = counted(len(report.errors), "error"), counted(len(report.warnings), "warning")
        console.print(f"{verdict}: {', '.join(found)}")
    if not report.ok:
        raise typer.Exit(USAGE)


def _shown(query: str, finding: Finding) -> Text:
    """Return a finding above its line of the query, with carets under its place."""
    from rich.text import Text

    colour = "red" if finding.severity == "error" else "yellow"
    first = query.rfind("\n", 0, finding.start) + 1
    line = query[first:].split("\n", 1)[0]
    width = min(finding.end, first + len(line)) - finding.start
    text = Text.assemble(
        (f"{finding.line}:{finding.column} ", "dim"),
        (f"{finding.severity} {finding.kind}", f"bold {colour}"),
        f": {_plain(finding.message)}\n    {_plain(line)}\n",
        (f"    {' ' * (finding.start - first)}{'^' * max(1, width)}\n", colour),
    )
    if finding.suggestions:
        text.append(f"    nearest: {', '.join(map(_plain, finding.suggestions))}\n")
    return text


def _plain(text: str) -> str:
    """The text with a space for each character that does not print."""
    return "".join(c if c.isprintable() else " " for c in text)

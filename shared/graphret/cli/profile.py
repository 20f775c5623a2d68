"""``graphret cypher profile``: how a database runs queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphret.cli import options
from graphret.cli.console import show, stderr
from graphret.cli.options import option

if TYPE_CHECKING:
    from rich.table import Table

    from graphret.graphraft.profiles import ProfiledCandidate
    from graphret.stores.profile import Profile


def profile(
    text: Annotated[
        str,
        typer.Argument(
            metavar="QUERY", help="The query, or the question.", show_default=False
        ),
    ],
    graph: options.Graph,
    question: Annotated[
        bool,
        option("It is a question: profile the likeliest queries for it.", "--question"),
    ] = False,
    queries: Annotated[
        int, option("Of a question: at most so many queries.", min=1)
    ] = 5,
    timeout: Annotated[float, option("Seconds for a query.")] = 30.0,
    aliases: Annotated[
        Path | None,
        option("What people call things.", metavar="FILE.yaml"),
    ] = None,
    name_property: options.NameProperty = None,
    json: options.JsonFlag = False,
) -> None:
    """Run a query that only reads, and print what the database did for it."""
    from graphret.cypher import profile_checked
    from graphret.graphraft import GraphRAFTSettings
    from graphret.graphraft.profiles import profile_candidates
    from graphret.graphs.locations import opened
    from graphret.linking import Linker
    from graphret.planning import PathPlanner
    from graphret.stores.base import require_cypher

    names = options.names_of(name_property)
    with opened(graph, name_property=names) as store:
        database = require_cypher(store)
        if not question:
            found = profile_checked(
                database, text, schema=database.schema(), timeout=timeout
            )
            show(json, found.to_dict(), _operators(found), _sums(found))
            return
        with stderr().status("reading the names of the graph"):
            planner = PathPlanner(store, Linker.of_store(store), aliases=aliases)
        settings = GraphRAFTSettings(timeout=timeout)
        profiled = profile_candidates(planner, text, queries, settings)
    value = {"question": text, "queries": [_as_json(one) for one in profiled]}
    shown: Any = _candidates(profiled) if profiled else "no query finds anything"
    show(json, value, shown)


def _operators(found: Profile) -> Table:
    """Return the operators of a query as a table, the last one to run first."""
    table = _table(("rows", "estimated", "db hits", "ms"))
    for one in found.operators:
        table.add_row(
            f"{one.name} {one.details}".strip(),
            _number(one.rows),
            _number(one.estimated_rows),
            _number(one.db_hits),
            "" if one.milliseconds is None else f"{one.milliseconds:.3f}",
        )
    return table


def _sums(found: Profile) -> str:
    hits = "" if found.db_hits is None else f", {found.db_hits:,} db hits"
    memory = "" if found.memory is None else f", {found.memory:,} bytes"
    return f"{found.rows:,} rows in {1000 * found.seconds:.2f} ms{hits}{memory}"


def _candidates(profiled: Sequence[ProfiledCandidate]) -> Table:
    """Return the queries of a question as a table, the likeliest first."""
    table = _table(("probability", "rows", "db hits", "ms"))
    for one in profiled:
        table.add_row(
            one.candidate.text,
            f"{one.probability:.3f}",
            _number(one.profile.rows),
            _number(one.profile.db_hits),
            f"{1000 * one.profile.seconds:.2f}",
        )
    return table


def _as_json(one: ProfiledCandidate) -> dict[str, Any]:
    pattern, probability = one.candidate.text, round(one.probability, 6)
    return {"pattern": pattern, "probability": probability, **one.profile.to_dict()}


def _table(columns: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False, header_style="bold")
    table.add_column("", overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"

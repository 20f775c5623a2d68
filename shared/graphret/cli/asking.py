"""``graphret query``: ask a graph."""

from __future__ import annotations

import json as json_
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphret.cli import options
from graphret.cli.output import print_json, remark, stdout
from graphret.cli.running import writing_to
from graphret.errors import InvalidInput

if TYPE_CHECKING:
    from graphret.retriever import Retriever
    from graphret.sage import SageGraph
    from graphret.search.index import ArrayIndex
    from graphret.types import Retrieval

METHODS = ("sage",)


class RankingName(StrEnum):
    """How seeds and neighbours become one list."""

    coverage = "coverage"
    propagate = "propagate"
    paper = "paper"


def query(
    text: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.", show_default=False)],
    graph: Annotated[str, typer.Option("--graph", metavar="WHERE", help="A folder that graphret wrote.")],
    method: Annotated[str, typer.Option(help=f"The method: {', '.join(METHODS)}.")] = "sage",
    k: Annotated[int, typer.Option("-k", "--k", help="How many hits, in all.")] = 10,
    ranking: Annotated[
        RankingName, typer.Option(help="How seeds and neighbours become one list.")
    ] = RankingName.coverage,
    where: Annotated[
        str | None,
        typer.Option(metavar="JSON", help='Return only nodes that satisfy this, as {"year": {"$gte": 1990}}.'),
    ] = None,
    encoder: Annotated[
        str, typer.Option(metavar="NAME", help="'saved' for that of the graph; 'none' to search by words alone.")
    ] = "saved",
    explain: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Draw seeds, neighbours and edges into a page.")
    ] = None,
    json: options.JsonFlag = False,
) -> None:
    """Ask a graph, and print the hits with the evidence for each."""
    if method not in METHODS:
        raise InvalidInput(f"--method: there is no method {method!r}; known are {', '.join(METHODS)}")
    condition = _condition(where)
    opened = options.open_graph(graph, encoder=options.encoder_of(encoder))
    index: ArrayIndex = opened.index.lexical if encoder == "none" else opened.index
    retrieval = _retriever(opened, ranking.value, by_words=encoder == "none").retrieve(text, k, condition)
    if explain is not None:
        _explain(opened, index, retrieval, condition, explain)
    if json:
        print_json(retrieval.to_dict())
        return
    _print(opened, retrieval)
    if explain is not None:
        stdout().print(f"drawn in {explain}", markup=False, soft_wrap=True)


def _retriever(graph: SageGraph, ranking: str, *, by_words: bool) -> Retriever:
    if not by_words:
        return graph.retriever(ranking)
    from graphret.expansion import RANKINGS, Expand

    return Expand(None, graph.store, graph.index.lexical, ranking=RANKINGS[ranking]())


def _condition(where: str | None) -> dict[str, Any] | None:
    if where is None:
        return None
    try:
        condition = json_.loads(where)
    except ValueError as error:
        raise InvalidInput(f"--where: it is no JSON: {error}") from error
    if not isinstance(condition, dict):
        raise InvalidInput(f"--where: a JSON object is expected, not {where}")
    return condition


def _explain(
    graph: SageGraph, index: ArrayIndex, retrieval: Retrieval, where: dict[str, Any] | None, path: Path
) -> None:
    from graphret.explain import Panel, store_lookup, write_html
    from graphret.retriever import IndexRetriever

    flat = IndexRetriever(index).retrieve(retrieval.query, retrieval.k, where)
    with writing_to(path):
        write_html(path, Panel(retrieval, flat), title="graphret", lookup=store_lookup(graph.store), limit=retrieval.k)


def _print(graph: SageGraph, retrieval: Retrieval) -> None:
    from graphret.explain import render, store_lookup

    for stage in retrieval.trace.fallbacks:
        remark(f"fallback: {stage.details.get('error', stage.details)}")
    if not retrieval.hits:
        stdout().print("nothing qualifies")
        return
    stdout().print(render(retrieval, store_lookup(graph.store)))

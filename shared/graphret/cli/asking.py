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

METHODS = ("sage", "ark")
#: The options that only one method has.
_BELONG = {"ranking": "sage"} | dict.fromkeys(
    ("model", "base_url", "agents", "steps", "hints", "on_failure", "record", "verbose"), "ark"
)


class RankingName(StrEnum):
    """How seeds and neighbours become one list."""

    coverage = "coverage"
    propagate = "propagate"
    paper = "paper"


def query(
    context: typer.Context,
    text: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.", show_default=False)],
    graph: Annotated[
        str,
        typer.Option(
            metavar="WHERE",
            help="A folder that graphret wrote; for ark also a Ladybug file, or the address of a Neo4j.",
        ),
    ],
    method: Annotated[
        str | None,
        typer.Option(help=f"One of {', '.join(METHODS)}; by default sage for documents, and ark for any other graph."),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", help="How many hits, in all.")] = 10,
    ranking: Annotated[
        RankingName, typer.Option(help="Of sage: how seeds and neighbours become one list.")
    ] = RankingName.coverage,
    where: Annotated[
        str | None,
        typer.Option(metavar="JSON", help='Return only nodes that satisfy this, as {"year": {"$gte": 1990}}.'),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="'saved' for that of the graph, 'none' to search by words alone; for ark also any other. By default "
            "'saved' for sage, 'none' for ark.",
        ),
    ] = None,
    explain: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Draw how the hits were found into a page.")
    ] = None,
    model: options.ExplorerModel = None,
    base_url: options.ExplorerUrl = None,
    agents: Annotated[
        int, typer.Option(min=1, help="How many explore at once.", rich_help_panel=options.METHOD_ARK)
    ] = 3,
    steps: Annotated[
        int, typer.Option(min=1, help="Replies that each may take.", rich_help_panel=options.METHOD_ARK)
    ] = 20,
    hints: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="What else agents should know of the domain.", rich_help_panel=options.METHOD_ARK
        ),
    ] = "",
    on_failure: Annotated[
        options.OnFailure,
        typer.Option(
            help="Where a model fails, or calls what makes no sense: go on with what there is, or stop.",
            rich_help_panel=options.METHOD_ARK,
        ),
    ] = options.OnFailure.fallback,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl", help="Append the run, for replay and training.", rich_help_panel=options.METHOD_ARK
        ),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option("-v", "--verbose", help="Show every step of every agent.", rich_help_panel=options.METHOD_ARK),
    ] = False,
    json: options.JsonFlag = False,
) -> None:
    """Ask a graph, and print the hits with the evidence for each."""
    method = method or ("sage" if options.holds_documents(graph) else "ark")
    if method not in METHODS:
        raise InvalidInput(f"--method: there is no method {method!r}; known are {', '.join(METHODS)}")
    options.refuse_others(context, method, _BELONG)
    if not text.strip():
        raise InvalidInput("QUESTION: it is empty")
    condition = _condition(where)
    if method == "ark":
        from graphret.cli.exploring import Exploring, explore

        told = Exploring(
            graph=graph,
            k=k,
            where=condition,
            encoder=options.encoder_of("none" if encoder is None else encoder),
            model=model,
            base_url=base_url,
            agents=agents,
            steps=steps,
            hints=hints,
            on_failure=on_failure.value,
            record=record,
            explain=explain,
            verbose=verbose,
            json=json,
        )
        explore(text, told)
    else:
        _ask_sage(text, graph, k, ranking.value, condition, "saved" if encoder is None else encoder, explain, json=json)


def _ask_sage(
    text: str,
    graph: str,
    k: int,
    ranking: str,
    condition: dict[str, Any] | None,
    encoder: str,
    explain: Path | None,
    *,
    json: bool,
) -> None:
    opened = options.open_graph(graph, encoder=options.encoder_of(encoder))
    index: ArrayIndex = opened.index.lexical if encoder == "none" else opened.index
    retrieval = _retriever(opened, ranking, by_words=encoder == "none").retrieve(text, k, condition)
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

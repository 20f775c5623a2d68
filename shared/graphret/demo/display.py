"""The result of the demo in the terminal and as a page."""

from __future__ import annotations

import os
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from graphret.ark.prompt import EXPLORE
from graphret.demo.comparison import (
    FLAT,
    SAGE,
    SHOWN,
    SHOWN_K,
    DemoResult,
    QuestionComparison,
)
from graphret.demo.exploration import QUESTION, DemoExploration
from graphret.demo.exploration import about as about_explored
from graphret.explain import (
    Figures,
    Panel,
    render,
    render_timeline,
    store_lookup,
    timeline,
    write_html,
)
from graphret.explain.words import name_of
from graphret.types import Hit, Retrieval

ROW_NAMES = {
    "bm25": "BM25F",
    "dense": "dense",
    FLAT: "flat search",
    SAGE: "with the graph (SAGE)",
}


def draw(result: DemoResult, questions: int = SHOWN) -> RenderableType:
    """Return the result for rich to print, with so many questions shown."""
    parts: list[RenderableType] = [Text(about(result))]
    for number, comparison in enumerate(result.shown(questions), start=1):
        parts += [
            Text(),
            Rule(Text(f"question {number}", style="dim"), align="left", style="dim"),
            _question(comparison),
        ]
    return Group(
        *parts, Text(), Rule(style="dim"), _recall(result), Text(summary(result))
    )


def draw_explored(explored: DemoExploration) -> RenderableType:
    """Return what the agents did and found for rich to print."""
    routes = []
    for lane in timeline(explored.retrieval).lanes:
        looks = [call.arguments for call in lane.calls if call.tool == EXPLORE]
        route = " → ".join(
            " ".join([look["node"], *look.get("relation_types", ())]) for look in looks
        )
        routes.append(f"agent {lane.agent}: {route}, selects {len(lane.selection)}")
    return Group(
        Rule(Text("exploring agents", style="dim"), align="left", style="dim"),
        Text(about_explored(explored)),
        Text(f"\n{QUESTION}\n", style="bold"),
        Text("\n".join(routes) + "\n"),
        render_timeline(explored.retrieval, store_lookup(explored.store), steps=False),
    )


def page(result: DemoResult, path: str | os.PathLike[str]) -> Path:
    """Write the result as a self-contained page, and return its path."""
    panels = [
        Panel(
            comparison.first(SAGE),
            comparison.first(FLAT),
            comparison.holding,
            comparison.question.answer,
            f"{_verdict(comparison)}.",
        )
        for comparison in result.shown()
    ]
    rows = {ROW_NAMES[name]: row for name, row in result.rows.items()}
    title = f"Recall in percent over all {result.counts['questions']} questions"
    return write_html(
        path,
        panels,
        title="What a graph adds to flat search",
        lead=f"{about(result)} {summary(result)}",
        figures=Figures(rows, title, ROW_NAMES[SAGE]),
        lookup=store_lookup(result.graph.store),
    )


def about(result: DemoResult) -> str:
    counts = result.counts
    how = (
        f"BM25F and {result.encoder}"
        if result.encoder
        else "BM25F alone, without an encoder"
    )
    return (
        f"{counts['tables']} Wikipedia tables and the {counts['passages']} passages"
        f" that they link to, from OTT-QA, as a graph of {counts['nodes']:,} nodes and"
        f" {counts['edges']:,} edges. The links were not read: every edge was found in"
        f" the text. Flat search is {how}; SAGE is the same search and the graph. Shown"
        " are the first questions that take a table and a passage and whose answer the"
        f" graph has among its first {SHOWN_K} hits and flat search has not, and last"
        " one the other way round. ★ marks a hit that holds the answer word for word,"
        " «so»."
    )


def summary(result: DemoResult) -> str:
    """Return the numbers of questions that the graph answers, and answers better."""
    compared = result.compared()
    flat, sage = (
        sum(comparison.answered(row) > 0 for comparison in result.comparisons)
        for row in (FLAT, SAGE)
    )
    n_questions = len(result.comparisons)
    return (
        f"The first {SHOWN_K} hits hold the answer for {flat} of {n_questions}"
        f" questions by flat search and for {sage} with the graph. Recall counts the"
        " rows and passages that OTT-QA gives for an answer: the graph finds more of"
        f" them for {compared['more']} questions, as many for {compared['same']}, fewer"
        f" for {compared['less']}."
    )


def _question(comparison: QuestionComparison) -> RenderableType:
    lists = Table.grid(padding=(0, 3), expand=True)
    lists.add_column(ratio=1)
    lists.add_column(ratio=1)
    lists.add_row(
        Text("flat search", style="dim"), Text("with the graph (SAGE)", style="dim")
    )
    flat, sage = comparison.first(FLAT), comparison.first(SAGE)
    for flat_hit, sage_hit in zip(flat.hits, sage.hits, strict=False):
        lists.add_row(_line(flat_hit, comparison), _line(sage_hit, comparison))
    added, answer = _added(comparison), comparison.question.answer
    better = comparison.answered(SAGE) > comparison.answered(FLAT)
    parts: list[RenderableType] = [
        Text(comparison.question.question, style="bold"),
        Text.assemble(("answer: ", "dim"), (answer, "yellow")),
        Text(),
        lists,
        Text(),
        Text(
            _verdict(comparison) + (", by these links:" if better else "."),
            style="green" if better else "dim",
        ),
    ]
    if better:
        drawn = render(added, gold=comparison.holding, answer=answer)
        parts.append(Padding(drawn, (0, 0, 0, 2)))
    return Group(*parts)


def _added(comparison: QuestionComparison) -> Retrieval:
    """Return the graph's first hits with the answer that flat search does not have."""
    flat, sage = comparison.first(FLAT), comparison.first(SAGE)
    answering = [hit for hit in sage.hits if hit.id in comparison.holding]
    hits = [hit for hit in answering if hit.id not in flat.ids]
    return Retrieval(sage.query, sage.k, hits)


def _verdict(comparison: QuestionComparison) -> str:
    flat, sage = comparison.answered(FLAT), comparison.answered(SAGE)
    return (
        f"Hits that hold the answer among the first {SHOWN_K}: {flat} by flat search,"
        f" {sage} with the graph"
    )


def _line(hit: Hit, comparison: QuestionComparison) -> Text:
    star = hit.id in comparison.holding
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append("★ " if star else "  ", style="yellow")
    line.append(name_of(hit.node), style="bold" if star else "")
    return line


def _recall(result: DemoResult) -> RenderableType:
    title = f"recall in percent, {result.counts['questions']} questions"
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE,
        pad_edge=False,
    )
    measures = list(result.rows[SAGE])
    table.add_column("")
    for name in measures:
        table.add_column(name, justify="right")
    for name, row in result.rows.items():
        table.add_row(
            ROW_NAMES[name],
            *(f"{row[measure]:.1f}" for measure in measures),
            style="bold green" if name == SAGE else "",
        )
    return table

"""The result of the demo in the terminal and as a page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from graphret.demo.comparing import FLAT, SAGE, SHOWN_K, Asked, DemoResult
from graphret.demo.exploring import QUESTION, Explored
from graphret.demo.exploring import about as about_explored
from graphret.explain import Panel, render, render_timeline, store_lookup, write_html
from graphret.explain.html import Figures
from graphret.explain.terminal import clean
from graphret.explain.words import name_of
from graphret.types import Hit, Retrieval

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

ROW_NAMES = {
    "bm25": "BM25F",
    "dense": "dense",
    FLAT: "flat search",
    SAGE: "with the graph (SAGE)",
}


def draw(result: DemoResult) -> RenderableType:
    """Return the result as something that rich prints."""
    from rich.console import Group
    from rich.rule import Rule
    from rich.text import Text

    parts: list[RenderableType] = [Text(about(result))]
    for number, one in enumerate(result.shown(), start=1):
        parts += [
            Text(),
            Rule(Text(f"question {number}", style="dim"), align="left", style="dim"),
            _question(one, result),
        ]
    return Group(*parts, Text(), Rule(style="dim"), _recall(result), Text(comparison(result)))


def draw_explored(explored: Explored) -> RenderableType:
    """Return what the agents did and found as something that rich prints."""
    from rich.console import Group
    from rich.rule import Rule
    from rich.text import Text

    lookup = store_lookup(explored.store)
    return Group(
        Rule(Text("exploring agents", style="dim"), align="left", style="dim"),
        Text(about_explored(explored)),
        Text(f"\n{QUESTION}\n", style="bold"),
        render_timeline(explored.retrieval, lookup, steps=False, votes=0),
        Text(),
        render(explored.retrieval, lookup, snippets=False),
    )


def page(result: DemoResult, path: str | os.PathLike[str]) -> Path:
    """Write the result as a page that needs nothing but a browser, and return its path."""
    panels = [
        Panel(one.first(SAGE), one.first(FLAT), one.gold, one.question.answer, f"{_verdict(one)}.")
        for one in result.shown()
    ]
    rows = {ROW_NAMES[name]: row for name, row in result.rows.items()}
    title = f"Recall in percent over all {result.counts['questions']} questions"
    return write_html(
        path,
        panels,
        title="What a graph adds to flat search",
        lead=f"{about(result)} {comparison(result)}",
        figures=Figures(rows, title, ROW_NAMES[SAGE]),
        lookup=store_lookup(result.graph.store),
    )


def about(result: DemoResult) -> str:
    """Say what was searched, and by what."""
    counts = result.counts
    how = f"BM25F and {result.encoder}" if result.encoder else "BM25F alone, without an encoder"
    return (
        f"{counts['tables']} Wikipedia tables and the {counts['passages']} passages that they link to, from OTT-QA, as "
        f"a graph of {counts['nodes']:,} nodes and {counts['edges']:,} edges. The links were not read: every edge was "
        f"found in the text. Flat search is {how}; SAGE is the same search and the graph. "
        f"Shown are the first questions whose answer takes a table and a passage and for which the graph finds what "
        f"flat search lacks in its first {SHOWN_K}, and last one for which it does worse; ★ marks what answers."
    )


def comparison(result: DemoResult) -> str:
    """Say for how many questions the graph finds more and less."""
    compared = result.compared()
    return (
        f"Among the first {SHOWN_K} hits the graph finds more of the answer than flat search for {compared['more']} of "
        f"{result.counts['questions']} questions, as much for {compared['same']} and less for {compared['less']}."
    )


def _question(one: Asked, result: DemoResult) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    lists = Table.grid(padding=(0, 3), expand=True)
    lists.add_column(ratio=1)
    lists.add_column(ratio=1)
    lists.add_row(Text("flat search", style="dim"), Text("with the graph (SAGE)", style="dim"))
    for left, right in zip(one.first(FLAT).hits, one.first(SAGE).hits, strict=False):
        lists.add_row(_line(left, one), _line(right, one))
    added = _added(one)
    parts: list[RenderableType] = [
        Text(clean(one.question.question), style="bold"),
        Text.assemble(("answer: ", "dim"), (clean(one.question.answer), "yellow")),
        Text(),
        lists,
        Text(),
        Text(
            _verdict(one) + (", and brings:" if added.hits else ""),
            style="green" if one.found(SAGE) > one.found(FLAT) else "dim",
        ),
    ]
    if added.hits:
        parts.append(Padding(render(added, store_lookup(result.graph.store), gold=one.gold), (0, 0, 0, 2)))
    return Group(*parts)


def _added(one: Asked) -> Retrieval:
    """Return what the graph adds to the first hits of flat search: what answers, or everything where nothing does."""
    flat, sage = one.first(FLAT), one.first(SAGE)
    new = [hit for hit in sage.hits if hit.id not in flat.ids]
    right = [hit for hit in new if hit.id in one.gold]
    return Retrieval(sage.query, sage.k, right or new)


def _verdict(one: Asked) -> str:
    flat, sage, gold = one.found(FLAT), one.found(SAGE), len(one.gold)
    subject = f"Of the {gold} nodes that answer it" if gold > 1 else "Of the one node that answers it"
    return f"{subject}, flat search has {flat} in its first {SHOWN_K}, the graph {sage}"


def _line(hit: Hit, one: Asked) -> Text:
    from rich.text import Text

    gold = hit.id in one.gold
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append("★ " if gold else "  ", style="yellow")
    line.append(clean(name_of(hit.node)), style="bold" if gold else "")
    return line


def _recall(result: DemoResult) -> RenderableType:
    from rich import box
    from rich.table import Table

    title = f"recall in percent, {result.counts['questions']} questions"
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE, pad_edge=False)
    measures = list(result.rows[SAGE])
    table.add_column("")
    for name in measures:
        table.add_column(name, justify="right")
    for name, row in result.rows.items():
        table.add_row(ROW_NAMES[name], *(f"{row[m]:.1f}" for m in measures), style="bold green" if name == SAGE else "")
    return table

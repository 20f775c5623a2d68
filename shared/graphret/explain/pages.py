"""Self-contained HTML pages: retrievals, runs of agents and evaluations.

Templates escape every text, since node text is not to be trusted, and a content
security policy keeps a page from loading anything.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from graphret.explain import plots, runs
from graphret.explain.pictures import EDGES, retrieval_picture, run_picture
from graphret.explain.runs import Source, timeline
from graphret.explain.words import (
    RELEVANCE,
    Lookup,
    Marker,
    evidence_row,
    name_of,
    nodes_of_hits,
    reasons,
    relevance_text,
    text_of,
    without_markdown,
)
from graphret.types import Node, Retrieval

_MAX_TEXT = 20_000
_KINDS = 6


@dataclass(frozen=True, slots=True)
class Panel:
    """A retrieval on the page, next to a flat search of the same question.

    `gold` holds ids of right answers. `answer`, which is marked in texts, and `note`
    are shown below the query.
    """

    retrieval: Retrieval
    flat: Retrieval | None = None
    gold: Collection[str] = ()
    answer: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """A table of measures in percent, ``{row: {measure: value}}``.

    All rows have the same measures; the row `best` is highlighted.
    """

    rows: Mapping[str, Mapping[str, float]]
    title: str = ""
    best: str = ""


def html_page(
    panels: Panel | Sequence[Panel],
    *,
    title: str = "graphret",
    lead: str = "",
    figures: Figures | None = None,
    lookup: Lookup | None = None,
) -> str:
    """Return a page that draws retrievals; the same input makes the same page.

    It begins with the title, an introduction and figures. `lookup` finds the nodes at
    the other ends of edges that are not among the hits.
    """
    listed = [panels] if isinstance(panels, Panel) else panels
    shown = [_panel(panel, lookup) for panel in listed]
    return rendered(
        "retrieval.html", title=title, lead=lead, figures=figures, panels=shown
    )


def write_html(
    path: str | os.PathLike[str],
    panels: Panel | Sequence[Panel],
    *,
    title: str = "graphret",
    lead: str = "",
    figures: Figures | None = None,
    lookup: Lookup | None = None,
) -> Path:
    """Write `html_page` to a file in a folder made if missing; return its path."""
    page = html_page(panels, title=title, lead=lead, figures=figures, lookup=lookup)
    return written(path, page)


def timeline_page(
    source: Source, *, title: str = "graphret", lookup: Lookup | None = None
) -> str:
    """Return a page of what exploring agents did; the same input makes the same page.

    Parameters
    ----------
    source
        A trace, a retrieval of `Ark`, or an `ArkRun`.
    lookup
        Finds the nodes that were reached, for their names and texts; without it only
        those in the source have them.
    """
    run = timeline(source)
    nodes = run.nodes_by_id(lookup)
    return rendered(
        "run.html",
        title=title,
        lead="",
        run=run,
        names={id_: name_of(node) for id_, node in nodes.items()},
        reached=run.reached(),
        drawn=run_picture(run, nodes),
        words=runs,
    )


def evaluation_page(result: Mapping[str, Any], *, title: str = "graphret") -> str:
    """Return a page of an evaluation's plots and tables.

    `result` is what `graphret.evaluation.evaluate` returned; the same input makes the
    same page.
    """
    methods = list(result["recall"])
    hues = {
        method: round(360 * number / len(methods) + 215) % 360
        for number, method in enumerate(methods)
    }
    over_all = {method: f"all/{method}" for method in methods}
    measures = list(result["spread"][over_all[methods[0]]])
    places: Mapping[str, int] = result["places"]
    return rendered(
        "evaluation.html",
        title=title,
        lead=f"{result['counts']['questions']} questions over"
        f" {result['counts']['nodes']:,} nodes",
        result=result,
        methods=methods,
        measures=measures,
        bars=plots.bars(
            {method: result["spread"][row] for method, row in over_all.items()},
            measures,
        ),
        curves=plots.curves(result["recall"]),
        dots=plots.dots(
            {method: result["rows"][row] for method, row in over_all.items()}, "hit@1"
        ),
        plots=plots,
        color=lambda method: f"hsl({hues[method]} 58% 50%)",
        shown=lambda value, measure: f"{value:,.{places.get(measure, 1)}f}",
    )


def write_evaluation(
    path: str | os.PathLike[str], result: Mapping[str, Any], *, title: str = "graphret"
) -> Path:
    """Write `evaluation_page` to a file as `write_html` does, and return its path."""
    return written(path, evaluation_page(result, title=title))


def write_timeline(
    path: str | os.PathLike[str],
    source: Source,
    *,
    title: str = "graphret",
    lookup: Lookup | None = None,
) -> Path:
    """Write `timeline_page` to a file as `write_html` does, and return its path."""
    return written(path, timeline_page(source, title=title, lookup=lookup))


def written(path: str | os.PathLike[str], page: str) -> Path:
    """Write a page to a file, making its folder if need be; return its path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(page.encode("utf-8", "replace"))
    return path


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def rendered(template: str, **variables: Any) -> str:
    """Render a template; the texts come last, as rendering numbers them."""
    nodes: dict[str, tuple[int, Node]] = {}
    kinds: dict[str, int] = {}

    def number(node: Node) -> int:
        """Return the number of a node whose text the page shows."""
        return nodes.setdefault(node.id, (len(nodes), node))[0]

    def kind(node: Node) -> int:
        """Return the colour of a node's label; six labels have one of their own."""
        return kinds.setdefault(node.label, len(kinds)) % _KINDS

    shown = {
        "records": lambda: [_record(node) for _, node in nodes.values()],
        "name_of": name_of,
        "relevance_text": relevance_text,
        "relevance": RELEVANCE,
        "without_markdown": without_markdown,
    }
    return (
        _environment()
        .get_template(template)
        .render(**shown, number=number, kind=kind, **variables)
    )


def _record(node: Node) -> dict[str, Any]:
    """Return the readable content of a node: its text, or a table segment's rows."""
    properties = node.properties
    record = {"id": node.id, "name": name_of(node), "label": node.label}
    if not isinstance(rows := properties.get("table_rows"), list):
        return {**record, "text": text_of(node)[:_MAX_TEXT]}
    about = "\n\n".join(
        str(properties[name])
        for name in ("introduction", "section_text")
        if properties.get(name)
    )[:_MAX_TEXT]
    header, *rows = [
        list(map(str, row)) for row in (properties.get("table_header") or (), *rows)
    ]
    return {**record, "about": about, "header": header, "rows": rows}


def _panel(panel: Panel, lookup: Lookup | None) -> dict[str, Any]:
    hits, flat = panel.retrieval.hits, panel.flat.hits if panel.flat else None
    nodes = nodes_of_hits([*hits, *(flat or ())], lookup)
    kinds_by_id = {hit.id: {evidence.kind for evidence in hit.evidence} for hit in hits}
    by_question = {
        id_
        for id_, kinds in kinds_by_id.items()
        if "seed" in kinds or kinds.isdisjoint(EDGES)
    }
    if flat is not None:
        by_question = {hit.id for hit in flat[: len(hits)]}
    marker = Marker(panel.retrieval.query, panel.answer)
    return {
        "panel": panel,
        "hits": hits,
        "flat": flat,
        "by_question": by_question,
        "nodes": nodes,
        "drawn": retrieval_picture(hits, nodes, by_question),
        "reasons": reasons,
        "row": evidence_row,
        "quote": lambda hit: marker.snippet(hit.node, row=evidence_row(hit)),
    }

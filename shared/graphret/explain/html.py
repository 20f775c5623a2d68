"""Retrievals as one HTML page: seeds, neighbours and edges drawn, beside what flat search returns.

The page needs no network and no other file. Every text in it is escaped, since what nodes say is not to be trusted, and
a content security policy keeps it from loading anything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from graphret.explain.layout import BROUGHT, FOUND, Card, Line, Picture, found_by_question, picture
from graphret.explain.words import Lookup, Marker, evidence_row, known_nodes, name_of, reasons, text_of
from graphret.types import Hit, Node, Retrieval

_KINDS = 6
_MAX_TEXT = 20_000
_HEAD, _CARD, _GAP = 26, 54, 14  # pixels
_LEFT, _RIGHT = 35.0, 65.0  # where the columns end and begin, percent of the width
_LABEL = 20
_FOOTER = "Made by graphret. Point at a node to see its edges; click it to read its text."
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True, slots=True)
class Panel:
    """A retrieval on the page.

    Parameters
    ----------
    retrieval
        What is drawn.
    flat
        What flat search returns for the same question, to stand beside it.
    gold
        Ids of right answers.
    answer, note
        The answer, which is marked where texts hold it, and a remark, to stand below the question.
    """

    retrieval: Retrieval
    flat: Retrieval | None = None
    gold: Collection[str] = ()
    answer: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """A table of measures in percent: ``{row: {measure: value}}``; the row `best` is set off."""

    rows: Mapping[str, Mapping[str, float]]
    title: str = ""
    best: str = ""


@dataclass
class NodeTexts:
    """The nodes whose text the page can show, each once, by number."""

    numbers: dict[str, int] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)

    def number(self, node: Node) -> int:
        """Return the number of a node, entering it the first time."""
        if node.id not in self.numbers:
            self.numbers[node.id] = len(self.records)
            self.records.append(_record(node))
        return self.numbers[node.id]

    def kind(self, node: Node) -> int:
        """Return the colour of a node's label: the first six labels on a page have one each."""
        return self.kinds.setdefault(node.label, len(self.kinds)) % _KINDS


def write_html(
    path: str | os.PathLike[str],
    panels: Panel | Sequence[Panel],
    *,
    title: str = "graphret",
    lead: str = "",
    figures: Figures | None = None,
    lookup: Lookup | None = None,
    limit: int = 12,
) -> Path:
    """Write `html_page` to a file, making its folder if need be, and return its path."""
    path = Path(path)
    page = html_page(panels, title=title, lead=lead, figures=figures, lookup=lookup, limit=limit)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(page.encode("utf-8", "replace"))
    return path


def html_page(
    panels: Panel | Sequence[Panel],
    *,
    title: str = "graphret",
    lead: str = "",
    figures: Figures | None = None,
    lookup: Lookup | None = None,
    limit: int = 12,
) -> str:
    """Return a page that draws one or several retrievals; the same input makes the same page.

    Parameters
    ----------
    title, lead
        Its heading and what stands below.
    figures
        A table of measures to begin with.
    lookup
        Finds the nodes that edges come from where they are not among the hits.
    limit
        The most hits of a retrieval to draw and to list.
    """
    nodes = NodeTexts()
    panels = [panels] if isinstance(panels, Panel) else list(panels)
    sections = [_panel(panel, nodes, lookup, limit) for panel in panels]
    return document([_figures(figures) if figures else "", *sections], nodes, title=title, lead=lead, footer=_FOOTER)


def document(
    sections: Sequence[str],
    nodes: NodeTexts,
    *,
    title: str,
    lead: str,
    footer: str,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
) -> str:
    """Return sections of HTML as a whole page, with the texts of nodes and the page's own style and program.

    Parameters
    ----------
    sections
        HTML, everything in it escaped.
    nodes
        Those whose texts the page shows where one of their marks (``data-node``) is clicked.
    title, lead, footer
        Plain text.
    styles, scripts
        More files of this package to put into the page.
    """
    data = json.dumps(nodes.records, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{_files('page.css', *styles)}</style></head><body><main>",
            f"<h1>{escape(title)}</h1>",
            f'<p class="lead">{escape(lead)}</p>' if lead else "",
            *sections,
            f"<footer>{escape(footer)}</footer>",
            '</main><dialog><button class="close" type="button">Close</button><div></div></dialog>',
            f'<script type="application/json" id="nodes">{data}</script>',
            f"<script>{_files('page.js', *scripts)}</script></body></html>",
            "",
        ]
    )


def _files(*names: str) -> str:
    return "\n".join((Path(__file__).parent / name).read_text(encoding="utf-8") for name in names)


def _panel(panel: Panel, nodes: NodeTexts, lookup: Lookup | None, limit: int) -> str:
    hits = panel.retrieval.hits[:limit]
    known = known_nodes([*hits, *(panel.flat.hits if panel.flat else ())], lookup)
    found = set(panel.flat.ids[: len(hits)]) if panel.flat else found_by_question(hits)
    lists = [_hit_list("With the graph" if panel.flat else "Hits", hits, panel, known, nodes, found)]
    if panel.flat:
        flat = panel.flat.hits[:limit]
        lists.insert(0, _hit_list("Flat search", flat, panel, known, nodes, None))
    return "\n".join(
        [
            "<section>",
            f'<h2 dir="auto">{escape(panel.retrieval.query)}</h2>',
            f'<p class="answer">Answer: <b>{escape(panel.answer)}</b></p>' if panel.answer else "",
            f'<p class="note">{escape(panel.note)}</p>' if panel.note else "",
            _drawn(picture(hits, known, found), panel, nodes),
            f'<div class="lists{"" if panel.flat else " one"}">{"".join(lists)}</div>',
            "</section>",
        ]
    )


def _drawn(drawn: Picture, panel: Panel, nodes: NodeTexts) -> str:
    height = _HEAD + drawn.slots * (_CARD + _GAP)
    numbers = [nodes.number(card.node) for card in drawn.cards]
    paths, labels, inside = [], [], dict[int, str]()
    for line in drawn.lines:
        ends = f'data-from="{numbers[line.source]}" data-to="{numbers[line.target]}"'
        paths.append(f'<path d="{_path(line, drawn)}" {ends}><title>{escape(line.text)}</title></path>')
        if _crosses(line, drawn) and not any(line.target == other.target for other in drawn.lines[: len(paths) - 1]):
            labels.append(_label(line, drawn, ends))
        else:
            inside.setdefault(line.target, line.text)
    cards = [_card(card, numbers[i], panel, nodes, inside.get(i, "")) for i, card in enumerate(drawn.cards)]
    heads = f'<span style="left:4%">Found by the question</span><span style="left:{_RIGHT}%">Brought by an edge</span>'
    svg = f'<svg viewBox="0 0 100 {height}" preserveAspectRatio="none" aria-hidden="true">{"".join(paths)}</svg>'
    return (
        f'<div class="scroll"><div class="picture" style="height:{height}px"><div class="heads">{heads}</div>'
        f"{svg}{''.join(labels)}{''.join(cards)}</div></div>"
    )


def _card(card: Card, number: int, panel: Panel, nodes: NodeTexts, edge: str) -> str:
    node = card.node
    left = 4.0 if card.column == FOUND else _RIGHT
    classes = ["card", *(["gold"] if node.id in panel.gold else []), *(["passed"] if card.rank is None else [])]
    name = name_of(node)
    star = "★ " if node.id in panel.gold else ""
    place = f"{card.rank}." if card.rank else "passed through"
    return (
        f'<button type="button" class="{" ".join(classes)}" data-node="{number}" title="{escape(name)}" '
        f'style="left:{left}%;top:{_top(card)}px;--kind:var(--k{nodes.kind(node)})">'
        f'<span class="rank">{place}</span><b dir="auto">{star}{escape(name)}</b>'
        f"<small>{f'<i>↳ {escape(edge)}</i>' if edge else escape(_second_line(node))}</small></button>"
    )


def _second_line(node: Node) -> str:
    text = " | ".join(map(str, node.properties.get("table_header") or ())) or " ".join(node.text.split())
    return f"{node.label} · {text[:90]}" if text else node.label


def _path(line: Line, drawn: Picture) -> str:
    a, b = drawn.cards[line.source], drawn.cards[line.target]
    y, z = _middle(a), _middle(b)
    if a.column == b.column:
        edge, bend = (4.0, -(3.0 + 0.4 * abs(a.slot - b.slot))) if a.column == FOUND else (96.0, 3.0)
        bend = max(bend, -7.5)
        return f"M {edge} {y} C {edge + bend:.2f} {y}, {edge + bend:.2f} {z}, {edge} {z}"
    x, w = (_LEFT, _RIGHT) if a.column == FOUND else (_RIGHT, _LEFT)
    third = (w - x) * 0.42
    return f"M {x} {y} C {x + third:.2f} {y}, {w - third:.2f} {z}, {w} {z}"


def _crosses(line: Line, drawn: Picture) -> bool:
    return (drawn.cards[line.source].column, drawn.cards[line.target].column) == (FOUND, BROUGHT)


def _label(line: Line, drawn: Picture, data: str) -> str:
    """Name a line that runs from the left to the right beside the card that it brought; other names stand in cards."""
    top = _middle(drawn.cards[line.target]) - _LABEL / 2
    side = f"right:{100 - _RIGHT + 0.8}%"
    return (
        f'<span class="label" {data} style="{side};top:{top}px" title="{escape(line.text)}">{escape(line.text)}</span>'
    )


def _top(card: Card) -> int:
    return _HEAD + card.slot * (_CARD + _GAP)


def _middle(card: Card) -> float:
    return _top(card) + _CARD / 2


def _hit_list(
    title: str,
    hits: Sequence[Hit],
    panel: Panel,
    known: Mapping[str, Node],
    nodes: NodeTexts,
    found: Collection[str] | None,
) -> str:
    marker = Marker(panel.retrieval.query, panel.answer)
    items = [_item(rank, hit, panel, known, nodes, marker, found) for rank, hit in enumerate(hits, start=1)]
    here = {hit.id for hit in hits}
    absent = [name_of(known[id_]) if id_ in known else id_ for id_ in sorted(set(panel.gold) - here)]
    missing = f'<p class="missing">★ Not among these {len(hits)}: {escape("; ".join(absent))}</p>' if absent else ""
    return f'<div><h3>{escape(title)}</h3><ol class="hits">{"".join(items)}</ol>{missing}</div>'


def _item(
    rank: int,
    hit: Hit,
    panel: Panel,
    known: Mapping[str, Node],
    nodes: NodeTexts,
    marker: Marker,
    found: Collection[str] | None,
) -> str:
    chips = f'<span class="chip">{escape(hit.node.label)}</span>'
    if panel.flat and found is not None and hit.id not in found:
        chips += '<span class="chip new">added</span>'
    if hit.id in panel.gold:
        chips += '<span class="chip star" title="right answer">★</span>'
    row = evidence_row(hit)
    why = "" if found is None else "".join(map(str, _whys(hit, known)))
    quote = "".join(
        f"<mark>{escape(t)}</mark>" if marked else escape(t) for t, marked in marker.snippet(hit.node, row=row)
    )
    at = "" if row is None else f' data-row="{row}"'
    return (
        f'<li tabindex="0" data-node="{nodes.number(hit.node)}"{at}{" class=gold" if hit.id in panel.gold else ""}>'
        f'<span class="no">{rank}</span><span class="score">{hit.score:.3f}</span>'
        f'<span class="name" dir="auto">{escape(name_of(hit.node))}</span>{chips}{why}'
        f'<div class="quote" dir="auto">{quote}</div></li>'
    )


def _whys(hit: Hit, known: Mapping[str, Node]) -> Iterable[str]:
    for reason in reasons(hit):
        other = known.get(reason.source or "")
        end = f" {reason.arrow} {name_of(other) if other else reason.source}" if reason.source else ""
        kind = "seed" if reason.kind == "seed" else ""
        yield f'<div class="why {kind}">{escape(("" if kind else "↳ ") + reason.text + end)}</div>'


def _figures(figures: Figures) -> str:
    measures = list(dict.fromkeys(name for row in figures.rows.values() for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", *measures))
    body = []
    for name, row in figures.rows.items():
        cells = [
            f'<td>{row[m]:.1f}<span class="bar" style="width:{max(0.0, min(100.0, row[m])):.1f}%"></span></td>'
            if m in row
            else "<td></td>"
            for m in measures
        ]
        best = ' class="best"' if name == figures.best else ""
        body.append(f"<tr{best}><td>{escape(name)}</td>{''.join(cells)}</tr>")
    title = f"<h3>{escape(figures.title)}</h3>" if figures.title else ""
    table = f'<table class="figures"><tr>{head}</tr>{"".join(body)}</table>'
    return f'<section>{title}<div class="scroll">{table}</div></section>'


def _record(node: Node) -> dict[str, Any]:
    record: dict[str, Any] = {"id": node.id, "name": name_of(node), "label": node.label}
    rows = node.properties.get("table_rows")
    if isinstance(rows, list):
        about = (node.properties.get("introduction"), node.properties.get("section_text"))
        record["about"] = "\n\n".join(part for part in about if isinstance(part, str) and part)[:_MAX_TEXT]
        record["header"] = [str(cell) for cell in node.properties.get("table_header") or ()]
        record["rows"] = [[str(cell) for cell in row] for row in rows]
    else:
        record["text"] = text_of(node)[:_MAX_TEXT]
    return record

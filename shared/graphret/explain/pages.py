"""Pages that need nothing but a browser: one for retrievals, one for a run of agents.

Templates escape every text, since what nodes say is not to be trusted, and a content security policy keeps a page from
loading anything.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from graphret.explain import runs
from graphret.explain.pictures import (
    FOUND,
    Card,
    Line,
    Picture,
    found_by_question,
    retrieval_picture,
    run_picture,
)
from graphret.explain.runs import Lane, Source, Timeline, counted, timeline
from graphret.explain.words import Lookup, Marker, evidence_row, known_nodes, name_of, reasons, text_of
from graphret.types import Node, Retrieval, Trace

_MAX_TEXT = 20_000
_HEAD, _CARD, _GAP = 28, 54, 14  # pixels: what is above the cards, the height of one, and what is between two
_KINDS = 6


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

    @property
    def measures(self) -> list[str]:
        """The names of the measures."""
        return list(dict.fromkeys(name for row in self.rows.values() for name in row))


@dataclass
class _Texts:
    """The nodes whose text a page can show, each once, by number."""

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


def _record(node: Node) -> dict[str, Any]:
    record: dict[str, Any] = {"id": node.id, "name": name_of(node), "label": node.label}
    rows = node.properties.get("table_rows")
    if not isinstance(rows, list):
        return {**record, "text": text_of(node)[:_MAX_TEXT]}
    about = (node.properties.get("introduction"), node.properties.get("section_text"))
    record["about"] = "\n\n".join(part for part in about if isinstance(part, str) and part)[:_MAX_TEXT]
    record["header"] = [str(cell) for cell in node.properties.get("table_header") or ()]
    record["rows"] = [[str(cell) for cell in row] for row in rows]
    return record


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _rendered(template: str, texts: _Texts, **given: Any) -> str:
    """Fill in a template; the texts come last, as filling it in numbers them."""
    words = {"name_of": name_of, "number": texts.number, "kind": texts.kind, "records": texts.records}
    return _environment().get_template(template).render(**words, **given)


def _written(path: str | os.PathLike[str], page: str) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(page.encode("utf-8", "replace"))
    return path


# -- retrievals


def write_html(path: str | os.PathLike[str], panels: Panel | Sequence[Panel], **options: Any) -> Path:
    """Write `html_page`, which takes the same options, to a file, making its folder if need be; return its path."""
    return _written(path, html_page(panels, **options))


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
    texts = _Texts()
    given = [panels] if isinstance(panels, Panel) else panels
    shown = [_panel(panel, texts, lookup, limit) for panel in given]
    footer = " Point at a node to see its edges; click it to read its text."
    words = {"reasons": reasons, "evidence_row": evidence_row, "second_line": _second_line}
    return _rendered(
        "retrieval.html", texts, title=title, lead=lead, figures=figures, panels=shown, footer=footer, **words
    )


def _panel(panel: Panel, texts: _Texts, lookup: Lookup | None, limit: int) -> dict[str, Any]:
    """Return what the template shows of a retrieval."""
    hits, flat = panel.retrieval.hits[:limit], panel.flat.hits[:limit] if panel.flat else None
    known = known_nodes([*hits, *(panel.flat.hits if panel.flat else ())], lookup)
    found = set(panel.flat.ids[: len(hits)]) if panel.flat else found_by_question(hits)
    drawn = retrieval_picture(hits, known, found)
    marker = Marker(panel.retrieval.query, panel.answer)
    lines = [_retrieval_line(line, drawn) for line in drawn.lines]
    return {
        "panel": panel,
        "hits": hits,
        "flat": flat,
        "found": found,
        "known": known,
        "cards": drawn.cards,
        "lines": lines,
        "edges": {line["target"]: line["text"] for line in reversed(lines) if not line["crosses"]},
        "height": _HEAD + drawn.slots * (_CARD + _GAP),
        "quote": lambda hit: marker.snippet(hit.node, row=evidence_row(hit)),
    }


def _retrieval_line(line: Line, drawn: Picture) -> dict[str, Any]:
    """Return a line, in percent of the width; one that leads to the right is named beside the card that it brought."""
    a, b = drawn.cards[line.source], drawn.cards[line.target]
    if a.column == b.column:
        x, bend = (4.0, max(-7.5, -3.0 - 0.4 * abs(a.slot - b.slot))) if a.column == FOUND else (96.0, 3.0)
        path = _curve(x, a, x, b, bend, bend)
    else:
        x, w = (35.0, 65.0) if a.column == FOUND else (65.0, 35.0)
        path = _curve(x, a, w, b, 0.42 * (w - x), 0.42 * (x - w))
    first = next(other for other in drawn.lines if other.target == line.target)
    crosses = a.column < b.column and line is first
    return {"source": line.source, "target": line.target, "path": path, "text": line.text, "crosses": crosses}


def _curve(x: float, a: Card, w: float, b: Card, bend: float, other: float) -> str:
    """Return the path from one card to another; `bend` and `other` are how far it swings out at its ends."""
    y, z = (_HEAD + card.slot * (_CARD + _GAP) + _CARD / 2 for card in (a, b))
    return f"M {x} {y} C {x + bend:.2f} {y}, {w + other:.2f} {z}, {w} {z}"


def _second_line(node: Node) -> str:
    text = " | ".join(map(str, node.properties.get("table_header") or ())) or " ".join(node.text.split())
    return f"{node.label} · {text[:90]}" if text else node.label


# -- a run of agents

_PITCH, _WIDTH, _MARGIN = 330, 240, 26  # pixels: from column to column, of a card, and left of all


def write_timeline(
    path: str | os.PathLike[str], source: Source, *, title: str = "graphret", lookup: Lookup | None = None
) -> Path:
    """Write `timeline_page` to a file, making its folder if need be, and return its path."""
    return _written(path, timeline_page(source, title=title, lookup=lookup))


def timeline_page(source: Source, *, title: str = "graphret", lookup: Lookup | None = None) -> str:
    """Return a page that shows what exploring agents did; the same input makes the same page.

    Of a trace in which no agent explored it shows the stages and their times.

    Parameters
    ----------
    source
        A trace, a retrieval of `Ark`, or a `Run`.
    title
        Its heading.
    lookup
        Finds the nodes that were reached, for their names and texts; without it the source has to tell.
    """
    run, texts = timeline(source), _Texts()
    known = runs.told(run, lookup)
    drawn = run_picture(run, known)
    numbers = {card.node.id: texts.number(card.node) for card in drawn.cards}
    trace = source if isinstance(source, Trace) else source.trace
    about_steps = " Point at a step to see the nodes that it showed, click it to read it;"
    return _rendered(
        "run.html",
        texts,
        title=title,
        lead="",
        footer=f"{about_steps} point at a node to see its edges, click it to read its text." if run.lanes else "",
        run=run,
        stages=[] if run.lanes else trace.stages,
        summary=runs.summary_text(run) if run.lanes else "No agent explored.",
        names={id_: name_of(node) for id_, node in known.items()},
        same=runs.same_steps(run),
        bars=lambda lane: _bars(lane, run, numbers),
        card_text=_card_text,
        **_run_picture(run, drawn),
        **{name: getattr(runs, name) for name in _WORDS},
    )


#: What the template calls.
_WORDS = (
    *("call_text", "counted", "duration", "how_text", "lane_text", "names_text", "outcome_text", "stop_text"),
    *("times_text", "trouble_text"),
)


def _bars(lane: Lane, run: Timeline, numbers: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the steps of a lane in percent of the clock."""
    end, out = run.end or 1.0, []
    for step, began, replied, done in runs.spans(lane):
        calls = [f"{runs.call_text(call)} {runs.outcome_text(call)}".strip() for call in step.calls]
        said = "; ".join(filter(None, [runs.trouble_text(step), *calls])) or "no calls"
        bar = {
            "number": step.number,
            "left": 100 * began / end,
            "width": 100 * (done - began) / end,
            "model": 100 * (replied - began) / (done - began) if done > began else 100.0,
            "nodes": list(dict.fromkeys(numbers[id_] for call in step.calls for id_ in call.nodes if id_ in numbers)),
            "about": f"Agent {lane.agent}, step {step.number}, {runs.times_text(step)}: {said}",
        }
        out.append(bar)
    return out


def _run_picture(run: Timeline, drawn: Picture) -> dict[str, Any]:
    """Return what the template shows of the nodes that were reached."""
    found = runs.reached(run)
    columns = sorted({card.column: found[card.node.id].depth for card in drawn.cards}.items())
    brought: dict[int, dict[str, None]] = {}  # by which edges a card was reached, as seen from where they come from
    for line in drawn.lines:
        ends = {line.target: f"→ {line.text}", line.source: f"← {line.text}"}
        first, last = sorted(ends, key=lambda at: (drawn.cards[at].column, at))
        level = drawn.cards[first].column == drawn.cards[last].column
        for at in (last, first) if level else (last,):
            brought.setdefault(at, {})[ends[at]] = None
    return {
        "cards": drawn.cards,
        "reached": found,
        "lefts": [_left(column) for column in range(len(columns))],
        "edges": {at: ", ".join(edges) for at, edges in brought.items()},
        "lines": [(line, _run_curve(drawn.cards[line.source], drawn.cards[line.target])) for line in drawn.lines],
        "heads": [
            (_left(at), f"{counted(depth, 'edge')} away" if depth else "Found by a search") for at, depth in columns
        ],
        "height": _HEAD + drawn.slots * (_CARD + _GAP),
        "width": _MARGIN + len(columns) * _PITCH - (_PITCH - _WIDTH),
        "others": drawn.others,
    }


def _left(column: int) -> int:
    return _MARGIN + column * _PITCH


def _run_curve(a: Card, b: Card) -> str:
    x, w = _left(a.column), _left(b.column)
    if a.column == b.column:
        bend = -min(_MARGIN - 4.0, 8.0 + 3.0 * abs(a.slot - b.slot))
        return _curve(x, a, w, b, bend, bend)
    x, w = (x + _WIDTH, w) if a.column < b.column else (x, w + _WIDTH)
    return _curve(x, a, w, b, 0.45 * (w - x), 0.45 * (x - w))


def _card_text(card: Card, node: runs.Reached) -> str:
    """Return what a card is about, for who cannot see it or points at it."""
    said = [f"rank {card.rank}"] if card.rank else []
    for what, agents in (("explored by", node.explored), ("selected by", node.selected), ("shown to", node.agents)):
        if agents:
            said.append(f"{what} agent{'s' * (len(agents) > 1)} {', '.join(map(str, sorted(agents)))}")
    return f"{name_of(card.node)}: {', '.join(said)}"

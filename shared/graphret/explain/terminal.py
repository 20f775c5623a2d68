"""A retrieval, and a run of agents, drawn in the terminal with rich."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graphret.ark.records import StepRecord
from graphret.ark.session import ArkSession
from graphret.explain.runs import (
    Lane,
    Source,
    Timeline,
    call_text,
    duration,
    lane_text,
    names_text,
    outcome_text,
    same_steps,
    shown_nodes,
    spans,
    stop_text,
    timeline,
    tokens_text,
    told,
    trouble_text,
)
from graphret.explain.words import Lookup, Marker, Piece, evidence_row, known_nodes, name_of, reasons
from graphret.types import Retrieval, Trace

_MARKS = {"seed": "•", "neighbor": "↳", "fill": "·"}
_CONTROLS: dict[int, str | None] = {
    **dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)]),
    **dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}"),
}


def render(
    retrieval: Retrieval,
    lookup: Lookup | None = None,
    *,
    gold: Collection[str] = (),
    answer: str = "",
    limit: int | None = None,
    snippets: bool = True,
) -> RenderableType:
    """Return a retrieval as something that rich prints: rank, kind, name, score, why, and a marked snippet.

    Parameters
    ----------
    lookup
        Finds the nodes that edges come from where they are not among the hits; `store_lookup` makes one of a store.
    gold
        Ids of right answers, which get a star.
    answer
        The answer, which is marked where texts hold it.
    limit
        The most hits to draw.
    snippets
        Whether texts are quoted.
    """
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    table.add_column(justify="right", style="dim", no_wrap=True)
    known = known_nodes(retrieval.hits, lookup)
    marker = Marker(retrieval.query, answer)
    for rank, hit in enumerate(retrieval.hits[:limit], start=1):
        body = Text()
        body.append(clean(name_of(hit.node)), style="bold")
        body.append(f"  {clean(hit.node.label)}", style="cyan")
        for reason in reasons(hit):
            body.append(f"\n{_MARKS.get(reason.kind, '·')} {clean(reason.text)}", style=_style(reason.kind))
            if reason.source is not None:
                source = known.get(reason.source)
                body.append(f" {reason.arrow} {clean(name_of(source) if source else reason.source)}", style="magenta")
        if snippets:
            body.append("\n")
            body.append_text(_marked(marker.snippet(hit.node, row=evidence_row(hit))))
        star = Text("★", style="bold yellow") if hit.id in gold else Text(" ")
        table.add_row(str(rank), star, body, f"{hit.score:.3f}")
    return table


def clean(text: str) -> str:
    """Return a text without the characters that steer a terminal, and with marks for what no encoding can hold."""
    return text.translate(_CONTROLS)


def _style(kind: str) -> str:
    return "green" if kind == "neighbor" else "dim"


def _marked(pieces: Iterable[Piece]) -> Text:
    out = Text(style="not bold")
    for text, marked in pieces:
        out.append(clean(text), style="bold yellow" if marked and text[0] == "«" else "underline" if marked else "")
    return out


# -- a run of agents

_WIDTH = 56  # cells of a lane
_MODEL = 20  # characters of a model's name
_NAMES = 4
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")


def render_timeline(
    source: Source, lookup: Lookup | None = None, *, steps: bool = True, votes: int = 10
) -> RenderableType:
    """Return what exploring agents did as something that rich prints: lanes on one clock, every step, and the vote.

    Of a trace in which no agent explored it returns the stages and their times.

    Parameters
    ----------
    source
        A trace, a retrieval of `Ark`, or a `Run`.
    lookup
        Finds the nodes that were reached, for their names; without it they are called what the source calls them.
    steps
        Whether each step is shown with its calls and what came back.
    votes
        The most nodes of the vote to show; 0 shows no vote.
    """
    line = timeline(source)
    if not line.lanes:
        return _stages(source if isinstance(source, Trace) else source.trace)
    called = {id_: name_of(node) for id_, node in told(line, lookup).items()}
    parts: list[RenderableType] = [_lanes(line)]
    if steps:
        same = same_steps(line)
        parts += [_steps(lane, called, same.get(lane.agent)) for lane in line.lanes]
    if line.ranking and votes:
        parts.append(_votes(line, called, votes))
    return Group(*parts)


def step_text(session: ArkSession, since: int = 0) -> Text:
    """Return the steps of an agent from number `since` on, and why it stopped if it has, to show as they happen."""
    agent = session.agent + 1
    names = {id_: name_of(node) for id_, node in shown_nodes([session]).items()}
    lines: list[Text] = []
    for step in session.steps[since:]:
        line = Text(f"agent {agent}", style=_colour(agent))
        line.append(f" step {step.number}", style="default")
        line.append_text(_step(step, names, "    "))
        lines.append(line)
    if session.stop is not None:
        line = Text(f"agent {agent}", style=_colour(agent))
        line.append(f" {clean(stop_text(session.stop, session.error or ''))}", style=_stopped(session.stop))
        lines.append(line)
    return Text("\n").join(lines)


def _stages(trace: Trace) -> RenderableType:
    table = Table("stage", "time", box=None, padding=(0, 2, 0, 0))
    for stage in trace.stages:
        table.add_row(clean(stage.name), duration(stage.seconds))
    return table


def _lanes(line: Timeline) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    end = line.end
    for lane in line.lanes:
        about = Text(clean(stop_text(lane.stop, lane.error)), style=_stopped(lane.stop))
        about.append(f"  {lane_text(lane)}", style="dim")
        table.add_row(Text(f"agent {lane.agent}", style=f"bold {_colour(lane.agent)}"), _bar(lane, end))
        table.add_row(Text(clean(lane.model)[:_MODEL], style="dim"), about)
    table.add_row("", Text("0" + duration(end).rjust(_WIDTH - 1), style="dim"))
    table.add_row("", Text("1 2 3 steps  █ model  ▒ tools", style="dim"))
    return table


def _bar(lane: Lane, end: float) -> Text:
    cells = ["·"] * _WIDTH

    def at(seconds: float) -> int:
        return min(_WIDTH - 1, int(seconds / (end or 1.0) * _WIDTH))

    for step, began, replied, done in spans(lane):
        for start, stop, mark in ((replied, done, "▒"), (began, replied, "█")):
            if stop > start:  # at least one cell where it took any time
                width = max(1, round(stop / (end or 1.0) * _WIDTH) - at(start))
                cells[at(start) : at(start) + width] = [mark] * min(width, _WIDTH - at(start))
        cells[at(began)] = str(step.number % 10)
    return Text("".join(cells), style=_colour(lane.agent))


def _steps(lane: Lane, names: Mapping[str, str], same: int | None) -> RenderableType:
    out = Text(f"\nagent {lane.agent}", style=f"bold {_colour(lane.agent)}")
    if same is not None:
        return out.append(f" did what agent {same} did", style="not bold default")
    for step in lane.steps:
        out.append(f"\n{step.number:>3}", style="not bold dim")
        out.append_text(_step(step, names, "    "))
    return out


def _step(step: StepRecord, names: Mapping[str, str], indent: str) -> Text:
    out = Text(style="not bold default")
    out.append(f" at {duration(step.started)}, model {duration(step.seconds)}", style="dim")
    if step.tokens:
        out.append(f", {tokens_text(step.tokens, step.tokens_estimated)}", style="dim")
    if step.text.strip():
        out.append(f"\n{indent}“{clean(names_text([step.text], {}))}”", style="italic")
    if trouble := trouble_text(step):
        out.append(f"\n{indent}{clean(trouble)}", style="red")
    for call in step.calls:
        out.append(f"\n{indent}{clean(call_text(call))}", style="red" if call.failed else "")
        if said := outcome_text(call):
            out.append(f" → {said}", style="dim")
        if call.nodes:
            out.append(f": {clean(names_text(call.nodes, names, _NAMES))}", style="dim")
    return out


def _votes(line: Timeline, names: Mapping[str, str], most: int) -> RenderableType:
    table = Table(title="\nVote", title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for column, justify in (("", "right"), ("node", "left"), ("votes", "right"), ("place", "right"), ("by", "left")):
        table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for rank, choice in enumerate(line.ranking[:most], start=1):
        by = Text()
        for agent in choice.agents:
            by.append(f"{agent} ", style=_colour(agent))
        voted = f"{len(choice.agents)} of {len(line.lanes)}"
        table.add_row(f"{rank}", Text(clean(names.get(choice.id, choice.id))), voted, f"{choice.position}", by)
    if len(line.ranking) > most:
        table.add_row("", f"and {len(line.ranking) - most} more", "", "", "", style="dim")
    return table


def _colour(agent: int) -> str:
    return _COLOURS[(agent - 1) % len(_COLOURS)]


def _stopped(stop: str | None) -> str:
    return {"finished": "green", "settled": "green", "failed": "red", "cancelled": "red"}.get(stop or "", "yellow")

"""A retrieval, and a run of agents, drawn in the terminal with rich."""

from __future__ import annotations

from collections.abc import Collection, Mapping

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
    names_text,
    outcome_text,
    shown_nodes,
    timeline,
    times_text,
    trouble_text,
)
from graphret.explain.words import Lookup, Marker, evidence_row, known_nodes, name_of, reasons
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
    """
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    table.add_column(justify="right", style="dim", no_wrap=True)
    known = known_nodes(retrieval.hits, lookup)
    marker = Marker(retrieval.query, answer)
    for rank, hit in enumerate(retrieval.hits, start=1):
        body = Text.assemble((clean(name_of(hit.node)), "bold"), (f"  {clean(hit.node.label)}", "cyan"))
        for reason in reasons(hit):
            style = "green" if reason.kind == "neighbor" else "dim"
            body.append(f"\n{_MARKS.get(reason.kind, '·')} {clean(reason.text)}", style)
            if reason.source is not None:
                source = known.get(reason.source)
                body.append(f" {reason.arrow} {clean(name_of(source) if source else reason.source)}", "magenta")
        body.append("\n")
        for text, marked in marker.snippet(hit.node, row=evidence_row(hit)):
            body.append(clean(text), "bold yellow" if marked and text[0] == "«" else "underline" if marked else "")
        star = Text("★", style="bold yellow") if hit.id in gold else Text(" ")
        table.add_row(str(rank), star, body, f"{hit.score:.3f}")
    return table


def clean(text: str) -> str:
    """Return a text without the characters that steer a terminal, and with marks for what no encoding can hold."""
    return text.translate(_CONTROLS)


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
    run = timeline(source)
    if not run.lanes:
        return _stages(source if isinstance(source, Trace) else source.trace)
    names = {id_: name_of(node) for id_, node in run.known(lookup).items()}
    parts: list[RenderableType] = [_lanes(run)]
    if steps:
        parts += [_steps(lane, names, run.same.get(lane.agent)) for lane in run.lanes]
    if run.ranking and votes:
        parts.append(_votes(run, names, votes))
    return Group(*parts)


def step_text(session: ArkSession, since: int = 0) -> Text:
    """Return the steps of an agent from number `since` on, and why it stopped if it has, to show as they happen."""
    lane = Lane(session.agent + 1, stop=session.stop or "", error=session.error or "")
    names = {id_: name_of(node) for id_, node in shown_nodes([session]).items()}
    agent = Text(f"agent {lane.agent} ", _colour(lane.agent), end="")
    lines = [agent + Text(f"step {step.number}", "default") + _step(step, names) for step in session.steps[since:]]
    return Text("\n").join([*lines, agent + _stopped(lane)] if lane.stop else lines)


def _stages(trace: Trace) -> RenderableType:
    table = Table("stage", "time", box=None, padding=(0, 2, 0, 0))
    for stage in trace.stages:
        table.add_row(clean(stage.name), duration(stage.seconds))
    return table


def _lanes(run: Timeline) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for lane in run.lanes:
        table.add_row(Text(f"agent {lane.agent}", f"bold {_colour(lane.agent)}"), _bar(lane, run.end or 1.0))
        table.add_row(Text(clean(lane.model)[:_MODEL], "dim"), _stopped(lane).append(f"  {lane.spent}", "dim"))
    table.add_row("", Text("0" + duration(run.end).rjust(_WIDTH - 1), "dim"))
    table.add_row("", Text("1 2 3 steps  █ model  ▒ tools", "dim"))
    return table


def _bar(lane: Lane, end: float) -> Text:
    cells = ["·"] * _WIDTH
    for step, began, replied, done in lane.spans:
        for start, stop, mark in ((replied, done, "▒"), (began, replied, "█")):
            first, last = (min(_WIDTH - 1, int(at / end * _WIDTH)) for at in (start, stop))
            if stop > start:  # at least one cell where it took any time
                cells[first : max(last, first + 1)] = mark * max(last - first, 1)
        cells[min(_WIDTH - 1, int(began / end * _WIDTH))] = str(step.number % 10)
    return Text("".join(cells), _colour(lane.agent))


def _steps(lane: Lane, names: Mapping[str, str], same: int | None) -> RenderableType:
    out = Text(f"\nagent {lane.agent}", f"bold {_colour(lane.agent)}")
    if same is not None:
        return out.append(f" did what agent {same} did", "not bold default")
    for step in lane.steps:
        out.append(f"\n{step.number:>3}", "not bold dim").append_text(_step(step, names))
    return out


def _step(step: StepRecord, names: Mapping[str, str]) -> Text:
    out = Text(style="not bold default").append(f" {times_text(step)}", "dim")
    if step.text.strip():
        out.append(f"\n    “{clean(names_text([step.text], {}))}”", "italic")
    if trouble := trouble_text(step):
        out.append(f"\n    {clean(trouble)}", "red")
    for call in step.calls:
        out.append(f"\n    {clean(call_text(call))}", "red" if call.failed else "")
        if said := outcome_text(call):
            out.append(f" → {said}", "dim")
        if call.nodes:
            out.append(f": {clean(names_text(call.nodes, names, _NAMES))}", "dim")
    return out


def _votes(run: Timeline, names: Mapping[str, str], most: int) -> RenderableType:
    table = Table(title="\nVote", title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for column in ("", "node", "votes", "place", "by"):
        table.add_column(column, justify="left" if column in ("node", "by") else "right", overflow="fold")
    for rank, vote in enumerate(run.ranking[:most], start=1):
        by = Text.assemble(*((f"{voter + 1} ", _colour(voter + 1)) for voter in vote.voters))
        voted = f"{vote.votes} of {len(run.lanes)}"
        table.add_row(f"{rank}", Text(clean(names.get(vote.id, vote.id))), voted, f"{vote.position}", by)
    if len(run.ranking) > most:
        table.add_row("", f"and {len(run.ranking) - most} more", "", "", "", style="dim")
    return table


def _colour(agent: int) -> str:
    return _COLOURS[(agent - 1) % len(_COLOURS)]


def _stopped(lane: Lane) -> Text:
    colours = {"finished": "green", "settled": "green", "failed": "red", "cancelled": "red"}
    return Text(clean(lane.stopped), colours.get(lane.stop, "yellow"))

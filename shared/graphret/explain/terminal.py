"""A retrieval, and a run of agents, drawn in the terminal with rich."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from graphret.explain import runs
from graphret.explain.runs import Lane, Source, Timeline, timeline
from graphret.explain.words import (
    Lookup,
    Marker,
    evidence_row,
    name_of,
    reasons,
    relevance_text,
)
from graphret.types import Retrieval

_NAMES, _VOTES = 4, 10  # how many names of a call, and how many votes, are shown
_STOPS = {"finished": "green", "settled": "green", "failed": "red", "cancelled": "red"}
_MARKS = {"seed": "•", "neighbor": "↳", "fill": "·"}
# Characters that move the cursor, except the line break, or turn the direction of
# writing, and those that no encoding has.
_UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class Plain:
    """Prints with rich, without control characters, as texts are untrusted."""

    def __init__(self, shown: RenderableType) -> None:
        self.shown = shown

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[Segment]:
        for text, style, control in console.render(self.shown, options):
            yield Segment(text if control else _UNSEEN.sub("", text), style, control)


def render(
    retrieval: Retrieval, *, gold: Collection[str] = (), answer: str = ""
) -> RenderableType:
    """Return a retrieval for rich to print: rank, name, relevance, reasons, snippet.

    Parameters
    ----------
    gold
        Ids of right answers, which get a star.
    answer
        Is marked where a text has it word for word.
    """
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    table.add_column(justify="right", style="dim", no_wrap=True)
    marker = Marker(retrieval.query, answer)
    if any(map(relevance_text, retrieval.hits)):
        table.add_row("", "", "", "relevance 0 … 1")
    for rank, hit in enumerate(retrieval.hits, start=1):
        body = Text.assemble(
            (name_of(hit.node), "bold"), (f"  {hit.node.label}", "cyan")
        )
        for kind, why in reasons(hit):
            body.append(
                f"\n{_MARKS.get(kind, '·')} {why}",
                "green" if kind == "neighbor" else "dim",
            )
        body.append("\n")
        for text, marked in marker.snippet(hit.node, row=evidence_row(hit)):
            body.append(
                text,
                (
                    "bold yellow"
                    if marked and text[0] == "«"
                    else "underline"
                    if marked
                    else ""
                ),
            )
        star = Text("★", style="bold yellow") if hit.id in gold else Text(" ")
        table.add_row(str(rank), star, body, relevance_text(hit))
    return Plain(table)


def render_timeline(
    source: Source, lookup: Lookup | None = None, *, steps: bool = True
) -> RenderableType:
    """Return a run of agents for rich to print: each agent, its steps, and the vote.

    Parameters
    ----------
    source
        A trace, a retrieval of `Ark`, or an `ArkRun`.
    lookup
        Finds the nodes that were reached, for their names; without it the names are
        those in the source.
    steps
        Whether each step is shown with its calls and their outcomes.
    """
    run = timeline(source)
    names = {id_: name_of(node) for id_, node in run.nodes_by_id(lookup).items()}
    lanes = Table.grid(padding=(0, 2))
    for lane in run.lanes:
        stopped = Text(lane.stopped, _STOPS.get(lane.stop, "yellow"))
        agent = Text(f"agent {lane.agent}", "bold cyan")
        lanes.add_row(agent, Text(lane.model), stopped, Text(lane.spent, "dim"))
    parts = [_steps(lane, names) for lane in run.lanes if steps]
    return Plain(Group(lanes, *parts, *([_votes(run, names)] if run.ranking else [])))


def _steps(lane: Lane, names: Mapping[str, str]) -> RenderableType:
    out = Text(f"\nagent {lane.agent}", "bold cyan")
    for step in lane.steps:
        out.append(f"\n{step.number:>3} {runs.times_text(step)}", "not bold dim")
        if step.text.strip():
            out.append(f"\n    “{runs.shortened(step.text)}”", "not bold italic")
        if trouble := runs.trouble_text(step):
            out.append(f"\n    {trouble}", "not bold red")
        for call in step.calls:
            out.append(
                f"\n    {runs.call_text(call)}",
                "not bold red" if call.failed else "not bold default",
            )
            parts = [
                runs.outcome_text(call),
                runs.names_text(call.nodes, names, _NAMES),
            ]
            if outcome := ": ".join(filter(None, parts)):
                out.append(f" → {outcome}", "not bold dim")
    return out


def _votes(run: Timeline, names: Mapping[str, str]) -> RenderableType:
    table = Table(
        title="\nVote",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for column in ("", "node", "votes", "place", "by"):
        table.add_column(
            column,
            justify="left" if column in ("node", "by") else "right",
            overflow="fold",
        )
    for rank, vote in enumerate(run.ranking[:_VOTES], start=1):
        by = " ".join(str(voter + 1) for voter in vote.voters)
        voted = f"{vote.votes} of {len(run.lanes)}"
        table.add_row(
            f"{rank}", Text(names.get(vote.id, vote.id)), voted, f"{vote.position}", by
        )
    if len(run.ranking) > _VOTES:
        table.add_row(
            "", f"and {len(run.ranking) - _VOTES} more", "", "", "", style="dim"
        )
    return table

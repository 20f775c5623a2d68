"""A timeline as one HTML page: agents as lanes on one clock, the nodes they reached, the vote, and every step.

Like the page of a retrieval it needs no network and no other file, and everything in it is escaped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

from graphret.ark.definitions import SELECT
from graphret.ark.records import CallRecord, StepRecord
from graphret.explain.html import NodeTexts, document
from graphret.explain.timeline import Lane, Source, Timeline, same_steps, spans, timeline, told
from graphret.explain.timeline_picture import Link, Place, Reach, reach
from graphret.explain.timeline_words import (
    call_text,
    counted,
    duration,
    lane_text,
    names_text,
    outcome_text,
    stop_text,
    tokens_text,
    trouble_text,
)
from graphret.explain.words import Lookup, name_of
from graphret.types import Node, Trace

_PITCH, _CARD, _HEAD, _HEIGHT, _GAP = 330, 240, 28, 54, 14  # pixels
_NAMES = 12
_MARGIN = 26  # pixels left of the first column, where edges within it run
_KINDS = 6
_FOOTER = (
    "Made by graphret. Point at a step to see the nodes that it showed, click it to read it; "
    "point at a node to see its edges, click it to read its text."
)
_FOOTER_STAGES = "Made by graphret."
_FILES = {"styles": ["timeline.css"], "scripts": ["timeline.js"]}


def write_timeline(
    path: str | os.PathLike[str], source: Source, *, title: str = "graphret", lookup: Lookup | None = None
) -> Path:
    """Write `timeline_page` to a file, making its folder if need be, and return its path."""
    path = Path(path)
    page = timeline_page(source, title=title, lookup=lookup)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(page.encode("utf-8", "replace"))
    return path


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
    line = timeline(source)
    if not line.lanes:
        trace = source if isinstance(source, Trace) else source.trace
        return document([_stages(line, trace)], NodeTexts(), title=title, lead="", footer=_FOOTER_STAGES, **_FILES)
    drawn = reach(line)
    known = told(line, lookup)
    nodes = NodeTexts()
    numbers = {place.node.id: nodes.number(known[place.node.id]) for place in drawn.places}
    sections = [
        _clock(line, numbers),
        _picture(drawn, known, numbers) if drawn.places else "",
        _votes(line, known) if line.ranking else "",
        _steps(line, known),
    ]
    return document(sections, nodes, title=title, lead="", footer=_FOOTER, **_FILES)


def _stages(line: Timeline, trace: Trace) -> str:
    """The stages of a retrieval without agents, and their times."""
    rows = "".join(
        f'<tr><th scope="row" dir="auto">{escape(stage.name)}</th><td>{escape(duration(stage.seconds))}</td></tr>'
        for stage in trace.stages
    )
    table = (
        '<table class="stages"><thead><tr><th scope="col">Stage</th><th scope="col">Time</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    return (
        f'<section><h2 dir="auto">{escape(line.question or "What was done")}</h2>'
        f'<p class="note">No agent explored.</p>{_warnings(line)}{table if rows else ""}</section>'
    )


def _warnings(line: Timeline) -> str:
    return "".join(f'<p class="note warn" dir="auto">{escape(note)}</p>' for note in line.notes)


def _agent(agent: int) -> str:
    return f"--agent:var(--k{(agent - 1) % _KINDS})"


# -- lanes


def _clock(line: Timeline, numbers: Mapping[str, int]) -> str:
    end = line.end or 1.0
    calls, tokens = sum(len(lane.calls) for lane in line.lanes), sum(lane.tokens for lane in line.lanes)
    steps = sum(len(lane.steps) for lane in line.lanes)
    said = [counted(len(line.lanes), "agent"), counted(steps, "step"), counted(calls, "call")]
    estimated = any(lane.tokens_estimated for lane in line.lanes)
    said += [tokens_text(tokens, estimated), duration(line.end)]
    lanes = "".join(_lane(lane, end, numbers) for lane in line.lanes)
    return (
        f'<section><h2 dir="auto">{escape(line.question or "What the agents did")}</h2>'
        f'<p class="note">{escape(" · ".join(said))}</p>{_warnings(line)}'
        f'<div class="scroll"><div class="clock">{lanes}<div class="lane axis"><span></span>'
        f"<div>{_ticks(end)}</div></div></div></div>"
        '<p class="key"><i class="model"></i> the model writes <i class="tools"></i> tools run</p></section>'
    )


def _ticks(end: float) -> str:
    return "".join(f'<span style="left:{25 * at}%">{escape(duration(end * at / 4))}</span>' for at in range(5))


def _lane(lane: Lane, end: float, numbers: Mapping[str, int]) -> str:
    bars = "".join(_bar(lane, *span, end, numbers) for span in spans(lane))
    stopped = escape(stop_text(lane.stop, lane.error))
    return (
        f'<div class="lane" style="{_agent(lane.agent)}"><div class="who"><b>Agent {lane.agent}</b> '
        f'<span class="soft" dir="auto">{escape(lane.model)}</span></div>'
        f'<div class="track">{bars}</div><p class="spent"><b class="stop {escape(lane.stop)}" dir="auto">{stopped}</b> '
        f"{escape(lane_text(lane))}</p></div>"
    )


def _bar(
    lane: Lane, step: StepRecord, began: float, replied: float, done: float, end: float, numbers: Mapping[str, int]
) -> str:
    left, width = 100 * began / end, 100 * (done - began) / end
    model = 100 * (replied - began) / (done - began) if done > began else 100.0
    shown = dict.fromkeys(numbers[id_] for call in step.calls for id_ in call.nodes if id_ in numbers)
    calls = "; ".join(f"{call_text(call)} {outcome_text(call)}".strip() for call in step.calls)
    calls = "; ".join(part for part in (trouble_text(step), calls) if part) or "no calls"
    about = f"Agent {lane.agent}, step {step.number}, {_times(step)}: {calls}"
    return (
        f'<button type="button" class="step" style="left:{left:.3f}%;width:{width:.3f}%" '
        f'data-step="step-{lane.agent}-{step.number}" data-nodes="{" ".join(map(str, shown))}" '
        f'title="{escape(about)}" aria-label="{escape(about)}">'
        f'<i class="model" style="width:{model:.2f}%"></i><span>{step.number}</span></button>'
    )


def _times(step: StepRecord) -> str:
    tools = duration(sum(call.seconds for call in step.calls))
    said = [f"at {duration(step.started)}", f"model {duration(step.seconds)}", f"tools {tools}"]
    return ", ".join([*said, tokens_text(step.tokens, step.tokens_estimated)] if step.tokens else said)


# -- nodes reached


def _picture(drawn: Reach, known: Mapping[str, Node], numbers: Mapping[str, int]) -> str:
    height = _HEAD + drawn.slots * (_HEIGHT + _GAP)
    width = _MARGIN + drawn.columns * _PITCH - (_PITCH - _CARD)
    brought: dict[int, dict[str, None]] = {}  # by which edges a card was reached, as seen from where they come from
    for link in drawn.links:
        ends = {link.target: f"→ {link.relation}", link.source: f"← {link.relation}"}
        first, last = sorted(ends, key=lambda at: (drawn.places[at].column, at))
        level = drawn.places[first].column == drawn.places[last].column
        for at in (last, first) if level else (last,):
            brought.setdefault(at, {})[ends[at]] = None
    lines = "".join(_line(link, drawn, known, numbers) for link in drawn.links)
    cards = "".join(
        _card(place, known[place.node.id], numbers[place.node.id], ", ".join(brought.get(at, ())))
        for at, place in enumerate(drawn.places)
    )
    heads = "".join(f'<span style="left:{_left(c)}px">{_head(c, drawn)}</span>' for c in range(drawn.columns))
    more = f"{counted(drawn.others, 'more node')} shown to an agent, neither explored nor selected, not drawn."
    return (
        f'<section><h2>Nodes reached</h2><div class="scroll"><div class="picture reach" '
        f'style="height:{height}px;width:{width}px"><div class="heads">{heads}</div>'
        f'<svg viewBox="0 0 {width} {height}" aria-hidden="true">{lines}</svg>{cards}</div></div>'
        f"{f'<p class=note>{escape(more)}</p>' if drawn.others else ''}</section>"
    )


def _head(column: int, drawn: Reach) -> str:
    depth = next(place.node.depth for place in drawn.places if place.column == column)
    return "Found by a search" if not depth else f"{counted(depth, 'edge')} away"


def _card(place: Place, node: Node, number: int, relation: str) -> str:
    reached = place.node
    classes = ["card", *(["gold"] if place.rank == 1 else []), *([] if reached.selected else ["passed"])]
    name = name_of(node)
    said = [f"rank {place.rank}"] if place.rank else []
    said += [f"explored by {_who(reached.explored)}"] if reached.explored else []
    said += [f"selected by {_who(reached.selected)}"] if reached.selected else []
    said += [f"shown to {_who(reached.agents)}"] if reached.agents else []
    marks = "".join(
        f'<span class="mark{" chose" if agent in reached.selected else ""}" style="{_agent(agent)}">{agent}</span>'
        for agent in sorted(reached.agents | reached.selected)
    )
    second = escape(node.label) + (f" <i>{escape(relation)}</i>" if relation else "")
    rank = f'<span class="rank">{place.rank}.</span>' if place.rank else ""
    about = escape(f"{name}: {', '.join(said)}")
    return (
        f'<button type="button" class="{" ".join(classes)}" data-node="{number}" '
        f'title="{about}" aria-label="{about}" '
        f'style="left:{_left(place.column)}px;top:{_top(place)}px;width:{_CARD}px;--kind:var(--edge)">'
        f'{rank}<b dir="auto">{escape(name)}</b><small>{second}<span class="marks">{marks}</span></small></button>'
    )


def _who(agents: Iterable[int]) -> str:
    numbers = sorted(agents)
    return f"agent{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _line(link: Link, drawn: Reach, known: Mapping[str, Node], numbers: Mapping[str, int]) -> str:
    a, b = drawn.places[link.source], drawn.places[link.target]
    names = name_of(known[a.node.id]), name_of(known[b.node.id])
    y, z = _top(a) + _HEIGHT / 2, _top(b) + _HEIGHT / 2
    if a.column == b.column:
        x = w = _left(a.column)
        bend = x - min(_MARGIN - 4.0, 8.0 + 3.0 * abs(a.slot - b.slot))
        path = f"M {x} {y} C {bend} {y}, {bend} {z}, {w} {z}"
    else:
        x, w = (
            (_left(a.column) + _CARD, _left(b.column))
            if a.column < b.column
            else (_left(a.column), _left(b.column) + _CARD)
        )
        path = f"M {x} {y} C {x + (w - x) * 0.45:.1f} {y}, {w - (w - x) * 0.45:.1f} {z}, {w} {z}"
    ends = f'data-from="{numbers[a.node.id]}" data-to="{numbers[b.node.id]}"'
    return f'<path d="{path}" {ends}><title>{escape(f"{names[0]} -[{link.relation}]-> {names[1]}")}</title></path>'


def _left(column: int) -> int:
    return _MARGIN + column * _PITCH


def _top(place: Place) -> int:
    return _HEAD + place.slot * (_HEIGHT + _GAP)


# -- the vote, and every step


def _votes(line: Timeline, known: Mapping[str, Node]) -> str:
    places = {lane.agent: {id_: at for at, id_ in enumerate(lane.selection, start=1)} for lane in line.lanes}
    head = "".join(
        f'<th scope="col">{escape(text)}</th>'
        for text in ("", "Node", "Votes", "Best place", *(f"Agent {agent}" for agent in places))
    )
    rows = []
    for rank, choice in enumerate(line.ranking, start=1):
        own = "".join(f"<td>{places[agent].get(choice.id, '–')}</td>" for agent in places)
        name = escape(name_of(known[choice.id]))
        rows.append(
            f'<tr><td>{rank}</td><th scope="row" dir="auto">{name}</th>'
            f"<td>{len(choice.agents)} of {len(line.lanes)}</td><td>{choice.position}</td>{own}</tr>"
        )
    how = {"votes": "by votes, then by the best place", "ordered": "agent after agent"}.get(line.how)
    how = how or f"by {line.how.replace('reciprocal', 'reciprocal ranks')}"
    table = f'<table class="votes"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'<section><h2>Vote</h2><p class="note">{escape(how)}</p><div class="scroll">{table}</div></section>'


def _steps(line: Timeline, known: Mapping[str, Node]) -> str:
    agents, same = [], same_steps(line)
    for lane in line.lanes:
        steps = "".join(_step(lane, step, known) for step in lane.steps)
        said, shown = escape(stop_text(lane.stop, lane.error)), " open"
        if lane.agent in same:
            said, shown = f"{said}; did what agent {same[lane.agent]} did", ""
        agents.append(
            f'<details{shown} style="{_agent(lane.agent)}"><summary><b>Agent {lane.agent}</b> '
            f'<span class="soft" dir="auto">{said}</span></summary><ol class="steps">{steps}</ol></details>'
        )
    return f"<section><h2>Steps</h2>{''.join(agents)}</section>"


def _step(lane: Lane, step: StepRecord, known: Mapping[str, Node]) -> str:
    said = f'<div class="quote" dir="auto">{escape(step.text)}</div>' if step.text.strip() else ""
    trouble = trouble_text(step)
    said += f'<div class="note warn" dir="auto">{escape(trouble)}</div>' if trouble else ""
    calls = "".join(_call(call, known) for call in step.calls)
    return (
        f'<li value="{step.number}" id="step-{lane.agent}-{step.number}" tabindex="-1">'
        f'<span class="soft">{escape(_times(step))}</span>{said}{calls}</li>'
    )


def _call(call: CallRecord, known: Mapping[str, Node]) -> str:
    names = names_text([name_of(known[id_]) for id_ in call.nodes], _NAMES)
    took = "" if call.tool == SELECT else f" · {counted(call.tokens, 'token')} · {duration(call.seconds)}"
    outcome = outcome_text(call)
    said = f'<span class="soft">→ {escape(outcome + took)}</span>' if outcome else ""
    shown = f'<div class="shown" dir="auto">{escape(names)}</div>' if names else ""
    return (
        f'<div class="call{" failed" if call.failed else ""}"><code dir="auto">{escape(call_text(call))}</code>'
        f"{said}{shown}</div>"
    )

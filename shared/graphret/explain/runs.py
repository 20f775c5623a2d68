"""What exploring agents did, read from a trace: lanes of steps on one clock, the vote, and the nodes reached."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphret.ark.prompt import FINISH, SELECT
from graphret.ark.records import CallRecord, StepRecord
from graphret.ark.run import Run
from graphret.ark.session import ArkSession
from graphret.explain.words import Lookup
from graphret.types import Node, Retrieval, Stage, Trace

#: What a timeline is read from.
Source: TypeAlias = "Trace | Retrieval | Run"

_LONGEST = 60
_STOPS = {
    "finished": "finished",
    "steps": "out of steps",
    "tokens": "out of tokens",
    "seconds": "out of time",
    "settled": "stopped, the vote was settled",
    "silent": "given up, it called no tools",
    "failed": "failed",
    "cancelled": "cancelled",
}

_AGENT = re.compile(r"(?P<before>.*?)explore/agent (?P<agent>\d+)(?:/step (?P<step>\d+))?")


@dataclass(frozen=True, slots=True)
class Lane:
    """An agent: its steps, what it selected, and why it stopped."""

    agent: int
    model: str = ""
    steps: tuple[StepRecord, ...] = ()
    selection: tuple[str, ...] = ()
    stop: str = ""
    error: str = ""

    @property
    def calls(self) -> list[CallRecord]:
        """The calls of all steps."""
        return [call for step in self.steps for call in step.calls]

    @property
    def tokens_text(self) -> str:
        """Tokens that its model read and wrote."""
        return tokens_text(sum(step.tokens for step in self.steps), any(step.tokens_estimated for step in self.steps))


@dataclass(frozen=True, slots=True)
class Choice:
    """A node in the vote: who selected it, and its earliest place in a selection, from 1."""

    id: str
    agents: tuple[int, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run of exploring agents; without lanes where a trace has none.

    `notes` are the degradations, `nodes` those that its source tells more of than their ids.
    """

    question: str = ""
    lanes: tuple[Lane, ...] = ()
    ranking: tuple[Choice, ...] = ()
    how: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    nodes: Mapping[str, Node] = field(default_factory=dict)

    @property
    def end(self) -> float:
        """Seconds at which the last step ended."""
        return max([self.seconds, *(end for lane in self.lanes for *_, end in spans(lane))])


@dataclass(slots=True)
class Reached:
    """A node that agents came to: how many edges were walked to it from what a search found, the agents to which it was
    shown, who explored its neighbours, and who selected it.
    """

    id: str
    depth: int
    agents: set[int] = field(default_factory=set)
    explored: set[int] = field(default_factory=set)
    selected: set[int] = field(default_factory=set)


def timeline(source: Source) -> Timeline:
    """Read a timeline from a trace, a retrieval or a recorded run; that of the first run, where a trace has several."""
    if isinstance(source, Run):
        return _read(source.trace, source.question, shown_nodes(source.sessions))
    if isinstance(source, Retrieval):
        return _read(source.trace, source.query, {hit.id: hit.node for hit in source.hits})
    return _read(source, "", {})


def shown_nodes(sessions: Iterable[ArkSession]) -> dict[str, Node]:
    """Return the nodes of agents as their tools showed them (a JSON object a line), by id."""
    nodes: dict[str, Node] = {}
    said = (message for session in sessions for message in session.messages if message.role == "tool")
    for line in (line for message in said for line in message.content.split("\n") if line.startswith('{"id"')):
        try:
            given = json.loads(line)
        except ValueError:
            continue
        id_, kind = given["id"], given.get("type", [])
        if isinstance(id_, str) and id_ not in nodes:
            labels = tuple(map(str, kind)) if isinstance(kind, list) else (str(kind),)
            nodes[id_] = Node(id_, labels, str(given.get("name", "")), str(given.get("text", "")))
    return nodes


def same_steps(line: Timeline) -> dict[int, int]:
    """Return the agents that did just what an earlier one did, each with that one."""
    first: dict[str, int] = {}

    def done(step: StepRecord) -> tuple[Any, ...]:
        return step.text, step.error, [(call.tool, call.arguments, call.nodes) for call in step.calls]

    what = {lane.agent: repr([done(step) for step in lane.steps]) for lane in line.lanes if lane.steps}
    return {agent: first[one] for agent, one in what.items() if first.setdefault(one, agent) != agent}


def told(line: Timeline, lookup: Lookup | None = None) -> dict[str, Node]:
    """Return every node that a timeline is about: as `lookup` or its source has it, or its id alone."""
    ids = dict.fromkeys([*reached(line), *(choice.id for choice in line.ranking)])
    found = lookup(list(filter(None, ids))) if lookup else {}
    return {id_: found.get(id_) or line.nodes.get(id_) or Node(id_, ()) for id_ in ids}


def spans(lane: Lane) -> list[tuple[StepRecord, float, float, float]]:
    """Return each step with when its model began, when it had replied and when its tools were done.

    Seconds are counted from the run's start. Calls that ran at once are drawn one after the other, within the step.
    """
    out = []
    nexts = [step.started for step in lane.steps[1:]]
    for number, step in enumerate(lane.steps):
        replied = step.started + step.seconds
        done = replied + sum(call.seconds for call in step.calls)
        out.append((step, step.started, replied, max(replied, min([done, *nexts[number : number + 1]]))))
    return out


def reached(line: Timeline) -> dict[str, Reached]:
    """Return the nodes that tools showed, by id, in the order in which they were first shown."""
    depths = _depths(line)
    found: dict[str, Reached] = {}
    for lane, call in _shown(line):
        for id_ in call.nodes:
            found.setdefault(id_, Reached(id_, depths.get(id_, 0))).agents.add(lane.agent)
        start = call.explored
        if start is not None and not call.failed:
            found.setdefault(start, Reached(start, depths.get(start, 0))).explored.add(lane.agent)
    for lane in line.lanes:
        for id_ in lane.selection:
            found.setdefault(id_, Reached(id_, depths.get(id_, 0))).selected.add(lane.agent)
    return found


def edges(line: Timeline) -> list[tuple[str, str, str]]:
    """Return the edges that tools showed, each once, in the order in which they were first shown."""
    triples = ((e[0], e[1], e[2]) for _, call in _shown(line) for e in call.edges if len(e) == 3)
    return list(dict.fromkeys(triples))


def _read(trace: Trace, question: str, nodes: Mapping[str, Node]) -> Timeline:
    before: str | None = None
    steps: dict[int, list[StepRecord]] = {}
    ended: dict[int, Stage] = {}
    for stage in trace.stages:
        match = _AGENT.fullmatch(stage.name)
        if match is None:
            continue
        before = match["before"] if before is None else before
        if match["before"] != before:
            continue
        of_agent = steps.setdefault(int(match["agent"]), [])
        if match["step"] is None:
            ended[int(match["agent"])] = stage
        else:
            of_agent.append(_step(stage, int(match["step"])))
    named = {stage.name: stage for stage in reversed(trace.stages)}
    whole = named.get(f"{before or ''}explore", Stage("explore"))
    vote = named.get(f"{before or ''}vote", Stage("vote"))
    return Timeline(
        question,
        tuple(_lane(agent, found, ended.get(agent)) for agent, found in sorted(steps.items())),
        tuple(_choice(entry) for entry in vote.details.get("ranking", ())),
        str(vote.details.get("how", "")),
        whole.seconds,
        tuple(fallback_text(stage) for stage in trace.fallbacks),
        nodes,
    )


def _step(stage: Stage, number: int) -> StepRecord:
    given = dict(stage.details)
    calls = [call if isinstance(call, CallRecord) else CallRecord(**call) for call in given.pop("calls", ())]
    seconds = given.pop("model_seconds", 0.0)
    known = {name: given[name] for name in StepRecord.__dataclass_fields__ if name in given}
    return StepRecord(**{"started": 0.0, **known, "number": number, "seconds": seconds, "calls": calls})


def _lane(agent: int, steps: Sequence[StepRecord], ended: Stage | None) -> Lane:
    given: Mapping[str, Any] = ended.details if ended else {}
    selected = given.get("selected") or [id_ for step in steps for id_ in step.selected]
    stop, error = str(given.get("stop") or ""), str(given.get("error") or "")
    return Lane(agent, str(given.get("model", "")), tuple(steps), tuple(selected), stop, error)


def _choice(entry: Mapping[str, Any]) -> Choice:
    return Choice(entry["id"], tuple(voter + 1 for voter in entry.get("voters", ())), entry.get("position", 0))


def _shown(line: Timeline) -> Iterator[tuple[Lane, CallRecord]]:
    """The calls that showed nodes, in the order of the clock, then of the agents."""
    timed = [
        (step.started + step.seconds, lane.agent, step.number, lane, step) for lane in line.lanes for step in lane.steps
    ]
    for *_, lane, step in sorted(timed, key=lambda one: one[:3]):
        for call in step.calls:
            if call.tool != SELECT:
                yield lane, call


def _depths(line: Timeline) -> dict[str, int]:
    """How many edges were walked from what a search found to each node, at least."""
    found = [call for _, call in _shown(line)]
    depths = {id_: 0 for call in found if call.explored is None for id_ in call.nodes}
    walked = [(start, call.nodes) for call in found if (start := call.explored) is not None]
    changed = True
    while changed:
        changed = False
        for start, nodes in walked:
            for id_ in nodes:
                if depths.get(start, 0) + 1 < depths.get(id_, len(walked) + 2):
                    depths[id_] = depths.get(start, 0) + 1
                    changed = True
    return depths


# -- in words


def call_text(call: CallRecord) -> str:
    """Return a call as one line."""
    if not isinstance(call.arguments, Mapping):
        return f"{call.tool} {_short(str(call.arguments))}"
    first = {"global_search": "query", "explore_neighborhood": "node", SELECT: "nodes"}.get(call.tool)
    given = {name: value for name, value in call.arguments.items() if value is not None}
    shown = [_value(given.pop(first))] if first in given else []
    return f"{call.tool}({', '.join([*shown, *(f'{name}={_value(value)}' for name, value in given.items())])})"


def outcome_text(call: CallRecord) -> str:
    """Return what came of a call in a few words: how many nodes of how many, or that it could not be run.

    Where nodes follow it ends in what they are.
    """
    if call.failed and not call.tokens and not call.seconds and call.error:
        return "not answered, the agent was stopped"
    if call.failed:
        return "refused, and the model told why" + ("; close to it" if call.nodes else "")
    if call.remembered:
        return "from memory"
    if call.tool == FINISH:
        return ""
    said = f"{call.shown} of {call.total}" if call.total > call.shown else str(call.shown)
    return said + (" selected" if call.tool == SELECT else " shown")


def trouble_text(step: StepRecord) -> str:
    """Return why a step's request brought no reply, or one that was cut off; nothing where it brought a whole one."""
    if step.error:
        return f"no reply: {step.error}"
    return f"the reply was cut off: {step.finish_reason}" if step.finish_reason else ""


def names_text(ids: Sequence[str], names: Mapping[str, str], most: int = 12) -> str:
    """Return the names of the first nodes and how many more there are."""
    more = f" + {len(ids) - most} more" if len(ids) > most else ""
    return "; ".join(_short(names.get(id_, id_)) for id_ in ids[:most]) + more


def counted(number: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def tokens_text(number: int, estimated: bool) -> str:
    """Return tokens that were spent, marked where they are estimates."""
    return f"{'~' if estimated else ''}{counted(number, 'token')}"


def lane_text(lane: Lane) -> str:
    """Return what an agent spent; the seconds of calls that ran at once are added up."""
    model, tools = sum(step.seconds for step in lane.steps), sum(call.seconds for call in lane.calls)
    said = [counted(len(lane.steps), "step"), counted(len(lane.calls), "call"), lane.tokens_text]
    return ", ".join([*said, f"model {duration(model)}", f"tools {duration(tools)}"])


def duration(seconds: float) -> str:
    """Return seconds for a reader."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.01 or not seconds else f"{1000 * seconds:.2f} ms"


def times_text(step: StepRecord) -> str:
    """Return when a step began, how long it took and what it spent."""
    tools = duration(sum(call.seconds for call in step.calls))
    said = [f"at {duration(step.started)}", f"model {duration(step.seconds)}", f"tools {tools}"]
    return ", ".join([*said, tokens_text(step.tokens, step.tokens_estimated)] if step.tokens else said)


def summary_text(run: Timeline) -> str:
    """Return what all agents spent."""
    steps = [step for lane in run.lanes for step in lane.steps]
    said = [counted(len(run.lanes), "agent"), counted(len(steps), "step")]
    said.append(counted(sum(len(step.calls) for step in steps), "call"))
    said.append(tokens_text(sum(step.tokens for step in steps), any(step.tokens_estimated for step in steps)))
    return " · ".join([*said, duration(run.end)])


def how_text(how: str) -> str:
    """Return in words how a vote was counted."""
    known = {"votes": "by votes, then by the best place", "ordered": "agent after agent"}
    return known.get(how) or f"by {how.replace('reciprocal', 'reciprocal ranks')}"


def stop_text(stop: str, error: str = "") -> str:
    """Return in words why an agent stopped."""
    said = _STOPS.get(stop, stop or "did not stop")
    return f"{said}: {error}" if error else said


def fallback_text(stage: Stage) -> str:
    """Return a degradation in words."""
    given = stage.details
    said = str(given.get("error") or given.get("reason") or given)
    return f"{given['failed']}: {said}" if given.get("failed") else said


def _value(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(_short(value), ensure_ascii=False)
    if isinstance(value, list):
        most = 3
        more = f", … {len(value) - most} more" if len(value) > most else ""
        return f"[{', '.join(map(_value, value[:most]))}{more}]"
    return _short(json.dumps(value, ensure_ascii=False, default=str))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

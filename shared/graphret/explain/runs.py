"""What exploring agents did, read from a trace: lanes of steps on one clock, the vote, and the nodes reached."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from graphret.ark.prompt import FINISH, SELECT
from graphret.ark.records import CallRecord, StepRecord
from graphret.ark.run import Run
from graphret.ark.session import ArkSession
from graphret.explain.words import Lookup
from graphret.fusion import Vote
from graphret.types import Node, Retrieval, Stage, Trace

#: What a timeline is read from.
Source: TypeAlias = "Trace | Retrieval | Run"

_LONGEST = 60
_STOPS = {
    "steps": "out of steps",
    "tokens": "out of tokens",
    "seconds": "out of time",
    "settled": "stopped, the vote was settled",
    "silent": "given up, it called no tools",
}
_AGENT = re.compile(r"(?P<before>.*?)explore/agent (?P<agent>\d+)(?:/step (?P<step>\d+))?")


@dataclass(slots=True)
class Lane:
    """An agent, from 1: its steps, what it selected, and why it stopped."""

    agent: int
    model: str = ""
    steps: list[StepRecord] = field(default_factory=list)
    selection: list[str] = field(default_factory=list)
    stop: str = ""
    error: str = ""

    @property
    def calls(self) -> list[CallRecord]:
        """The calls of all steps."""
        return [call for step in self.steps for call in step.calls]

    @property
    def explored(self) -> list[CallRecord]:
        """The calls that showed nodes of the graph."""
        return [call for call in self.calls if call.tool != SELECT]

    @property
    def stopped(self) -> str:
        """Why it stopped, in words."""
        said = _STOPS.get(self.stop, self.stop or "did not stop")
        return f"{said}: {self.error}" if self.error else said

    @property
    def spent(self) -> str:
        """What it spent, in words; the seconds of calls that ran at once are added up."""
        model, tools = sum(step.seconds for step in self.steps), sum(call.seconds for call in self.calls)
        said = [counted(len(self.steps), "step"), counted(len(self.calls), "call"), tokens_text(self.steps)]
        return ", ".join([*said, f"model {duration(model)}", f"tools {duration(tools)}"])

    @property
    def spans(self) -> list[tuple[StepRecord, float, float, float]]:
        """Each step with when its model began, when it had replied and when its tools were done, in the run's seconds.

        Calls that ran at once are drawn one after the other, within the step.
        """
        ends = [*(step.started for step in self.steps[1:]), float("inf")]
        replied = [step.started + step.seconds for step in self.steps]
        return [
            (step, step.started, at, max(at, min(step.ended, end)))
            for step, at, end in zip(self.steps, replied, ends, strict=True)
        ]


@dataclass(slots=True)
class Reached:
    """A node that agents came to: how many edges were walked to it from what a search found, the agents to which it was
    shown, who explored its neighbours, and who selected it.
    """

    depth: int = 0
    agents: set[int] = field(default_factory=set)
    explored: set[int] = field(default_factory=set)
    selected: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run of exploring agents; without lanes where a trace has none.

    `notes` are the degradations, `nodes` those that its source tells more of than their ids.
    """

    question: str = ""
    lanes: Sequence[Lane] = ()
    ranking: Sequence[Vote] = ()
    how: str = ""
    seconds: float = 0.0
    notes: Sequence[str] = ()
    nodes: Mapping[str, Node] = field(default_factory=dict)

    @property
    def end(self) -> float:
        """Seconds at which the last step ended."""
        return max([self.seconds, *(span[-1] for lane in self.lanes for span in lane.spans)])

    @property
    def summary(self) -> str:
        """What was spent, in words."""
        steps = [step for lane in self.lanes for step in lane.steps]
        calls = counted(sum(len(step.calls) for step in steps), "call")
        said = [counted(len(self.lanes), "agent"), counted(len(steps), "step"), calls]
        return " · ".join([*said, tokens_text(steps), duration(self.end)])

    @property
    def edges(self) -> list[tuple[str, str, str]]:
        """The edges that tools showed, each once."""
        shown = (edge for lane in self.lanes for call in lane.explored for edge in call.edges)
        return list(dict.fromkeys((source, relation, target) for source, relation, target in shown))

    def reached(self) -> dict[str, Reached]:
        """Return the nodes that tools showed or agents selected, by id."""
        found: dict[str, Reached] = {}
        for lane in self.lanes:
            for call in lane.explored:
                for id_ in call.nodes:
                    found.setdefault(id_, Reached()).agents.add(lane.agent)
                if call.explored is not None and not call.failed:
                    found.setdefault(call.explored, Reached()).explored.add(lane.agent)
            for id_ in lane.selection:
                found.setdefault(id_, Reached()).selected.add(lane.agent)
        depths = self._depths()
        for id_, node in found.items():
            node.depth = depths.get(id_, 0)
        return found

    def _depths(self) -> dict[str, int]:
        """How many edges were walked from what a search found to each node, at least."""
        calls = [call for lane in self.lanes for call in lane.explored]
        ways: dict[str, list[str]] = {}
        for call in calls:
            if call.explored is not None:
                ways.setdefault(call.explored, []).extend(call.nodes)
        led = {id_ for start, nodes in ways.items() for id_ in nodes if id_ != start}
        depths = {id_: 0 for call in calls if call.explored is None for id_ in call.nodes}
        depths |= {start: 0 for start in ways if start not in led}
        frontier = list(depths)
        for start in frontier:  # which grows
            new = dict.fromkeys(id_ for id_ in ways.get(start, ()) if id_ not in depths)
            depths |= dict.fromkeys(new, depths[start] + 1)
            frontier += new
        return depths

    def known(self, lookup: Lookup | None = None) -> dict[str, Node]:
        """Return every node that the timeline is about: as `lookup` or its source has it, or its id alone."""
        ids = dict.fromkeys([*self.reached(), *(vote.id for vote in self.ranking)])
        found = lookup(list(filter(None, ids))) if lookup else {}
        return {id_: found.get(id_) or self.nodes.get(id_) or Node(id_, ()) for id_ in ids}


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
    said = (message.content for session in sessions for message in session.messages if message.role == "tool")
    for line in (line for text in said for line in text.split("\n") if line.startswith('{"id"')):
        try:
            given = json.loads(line)
        except ValueError:  # a text that was cut
            continue
        kind = given.get("type", [])
        labels = tuple(kind) if isinstance(kind, list) else (kind,)
        nodes.setdefault(given["id"], Node(given["id"], labels, given.get("name", ""), given.get("text", "")))
    return nodes


def _read(trace: Trace, question: str, nodes: Mapping[str, Node]) -> Timeline:
    before: str | None = None
    lanes: dict[int, Lane] = {}
    for stage in trace.stages:
        match = _AGENT.fullmatch(stage.name)
        if match is None or match["before"] != (before := match["before"] if before is None else before):
            continue
        lane = lanes.setdefault(int(match["agent"]), Lane(int(match["agent"])))
        given = stage.details
        if match["step"] is not None:
            known = {name: given[name] for name in StepRecord.__dataclass_fields__ if name in given}
            about = {"number": int(match["step"]), "seconds": given.get("model_seconds", 0.0)}
            lane.steps.append(StepRecord.from_dict(known | about))
            lane.selection += given.get("selected", ())
        else:
            lane.model, lane.stop, lane.error = (str(given.get(name) or "") for name in ("model", "stop", "error"))
            lane.selection = given.get("selected") or lane.selection
    named = {stage.name: stage for stage in reversed(trace.stages)}
    vote = named.get(f"{before or ''}vote", Stage("vote")).details
    return Timeline(
        question,
        [lane for _, lane in sorted(lanes.items())],
        [Vote(one["id"], tuple(one["voters"]), one["position"]) for one in vote.get("ranking", ())],
        str(vote.get("how", "")),
        named.get(f"{before or ''}explore", Stage("explore")).seconds,
        [fallback_text(stage) for stage in trace.fallbacks],
        nodes,
    )


# -- in words


def call_text(call: CallRecord) -> str:
    """Return a call as one line."""
    if not isinstance(call.arguments, Mapping):
        return f"{call.tool} {shortened(str(call.arguments))}"
    given = {name: value for name, value in call.arguments.items() if value is not None}
    shown = (f"{name}={shortened(json.dumps(value, ensure_ascii=False))}" for name, value in given.items())
    return f"{call.tool}({', '.join(shown)})"


def outcome_text(call: CallRecord) -> str:
    """Return what came of a call in a few words: how many nodes of how many, or that it could not be run."""
    if call.failed:
        stopped = call.error and not call.tokens and not call.seconds
        return "not answered, the agent was stopped" if stopped else "refused, and the model told why"
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
    return "; ".join(shortened(names.get(id_, id_)) for id_ in ids[:most]) + more


def times_text(step: StepRecord) -> str:
    """Return when a step began, how long it took and what it spent."""
    tools = duration(sum(call.seconds for call in step.calls))
    return f"at {duration(step.started)}, model {duration(step.seconds)}, tools {tools}, {tokens_text([step])}"


def tokens_text(steps: Sequence[StepRecord]) -> str:
    """Return the tokens that models read and wrote, marked where they are estimates."""
    about = "~" if any(step.tokens_estimated for step in steps) else ""
    return about + counted(sum(step.tokens for step in steps), "token")


def counted(number: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return seconds for a reader."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


def fallback_text(stage: Stage) -> str:
    """Return a degradation in words."""
    given = stage.details
    said = str(given.get("error") or given.get("reason") or given)
    return f"{given['failed']}: {said}" if given.get("failed") else said


def shortened(text: str) -> str:
    """Return a text in one line of at most 60 characters."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

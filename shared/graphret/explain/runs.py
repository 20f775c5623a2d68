"""Read what exploring agents did from a trace: their steps, vote and reached nodes."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphret.ark.prompt import FINISH, SELECT
from graphret.ark.run import ArkRun
from graphret.ark.session import CallRecord, StepRecord
from graphret.explain.words import Lookup
from graphret.fusion import VotedNode
from graphret.trace import Stage, Trace
from graphret.types import Node, Retrieval

#: What a timeline is read from.
Source: TypeAlias = "Trace | Retrieval | ArkRun"

_LONGEST = 60
_STOPS = {
    "steps": "out of steps",
    "tokens": "out of tokens",
    "seconds": "out of time",
    "settled": "stopped, the vote was settled",
    "silent": "given up, it called no tools",
}
_AGENT = re.compile(
    r"(?P<prefix>.*?)explore/agent (?P<agent>\d+)(?:/step (?P<step>\d+))?"
)


@dataclass(slots=True)
class Lane:
    """An agent, from 1: its steps, what it selected, and why it stopped."""

    agent: int
    model: str = ""
    steps: list[StepRecord] = field(default_factory=list)
    selection: list[str] = field(default_factory=list)
    stop: str = ""
    error: str = ""

    def add(self, step: str | None, details: Mapping[str, Any]) -> None:
        """Add the details of a step, by its number, or of the whole agent."""
        if step is None:
            self.model, self.stop, self.error = (
                str(details.get(name) or "") for name in ("model", "stop", "error")
            )
            self.selection = details.get("selected") or self.selection
            return
        fields = {
            name: details[name]
            for name in StepRecord.__dataclass_fields__
            if name in details
        }
        fields |= {"number": int(step), "seconds": details["model_seconds"]}
        self.steps.append(StepRecord.from_dict(fields))
        self.selection += details.get("selected", ())

    @property
    def calls(self) -> list[CallRecord]:
        return [call for step in self.steps for call in step.calls]

    @property
    def looks(self) -> list[CallRecord]:
        """The calls that showed nodes of the graph."""
        return [call for call in self.calls if call.tool != SELECT and not call.failed]

    @property
    def stopped(self) -> str:
        """Why it stopped, in words."""
        reason = _STOPS.get(self.stop, self.stop or "did not stop")
        return f"{reason}: {self.error}" if self.error else reason

    @property
    def spent(self) -> str:
        """What it spent, in words; the seconds of parallel calls are added up."""
        model, tools = (
            sum(step.seconds for step in self.steps),
            sum(call.seconds for call in self.calls),
        )
        return (
            f"{spent_text(self.steps)}, model {duration(model)}, tools"
            f" {duration(tools)}"
        )

    @property
    def spans(self) -> list[tuple[StepRecord, float, float, float]]:
        """Each step with the seconds at which its model began and replied, tools ended.

        Parallel calls are drawn one after the other, within the step.
        """
        next_starts = [*(step.started for step in self.steps[1:]), float("inf")]
        spans = [
            (step, step.started, step.started + step.seconds) for step in self.steps
        ]
        return [
            (*span, max(span[2], min(span[0].ended, next_start)))
            for span, next_start in zip(spans, next_starts, strict=True)
        ]


@dataclass(slots=True)
class ReachedNode:
    """A node that agents saw, and which agents explored and selected it.

    `depth` is its distance in edges from the nodes that a search found.
    """

    depth: int = 0
    agents: set[int] = field(default_factory=set)
    explored: set[int] = field(default_factory=set)
    selected: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run of exploring agents; without lanes if the trace has none.

    `notes` are the degradations, `nodes` those that the source has more of than ids.
    """

    question: str = ""
    lanes: Sequence[Lane] = ()
    ranking: Sequence[VotedNode] = ()
    seconds: float = 0.0
    notes: Sequence[str] = ()
    nodes: Mapping[str, Node] = field(default_factory=dict)

    @property
    def end(self) -> float:
        """Seconds at which the last step ended."""
        return max(
            [self.seconds, *(span[-1] for lane in self.lanes for span in lane.spans)]
        )

    @property
    def summary(self) -> str:
        steps = [step for lane in self.lanes for step in lane.steps]
        return (
            f"{counted(len(self.lanes), 'agent')}, {spent_text(steps)},"
            f" {duration(self.end)}"
        )

    @property
    def edges(self) -> list[tuple[str, str, str]]:
        """The edges that tools showed, each once."""
        shown = (
            edge for lane in self.lanes for call in lane.looks for edge in call.edges
        )
        return list(
            dict.fromkeys(
                (source, relation, target) for source, relation, target in shown
            )
        )

    def reached(self) -> dict[str, ReachedNode]:
        """Return the nodes that tools showed or agents selected, by id."""
        reached: defaultdict[str, ReachedNode] = defaultdict(ReachedNode)
        # The nodes shown by the node that was explored, `None` for a search.
        shown_from: defaultdict[str | None, list[str]] = defaultdict(list)
        for lane in self.lanes:
            for call in lane.looks:
                for id_ in call.nodes:
                    reached[id_].agents.add(lane.agent)
                if call.explored is not None:
                    reached[call.explored].explored.add(lane.agent)
                shown_from[call.explored] += call.nodes
            for id_ in lane.selection:
                reached[id_].selected.add(lane.agent)
        for id_, depth in _depths(shown_from).items():
            if depth:
                reached[id_].depth = depth
        return dict(reached)

    def nodes_by_id(self, lookup: Lookup | None = None) -> dict[str, Node]:
        """Return every node of the timeline, from `lookup`, its source, or as an id."""
        ids = dict.fromkeys([*self.reached(), *(vote.id for vote in self.ranking)])
        looked_up = lookup(list(filter(None, ids))) if lookup else {}
        return {
            id_: looked_up.get(id_) or self.nodes.get(id_) or Node(id_, ())
            for id_ in ids
        }


def _depths(shown_from: Mapping[str | None, Sequence[str]]) -> dict[str, int]:
    """Return the distance of each node from a search, or from a first explored node."""
    led_to = {id_ for start, ids in shown_from.items() for id_ in ids if id_ != start}
    roots = [start for start in shown_from if start and start not in led_to]
    frontier = list(dict.fromkeys([*shown_from.get(None, ()), *roots]))
    depths = dict.fromkeys(frontier, 0)
    for start in frontier:  # grows in the loop
        for id_ in shown_from.get(start, ()):
            if id_ not in depths:
                depths[id_] = depths[start] + 1
                frontier.append(id_)
    return depths


def timeline(source: Source) -> Timeline:
    """Read a timeline from a trace, a retrieval or a recorded run.

    Of several runs in a trace it is that of the first.
    """
    trace, question, nodes = (
        source if isinstance(source, Trace) else source.trace,
        "",
        dict[str, Node](),
    )
    if isinstance(source, ArkRun):
        question, nodes = source.question, _shown_nodes(source)
    elif isinstance(source, Retrieval):
        question, nodes = source.query, {hit.id: hit.node for hit in source.hits}
    agent_stages = [
        (stage, match)
        for stage in trace.stages
        if (match := _AGENT.fullmatch(stage.name))
    ]
    prefix = agent_stages[0][1]["prefix"] if agent_stages else ""
    lanes: dict[int, Lane] = {}
    for stage, match in agent_stages:
        if match["prefix"] == prefix:
            agent = int(match["agent"])
            lanes.setdefault(agent, Lane(agent)).add(match["step"], stage.details)
    stages = {
        stage.name.removeprefix(prefix): stage for stage in reversed(trace.stages)
    }
    details = stages.get("vote", Stage("vote")).details
    return Timeline(
        question,
        [lane for _, lane in sorted(lanes.items())],
        [
            VotedNode(vote["id"], tuple(vote["voters"]), vote["position"])
            for vote in details.get("ranking", ())
        ],
        stages.get("explore", Stage("explore")).seconds,
        [fallback_text(stage) for stage in trace.fallbacks],
        nodes,
    )


def _shown_nodes(run: ArkRun) -> dict[str, Node]:
    """Return the nodes of a run by id, from its tools' lines of JSON objects."""
    nodes: dict[str, Node] = {}
    answers = [
        message.content
        for session in run.sessions
        for message in session.messages
        if message.role == "tool"
    ]
    for line in "\n".join(answers).split("\n"):
        with suppress(ValueError):  # a text that was cut
            if line.startswith('{"id"'):
                fields = json.loads(line)
                kind = fields.get("type", [])
                labels = tuple(kind) if isinstance(kind, list) else (kind,)
                name, text = fields.get("name", ""), fields.get("text", "")
                nodes.setdefault(fields["id"], Node(fields["id"], labels, name, text))
    return nodes


# -- in words


def call_text(call: CallRecord) -> str:
    """Return a call with its arguments, shortened, without those that are `None`."""
    if not isinstance(call.arguments, Mapping):
        return f"{call.tool} {shortened(str(call.arguments))}"
    shown = (
        f"{name}={shortened(json.dumps(value, ensure_ascii=False))}"
        for name, value in call.arguments.items()
        if value is not None
    )
    return f"{call.tool}({', '.join(shown)})"


def outcome_text(call: CallRecord) -> str:
    """Return the outcome of a call in a few words, such as the nodes shown."""
    if call.failed:
        stopped = call.error and not call.tokens and not call.seconds
        return (
            "not answered, the agent was stopped"
            if stopped
            else "refused, and the model told why"
        )
    if call.remembered:
        return "from memory"
    if call.tool == FINISH:
        return ""
    count = (
        f"{call.shown} of {call.total}" if call.total > call.shown else str(call.shown)
    )
    return count + (" selected" if call.tool == SELECT else " shown")


def trouble_text(step: StepRecord) -> str:
    """Return why a step has no reply, or one that was cut off, or an empty string."""
    if step.error:
        return f"no reply: {step.error}"
    return f"the reply was cut off: {step.finish_reason}" if step.finish_reason else ""


def names_text(ids: Sequence[str], names: Mapping[str, str], most: int = 12) -> str:
    """Return the names of the first nodes, and the number of further ones."""
    more = f" + {len(ids) - most} more" if len(ids) > most else ""
    return "; ".join(shortened(names.get(id_, id_)) for id_ in ids[:most]) + more


def times_text(step: StepRecord) -> str:
    """Return a step's start, duration and tokens, in words."""
    tools = duration(sum(call.seconds for call in step.calls))
    spent = counted(step.tokens, "token")
    return (
        f"at {duration(step.started)}, model {duration(step.seconds)}, tools {tools},"
        f" {spent}"
    )


def spent_text(steps: Sequence[StepRecord]) -> str:
    """Return the numbers of steps, calls and tokens, in words."""
    calls, tokens = (
        sum(len(step.calls) for step in steps),
        sum(step.tokens for step in steps),
    )
    return (
        f"{counted(len(steps), 'step')}, {counted(calls, 'call')},"
        f" {counted(tokens, 'token')}"
    )


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


def fallback_text(stage: Stage) -> str:
    """Return which part failed, and why."""
    details = stage.details
    reason = str(details.get("error") or details.get("reason") or details)
    return f"{details['failed']}: {reason}" if details.get("failed") else reason


def shortened(text: str) -> str:
    """Return a text in one line of at most 60 characters."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

"""What exploring agents did, read from a trace: lanes of steps on one clock, the vote,
and the nodes reached.
"""

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
        """Take what a stage has of a step, by its number, or of the agent as a
        whole.
        """
        if step is None:
            self.model, self.stop, self.error = (
                str(details.get(name) or "") for name in ("model", "stop", "error")
            )
            self.selection = details.get("selected") or self.selection
            return
        known = {
            name: details[name]
            for name in StepRecord.__dataclass_fields__
            if name in details
        }
        self.steps.append(
            StepRecord.from_dict(
                known | {"number": int(step), "seconds": details["model_seconds"]}
            )
        )
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
        said = _STOPS.get(self.stop, self.stop or "did not stop")
        return f"{said}: {self.error}" if self.error else said

    @property
    def spent(self) -> str:
        """What it spent, in words; the seconds of calls that ran at once are
        added up.
        """
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
        """Each step with when its model began, when it had replied and when its tools
        were done, in the run's seconds.

        Calls that ran at once are drawn one after the other, within the step.
        """
        ends = [*(step.started for step in self.steps[1:]), float("inf")]
        spans = [
            (step, step.started, step.started + step.seconds) for step in self.steps
        ]
        return [
            (*span, max(span[2], min(span[0].ended, end)))
            for span, end in zip(spans, ends, strict=True)
        ]


@dataclass(slots=True)
class ReachedNode:
    """A node that agents came to, its edges from what a search found, and who saw,
    explored and selected it.
    """

    depth: int = 0
    agents: set[int] = field(default_factory=set)
    explored: set[int] = field(default_factory=set)
    selected: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run of exploring agents; without lanes where a trace has none.

    `notes` are the degradations, `nodes` those that its source tells more of than their
    ids.
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
        found: defaultdict[str, ReachedNode] = defaultdict(ReachedNode)
        ways: defaultdict[str | None, list[str]] = defaultdict(
            list
        )  # None is where a search begins
        for lane in self.lanes:
            for call in lane.looks:
                for id_ in call.nodes:
                    found[id_].agents.add(lane.agent)
                if call.explored is not None:
                    found[call.explored].explored.add(lane.agent)
                ways[call.explored] += call.nodes
            for id_ in lane.selection:
                found[id_].selected.add(lane.agent)
        led = {id_ for start, nodes in ways.items() for id_ in nodes if id_ != start}
        frontier = list(
            dict.fromkeys(
                [*ways[None], *(start for start in ways if start and start not in led)]
            )
        )
        depths = dict.fromkeys(frontier, 0)
        for start in frontier:  # which grows
            for id_ in ways.get(start, ()):
                if id_ not in depths:
                    depths[id_] = found[id_].depth = depths[start] + 1
                    frontier.append(id_)
        return dict(found)

    def known(self, lookup: Lookup | None = None) -> dict[str, Node]:
        """Return every node that the timeline is about: as `lookup` or its source has
        it, or its id alone.
        """
        ids = dict.fromkeys([*self.reached(), *(vote.id for vote in self.ranking)])
        found = lookup(list(filter(None, ids))) if lookup else {}
        return {
            id_: found.get(id_) or self.nodes.get(id_) or Node(id_, ()) for id_ in ids
        }


def timeline(source: Source) -> Timeline:
    """Read a timeline from a trace, a retrieval or a recorded run; that of the first
    run, where a trace has several.
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
    found = [
        (stage, match)
        for stage in trace.stages
        if (match := _AGENT.fullmatch(stage.name))
    ]
    prefix = found[0][1]["prefix"] if found else ""
    lanes: dict[int, Lane] = {}
    for stage, match in found:
        if match["prefix"] == prefix:
            agent = int(match["agent"])
            lanes.setdefault(agent, Lane(agent)).add(match["step"], stage.details)
    named = {stage.name.removeprefix(prefix): stage for stage in reversed(trace.stages)}
    vote = named.get("vote", Stage("vote")).details
    return Timeline(
        question,
        [lane for _, lane in sorted(lanes.items())],
        [
            VotedNode(one["id"], tuple(one["voters"]), one["position"])
            for one in vote.get("ranking", ())
        ],
        named.get("explore", Stage("explore")).seconds,
        [fallback_text(stage) for stage in trace.fallbacks],
        nodes,
    )


def _shown_nodes(run: ArkRun) -> dict[str, Node]:
    """Return the nodes of a run as its tools showed them (a JSON object a
    line), by id.
    """
    nodes: dict[str, Node] = {}
    answers = [
        message.content
        for one in run.sessions
        for message in one.messages
        if message.role == "tool"
    ]
    for line in "\n".join(answers).split("\n"):
        with suppress(ValueError):  # a text that was cut
            if line.startswith('{"id"'):
                given = json.loads(line)
                kind = given.get("type", [])
                labels = tuple(kind) if isinstance(kind, list) else (kind,)
                nodes.setdefault(
                    given["id"],
                    Node(
                        given["id"],
                        labels,
                        given.get("name", ""),
                        given.get("text", ""),
                    ),
                )
    return nodes


# -- in words


def call_text(call: CallRecord) -> str:
    if not isinstance(call.arguments, Mapping):
        return f"{call.tool} {shortened(str(call.arguments))}"
    given = {name: value for name, value in call.arguments.items() if value is not None}
    shown = (
        f"{name}={shortened(json.dumps(value, ensure_ascii=False))}"
        for name, value in given.items()
    )
    return f"{call.tool}({', '.join(shown)})"


def outcome_text(call: CallRecord) -> str:
    """Return what came of a call in a few words: how many nodes of how many, or that it
    could not be run.
    """
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
    said = (
        f"{call.shown} of {call.total}" if call.total > call.shown else str(call.shown)
    )
    return said + (" selected" if call.tool == SELECT else " shown")


def trouble_text(step: StepRecord) -> str:
    """Return why a step's request brought no reply, or one that was cut off; nothing
    where it brought a whole one.
    """
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
    spent = counted(step.tokens, "token")
    return (
        f"at {duration(step.started)}, model {duration(step.seconds)}, tools {tools},"
        f" {spent}"
    )


def spent_text(steps: Sequence[StepRecord]) -> str:
    """Return how many steps and calls there were, and the tokens."""
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
    given = stage.details
    said = str(given.get("error") or given.get("reason") or given)
    return f"{given['failed']}: {said}" if given.get("failed") else said


def shortened(text: str) -> str:
    """Return a text in one line of at most 60 characters."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

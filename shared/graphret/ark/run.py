"""A run: what every agent did, the vote, and both as a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from graphret.ark.prompt import SELECT
from graphret.ark.records import CallRecord
from graphret.ark.session import ArkSession
from graphret.fusion import Vote, vote
from graphret.types import Evidence, Stage, Trace


def now() -> str:
    """Return the time as ISO 8601, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(slots=True)
class Run:
    """What the agents of one run did.

    Parameters
    ----------
    question
        What they looked for.
    sessions
        The agents, in order, each stopped.
    seconds
        How long the run took.
    how
        The way of voting; see `graphret.fusion.vote`.
    created
        When the run began, ISO 8601.
    untold
        What `on_run` raised when it was given the run, empty where it raised nothing.
    """

    question: str
    sessions: list[ArkSession]
    seconds: float = 0.0
    how: str = "votes"
    created: str = field(default_factory=now)
    untold: str = ""

    @property
    def votes(self) -> list[Vote]:
        """The nodes that agents selected, in the order of the vote."""
        return vote([session.selection for session in self.sessions], self.how)

    @property
    def cut_short(self) -> bool:
        """Whether it was cancelled or interrupted, so that it holds what was done until then."""
        return any(session.stop in (None, "cancelled") for session in self.sessions)

    @property
    def walked(self) -> bool:
        """Whether an edge led an agent to a node that was selected."""
        selected = {one.id for one in self.votes}
        return any(call.edges and not selected.isdisjoint(call.nodes) for call in self._calls())

    @property
    def trace(self) -> Trace:
        """Every step of every agent with its calls, tokens and seconds, how each agent stopped, and the vote."""
        stops = Counter(str(session.stop) for session in self.sessions)
        steps = [step for session in self.sessions for step in session.steps]
        summary = {
            "agents": len(self.sessions),
            "steps": len(steps),
            "calls": sum(len(step.calls) for step in steps),
            "input_tokens": sum(step.input_tokens for step in steps),
            "output_tokens": sum(step.output_tokens for step in steps),
            **({"tokens_estimated": True} if any(step.tokens_estimated for step in steps) else {}),
            "stopped": dict(sorted(stops.items())),
        }
        trace = Trace([Stage("explore", self.seconds, summary)])
        for session in self.sessions:
            trace.stages.extend(_stages(session))
        ranking = [vote.to_dict() for vote in self.votes]
        trace.note("vote", how=self.how, ranking=ranking)
        return trace

    def evidence(self) -> dict[str, tuple[Evidence, ...]]:
        """Return why each selected node is a hit: its votes, and how agents came to it."""
        reached = self._reached()
        return {
            one.id: (
                Evidence(
                    "votes",
                    rank=one.position,
                    properties={
                        "votes": one.votes,
                        "of": len(self.sessions),
                        "agents": [voter + 1 for voter in one.voters],
                    },
                ),
                *reached.get(one.id, ()),
            )
            for one in self.votes
        }

    def _calls(self) -> Iterator[CallRecord]:
        return (call for session in self.sessions for step in session.steps for call in step.calls)

    def _reached(self) -> dict[str, list[Evidence]]:
        """How each agent came to each node: over an edge from what it explored, or else by a search."""
        reached: dict[str, dict[Evidence, None]] = {}
        for session in self.sessions:
            ways: dict[str, Evidence] = {}
            for call in (call for step in session.steps for call in step.calls if call.tool != SELECT):
                explored = call.explored
                for source, relation, target in call.edges:
                    node = target if source == explored else source
                    if ways.get(node, _SEARCHED) is _SEARCHED:
                        leads = "out" if source == explored else "in"
                        ways[node] = Evidence("neighbor", explored, relation, target=node, direction=leads)
                for node in call.nodes:
                    ways.setdefault(node, _SEARCHED)
            for node, way in ways.items():
                reached.setdefault(node, {})[way] = None
        return {node: list(ways) for node, ways in reached.items()}


_SEARCHED = Evidence("seed")


def _stages(session: ArkSession) -> list[Stage]:
    name = f"explore/agent {session.agent + 1}"
    steps = [
        Stage(
            f"{name}/step {step.number}",
            step.seconds + sum(call.seconds for call in step.calls),
            {
                "agent": session.agent + 1,
                "step": step.number,
                "started": round(step.started, 6),
                "model_seconds": round(step.seconds, 6),
                "input_tokens": step.input_tokens,
                "output_tokens": step.output_tokens,
                **({"tokens_estimated": True} if step.tokens_estimated else {}),
                **({"text": step.text} if step.text else {}),
                "calls": [call.to_dict() for call in step.calls],
                "selected": list(step.selected),
                **({"error": step.error} if step.error else {}),
                **({"finish_reason": step.finish_reason} if step.finish_reason else {}),
            },
        )
        for step in session.steps
    ]
    ended = {"agent": session.agent + 1, "model": session.model, "stop": session.stop, "selected": session.selection}
    if session.error:
        ended["error"] = session.error
    last = session.steps[-1] if session.steps else None
    end = Stage(name, 0.0 if last is None else round(last.started + steps[-1].seconds, 6), ended)
    return [*steps, end]

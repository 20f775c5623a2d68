"""A run of agents: its clock and budgets, what they did, the vote, and the trace."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from graphret.ark.prompt import SELECT
from graphret.ark.session import ArkSession, StepRecord
from graphret.errors import GraphretError
from graphret.fusion import VotedNode, settled, vote
from graphret.trace import Stage, Trace
from graphret.types import Evidence

_TICK = 0.001  # seconds that a clock may take for none
_BY_SEARCH = Evidence("seed")


@dataclass(slots=True)
class ArkRun:
    """What the agents of one run did, and the clock and budgets that they share.

    The `sessions` are the agents, in order, of the same settings; `seconds` is how long
    the run took, once it has ended. It was `created` at a time (ISO 8601), and `began`
    on the clock of `time.perf_counter`. `failures` has what went wrong for the agents
    so far, and `id` is its own in a file of runs.
    """

    question: str
    sessions: list[ArkSession]
    seconds: float = 0.0
    created: str = field(
        default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds")
    )
    failures: list[GraphretError] = field(default_factory=list, compare=False)
    began: float = field(default_factory=time.perf_counter, compare=False)
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:16])

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.began

    @property
    def remaining(self) -> float | None:
        """Seconds that are left, 0 where it is next to none; `None` without a limit."""
        limit = self.sessions[0].settings.max_seconds
        if limit is None:
            return None
        seconds = limit - self.elapsed
        return seconds if seconds >= _TICK else 0.0

    def reason_to_stop(self) -> str | None:
        """Return why to stop now: ``tokens``, ``seconds`` or ``settled``.

        `None` if they should not.
        """
        settings = self.sessions[0].settings
        if (
            settings.max_tokens is not None
            and sum(session.tokens for session in self.sessions) >= settings.max_tokens
        ):
            return "tokens"
        if self.remaining == 0:
            return "seconds"
        running = [session.agent for session in self.sessions if session.stop is None]
        if (
            not settings.early_stop
            or not running
            or all(session.stop != "finished" for session in self.sessions)
        ):
            return None
        selections = [list(session.selection) for session in self.sessions]
        return "settled" if settled(selections, running) else None

    @property
    def votes(self) -> list[VotedNode]:
        """The nodes that agents selected, in the order of the vote."""
        return vote([session.selection for session in self.sessions])

    @property
    def cut_short(self) -> bool:
        """Whether it was cancelled or interrupted, so that it may lack steps."""
        return any(session.stop in (None, "cancelled") for session in self.sessions)

    @property
    def trace(self) -> Trace:
        """Every step of every agent with its cost, how each stopped, and the vote."""
        steps = [step for session in self.sessions for step in session.steps]
        summary = {
            "agents": len(self.sessions),
            "steps": len(steps),
            "calls": sum(len(step.calls) for step in steps),
            "input_tokens": sum(step.input_tokens for step in steps),
            "output_tokens": sum(step.output_tokens for step in steps),
            "stopped": dict(
                sorted(Counter(str(session.stop) for session in self.sessions).items())
            ),
        }
        trace = Trace([Stage("explore", self.seconds, summary)])
        for session in self.sessions:
            trace.stages.extend(_stages(session))
        trace.note("vote", ranking=[vote.to_dict() for vote in self.votes])
        return trace

    def evidence(self) -> dict[str, tuple[Evidence, ...]]:
        """Return why each selected node is a hit: its votes, and how agents came to it.

        That is the first edge that led an agent to it from a node that it explored, or
        else a search.
        """
        votes = self.votes
        reached: dict[str, dict[Evidence, None]] = {voted.id: {} for voted in votes}
        for session in self.sessions:
            ways: dict[str, Evidence] = {}
            for call in (
                call
                for step in session.steps
                for call in step.calls
                if call.tool != SELECT
            ):
                for source, relation, target in call.edges:
                    node, leads = (
                        (target, "out") if source == call.explored else (source, "in")
                    )
                    if ways.get(node, _BY_SEARCH) is _BY_SEARCH:
                        ways[node] = Evidence(
                            "neighbor",
                            call.explored,
                            relation,
                            target=node,
                            direction=leads,
                        )
                for node in call.nodes:
                    ways.setdefault(node, _BY_SEARCH)
            for node in reached.keys() & ways.keys():
                reached[node][ways[node]] = None
        evidence = {}
        for voted in votes:
            counted = {
                "votes": voted.votes,
                "of": len(self.sessions),
                "agents": [voter + 1 for voter in voted.voters],
            }
            evidence[voted.id] = (
                Evidence("votes", rank=voted.position, properties=counted),
                *reached[voted.id],
            )
        return evidence


def step_stage(session: ArkSession, step: StepRecord) -> Stage:
    """Return a step of an agent as a stage, without what is empty."""
    optional = ("text", "error", "finish_reason")
    details = {
        key: value
        for key, value in step.to_dict().items()
        if value or key not in optional
    }
    number, seconds = details.pop("number"), details.pop("seconds")
    about = {
        "agent": session.agent + 1,
        "step": number,
        "model_seconds": round(seconds, 6),
    } | details
    about["started"] = round(step.started, 6)
    return Stage(
        f"explore/agent {session.agent + 1}/step {number}",
        step.ended - step.started,
        about,
    )


def _stages(session: ArkSession) -> list[Stage]:
    """A stage for each step, and one for the end."""
    ended = {
        "agent": session.agent + 1,
        "model": session.model,
        "stop": session.stop,
        "selected": session.selection,
    }
    if session.error:
        ended["error"] = session.error
    end = Stage(f"explore/agent {session.agent + 1}", round(session.seconds, 6), ended)
    return [*(step_stage(session, step) for step in session.steps), end]

"""The contract of planners: a question becomes a plan, with a model or without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from graphret.planning.graph_plan import GraphPlan
from graphret.planning.matches import Bindings


@dataclass(frozen=True, slots=True)
class PlannerResult:
    """What a planner made of a question.

    Parameters
    ----------
    plan
        The plan, valid on the planner's graph; `None` where there is no valid one,
        which is a state of its own: who else answers then answers alone (GRASP, section
        3.1).
    bindings
        Of anchors that the planner has linked already the nodes that they may mean,
        with the cosine of each.
    problem
        Why there is no plan.
    details
        What a trace should keep, such as the tokens spent.
    confidence
        How much of the question the plan heeds, 0 … 1; `None` where the planner does
        not say.
    doubts
        What the question asks that no plan, and so no node, can answer, in words: a
        count, a condition that fits no property.
    """

    plan: GraphPlan | None
    bindings: Bindings = field(default_factory=dict)
    problem: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    confidence: float | None = None
    doubts: tuple[str, ...] = ()


@runtime_checkable
class Planner(Protocol):
    """Writes plans for questions on a graph.

    What fails within is told in the result, not raised.
    """

    name: str

    def plan(self, question: str) -> PlannerResult:
        """Return a plan for a question."""
        ...

    async def aplan(self, question: str) -> PlannerResult:
        """Do what `plan` does without blocking the event loop."""
        ...

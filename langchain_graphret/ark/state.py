"""What the graphs keep in their checkpoints: plain JSON types, and nothing else."""

from __future__ import annotations

from typing import Annotated, Any, Required, TypeAlias

from langgraph.channels import EphemeralValue
from langgraph.managed import RemainingSteps
from typing_extensions import TypedDict

#: An object of JSON types.
Json: TypeAlias = dict[str, Any]


def by_agent(old: list[Json] | None, new: list[Json]) -> list[Json]:
    """Merge agents, each in place of what was known of the same one, in the order of their numbers; none forget all."""
    if not new:
        return []
    known = {agent["agent"]: agent for agent in [*(old or ()), *new]}
    return [known[number] for number in sorted(known)]


def latest(old: Any, new: Any) -> Any:
    """Keep what was written last; agents that end in the same step write the same."""
    return new


class ArkInput(TypedDict, total=False):
    """What a run is asked: a question, and for how many hits of which kind where that differs from the graph's own."""

    question: Required[str]
    k: int | None
    where: Json | None


class ArkOutput(TypedDict, total=False):
    """What comes of a run.

    `agents` are `ArkSession.to_dict`, `votes` are `Vote.to_dict`, `hits` and `trace` have the shapes that
    `Retrieval.to_dict` gives them.
    """

    question: str
    agents: list[Json]
    votes: list[Json]
    hits: list[Json]
    trace: Json


class ArkState(TypedDict, total=False):
    """The state of `create_ark_graph`; `ark_run` has the run's id, and its `k` and `where` until the vote."""

    question: Annotated[str, latest]
    k: Annotated[int | None, EphemeralValue]  # of this question alone
    where: Annotated[Json | None, EphemeralValue]
    agents: Annotated[list[Json], by_agent]
    votes: list[Json]
    hits: list[Json]
    trace: Json
    ark_run: Annotated[Json, latest]


class AgentInput(TypedDict, total=False):
    """What an agent is asked. `agent` is its number among several, from 0; agents of one run share `ark_run`."""

    question: Required[str]
    agent: int
    ark_run: Json


class AgentOutput(TypedDict, total=False):
    """What comes of an agent: itself, as a list of one, and the ids that it selected."""

    agents: list[Json]
    selection: list[str]
    ark_run: Json


class AgentState(TypedDict, total=False):
    """The state of `create_ark_agent`; `refused` has the calls that a person did not approve, and why."""

    question: Required[str]
    agent: Annotated[int, EphemeralValue]
    agents: list[Json]
    selection: list[str]
    refused: dict[str, str]
    ark_run: Annotated[Json, EphemeralValue]
    run: Json
    remaining: RemainingSteps

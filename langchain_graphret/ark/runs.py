"""What a checkpoint knows of a run, for those that never go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langgraph.types import StateSnapshot

from graphret.ark import ArkSession, Run
from graphret.errors import InvalidInput
from langchain_graphret.ark.live import seconds_of
from langchain_graphret.ark.state import Json


def run_of(state: StateSnapshot) -> Run:
    """Return the run that a checkpoint holds, with what its agents have done so far.

    A graph gives each `Run` that ends to `on_run`; one that waits for a person, or was stopped by
    ``interrupt_before``, when it has gone on to its end. This is for one that never does. The graph may be that of
    `create_ark_graph` or `create_ark_agent`, or one of yours around them, and its state must be read with
    ``subgraphs=True``. Agents that have not stopped have a `stop` of `None`.

    Raises
    ------
    InvalidInput
        When no agent has a reply in the state, or agents of several runs have.

    Examples
    --------
    >>> Recorder("runs.jsonl")(run_of(graph.get_state(thread, subgraphs=True)))  # doctest: +SKIP
    """
    found = list(_agents(state))
    runs = {run["id"]: run for run, _ in found}
    if len(runs) != 1:
        raise InvalidInput(f"state: the agents of one run are expected, not of {len(runs)}; is it read with subgraphs?")
    known = {agent["agent"]: ArkSession.from_dict(agent) for _, agent in found}
    sessions = [known[number] for number in sorted(known)]
    first, (run,) = sessions[0], runs.values()
    return Run(first.question, sessions, max(map(seconds_of, sessions)), first.settings.vote, run["created"])


def _agents(state: StateSnapshot) -> Iterator[tuple[Json, Json]]:
    """Agents with the runs that they are of: those of tasks under way, and else those that are done."""
    under_way = [
        pair
        for task in state.tasks
        for pair in [
            *_saved(task.result),
            *(_agents(task.state) if isinstance(task.state, StateSnapshot) else ()),
        ]
    ]
    yield from under_way
    if not under_way and "agent" not in state.next:  # what is there beside agents under way is an earlier question's
        yield from _saved(state.values)


def _saved(values: Any) -> Iterator[tuple[Json, Json]]:
    if isinstance(values, Mapping) and values.get("ark_run"):
        yield from ((values["ark_run"], agent) for agent in values.get("agents") or ())

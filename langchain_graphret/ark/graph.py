"""Several exploring agents as a LangGraph graph: one subgraph an agent, joined by a vote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send, StateSnapshot
from typing_extensions import Unpack

from graphret.ark import Ark, ArkSession, Run
from graphret.ark.retriever import Explored
from graphret.errors import InvalidInput
from graphret.search.index import TextIndex, require_k
from graphret.stores.base import GraphStore
from graphret.types import Retrieval
from graphret.where import Where
from langchain_graphret.ark.agent import Agent, new_run
from langchain_graphret.ark.approval import Approve
from langchain_graphret.ark.models import ArkOptions, Models, core_ark
from langchain_graphret.ark.state import ArkInput, ArkOutput, ArkState, Json
from langchain_graphret.documents import plain
from langchain_graphret.filters import to_where

#: A compiled graph of agents.
ArkGraph: TypeAlias = CompiledStateGraph[ArkState, None, ArkInput, ArkOutput]


def create_ark_graph(
    model: Models,
    store: GraphStore,
    index: TextIndex,
    *,
    k: int = 10,
    approve: Approve | None = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    **options: Unpack[ArkOptions],
) -> ArkGraph:
    """Return a LangGraph graph whose agents explore a knowledge graph and vote (ARK, section 3).

    A question goes in, ``{"question": …}``, and `ArkOutput` comes out; ``k`` and ``where`` of the input are used
    instead of the graph's own `k`, and to filter what is returned. The agents run at once, each in a subgraph of its
    own, in both `invoke` and `ainvoke`; cancelling the latter stops all of them.

    Parameters
    ----------
    model
        The chat model that drives the agents, LangChain's or graphret's, or one for each of them. One that cannot
        call tools is asked for JSON.
    store, index
        The graph, and what finds its nodes by text; give views of both, of one condition, to limit what agents may
        read.
    k
        How many hits are returned: exactly as many where they qualify.
    approve
        Tool calls that a person must approve before they are run: `True` for all calls that read the graph, names of
        tools that do (``global_search``, ``explore_neighborhood``), or a function of such a `ToolCall`. Nobody is asked
        about ``select`` and ``finish``, which read nothing. Each agent that waits interrupts the graph with
        ``{"agent", "step", "question", "calls"}``; resume by the ids of the interrupts with `True`, `False`, or an
        object with `True`, `False` or a reason for each call's id. A call that is not approved is answered to the model
        as refused. Needs a checkpointer.
    checkpointer
        As `StateGraph.compile` takes it. The state is plain JSON.
    n_agents, max_steps, hints, settings, temperature, text
        How many agents there are (3) and how often each may be asked (20), what else they should know of the domain,
        sizes, budgets and the way of voting, the models' temperatures (one, or one for each agent), and how nodes
        become text. Agents look at the budgets, and at the vote, before they ask their models.
    on_failure
        As `graphret.ark.Ark` has it; with a checkpointer, invoking again with `None` tries what failed once more.
    fallback, fill
        Who fills the places below what the agents selected, by default a search of `index`, and whether it does. What
        it reads cannot be checked: with views give one that reads nothing else.
    on_run
        Called with each `Run` that has come to its vote, to record it. `run_of` takes any other from its checkpoint.

    Raises
    ------
    InvalidInput
        When there are neither one nor `n_agents` models or temperatures, or one of store and index is a view and the
        other is none of the same condition.

    Notes
    -----
    ``stream_mode="custom"`` with ``subgraphs=True`` tells of each agent's ``reply``, ``step`` and ``end`` as they
    happen, as objects with ``event`` and ``agent``. Callbacks hear of each call that reads the graph as of a tool's.

    An agent takes two steps of LangGraph for each of its own, three with `approve`, and one to begin; where a recursion
    limit leaves no room for another, it ends with what it has selected. `create_ark_tool` makes the graph a tool.

    Examples
    --------
    >>> graph = create_ark_graph(model, store, index)  # doctest: +SKIP
    >>> graph.invoke({"question": "Who directed the films that Tom Hanks starred in?"})["hits"]  # doctest: +SKIP
    """
    ark = core_ark(model, store, index, **options)
    nodes = _Nodes(ark, Agent(ark, options.get("text"), approve, joined=True), require_k(k))
    builder = StateGraph(ArkState, input_schema=ArkInput, output_schema=ArkOutput)
    builder.add_node("begin", nodes.begin)
    builder.add_node("agent", nodes.agent.compile())
    builder.add_node("vote", RunnableLambda(nodes.vote, nodes.avote))
    builder.add_edge(START, "begin")
    builder.add_conditional_edges("begin", nodes.fan_out, ["agent", "vote"])
    builder.add_edge("agent", "vote")
    builder.add_edge("vote", END)
    compiled = builder.compile(checkpointer=checkpointer, name="ark")
    return compiled.with_config(max_concurrency=ark.settings.n_agents + 4)  # so that all run at once


class _Nodes:
    """Where a question becomes agents, and agents an answer."""

    def __init__(self, ark: Ark, agent: Agent, k: int) -> None:
        self.ark = ark
        self.agent = agent
        self.k = k

    def begin(self, state: ArkState) -> Json:
        """Check what is asked; what an earlier question of the thread left is none of this one's."""
        question, k, where = state.get("question"), state.get("k"), state.get("where")
        if not isinstance(question, str):
            raise InvalidInput(f"question: a string is expected, not {type(question).__name__}")
        to_where(where)
        run = new_run() | {"k": self.k if k is None else require_k(k), "where": where}
        self.agent.board(run["id"])
        return {"agents": [], "ark_run": run}

    def fan_out(self, state: ArkState) -> list[Send] | str:
        """Send the question to every agent, or straight to the vote where there is nothing to ask."""
        question, run = state["question"], state["ark_run"]
        if not question.strip():
            return "vote"
        numbers = range(self.ark.settings.n_agents)
        return [Send("agent", {"question": question, "agent": number, "ark_run": run}) for number in numbers]

    def vote(self, state: ArkState) -> Json:
        """Rank what the agents selected."""
        run = self._run(state)
        return _output(run, Explored(self.ark, run).retrieve(*self._asked(state)))

    async def avote(self, state: ArkState) -> Json:
        """Do what `vote` does without blocking the event loop."""
        run = self._run(state)
        return _output(run, await Explored(self.ark, run).aretrieve(*self._asked(state)))

    def _asked(self, state: ArkState) -> tuple[str, int, Where | None]:
        run = state["ark_run"]
        return state["question"], run["k"], to_where(run["where"])

    def _run(self, state: ArkState) -> Run | None:
        if not state["agents"]:
            return None
        run = _run([ArkSession.from_dict(agent) for agent in state["agents"]], state["ark_run"])
        self.ark.tell(run)
        return run


def _run(sessions: Sequence[ArkSession], run: Json) -> Run:
    seconds = max(session.seconds for session in sessions)
    return Run(sessions[0].question, list(sessions), seconds, sessions[0].settings.vote, run["created"])


def _output(run: Run | None, retrieval: Retrieval) -> Json:
    answer = retrieval.to_dict()
    votes = [] if run is None else [vote.to_dict() for vote in run.votes]
    return {"votes": votes, "hits": plain(answer["hits"]), "trace": plain(answer["trace"])}


def run_of(state: StateSnapshot) -> Run:
    """Return the run that a checkpoint holds, with what its agents have done so far.

    A graph gives each `Run` that comes to its vote to `on_run`; this is for one that never does: that waits for a
    person, was cancelled or failed. The graph may be that of `create_ark_graph` or `create_ark_agent`, or one of yours
    around them, and its state must be read with ``subgraphs=True``. Agents that have not stopped have a `stop` of
    `None`.

    Raises
    ------
    InvalidInput
        When no agent has begun in the state, or agents of several runs have.

    Examples
    --------
    >>> Recorder("runs.jsonl")(run_of(graph.get_state(thread, subgraphs=True)))  # doctest: +SKIP
    """
    found = list(_agents(state))
    runs = {run["id"]: run for run, _ in found}
    if len(runs) != 1:
        raise InvalidInput(f"state: the agents of one run are expected, not of {len(runs)}; is it read with subgraphs?")
    known = {agent["agent"]: ArkSession.from_dict(agent) for _, agent in found}
    return _run([known[number] for number in sorted(known)], next(iter(runs.values())))


def _agents(state: StateSnapshot) -> Iterator[tuple[Json, Json]]:
    """Agents with the runs that they are of: those of tasks under way, and else those that are done."""
    under_way = []
    for task in state.tasks:
        under_way += _saved(task.result)
        if isinstance(task.state, StateSnapshot):
            under_way += _agents(task.state)
    yield from under_way or _saved(state.values)


def _saved(values: Any) -> list[tuple[Json, Json]]:
    run = (values.get("run") or values.get("ark_run")) if isinstance(values, Mapping) else None
    return [(run, agent) for agent in values.get("agents") or ()] if run else []

"""Several exploring agents as a LangGraph graph: one subgraph an agent, joined by a vote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from graphret.ark import Ark, ArkSession, ArkSettings, Run
from graphret.ark.retriever import Explored
from graphret.ark.running import OnRun, tell
from graphret.errors import InvalidInput, RetrievalFailed
from graphret.retriever import Retriever
from graphret.search.fields import NodeText
from graphret.search.index import TextIndex, require_k
from graphret.stores.base import GraphStore
from graphret.types import Retrieval
from graphret.where import Where
from langchain_graphret.ark.agent import NO_ROOM, Agent, new_run
from langchain_graphret.ark.approval import Approve
from langchain_graphret.ark.as_tool import of_graph
from langchain_graphret.ark.compiled import Compiled, Watch, watched
from langchain_graphret.ark.core import Models, core_ark
from langchain_graphret.ark.live import seconds_of
from langchain_graphret.ark.nodes import Branch, Node
from langchain_graphret.ark.state import ArkInput, ArkOutput, ArkState, Json
from langchain_graphret.documents import plain
from langchain_graphret.filters import to_where

_LEFT_WAITING = "it was resumed by a graph without the node that it waited in, as one without `approve` is"

#: A compiled graph of agents.
ArkGraph: TypeAlias = CompiledStateGraph[ArkState, None, ArkInput, ArkOutput]


def create_ark_graph(
    model: Models,
    store: GraphStore,
    index: TextIndex,
    *,
    n_agents: int | None = None,
    max_steps: int | None = None,
    hints: str = "",
    settings: ArkSettings | None = None,
    temperature: float | Sequence[float | None] | None = None,
    text: NodeText | None = None,
    k: int = 10,
    fallback: Retriever | None = None,
    fill: bool = True,
    on_failure: str = "fallback",
    on_run: OnRun | None = None,
    approve: Approve | None = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
) -> ArkGraph:
    """Return a LangGraph graph whose agents explore a knowledge graph and vote (ARK, section 3).

    A question goes in, ``{"question": …}``, and `ArkOutput` comes out; ``k`` and ``where`` of the input are used
    instead of the graph's own `k`, and to filter what is returned. The agents run at once, each in a subgraph of its
    own, in both `invoke` and `ainvoke`; cancelling the latter, or closing the stream of either, stops all of them. An
    interrupt of the former is raised when they have ended, since LangGraph waits for its threads.

    Parameters
    ----------
    model
        The chat model that drives the agents, LangChain's or graphret's, or one for each of them. One that cannot
        call tools is asked for JSON.
    store, index
        The graph, and what finds its nodes by text; give views of both, of one condition, to limit what agents may
        read.
    n_agents, max_steps
        How many agents there are, and how often each may be asked; those of `settings` by default, 3 and 20.
    hints
        What else the agents should know of the domain, for the system prompt.
    settings
        Sizes, budgets and the way of voting.
    temperature
        Of all agents or one for each; `None` leaves it to the model.
    text
        How nodes become the text of which agents see excerpts.
    k
        How many hits are returned: exactly as many where they qualify.
    fallback, fill
        Who fills the places below what the agents selected, by default a search of `index`, and whether it does. What
        it reads cannot be checked: with views give one that reads nothing else.
    on_failure
        ``"fallback"`` goes on with the agents that are left, answers what a model calls wrongly with an instruction,
        and says so in the trace. ``"raise"`` raises `RetrievalFailed` when a model, the store or the index fails an
        agent, a model's reply is wrong (see `ArkSession.observe`) or an agent does not finish within its steps, which
        stops the others before they are asked again, or no agent selects a node. With a checkpointer, invoking again
        with `None` tries what failed once more; a wrong call beside others that are run is as wrong as before, and goes
        on in a graph with ``"fallback"``.
    on_run
        Called with each `Run` that has ended, to record it: also with one that raised, was cancelled, or whose stream
        was closed, with what was done until then (nothing, where the schema or the checkpoint was still being read),
        and again when it has gone on from its checkpoint, unless it broke off in its vote. One that waits for a person
        is given when it has gone on to its end; `run_of` takes it from the checkpoint where it never does.
    approve
        Tool calls that a person must approve before they are run: `True` for all calls that read the graph, names of
        tools that do (``global_search``, ``explore_neighborhood``), or a function of such a `ToolCall`. Nobody is asked
        about ``select`` and ``finish``, which read nothing. Each agent that waits interrupts the graph with
        ``{"agent", "step", "question", "calls"}``; resume by the ids of the interrupts with `True`, `False`, or an
        object with `True`, `False` or a reason for each call's id. A call that is not approved is answered to the model
        as refused. Needs a checkpointer.
    checkpointer
        As `StateGraph.compile` takes it. The state is plain JSON.

    Raises
    ------
    InvalidInput
        When there are neither one nor `n_agents` models or temperatures, one of store and index is a view and the other
        is none of the same condition, or an argument is malformed: `approve` may name no tool that does not read the
        graph.

    Notes
    -----
    ``stream_mode="custom"`` with ``subgraphs=True`` tells of each agent's ``reply``, ``step`` and ``end`` as they
    happen, as objects with ``event`` and ``agent``. Callbacks, LangSmith's and those of ``astream_events`` among them,
    hear of each call that reads the graph as of a run of a tool.

    An agent takes one step of LangGraph for each of its own, two for those that a person is asked of, and one more to
    end; with a lower recursion limit it is given fewer. A limit of 3 leaves room for one, one of 2 or 1 for none, so
    that the fallback answers. A graph of yours around this one needs 2: LangGraph raises at 1 whatever its nodes do,
    and this one says so with an `InvalidInput` first.

    ``graph.as_tool(description=…)`` is a tool for another agent's model, which gives it a question.

    Examples
    --------
    >>> graph = create_ark_graph(model, store, index)  # doctest: +SKIP
    >>> graph.invoke({"question": "Who directed the films that Tom Hanks starred in?"})["hits"]  # doctest: +SKIP
    """
    ark = core_ark(
        model,
        store,
        index,
        n_agents=n_agents,
        max_steps=max_steps,
        settings=settings,
        hints=hints,
        temperature=temperature,
        text=text,
        fallback=fallback,
        fill=fill,
        on_failure=on_failure,
        on_run=on_run,
    )
    joined = _Joined(ark, Agent(ark, approve, joined=True), require_k(k))
    builder = StateGraph(ArkState, input_schema=ArkInput, output_schema=ArkOutput)
    builder.add_node("agent", joined.agent.compile())
    builder.add_node("vote", Node(joined.vote, joined.avote))
    builder.add_conditional_edges(START, Branch(joined.fan_out), ["agent", "vote"])
    builder.add_edge("agent", "vote")
    builder.add_edge("vote", END)
    compiled = Compiled.of(builder.compile(checkpointer=checkpointer, name="ark"), "ark_run")
    compiled.on_death, compiled.answers = joined.died, of_graph(ark.settings)
    longest = joined.agent.nodes_a_step * ark.settings.max_steps + 3
    return compiled.with_config(recursion_limit=max(10_000, longest), max_concurrency=ark.settings.n_agents + 4)


class _Joined:
    """Where a question becomes agents, and agents an answer."""

    def __init__(self, ark: Ark, agent: Agent, k: int) -> None:
        self.ark = ark
        self.agent = agent
        self.k = k

    def fan_out(self, state: ArkState, config: RunnableConfig) -> list[Send]:
        """Send the question to every agent, or straight to the vote where there is nothing to ask, or no room."""
        watch = watched(config)
        if watch is not None:
            watch.unsent = ""
        question = state.get("question")
        if not isinstance(question, str):
            raise InvalidInput(f"question: a string is expected, not {type(question).__name__}")
        k, where = state.get("k"), state.get("where")
        run = new_run() | {"k": self.k if k is None else require_k(k), "where": where}
        to_where(where)
        no_room = watch is not None and state["remaining"] < 3  # `update_state`, which nobody watches, has no limit
        if not question.strip() or no_room:
            return [Send("vote", {"question": question, "ark_run": run})]
        if watch is not None:
            self._begin(watch, run, question)
        return [
            Send("agent", {"question": question, "agent": number, "ark_run": run})
            for number in range(self.ark.settings.n_agents)
        ]

    def _begin(self, watch: Watch, run: Json, question: str) -> None:
        watch.live = self.agent.runs.of(run, self.ark.settings, question)
        watch.live.from_the_start = True

    def vote(self, state: ArkState) -> Json:
        """Rank what the agents selected."""
        run = self._run(state)
        return _output(run, Explored(self.ark, run).retrieve(*self._asked(state)), state)

    async def avote(self, state: ArkState) -> Json:
        """Do what `vote` does without blocking the event loop."""
        run = self._run(state)
        return _output(run, await Explored(self.ark, run).aretrieve(*self._asked(state)), state)

    def _asked(self, state: ArkState) -> tuple[str, int, Where | None]:
        run = state["ark_run"]
        return state["question"], run.get("k", self.k), to_where(run.get("where"))

    def _run(self, state: ArkState) -> Run | None:
        if not state.get("agents"):
            if self.ark.on_failure == "raise" and state["question"].strip():
                raise RetrievalFailed(f"ark failed: {NO_ROOM}")
            return None
        agents = state["agents"][: self.ark.settings.n_agents]  # a thread may have been begun with more
        live = self.agent.runs.end(state["ark_run"]["id"])
        sessions = [ArkSession.from_dict(agent) if live is None else live.load(agent) for agent in agents]
        for session in sessions:
            session.end("failed", _LEFT_WAITING)  # LangGraph drops what waits in a node that the graph does not have
        seconds = live.board.seconds if live is not None else max(map(seconds_of, sessions))
        run = Run(state["question"], sessions, seconds, self.ark.settings.vote, state["ark_run"]["created"])
        self._tell(run, state["ark_run"]["id"])
        return run

    def _tell(self, run: Run, id_: str) -> None:
        """Hand on a run that has ended, once: its vote may be cancelled, and taken again from the checkpoint."""
        steps = [(step.started, step.seconds) for session in run.sessions for step in session.steps]
        if not self.agent.runs.told(id_, steps):
            tell(run, self.ark.on_run, strict=self.ark.on_failure == "raise")
            if not run.untold:
                self.agent.runs.tell(id_, steps)

    def died(self, watch: Watch, error: BaseException) -> None:
        """Hand on what was done of a run that raised or was cancelled, unless it came to the vote or goes on."""
        if watch.unsent:
            self._begin(watch, new_run(), watch.unsent)
        if (live := watch.live) is None:
            return
        if live.waits and isinstance(error, GeneratorExit):  # who sees the interrupt in a stream may close it
            live.stopped = False
            return
        if self.agent.runs.end(live.run["id"]) is None or self.ark.on_run is None:
            return
        try:
            self.ark.on_run(live.broken_off(lambda question, number: self.ark.session(question, number, ""), error))
        except Exception as problem:  # what ended the run goes on
            error.add_note(f"the run could not be handed on: {type(problem).__name__}: {problem}")


def _output(run: Run | None, retrieval: Retrieval, state: ArkState) -> Json:
    if run is None and retrieval.query.strip():
        retrieval.trace.note("fallback", failed="agents", error=NO_ROOM)
    answer = retrieval.to_dict()
    trace = answer["trace"]
    # What agents did is plain already, and long: it is that of their state, and no copy of it.
    trace["stages"] = [stage if stage["name"].startswith("explore") else plain(stage) for stage in trace["stages"]]
    found: Json = {"hits": plain(answer["hits"]), "trace": trace}
    if run is None:  # what an earlier question left is none of this one's
        return {"agents": [], "votes": [], **found}
    ended = [
        agent.to_dict() for agent, before in zip(run.sessions, state["agents"], strict=False) if not before["stop"]
    ]
    if ended:
        found["agents"] = ended
    return {"votes": [vote.to_dict() for vote in run.votes], **found}

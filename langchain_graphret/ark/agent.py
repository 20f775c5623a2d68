"""One exploring agent as a LangGraph graph: ask the model, have its calls approved, run them, and again."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from graphret.ark import Ark, ArkSession, ArkSettings, Board, Toolbox
from graphret.ark.observation import failure
from graphret.ark.run import now
from graphret.ark.running import as_store_error, ask, ask_blocking, run_calls
from graphret.ark.session import Outcome
from graphret.errors import GraphretError, InvalidInput, ModelError, RetrievalFailed
from graphret.llm.chat import ChatModel, Reply, ToolCall
from graphret.llm.running import run_sync
from graphret.search.fields import NodeText
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from langchain_graphret.ark.approval import Approve, asks_for, refused
from langchain_graphret.ark.core import Models, core_ark
from langchain_graphret.ark.live import Live, LiveRuns
from langchain_graphret.ark.nodes import Node
from langchain_graphret.ark.state import AgentInput, AgentOutput, AgentState, Json

#: A compiled agent.
AgentGraph: TypeAlias = CompiledStateGraph[AgentState, None, AgentInput, AgentOutput]


def create_ark_agent(
    model: Models,
    store: GraphStore,
    index: TextIndex,
    *,
    n_agents: int = 1,
    max_steps: int | None = None,
    hints: str = "",
    settings: ArkSettings | None = None,
    temperature: float | Sequence[float | None] | None = None,
    text: NodeText | None = None,
    approve: Approve | None = None,
    on_failure: str = "fallback",
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
) -> AgentGraph:
    """Return an exploring agent, to be a node of your own graph: ``question`` in, ``agents`` and ``selection`` out.

    The parameters are those of `create_ark_graph`, which fans several out and joins them by a vote. To do so yourself,
    say how many there are and send each its number: ``Send("agent", {"question": question, "agent": 1})``.

    Examples
    --------
    >>> builder.add_node("explore", create_ark_agent(model, store, index))  # doctest: +SKIP
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
        on_failure=on_failure,
    )
    return Agent(ark, approve).compile(checkpointer)


class Agent:
    """The nodes of an agent; those of one run share this, and what it knows of runs under way.

    Parameters
    ----------
    ark
        Models, tools, prompt and settings.
    approve
        See `create_ark_graph`.
    """

    def __init__(self, ark: Ark, approve: Approve | None = None) -> None:
        self.ark = ark
        self.asks = asks_for(approve)
        self.runs = LiveRuns()
        self.nodes_a_step = 2 if self.asks is None else 3
        self.after_model = "tools" if self.asks is None else "approve"

    def compile(self, checkpointer: BaseCheckpointSaver[Any] | bool | None = None) -> AgentGraph:
        """Return the graph: the nodes ``model``, ``approve`` where someone is to be asked, and ``tools``."""
        builder = StateGraph(AgentState, input_schema=AgentInput, output_schema=AgentOutput)
        builder.add_node("model", Node(self._ask, self._aask), destinations=(self.after_model, END))
        builder.add_node("tools", Node(self._run, self._arun), destinations=("model", END))
        builder.add_edge(START, "model")
        if self.asks is not None:
            builder.add_node("approve", Node(self._approve))
            builder.add_edge("approve", "tools")
        return builder.compile(checkpointer=checkpointer, name="ark_agent")

    # -- nodes

    def _ask(self, state: AgentState) -> Command[str]:
        session, live, run = self._begin(state)
        if session.stop is None:
            started = live.board.seconds
            with self._asking(session):
                reply = ask_blocking(*self._asked(session, live))
                self._receive(session, live, reply, started)
        return self._written(session, live, run, self.after_model)

    async def _aask(self, state: AgentState) -> Command[str]:
        if _under_way(state):
            session, live, run = self._begin(state)
        else:  # reads the graph's schema
            session, live, run = await asyncio.to_thread(self._begin, state)
        if session.stop is None:
            started = live.board.seconds
            with self._asking(session):
                reply = await live.reply(ask(*self._asked(session, live)))
                self._receive(session, live, reply, started)
        return self._written(session, live, run, self.after_model)

    def _approve(self, state: AgentState) -> Json:
        session, live, _ = self._live(state)
        waiting = [call for call in session.pending if self.asks is not None and self.asks(call)]
        if not waiting:
            return {"refused": {}}
        with live.paused(session):
            return {"refused": refused(session, waiting)}

    def _run(self, state: AgentState) -> Command[str]:
        return run_sync(self._arun(state))

    async def _arun(self, state: AgentState) -> Command[str]:
        session, live, run = self._live(state)
        why = state.get("refused") or {}
        pending = session.pending
        approved = [call for call in pending if call.id not in why]
        try:
            async with asyncio.timeout(live.board.remaining):
                outcomes, problem = await run_calls(self.ark.toolbox, approved)
        except TimeoutError:
            session.end("seconds")
            return self._written(session, live, run, "model")
        if problem is not None:
            self._failed(problem)
        session.observe([*outcomes, *(_refusal(call, why[call.id]) for call in pending if call.id in why)])
        if state["remaining"] <= self.nodes_a_step:
            session.end("steps")
        _tell("step", session, **_numbered(session.steps[-1].to_dict()))
        return self._written(session, live, run, "model")

    # -- what they have in common

    def _begin(self, state: AgentState) -> tuple[ArkSession, Live, Json]:
        """Return the agent, new or as it was left, and stopped where it should not go on."""
        if not _under_way(state):
            run = {} if state.get("agents") else state.get("ark_run", {})  # not that of a question before
            state = {**state, "agents": [self._new(state).to_dict()], "ark_run": run}
        session, live, run = self._live(state)
        live.post(session)
        if session.stop is None and (reason := live.board.reason_to_stop()):
            session.end(reason)
        return session, live, run

    def _new(self, state: AgentState) -> ArkSession:
        number, n = state.get("agent", 0), self.ark.settings.n_agents
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < n:
            raise InvalidInput(f"agent: a number from 0 to {n - 1} is expected, not {number!r}")
        problem: GraphretError | None = None
        try:
            prompt = self.ark.prompt()
        except Exception as error:
            prompt, problem = "", as_store_error(error)
            self._failed(problem)
        session = self.ark.session(state.get("question"), number, prompt)
        if problem is not None:
            session.end("failed", str(problem))
        room = state["remaining"] // self.nodes_a_step
        if room < session.settings.max_steps:  # LangGraph's recursion limit comes first, and the agent should know
            session.settings = replace(session.settings, max_steps=max(1, room))
        if room < 1:
            session.end("steps")
        return session

    def _live(self, state: AgentState) -> tuple[ArkSession, Live, Json]:
        saved, run = state["agents"][0], state.get("ark_run") or new_run()
        live = self.runs.of(run["id"], self.ark.settings, saved)
        return live.load(saved), live, run

    def _asked(self, session: ArkSession, live: Live) -> tuple[ChatModel, ArkSession, Toolbox, float | None, Board]:
        number = session.agent
        return self.ark.models[number], session, self.ark.toolbox, self.ark.temperatures[number], live.board

    @contextmanager
    def _asking(self, session: ArkSession) -> Iterator[None]:
        """End the agent where its model fails or the run's time is up."""
        try:
            yield
        except TimeoutError:
            session.end("seconds")
        except ModelError as error:
            self._failed(error)
            session.end("failed", str(error))

    def _failed(self, error: GraphretError) -> None:
        if self.ark.on_failure == "raise":
            raise RetrievalFailed(f"ark failed: {error}") from error

    def _receive(self, session: ArkSession, live: Live, reply: Reply | None, started: float) -> None:
        if reply is None:
            session.end(live.board.reason_to_stop() or "settled")
            return
        session.receive(reply, started=started, seconds=live.board.seconds - started)
        calls = [
            {"tool": call.name, "arguments": call.arguments if call.parsed is None else call.parsed}
            for call in reply.tool_calls
        ]
        _tell("reply", session, step=len(session.steps), text=reply.text, calls=calls)

    def _written(self, session: ArkSession, live: Live, run: Json, then: str) -> Command[str]:
        live.post(session)
        if session.stop is not None:
            _tell("end", session, stop=session.stop, error=session.error, selection=session.selection)
        update: Json = {"agents": [live.save(session)], "ark_run": run}
        if session.stop is None:
            return Command(update=update, goto=then)
        return Command(update=update | {"selection": list(session.selection)}, goto=END)


def new_run() -> Json:
    """Return what the agents of a run know it by."""
    return {"id": uuid.uuid4().hex, "created": now()}


def _under_way(state: AgentState) -> bool:
    """Whether the agent of the state is at work on the question, and not what an earlier one left in the thread."""
    if not state.get("agents"):
        return False
    agent = state["agents"][0]
    answered = agent["messages"][-1]["role"] != "assistant"  # else its calls would be run, and not its model asked
    return bool(agent["stop"] is None and agent["question"] == state.get("question") and answered)


def _refusal(call: ToolCall, why: str) -> Outcome:
    return call, failure(f"A person refused this call: {why}. Do something else."), 0.0


def _numbered(step: Json) -> Json:
    return {"step": step.pop("number"), **step}


def _tell(event: str, session: ArkSession, **said: Any) -> None:
    """Write to LangGraph's custom stream."""
    get_stream_writer()({"event": event, "agent": session.agent + 1, **said})

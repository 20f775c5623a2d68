"""One exploring agent as a LangGraph graph: ask the model, have its calls approved, run them, and again."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from graphret.ark import Ark, ArkSession, ArkSettings, Board, Toolbox
from graphret.ark.observation import failure
from graphret.ark.retriever import nothing_selected
from graphret.ark.run import now
from graphret.ark.running import UNAWAITED, as_store_error, ask, ask_blocking, reason_of, run_calls, run_calls_blocking
from graphret.ark.session import Outcome
from graphret.ark.tools import THREADS
from graphret.errors import GraphretError, InvalidInput, ModelError, RetrievalFailed
from graphret.llm.chat import ChatModel, Reply, ToolCall
from graphret.llm.failing import watch_attempts
from graphret.search.fields import NodeText
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from langchain_graphret.ark.approval import Approve, asks_for, refused
from langchain_graphret.ark.as_tool import of_agent
from langchain_graphret.ark.compiled import Compiled, is_unseen, watched
from langchain_graphret.ark.core import Models, core_ark
from langchain_graphret.ark.live import Live, LiveRuns
from langchain_graphret.ark.nodes import Node
from langchain_graphret.ark.state import AgentInput, AgentOutput, AgentState, Json
from langchain_graphret.ark.tool_runs import atool_runs, tool_runs

#: What came of the calls of one reply, and the first failure of the store or the index.
Called: TypeAlias = tuple[list[Outcome], GraphretError | None]

#: Why an agent that LangGraph leaves no step stopped.
NO_ROOM = "LangGraph's recursion limit leaves no room for another step"

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
    say how many there are and send each its number: ``Send("agent", {"question": question, "agent": 1})``. Your state
    needs a channel that merges what they come to: ``agents: Annotated[list, by_agent]``. With ``on_failure="raise"`` an
    agent that is the only one raises `RetrievalFailed` where it ends with nothing selected; one of several does not:
    others may have, and ``selection`` tells.

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
    return Agent(ark, approve, joined=False).compile(checkpointer)


class Agent:
    """The nodes of an agent; those of one run share this, and what it knows of runs under way.

    The node ``step`` runs the calls of the last reply and asks for the next one, so that a checkpoint follows each
    reply: a run that goes on from there reads the graph again, and pays no model twice. ``approve`` stands between two
    steps, where a person is to be asked of the reply's calls. Where there is neither a checkpoint nor a stream to see
    single steps, the node takes all of them: LangGraph's work for a node is about that of a step.

    Parameters
    ----------
    ark
        Models, tools, prompt and settings.
    approve
        See `create_ark_graph`.
    joined
        Whether a vote follows, which ends the run and says whether anything was selected.
    """

    def __init__(self, ark: Ark, approve: Approve | None, *, joined: bool) -> None:
        self.ark = ark
        self.joined = joined
        self.asks = asks_for(approve)
        self.runs = LiveRuns()
        self.nodes_a_step = 1 if self.asks is None else 2

    def compile(self, checkpointer: BaseCheckpointSaver[Any] | bool | None = None) -> AgentGraph:
        """Return the graph."""
        builder = StateGraph(AgentState, input_schema=AgentInput, output_schema=AgentOutput)
        after = ("step", END) if self.asks is None else ("step", "approve", END)
        builder.add_node("step", Node(self._step, self._astep), destinations=after)
        builder.add_edge(START, "step")
        if self.asks is not None:
            builder.add_node("approve", Node(self._approve))
            builder.add_edge("approve", "step")
        compiled = Compiled.of(builder.compile(checkpointer=checkpointer, name="ark_agent"))
        compiled.answers = of_agent()
        return compiled

    # -- nodes

    def _step(self, state: AgentState) -> Command[str]:
        session, live = self._begin(state)
        if not state.get("agents"):
            with self._reading(session, live):
                session = live.take(self.ark.session(session.question, session.agent, self._prompt(live)))
            self._fit(session, state)
        for remaining in self._steps(session, live, state):
            if pending := session.pending:
                self._observe(session, live, state, pending, self._called(pending, live, state))
            self._check(session, live, remaining)
            if session.stop is None:
                with self._asking(session, live) as started:
                    reply = live.reply_blocking(partial(ask_blocking, *self._asked(session, live)))
                    self._receive(session, live, reply, started)
        return self._written(session, live)

    async def _astep(self, state: AgentState) -> Command[str]:
        session, live = self._begin(state)
        if not state.get("agents"):
            with self._reading(session, live):
                async with asyncio.timeout(live.board.remaining):
                    prompt = await self.ark.aprompt()
                session = live.take(self.ark.session(session.question, session.agent, prompt))
            self._fit(session, state)
        for remaining in self._steps(session, live, state):
            if pending := session.pending:
                self._observe(session, live, state, pending, await self._acalled(pending, live, state))
            self._check(session, live, remaining)
            if session.stop is None:
                with self._asking(session, live) as started:
                    reply = await live.reply(ask(*self._asked(session, live)))
                    self._receive(session, live, reply, started)
        return self._written(session, live)

    def _approve(self, state: AgentState) -> Json:
        session, live = self._live(state)
        with live.paused(session):
            why = refused(session, self._to_approve(session))
        return {"agents": [live.save(session)], "ark_run": live.noted(), "refused": why}

    # -- what they have in common

    def _begin(self, state: AgentState) -> tuple[ArkSession, Live]:
        """Return the agent as it was left, or a new one that has no prompt yet: reading the graph for it may fail."""
        if state.get("agents"):
            return self._live(state)
        number = state.get("agent", 0)
        self._require_agent(number)
        session, run = self.ark.session(state.get("question"), number, ""), state.get("ark_run") or new_run()
        live = self.runs.of(run, self.ark.settings, session.question)
        live.begin()
        live.take(session)
        _watch(live)
        return session, live

    def _require_agent(self, number: object) -> None:
        n = self.ark.settings.n_agents
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < n:
            raise InvalidInput(
                f"agent: a number from 0 to {n - 1} is expected, not {number!r}; a thread that was begun with more "
                f"agents than {n} goes on with as many"
            )

    def _prompt(self, live: Live) -> str:
        remaining = live.board.remaining
        return self.ark.prompt() if remaining is None else THREADS.submit(self.ark.prompt).result(remaining)

    @contextmanager
    def _reading(self, session: ArkSession, live: Live) -> Iterator[None]:
        """End the agent where the graph cannot be read for its prompt, or the run's time is up."""
        try:
            yield
        except TimeoutError as error:
            if live.board.late:
                session.end("seconds")
            else:
                self._unread(session, live, error)
        except Exception as error:
            self._unread(session, live, error)

    def _unread(self, session: ArkSession, live: Live, error: Exception) -> None:
        problem = as_store_error(error)
        self._failed(session, live, problem)
        session.end("failed", str(problem))

    def _steps(self, session: ArkSession, live: Live, state: AgentState) -> Iterator[int]:
        """Yield how many steps LangGraph leaves, once for each step to take: one, or all where nobody sees them."""
        remaining = state["remaining"]
        yield remaining
        while session.stop is None and self.asks is None and is_unseen():
            live.post(session)
            remaining -= 1
            yield remaining

    def _fit(self, session: ArkSession, state: AgentState) -> None:
        room = (state["remaining"] - 1) // self.nodes_a_step
        if 1 <= room < session.settings.max_steps:  # the recursion limit comes first, and the agent should know
            session.settings = replace(session.settings, max_steps=room)

    def _live(self, state: AgentState) -> tuple[ArkSession, Live]:
        saved, run = state["agents"][0], state.get("ark_run") or new_run()
        self._require_agent(saved["agent"])
        live = self.runs.of(run, self.ark.settings, saved["question"], saved)
        _watch(live)
        return live.load(saved), live

    def _to_approve(self, session: ArkSession) -> list[ToolCall]:
        return [call for call in session.pending if self.asks(call)] if self.asks is not None else []

    def _called(self, pending: list[ToolCall], live: Live, state: AgentState) -> Called | None:
        """Run the calls of the last reply that nobody refused; `None` where the run has no time left."""
        calls = _approved(pending, state)
        try:
            with tool_runs(calls) as told:
                called = run_calls_blocking(self.ark.toolbox, calls, live.board.remaining)
                told += called[0]
        except TimeoutError:
            return None
        return called

    async def _acalled(self, pending: list[ToolCall], live: Live, state: AgentState) -> Called | None:
        calls = _approved(pending, state)
        try:
            async with atool_runs(calls) as told, asyncio.timeout(live.board.remaining):
                called = await run_calls(self.ark.toolbox, calls)
                told += called[0]
        except TimeoutError:
            return None
        return called

    def _observe(
        self, session: ArkSession, live: Live, state: AgentState, pending: list[ToolCall], called: Called | None
    ) -> None:
        if called is None:
            session.end("seconds")
            return
        outcomes, problem = called
        why = state.get("refused") or {}
        wrong = session.observe([*outcomes, *(_refusal(call, why[call.id]) for call in pending if call.id in why)])
        _tell("step", session, **_numbered(session.steps[-1].to_dict()))
        if (problem := problem or wrong) is not None:
            self._failed(session, live, problem)

    def _check(self, session: ArkSession, live: Live, remaining: int) -> None:
        """Stop an agent that should not be asked again."""
        live.check()
        live.post(session)
        if session.stop is not None:
            return
        if reason := live.board.reason_to_stop():
            session.end(reason)
        elif remaining <= self.nodes_a_step:
            session.out_of_steps(NO_ROOM)
            if (problem := session.problem) is not None:
                self._failed(session, live, problem)

    def _asked(self, session: ArkSession, live: Live) -> tuple[ChatModel, ArkSession, Toolbox, float | None, Board]:
        number = session.agent
        return self.ark.models[number], session, self.ark.toolbox, self.ark.temperatures[number], live.board

    @contextmanager
    def _asking(self, session: ArkSession, live: Live) -> Iterator[float]:
        """End the agent where its model fails or the run's time is up."""
        started = live.board.seconds
        watch_attempts()
        try:
            yield started
        except (TimeoutError, ModelError) as error:
            session.fail(error, started=started, seconds=live.board.seconds - started)
            if isinstance(error, ModelError):
                self._failed(session, live, error)
        except BaseException as error:
            if session.stop is None and session.messages[-1].role != "assistant":  # there is no reply yet
                why = reason_of(error) or UNAWAITED
                session.fail(why, started=started, seconds=live.board.seconds - started, stop="cancelled")
            raise

    def _failed(self, session: ArkSession, live: Live, error: GraphretError) -> None:
        if self.ark.on_failure == "raise":
            session.end("failed", str(error))
            failed = RetrievalFailed(f"ark failed: {error}")
            live.fail(failed)
            self._forget(live)
            raise failed from error

    def _forget(self, live: Live) -> None:
        """Let a run that has failed go on from its checkpoint as one that is new here, unless others are to know."""
        if not self.joined and len(live.sessions) == 1:
            self.runs.end(live.run["id"])

    def _receive(self, session: ArkSession, live: Live, reply: Reply | None, started: float) -> None:
        if reply is None:
            why = live.board.reason_to_stop() or "settled"
            session.fail(UNAWAITED, started=started, seconds=live.board.seconds - started, stop=why)
            return
        pending = session.receive(reply, started=started, seconds=live.board.seconds - started)
        calls = [
            {"tool": call.name, "arguments": call.arguments if call.parsed is None else call.parsed}
            for call in reply.tool_calls
        ]
        _tell("reply", session, step=len(session.steps), text=reply.text, calls=calls)
        if not pending:  # nothing to run
            wrong = session.observe()
            _tell("step", session, **_numbered(session.steps[-1].to_dict()))
            if wrong is not None:
                self._failed(session, live, wrong)

    def _written(self, session: ArkSession, live: Live) -> Command[str]:
        live.post(session)
        update: Json = {"agents": [live.save(session)], "ark_run": live.noted()}
        if session.stop is None:
            return Command(update=update, goto="approve" if self._to_approve(session) else "step")
        _tell("end", session, stop=session.stop, error=session.error, selection=session.selection)
        if not self.joined and self.ark.settings.n_agents == 1:
            self._require_selection(session, live)
        return Command(update=update | {"selection": list(session.selection)}, goto=END)

    def _require_selection(self, session: ArkSession, live: Live) -> None:
        if self.ark.on_failure == "raise" and not session.selection:
            self._forget(live)
            raise nothing_selected([session])


def _watch(live: Live) -> None:
    if watch := watched():
        watch.live = live


def new_run() -> Json:
    """Return what the agents of a run know it by."""
    return {"id": uuid.uuid4().hex, "created": now()}


def _approved(pending: list[ToolCall], state: AgentState) -> list[ToolCall]:
    why = state.get("refused") or {}
    return [call for call in pending if call.id not in why]


def _refusal(call: ToolCall, why: str) -> Outcome:
    return call, failure(f"A person refused this call: {why}. Do something else.", wrong=""), 0.0


def _numbered(step: Json) -> Json:
    return {"step": step.pop("number"), **step}


def _tell(event: str, session: ArkSession, **said: Any) -> None:
    """Write to LangGraph's custom stream."""
    get_stream_writer()({"event": event, "agent": session.agent + 1, **said})

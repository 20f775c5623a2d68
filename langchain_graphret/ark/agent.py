"""An exploring agent as a LangGraph graph: ask a model, approve its calls, run."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Required, TypeAlias

from langgraph.channels import EphemeralValue
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.managed import RemainingSteps
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from graphret.ark import Ark, ArkRun, ArkSession, ArkSettings
from graphret.ark.retriever import OnRun
from graphret.errors import GraphretError, InvalidInput, RetrievalFailed
from graphret.llm.chat import Message, ToolCall
from graphret.retriever import Retriever
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from langchain_graphret.chat import ChatModelLike, as_core_model
from langchain_graphret.seeds import LangChainRetriever, as_seeds
from langchain_graphret.state import Checkpointer, Json, NodeSteps, node

#: Which calls that read the graph a person must approve: all, or those of these tools.
Approve: TypeAlias = bool | Collection[str]


class AgentOutput(TypedDict, total=False):
    """The agent (`ArkSession.to_dict`) in a list, and the ids that it selected."""

    agents: list[Json]
    selection: list[str]


class AgentState(AgentOutput, total=False):
    """The state of `create_ark_agent`, plain JSON.

    It is given `question`, and among several `agent`, its number from 0, and the
    `ark_run` that they share. `refused` has the calls that a person did not approve,
    and why.
    """

    question: Required[str]
    agent: Annotated[int, EphemeralValue]  # of this question alone
    ark_run: Annotated[Json, EphemeralValue]
    run: Json
    refused: dict[str, str]
    remaining: RemainingSteps


#: A compiled agent.
AgentGraph: TypeAlias = CompiledStateGraph[AgentState, None, AgentState, AgentOutput]


def core_ark(
    model: ChatModelLike | Sequence[ChatModelLike],
    store: GraphStore,
    index: TextIndex,
    *,
    n_agents: int | None,
    settings: ArkSettings | None,
    hints: str,
    temperature: float | Sequence[float | None] | None,
    fallback: LangChainRetriever | Retriever | None,
    fill: bool,
    on_failure: str,
    on_run: OnRun | None,
) -> Ark:
    """Return graphret's `Ark` over chat models of LangChain or graphret."""
    settings = settings or ArkSettings()
    if n_agents is not None:
        settings = replace(settings, n_agents=n_agents)
    models = (
        list(map(as_core_model, model))
        if isinstance(model, (list, tuple))
        else as_core_model(model)
    )
    return Ark(
        models,
        store,
        index,
        settings=settings,
        hints=hints,
        temperature=temperature,
        fallback=as_seeds(fallback),
        fill=fill,
        on_failure=on_failure,
        on_run=on_run,
    )


def create_ark_agent(
    model: ChatModelLike | Sequence[ChatModelLike],
    store: GraphStore,
    index: TextIndex,
    *,
    n_agents: int | None = 1,
    settings: ArkSettings | None = None,
    hints: str = "",
    temperature: float | Sequence[float | None] | None = None,
    fallback: LangChainRetriever | Retriever | None = None,
    fill: bool = True,
    on_failure: str = "fallback",
    on_run: OnRun | None = None,
    approve: Approve = False,
    checkpointer: Checkpointer = None,
) -> AgentGraph:
    """Return an exploring agent, to be a node of your own graph.

    ``question`` goes in, ``agents`` and ``selection`` come out. The parameters are
    those of `create_ark_graph`, which fans several out and joins them by a vote; here
    `n_agents` is 1 by default. To fan out yourself, say how many there are and send
    each its number: ``Send("agent", {"question": question, "agent": 1})``. Your state
    needs a channel that merges what they come to: ``agents: Annotated[list,
    by_agent]``.
    """
    ark = core_ark(
        model,
        store,
        index,
        n_agents=n_agents,
        settings=settings,
        hints=hints,
        temperature=temperature,
        fallback=fallback,
        fill=fill,
        on_failure=on_failure,
        on_run=on_run,
    )
    return Agent(ark, approve).compile(checkpointer)


class Agent:
    """The nodes of an agent, which the agents of one run share.

    ``begin`` describes the graph to it, ``model`` asks it for its next calls,
    ``approve`` lets a person check them, and ``tools`` runs them: the two halves of the
    loop, `Ark.ask` and `Ark.answer`. A checkpoint follows each.
    """

    def __init__(self, ark: Ark, approve: Approve) -> None:
        self.ark = ark
        reading = [tool.name for tool in ark.toolbox.operations]
        names = (
            {True: reading, False: ()}[approve]
            if isinstance(approve, bool)
            else approve
        )
        if isinstance(names, str) or not set(names) <= set(reading):
            raise InvalidInput(
                f"approve: expected true, or a list of {' and '.join(reading)}, got"
                f" {approve!r}"
            )
        self.approve = frozenset(names)
        self.run = lru_cache(1024)(
            lambda id_, question: ark.begin(question)
        )  # its clock starts

    def compile(self, checkpointer: Checkpointer = None) -> AgentGraph:
        builder = StateGraph(AgentState, output_schema=AgentOutput)
        builder.add_node("begin", self._begin, destinations=("model", END))
        builder.add_node(
            "model", node(self._model), destinations=("approve", "tools", END)
        )
        builder.add_node("approve", self._approve)
        builder.add_node("tools", node(self._tools), destinations=("model", END))
        builder.add_edge(START, "begin")
        builder.add_edge("approve", "tools")
        compiled = builder.compile(checkpointer=checkpointer, name="ark_agent")
        # Under `astream_events`, a subgraph writes everything that it streams to its
        # parent graph; each agent would write the question, which a plain channel
        # refuses.
        compiled.stream_channels = compiled.output_channels
        return compiled

    def _begin(self, state: AgentState) -> Command[str]:
        number, n, problem = state.get("agent", 0), self.ark.settings.n_agents, None
        if number not in range(n):
            raise InvalidInput(
                f"agent: expected a number from 0 to {n - 1}, got {number!r}"
            )
        about = state.get("ark_run") or {"id": uuid.uuid4().hex}
        session = self.run(about["id"], state["question"]).sessions[number]
        try:
            session.messages[0] = Message.system(self.ark.prompt())
        except GraphretError as error:
            problem = error
            session.end("failed", str(problem))
        return self._next({"run": about}, session, "model", problem)

    def _load(self, state: AgentState) -> tuple[ArkSession, ArkRun]:
        session = ArkSession.from_dict(state["agents"][0])
        run = self.run(state["run"]["id"], session.question)
        run.began = min(
            run.began, time.perf_counter() - session.seconds
        )  # a run may go on in another process
        return session, run

    def _model(self, state: AgentState) -> NodeSteps:
        session, run = self._load(state)
        if state["remaining"] <= (3 if self.approve else 2):
            session.end(
                "steps", "LangGraph's recursion limit leaves no room for another step"
            )
        problem = yield from self.ark.ask(session, run)
        if session.unanswered:
            calls = [
                {"tool": call.name, "arguments": call.parsed}
                for call in session.messages[-1].tool_calls
            ]
            _tell(
                "reply",
                session,
                step=len(session.steps),
                text=session.steps[-1].text,
                calls=calls,
            )
        waits = session.unanswered and self._to_approve(session)
        return self._next(
            {"refused": {}}, session, "approve" if waits else "tools", problem
        )

    def _tools(self, state: AgentState) -> NodeSteps:
        session, run = self._load(state)
        problem = yield from self.ark.answer(session, run, state.get("refused"))
        step = session.steps[-1].to_dict()
        _tell("step", session, step=step.pop("number"), **step)
        return self._next({}, session, "model", problem)

    def _to_approve(self, session: ArkSession) -> list[ToolCall]:
        return [call for call in session.pending if call.name in self.approve]

    def _approve(self, state: AgentState) -> Json:
        """Interrupt the graph until a person decides; anything but `True` refuses."""
        session, run = self._load(state)
        calls = self._to_approve(session)
        requests = [
            {"id": call.id, "tool": call.name, "arguments": call.parsed}
            for call in calls
        ]
        about = {
            "agent": session.agent + 1,
            "step": len(session.steps),
            "question": session.question,
        }
        decision = interrupt({**about, "calls": requests})
        run.began = max(
            run.began, time.perf_counter() - session.seconds
        )  # the time spent waiting for a person does not count
        decisions = {
            call.id: decision.get(call.id)
            if isinstance(decision, Mapping)
            else decision
            for call in calls
        }
        default_reason = "it was not approved"
        refused = {
            call_id: verdict if isinstance(verdict, str) else default_reason
            for call_id, verdict in decisions.items()
            if verdict is not True
        }
        return {"refused": refused}

    def _next(
        self,
        update: Json,
        session: ArkSession,
        after: str,
        problem: GraphretError | None,
    ) -> Command[str]:
        """Save the agent, and go to the next node, or to the end if it has stopped."""
        if self.ark.on_failure == "raise" and problem is not None:
            raise RetrievalFailed(f"ark failed: {problem}") from problem
        update = update | {"agents": [session.to_dict()]}
        if session.stop is None:
            return Command(update=update, goto=after)
        _tell(
            "end",
            session,
            stop=session.stop,
            error=session.error,
            selection=session.selection,
        )
        return Command(update=update | {"selection": list(session.selection)}, goto=END)


def _tell(event: str, session: ArkSession, **details: Any) -> None:
    """Write to LangGraph's custom stream."""
    get_stream_writer()({"event": event, "agent": session.agent + 1, **details})

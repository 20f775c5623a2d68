"""One exploring agent as a LangGraph graph: ask the model, have its calls approved, run them, and again."""

from __future__ import annotations

import time
import uuid
from functools import lru_cache
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from typing_extensions import Unpack

from graphret.ark import Ark, ArkSession, Board
from graphret.ark.agent import Turn, answer, ask
from graphret.ark.retriever import nothing_selected
from graphret.ark.run import now
from graphret.ark.tools import as_store_error
from graphret.errors import GraphretError, InvalidInput, RetrievalFailed
from graphret.llm.chat import ToolCall
from graphret.retriever import adrive, drive
from graphret.search.fields import NodeText
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from langchain_graphret.ark.approval import Approve, asks_for, refused
from langchain_graphret.ark.models import AgentOptions, Models, core_ark
from langchain_graphret.ark.state import AgentInput, AgentOutput, AgentState, Json
from langchain_graphret.ark.tools import LangChainToolbox

#: Why an agent that LangGraph leaves no step stopped.
NO_ROOM = "LangGraph's recursion limit leaves no room for another step"

#: A compiled agent.
AgentGraph: TypeAlias = CompiledStateGraph[AgentState, None, AgentInput, AgentOutput]

_RUNS = 1024  # whose boards are kept at most


def create_ark_agent(
    model: Models,
    store: GraphStore,
    index: TextIndex,
    *,
    approve: Approve | None = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    **options: Unpack[AgentOptions],
) -> AgentGraph:
    """Return an exploring agent, to be a node of your own graph: ``question`` in, ``agents`` and ``selection`` out.

    The parameters are those of `create_ark_graph`, which fans several out and joins them by a vote; here `n_agents` is
    1 by default. To fan out yourself, say how many there are and send each its number: ``Send("agent", {"question":
    question, "agent": 1})``. Your state needs a channel that merges what they come to: ``agents: Annotated[list,
    by_agent]``. With ``on_failure="raise"`` an agent that is the only one raises `RetrievalFailed` where it ends with
    nothing selected; one of several does not: others may have, and ``selection`` tells.

    Examples
    --------
    >>> builder.add_node("explore", create_ark_agent(model, store, index))  # doctest: +SKIP
    """
    given: AgentOptions = {"n_agents": 1, **options}
    ark = core_ark(model, store, index, **given)
    return Agent(ark, given.get("text"), approve, joined=False).compile(checkpointer)


class Agent:
    """The nodes of an agent, which those of one run share.

    ``begin`` describes the graph to it, ``model`` asks it for its next calls, ``approve`` has a person look at them,
    and ``tools`` runs them: the two halves of the loop in `graphret.ark.agent`. A checkpoint follows each.

    Parameters
    ----------
    ark
        Models, prompt and settings.
    text
        How nodes become the text of which agents see excerpts.
    approve
        See `create_ark_graph`.
    joined
        Whether a vote follows, which says whether anything was selected.
    """

    def __init__(self, ark: Ark, text: NodeText | None, approve: Approve | None, *, joined: bool) -> None:
        self.ark = ark
        self.joined = joined
        self.asks = asks_for(approve)
        self.toolbox = LangChainToolbox(ark.store, ark.index, ark.settings, text)
        self.board = lru_cache(_RUNS)(lambda run: Board(ark.settings.n_agents, ark.settings))

    def compile(self, checkpointer: BaseCheckpointSaver[Any] | bool | None = None) -> AgentGraph:
        """Return the graph."""
        builder = StateGraph(AgentState, input_schema=AgentInput, output_schema=AgentOutput)
        builder.add_node("begin", self._begin, destinations=("model", END))
        builder.add_node(
            "model", RunnableLambda(self._model, self._amodel, name="model"), destinations=("approve", "tools", END)
        )
        builder.add_node("approve", self._approve)
        builder.add_node("tools", RunnableLambda(self._tools, self._atools, name="tools"), destinations=("model", END))
        builder.add_edge(START, "begin")
        builder.add_edge("approve", "tools")
        compiled = builder.compile(checkpointer=checkpointer, name="ark_agent")
        # Under `astream_events` a node that is a graph writes all that it streams to the graph around it; the question
        # would come once an agent, which no plain channel takes.
        compiled.stream_channels = compiled.output_channels
        return compiled

    def _begin(self, state: AgentState) -> Command[str]:
        number, problem, prompt = self._number(state.get("agent", 0)), None, ""
        run = state.get("ark_run") or new_run()
        self.board(run["id"])  # its clock starts
        try:
            prompt = self.ark.prompt()
        except Exception as error:
            problem = as_store_error(error)
        session = self.ark.session(state.get("question"), number, prompt)
        if problem is not None:
            session.end("failed", str(problem))
        return self._next(session, run, "model", problem)

    def _model(self, state: AgentState) -> Command[str]:
        session, board = self._load(state)
        return self._asked(state, session, drive(self._ask(state, session, board)))

    async def _amodel(self, state: AgentState) -> Command[str]:
        session, board = self._load(state)
        return self._asked(state, session, await adrive(self._ask(state, session, board)))

    def _tools(self, state: AgentState) -> Command[str]:
        session, board = self._load(state)
        return self._answered(state, session, drive(answer(session, self.toolbox, board, state.get("refused"))))

    async def _atools(self, state: AgentState) -> Command[str]:
        session, board = self._load(state)
        return self._answered(state, session, await adrive(answer(session, self.toolbox, board, state.get("refused"))))

    def _approve(self, state: AgentState) -> Json:
        session, board = self._load(state)
        why = refused(session, self._to_approve(session))
        board.began = max(board.began, time.perf_counter() - session.seconds)  # waiting for a person costs no time
        return {"refused": why}

    def _number(self, number: int) -> int:
        n = self.ark.settings.n_agents
        if number not in range(n):
            raise InvalidInput(
                f"agent: a number from 0 to {n - 1} is expected, not {number!r}; a run goes on with as many"
            )
        return number

    def _load(self, state: AgentState) -> tuple[ArkSession, Board]:
        session, board = ArkSession.from_dict(state["agents"][0]), self.board(state["run"]["id"])
        board.began = min(board.began, time.perf_counter() - session.seconds)  # a run may go on in another process
        return session, board

    def _ask(self, state: AgentState, session: ArkSession, board: Board) -> Turn:
        if state["remaining"] <= (2 if self.asks is None else 3):
            session.end("steps", NO_ROOM)
        number = self._number(session.agent)
        return ask(session, self.ark.models[number], self.ark.temperatures[number], self.toolbox, board)

    def _asked(self, state: AgentState, session: ArkSession, problem: GraphretError | None) -> Command[str]:
        if session.unanswered:
            calls = [{"tool": call.name, "arguments": call.parsed} for call in session.messages[-1].tool_calls]
            _tell("reply", session, step=len(session.steps), text=session.steps[-1].text, calls=calls)
        after = "approve" if session.unanswered and self._to_approve(session) else "tools"
        return self._next(session, state["run"], after, problem)

    def _answered(self, state: AgentState, session: ArkSession, problem: GraphretError | None) -> Command[str]:
        step = session.steps[-1].to_dict()
        _tell("step", session, step=step.pop("number"), **step)
        return self._next(session, state["run"], "model", problem)

    def _to_approve(self, session: ArkSession) -> list[ToolCall]:
        return [call for call in session.pending if self.asks(call)] if self.asks is not None else []

    def _next(self, session: ArkSession, run: Json, after: str, problem: GraphretError | None) -> Command[str]:
        """Save the agent and go to the node after this, or to the end where it has stopped."""
        alone = not self.joined and self.ark.settings.n_agents == 1
        if self.ark.on_failure == "raise":
            if (problem := problem or session.problem) is not None:
                raise RetrievalFailed(f"ark failed: {problem}") from problem
            if alone and session.stop is not None and not session.selection:
                raise nothing_selected([session])
        update: Json = {"agents": [session.to_dict()], "run": run, "ark_run": run, "refused": {}}
        if session.stop is None:
            return Command(update=update, goto=after)
        _tell("end", session, stop=session.stop, error=session.error, selection=session.selection)
        return Command(update=update | {"selection": list(session.selection)}, goto=END)


def new_run() -> Json:
    """Return what the agents of a run know it by."""
    return {"id": uuid.uuid4().hex, "created": now()}


def _tell(event: str, session: ArkSession, **said: Any) -> None:
    """Write to LangGraph's custom stream."""
    get_stream_writer()({"event": event, "agent": session.agent + 1, **said})

"""Exploring agents with a vote as a LangGraph graph, and as a LangChain retriever.

Each agent is a subgraph.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from graphret.ark import Ark, ArkRun, ArkRunRetriever, ArkSession, ArkSettings
from graphret.ark.retriever import OnRun
from graphret.content import Content
from graphret.retriever import Retriever
from graphret.search.index import TextIndex, require_k
from graphret.stores.base import GraphStore
from graphret.where import WhereLike
from langchain_graphret.ark.agent import Agent, Approve, core_ark
from langchain_graphret.chat import ChatModelLike
from langchain_graphret.retriever import CoreRetriever, Part
from langchain_graphret.seeds import LangChainRetriever
from langchain_graphret.state import (
    AnswerOutput,
    Checkpointer,
    Json,
    NodeSteps,
    QuestionInput,
    QuestionState,
    accept_question,
    answer_update,
    node,
    question_of,
    retrieved,
)


def by_agent(old: list[Json] | None, new: list[Json]) -> list[Json]:
    """Merge agents by number, newer ones replacing older; an empty list resets."""
    if not new:
        return []
    by_number = {agent["agent"]: agent for agent in [*(old or ()), *new]}
    return [by_number[number] for number in sorted(by_number)]


class ArkOutput(AnswerOutput, total=False):
    """The output, with `agents` and `votes`.

    They are what `ArkSession.to_dict` and `VotedNode.to_dict` return.
    """

    agents: Annotated[list[Json], by_agent]
    votes: list[Json]


class ArkState(ArkOutput, QuestionState, total=False):
    """The state of `create_ark_graph`, plain JSON; `ark_run` has the run's id."""

    ark_run: Json


#: A compiled graph of agents.
ArkGraph: TypeAlias = CompiledStateGraph[ArkState, None, QuestionInput, ArkOutput]


def create_ark_graph(
    model: ChatModelLike | Sequence[ChatModelLike],
    store: GraphStore,
    index: TextIndex,
    *,
    n_agents: int | None = None,
    settings: ArkSettings | None = None,
    hints: str = "",
    temperature: float | Sequence[float | None] | None = None,
    fallback: LangChainRetriever | Retriever | None = None,
    fill: bool = True,
    on_failure: str = "fallback",
    on_run: OnRun | None = None,
    k: int = 10,
    approve: Approve = False,
    checkpointer: Checkpointer = None,
) -> ArkGraph:
    """Return a LangGraph graph whose agents explore a graph and vote (ARK, section 3).

    A question goes in, ``{"question": …}``, and `ArkOutput` comes out; ``k`` and
    ``where`` of the input are used instead of the graph's own `k`, and to filter what
    is returned. As a node over `MessagesState` it takes the last human message for the
    question, and adds one that tells the hits. The agents run at once, each in a
    subgraph of its own, in both `invoke` and `ainvoke`; cancelling the latter stops all
    of them.

    Parameters
    ----------
    model
        The chat model that drives the agents, LangChain's or graphret's, or one for
        each of them. One that cannot call tools is asked for JSON.
    store, index
        The graph, and what finds its nodes by text; give views of both, of one
        condition, to limit what agents may read.
    n_agents
        How many agents there are; as `settings` say (3) by default.
    settings, hints
        Steps, sizes, budgets and the way of voting; what else the agents should know of
        the domain. Agents look at budgets, and at the vote, before they ask their
        models.
    temperature
        Of all agents or one for each; `None` leaves it to the models.
    fallback
        Who fills the places below what the agents selected, and answers alone where
        they selected nothing: a LangChain or graphret retriever; by default a search of
        `index`. What it reads cannot be checked: with views give one that reads nothing
        else.
    fill, on_failure, on_run
        As `graphret.Ark` has them.
    k
        How many hits are returned: exactly as many where they qualify.
    approve
        Tool calls that a person must approve before they are run: `True` for all calls
        that read the graph, or names of tools that do (``global_search``,
        ``explore_neighborhood``). Each agent that waits interrupts the graph with
        ``{"agent", "step", "question", "calls"}``; resume by the ids of the interrupts
        with `True`, `False`, or an object with `True`, `False` or a reason for each
        call's id. A call that is not approved is reported to the model as refused.
        Needs a checkpointer.
    checkpointer
        As `StateGraph.compile` takes it. The state is plain JSON; with
        ``on_failure="raise"``, invoking again with `None` tries what failed once more.

    Raises
    ------
    InvalidInput
        When there are neither one nor `n_agents` models or temperatures, or one of
        store and index is a view and the other is none of the same condition; of a
        question, when it is empty, or `k` or `where` is malformed.

    Notes
    -----
    ``stream_mode="custom"`` with ``subgraphs=True`` tells of each agent's ``reply``,
    ``step`` and ``end`` as they happen, as objects with ``event`` and ``agent``.

    An agent takes two steps of LangGraph for each of its own, three with `approve`, and
    one to begin; where a recursion limit leaves no room for another, it ends with what
    it has selected. `create_ark_tool` makes the graph a tool.

    Examples
    --------
    >>> graph = create_ark_graph(model, store, index)  # doctest: +SKIP
    >>> question = "Who directed the films that Tom Hanks starred in?"
    >>> graph.invoke({"question": question})["hits"]  # doctest: +SKIP
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
    return _compiled(ark, require_k(k), approve, checkpointer)


def _compiled(
    ark: Ark, k: int, approve: Approve, checkpointer: Checkpointer
) -> ArkGraph:
    """Return the graph that fans out the agents of `ark` and joins them."""
    n_agents = ark.settings.n_agents

    def begin(state: ArkState) -> Json:
        """Check the question, and reset what an earlier one of the thread left."""
        question, update = accept_question(state, k)
        return {
            "agents": [],
            "ark_run": {"id": uuid.uuid4().hex, "created": ark.begin(question).created},
        } | update

    def fan_out(state: ArkState) -> list[Send]:
        question = state["asked"]["question"]
        shared = {"question": question, "ark_run": state["ark_run"]}
        return [
            Send("agent", {**shared, "agent": number}) for number in range(n_agents)
        ]

    def vote(state: ArkState) -> NodeSteps:
        sessions = [ArkSession.from_dict(agent) for agent in state["agents"]]
        seconds = max(session.seconds for session in sessions)
        question, depth, where = question_of({**state, **state["asked"]}, k)
        run = ArkRun(question, sessions, seconds, state["ark_run"]["created"])
        ark.report_run(run)
        hits = yield from retrieved(ArkRunRetriever(ark, run), question, depth, where)
        votes = {"votes": [vote.to_dict() for vote in run.votes]}
        return votes | answer_update(state, hits, "ark")

    builder = StateGraph(ArkState, input_schema=QuestionInput, output_schema=ArkOutput)
    builder.add_node("begin", begin)
    builder.add_node("agent", Agent(ark, approve).compile())
    builder.add_node("vote", node(vote))
    builder.add_edge(START, "begin")
    builder.add_conditional_edges("begin", fan_out, ["agent"])
    builder.add_edge("agent", "vote")
    builder.add_edge("vote", END)
    compiled = builder.compile(checkpointer=checkpointer, name="ark")
    return compiled.with_config(max_concurrency=n_agents + 4)  # so that all run at once


class ArkRetriever(CoreRetriever):
    """Let agents explore a graph, and retrieve what they vote for (ARK, section 3).

    Exactly `k` documents come back where that many qualify; evidence and traces are as
    `SageRetriever` has them.

    Parameters
    ----------
    model, store, index, n_agents, settings, hints, temperature, fallback, fill,
    on_failure, on_run
        As `create_ark_graph` has them.
    content, k, where, name, tags, metadata
        As `SageRetriever` has them.
    """

    model: Part[ChatModelLike | Sequence[ChatModelLike]]
    store: Part[GraphStore]
    index: Part[TextIndex]
    n_agents: int | None = None
    settings: Part[ArkSettings | None] = None
    hints: str = ""
    temperature: Part[float | Sequence[float | None] | None] = None
    fallback: Part[LangChainRetriever | Retriever | None] = None
    on_failure: str = "fallback"
    on_run: Part[OnRun | None] = None

    def __init__(
        self,
        model: ChatModelLike | Sequence[ChatModelLike],
        store: GraphStore,
        index: TextIndex,
        *,
        n_agents: int | None = None,
        settings: ArkSettings | None = None,
        hints: str = "",
        temperature: float | Sequence[float | None] | None = None,
        fallback: LangChainRetriever | Retriever | None = None,
        fill: bool = True,
        on_failure: str = "fallback",
        on_run: OnRun | None = None,
        content: Content | None = None,
        k: int = 10,
        where: WhereLike = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]  # fields of this class
            model=model,
            store=store,
            index=index,
            n_agents=n_agents,
            settings=settings,
            hints=hints,
            temperature=temperature,
            fallback=fallback,
            fill=fill,
            on_failure=on_failure,
            on_run=on_run,
            content=content,
            k=k,
            where=where,
            name=name,
            tags=tags,
            metadata=metadata,
        )
        self._check()

    def _make(self) -> Ark:
        return core_ark(
            self.model,
            self.store,
            self.index,
            n_agents=self.n_agents,
            settings=self.settings,
            hints=self.hints,
            temperature=self.temperature,
            fallback=self.fallback,
            fill=self.fill,
            on_failure=self.on_failure,
            on_run=self.on_run,
        )

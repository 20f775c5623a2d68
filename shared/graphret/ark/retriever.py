"""`Ark`: exploring agents as a retriever."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Sequence
from typing import Any

from graphret.ark.board import Board
from graphret.ark.calling import ToolCaller
from graphret.ark.prompt import system_prompt
from graphret.ark.run import Run
from graphret.ark.running import Agents, OnRun, OnStep, as_store_error, one_each, told
from graphret.ark.session import ArkSession
from graphret.ark.settings import ArkSettings
from graphret.ark.tools import Toolbox
from graphret.contracts import fulfils
from graphret.errors import GraphretError, InvalidInput, RetrievalFailed
from graphret.llm.chat import ChatModel
from graphret.llm.running import in_thread, run_sync
from graphret.retriever import (
    Ask,
    Call,
    Compute,
    IndexRetriever,
    Retriever,
    Steps,
    answered,
    filled,
    require_on_failure,
)
from graphret.search.fields import NodeText
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.stores.memory import MemoryStore
from graphret.types import Hit, Retrieval, Signals, Trace
from graphret.where import Where

#: Sampling temperature of agents, so that several of one model differ (ARK, section 4.3: 0.7 for trajectories).
TEMPERATURE = 0.7


class Ark(Retriever):
    """Let agents explore a graph by search and by neighbourhood, and rank what they select by votes (ARK, section 3).

    Parameters
    ----------
    model
        The chat model that drives the agents, or one for each of them. One that cannot call tools is asked for JSON.
    store, index
        The graph, and what finds its nodes by text; give views of both, of one condition, to limit what agents may
        read.
    settings
        Agents, steps, sizes, budgets and the way of voting.
    hints
        What else the agents should know of the domain, for the system prompt.
    temperature
        Of all agents or one for each; `None` leaves it to the model.
    text
        How nodes become the text of which agents see excerpts.
    fallback
        Who fills the places below what the agents selected, and answers alone where they selected nothing; by default
        a search of `index`. What it reads cannot be checked: with views give one that reads nothing else.
    fill
        Whether it fills: exactly k hits come back then where that many qualify.
    on_failure
        ``"fallback"`` goes on with the agents that are left, answers what a model calls wrongly with an instruction,
        and says so in the trace; ``"raise"`` raises `RetrievalFailed` when a model, the store or the index fails an
        agent, a model's reply is wrong (see `ArkSession.observe`) or an agent does not finish within its steps, which
        stops the others, or no agent selects a node, and what `on_run` raises. An agent that a budget of the run or a
        settled vote stops need not finish.
    on_step, on_run
        Called after each step of an agent and when it stops, and with each `Run` that has ended, to show or to record
        it: also with one that was cancelled or interrupted, with what was done until then.

    Raises
    ------
    InvalidInput
        When there are neither one nor `settings.n_agents` models or temperatures, one of store and index is a view and
        the other is none of the same condition, or an argument is malformed.
    """

    name = "ark"

    def __init__(
        self,
        model: ChatModel | Sequence[ChatModel],
        store: GraphStore,
        index: TextIndex,
        *,
        settings: ArkSettings = ArkSettings(),  # noqa: B008 -- it is frozen
        hints: str = "",
        temperature: float | Sequence[float | None] | None = TEMPERATURE,
        text: NodeText | None = None,
        fallback: Retriever | None = None,
        fill: bool = True,
        on_failure: str = "fallback",
        on_step: OnStep | None = None,
        on_run: OnRun | None = None,
    ) -> None:
        self.store = store
        self.index = index
        self.settings = settings
        if text is not None and not isinstance(text, NodeText):
            raise InvalidInput(f"text: a NodeText is expected, not {type(text).__name__}")
        self.toolbox = Toolbox(store, index, settings, text=text)
        if not isinstance(hints, str):
            raise InvalidInput(f"hints: a string is expected, not {type(hints).__name__}")
        self.models = callers(model, settings.n_agents)
        self.temperatures: list[Any] = one_each("temperature", temperature, settings.n_agents)
        for one in self.temperatures:
            _require_temperature(one)
        if fallback is not None and not isinstance(fallback, Retriever):
            raise InvalidInput(f"fallback: a retriever of graphret is expected, not {type(fallback).__name__}")
        for what, given in (("on_step", on_step), ("on_run", on_run)):
            if given is not None and not callable(given):
                raise InvalidInput(f"{what}: a function is expected, not {type(given).__name__}")
        self.hints = hints
        self._prompt: tuple[object, str] | None = None  # and the state of the graph that it describes
        self.fallback = IndexRetriever(index, store) if fallback is None else fallback
        self.fill = fill
        self.on_failure = require_on_failure(on_failure)
        self.on_step = on_step
        self.on_run = on_run

    def explore(self, question: str) -> Run:
        """Let the agents explore and return all that they did; `RetrievalFailed` as `on_failure` says."""
        ended = run_sync(_ended(self._explore(question, blocking=True)))
        if isinstance(ended, BaseException):
            raise ended
        return ended

    async def aexplore(self, question: str) -> Run:
        """Do what `explore` does without blocking the event loop; cancelling it stops every agent."""
        return await self._explore(question, blocking=False)

    def prompt(self, *, refresh: bool = False) -> str:
        """Return the system message, which describes the graph.

        The schema of a `MemoryStore` is read again when the graph has changed, that of any other store once.

        Parameters
        ----------
        refresh
            Read it again: after a graph that is elsewhere has got new types or relations.
        """
        state = self._state()
        known = None if refresh else self._prompt
        if known is None or known[0] is not state:
            made = system_prompt(self.store.schema(), self.settings, hints=self.hints)
            self._prompt = known = state, made
        return known[1]

    async def aprompt(self) -> str:
        """Do what `prompt` does without blocking the event loop."""
        known = self._prompt
        if known is not None and known[0] is self._state():
            return known[1]
        return await in_thread(self.prompt)  # reads the schema

    def _state(self) -> object:
        """What is another object when the graph has changed, as far as its store tells."""
        return self.store.graph if isinstance(self.store, MemoryStore) else None

    def session(self, question: str, agent: int, prompt: str) -> ArkSession:
        """An agent, by its number from 0, that has not begun."""
        return ArkSession(question, prompt, agent=agent, settings=self.settings, model=self.models[agent].name)

    async def _explore(self, question: str, *, blocking: bool) -> Run:
        board, numbers = Board(self.settings.n_agents, self.settings), range(self.settings.n_agents)
        run = Run(question, [self.session(question, number, "") for number in numbers], how=self.settings.vote)
        with told(run, board, self.on_run, strict=self.on_failure == "raise"):
            problem = await self._begin(run, board)
            agents = Agents(
                run.sessions,
                self.models,
                self.temperatures,
                self.toolbox,
                board,
                self.on_step,
                blocking,
                strict=self.on_failure == "raise",
            )
            await agents.run()
        problem = problem or next(iter(agents.failures), None)
        if problem is not None and self.on_failure == "raise":
            raise RetrievalFailed(f"ark failed: {problem}") from problem
        return run

    async def _begin(self, run: Run, board: Board) -> GraphretError | None:
        """Give the agents their prompt; where the graph cannot be read for it they end, and why is returned."""
        try:
            async with asyncio.timeout(board.remaining) as limit:
                prompt = await self.aprompt()
        except Exception as error:
            problem = None if limit.expired() else as_store_error(error)
            for session in run.sessions:
                session.end(*(("seconds",) if problem is None else ("failed", str(problem))))
            return problem
        run.sessions[:] = [self.session(run.question, session.agent, prompt) for session in run.sessions]
        return None

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        run: Run | None = None
        if query.strip():
            run = yield Call(lambda: self.explore(query), lambda: self.aexplore(query))
        answer: Retrieval = yield from Explored(self, run)._steps(query, k, where)
        return answer


async def _ended(exploring: Awaitable[Run]) -> Run | BaseException:
    """Return what would end the event loop that all synchronous calls share."""
    try:
        return await exploring
    except (KeyboardInterrupt, SystemExit) as error:
        return error


class Explored(Retriever):
    """What `ark` makes of a run that has ended: hits with evidence, filled up, and the trace.

    For frameworks that run the agents in their own way. `run` is `None` where there was nothing to ask.
    """

    name = "ark"

    def __init__(self, ark: Ark, run: Run | None) -> None:
        self.ark = ark
        self.run = run

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        run, fallback = self.run, self.ark.fallback
        trace = Trace()
        hits: list[Hit] = []
        if run is not None:
            trace.extend(run.trace)
            if run.untold:
                trace.note("untold", error=run.untold)
            for session in run.sessions:
                if self.ark.on_failure == "raise" and (problem := session.problem) is not None:
                    raise RetrievalFailed(f"ark failed: {problem}") from problem
                if session.failed:
                    trace.note("fallback", failed=f"agent {session.agent + 1}", error=session.error)
            found = yield Compute(lambda: self._hits(run, k, where))
            if isinstance(found, GraphretError):
                if self.ark.on_failure == "raise":
                    raise RetrievalFailed(f"ark failed: {found}") from found
                trace.note("fallback", failed="store", error=f"{type(found).__name__}: {found}")
            else:
                hits = found
        signals = Signals(candidates=len(hits), walked_edges=run is not None and bool(hits) and _walked(run))
        if hits and run is not None:
            signals.confidence = max(vote.votes for vote in run.votes) / len(run.sessions)
        if len(hits) >= k or (hits and not self.ark.fill):
            return Retrieval(query, k, hits[:k], signals, trace)
        if not hits:
            if run is not None and not run.votes and self.ark.on_failure == "raise":
                raise nothing_selected(run.sessions)
            trace.note("fallback", reason="no agent selected a node that qualifies")
        result = yield Ask(fallback, query, k + len(hits), where)
        if isinstance(result, Exception) and hits:
            answered(result, fallback, self.ark.on_failure, trace)
            return Retrieval(query, k, hits, signals, trace)
        if isinstance(result, Exception):
            raise result
        trace.extend(result.trace, f"{fallback}/")
        signals.confidence = signals.confidence if hits else result.signals.confidence
        labels = {hit.node.label for hit in hits}  # a question for films is better filled with films than with people
        others = sorted(result.hits, key=lambda hit: hit.node.label not in labels)
        return Retrieval(query, k, filled(hits, others if hits else result.hits, k), signals, trace)

    def _hits(self, run: Run, k: int, where: Where | None) -> list[Hit] | GraphretError:
        """The first `k` of the vote that satisfy a condition; nodes that are gone meanwhile are left out."""
        votes, evidence = run.votes, run.evidence()
        try:
            nodes = self.ark.store.get([vote.id for vote in votes]) if votes else []
            ends = list(dict.fromkeys(why.source for whys in evidence.values() for why in whys if why.source))
            known = {node.id: node for node in [*nodes, *(self.ark.store.get(ends) if ends else [])] if node}
        except Exception as error:
            return as_store_error(error)
        hits = [
            Hit(node, score, tuple(why.named(known) for why in evidence[vote.id]))
            for vote, node, score in zip(votes, nodes, scores(len(votes)), strict=True)
            if node is not None and (where is None or where.matches(node))
        ]
        return hits[:k]


def nothing_selected(sessions: Sequence[ArkSession]) -> RetrievalFailed:
    """What is raised of agents that have stopped, none of them with a node, where that is an error: how each ended."""
    ends = (f"agent {one.agent + 1} {one.stop}" + (f": {one.error}" if one.error else "") for one in sessions)
    return RetrievalFailed(f"ark failed: no agent selected a node ({', '.join(ends)})")


def _require_temperature(given: object) -> None:
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if given is not None and not (number and 0 <= given < math.inf):  # type: ignore[operator]
        raise InvalidInput(f"temperature: a number of at least 0, or None, is expected, not {given!r}")


def callers(model: ChatModel | Sequence[ChatModel], n: int) -> list[ChatModel]:
    """Return a model that calls tools for each of `n` agents; agents of one model share it."""
    models: list[Any] = one_each("model", model, n)
    for one in models:
        if not fulfils(one, ChatModel):
            raise InvalidInput(f"model: a chat model is expected, not {type(one).__name__}")
    made = {id(one): ToolCaller(one) for one in models}
    return [made[id(one)] for one in models]


def scores(n: int) -> list[float]:
    """Return scores for the places of a vote, from 1 down to above 0."""
    return [1.0 - place / n for place in range(n)]


def _walked(run: Run) -> bool:
    selected = {one.id for one in run.votes}
    return any(
        selected.intersection(call.nodes)
        for session in run.sessions
        for step in session.steps
        for call in step.calls
        if call.edges
    )

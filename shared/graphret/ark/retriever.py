"""`Ark`: exploring agents as a retriever."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any, TypeAlias

from graphret.ark.agent import Board, answer, ask
from graphret.ark.prompt import system_prompt
from graphret.ark.run import Run
from graphret.ark.session import ArkSession
from graphret.ark.settings import ArkSettings
from graphret.ark.tool_caller import ToolCaller
from graphret.ark.tools import Toolbox, as_store_error
from graphret.contracts import fulfils
from graphret.errors import GraphretError, InvalidInput, RetrievalFailed
from graphret.llm.chat import ChatModel
from graphret.llm.event_loop import in_thread, run_sync
from graphret.retriever import (
    Ask,
    Call,
    Compute,
    IndexRetriever,
    Retriever,
    Steps,
    adrive,
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

_log = logging.getLogger(__name__)

#: Told of an agent after each of its steps, and when it stops.
OnStep: TypeAlias = Callable[[ArkSession], None]

#: Told of every run when it has ended.
OnRun: TypeAlias = Callable[[Run], None]

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
        When there are neither one nor `settings.n_agents` models or temperatures, or one of store and index is a view
        and the other is none of the same condition.
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
        self.toolbox = Toolbox(store, index, settings, text=text)
        self.models = _callers(model, settings.n_agents)
        self.temperatures = _one_each("temperature", temperature, settings.n_agents)
        self.hints = hints
        self.fallback = IndexRetriever(index, store) if fallback is None else fallback
        self.fill = fill
        self.on_failure = require_on_failure(on_failure)
        self.on_step = on_step
        self.on_run = on_run
        self._prompt: str | None = None

    def explore(self, question: str) -> Run:
        """Let the agents explore and return all that they did; `RetrievalFailed` as `on_failure` says."""
        return run_sync(self._explore(question, _in_thread))

    async def aexplore(self, question: str) -> Run:
        """Do what `explore` does without blocking the event loop; cancelling it stops every agent."""
        return await self._explore(question, methodcaller("awaited"))

    def prompt(self) -> str:
        """Return the system message, which describes the graph; one outside this process is read once."""
        if self._prompt is None or isinstance(self.store, MemoryStore):
            self._prompt = system_prompt(self.store.schema(), self.settings, hints=self.hints)
        return self._prompt

    def session(self, question: str, agent: int, prompt: str) -> ArkSession:
        """An agent, by its number from 0, that has not begun."""
        return ArkSession(question, prompt, agent=agent, settings=self.settings, model=self.models[agent].name)

    async def _explore(self, question: str, do: Callable[[Call[Any]], Any]) -> Run:
        board, numbers = Board(self.settings.n_agents, self.settings), range(self.settings.n_agents)
        run = Run(question, [self.session(question, number, "") for number in numbers], how=self.settings.vote)
        agents = _Agents(self, run, board, do)
        try:
            await agents.begin()
            await agents.run_all()
        except BaseException as error:
            for session in run.sessions:
                session.end("cancelled", None if isinstance(error, asyncio.CancelledError) else repr(error))
            run.seconds = board.seconds
            self._tell(run, strict=False)  # what stopped the run goes on
            raise
        run.seconds = board.seconds
        self.tell(run)
        if agents.failures and self.on_failure == "raise":
            raise RetrievalFailed(f"ark failed: {agents.failures[0]}") from agents.failures[0]
        return run

    def tell(self, run: Run) -> None:
        """Hand a run that has ended to `on_run`; what that raises is logged and noted, unless failures are raised.

        The answer was paid for, and is not lost because it could not be recorded.
        """
        self._tell(run, strict=self.on_failure == "raise")

    def _tell(self, run: Run, *, strict: bool) -> None:
        try:
            if self.on_run is not None:
                self.on_run(run)
        except Exception as error:
            if strict:
                raise
            _log.warning("a run could not be handed on", exc_info=True)
            run.on_run_error = f"{type(error).__name__}: {error}"

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        run: Run | None = None
        if query.strip():
            run = yield Call(lambda: self.explore(query), lambda: self.aexplore(query))
        answer: Retrieval = yield from Explored(self, run)._steps(query, k, where)
        return answer


async def _in_thread(step: Call[Any]) -> Any:
    """Do a step by its blocking form: the asynchronous clients of many packages serve one event loop alone, theirs."""
    return await in_thread(step.work)


class _Agents:
    """The agents of one run, each a task on the event loop."""

    def __init__(self, ark: Ark, run: Run, board: Board, do: Callable[[Call[Any]], Any]) -> None:
        self.ark = ark
        self.run = run
        self.board = board
        self.do = do
        self.strict = ark.on_failure == "raise"
        self.failures: list[GraphretError] = []

    async def begin(self) -> None:
        """Give the agents their prompt; they end where the graph cannot be read for it."""
        try:
            async with asyncio.timeout(self.board.remaining) as limit:
                prompt = await in_thread(self.ark.prompt)
        except Exception as error:
            problem = None if limit.expired() else as_store_error(error)
            self.failures += [problem] if problem else []
            for session in self.run.sessions:
                session.end("failed" if problem else "seconds", str(problem) if problem else None)
                self._tell(session)
            return
        made = [self.ark.session(self.run.question, session.agent, prompt) for session in self.run.sessions]
        self.run.sessions[:] = made

    async def run_all(self) -> None:
        """Run all agents to their ends; cancelling this stops every one of them."""
        tasks = {asyncio.create_task(self._agent(session)) for session in self.run.sessions}
        waiting = set(tasks)
        try:
            while waiting:
                done, waiting = await asyncio.wait(
                    waiting, timeout=self.board.remaining, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    task.result()
                reason = "cancelled" if self.strict and self.failures else self.board.reason_to_stop()
                if waiting and reason:
                    stopped = [session for session in self.run.sessions if session.stop is None]
                    for session in stopped:
                        session.end(reason)
                    await _cancelled(waiting)
                    waiting = set()
                    for session in stopped:
                        self._tell(session)
        finally:
            await _cancelled(tasks)

    async def _agent(self, session: ArkSession) -> None:
        model, temperature = self.ark.models[session.agent], self.ark.temperatures[session.agent]
        while session.stop is None:
            asked = await adrive(ask(session, model, temperature, self.ark.toolbox, self.board), self.do)
            problem = asked or await adrive(answer(session, self.ark.toolbox, self.board), self.do)
            if problem is not None:
                self.failures.append(problem)
                if self.strict:
                    session.end("failed", str(problem))
            self._tell(session)

    def _tell(self, session: ArkSession) -> None:
        self.board.post(session)
        if self.ark.on_step is not None:
            self.ark.on_step(session)


async def _cancelled(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Explored(Retriever):
    """What `ark` makes of a run that has ended: hits with evidence, filled up, and the trace.

    For frameworks that run the agents in their own way. `run` is `None` where there was nothing to ask.
    """

    name = "ark"

    def __init__(self, ark: Ark, run: Run | None) -> None:
        self.ark = ark
        self.run = run

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        run, fallback, trace = self.run, self.ark.fallback, Trace()
        strict = self.ark.on_failure == "raise"
        hits: list[Hit] = []
        signals = Signals(walked_edges=False)
        if run is not None:
            self._note(run, trace)
            try:
                hits = yield Compute(lambda: self._hits(run, where))
            except Exception as error:
                problem = as_store_error(error)
                if strict:
                    raise RetrievalFailed(f"ark failed: {problem}") from error
                trace.note("fallback", failed="store", error=f"{type(problem).__name__}: {problem}")
        signals.candidates = len(hits[:k])
        if run is not None and hits:
            signals.walked_edges = run.walked
            signals.confidence = max(vote.votes for vote in run.votes) / len(run.sessions)
        if len(hits) >= k or (hits and not self.ark.fill):
            return Retrieval(query, k, hits[:k], signals, trace)
        if not hits:
            if run is not None and not run.votes and strict:
                raise nothing_selected(run.sessions)
            trace.note("fallback", reason="no agent selected a node that qualifies")
        result = yield Ask(fallback, query, k + len(hits), where)
        if isinstance(result, Exception):
            if not hits:
                raise result
            answered(result, fallback, self.ark.on_failure, trace)
            return Retrieval(query, k, hits, signals, trace)
        trace.extend(result.trace, f"{fallback}/")
        signals.confidence = signals.confidence if hits else result.signals.confidence
        labels = {hit.node.label for hit in hits}  # a question for films is better filled with films than with people
        others = sorted(result.hits, key=lambda hit: hit.node.label not in labels)
        return Retrieval(query, k, filled(hits, others if hits else result.hits, k), signals, trace)

    def _note(self, run: Run, trace: Trace) -> None:
        trace.extend(run.trace)
        if run.on_run_error:
            trace.note("on_run", error=run.on_run_error)
        for session in run.sessions:
            if self.ark.on_failure == "raise" and (problem := session.problem) is not None:
                raise RetrievalFailed(f"ark failed: {problem}") from problem
            if session.failed:
                trace.note("fallback", failed=f"agent {session.agent + 1}", error=session.error)

    def _hits(self, run: Run, where: Where | None) -> list[Hit]:
        """The nodes of the vote that satisfy a condition; those that are gone meanwhile are left out."""
        votes, evidence = run.votes, run.evidence()
        ends = [why.source for whys in evidence.values() for why in whys if why.source]
        wanted = list(dict.fromkeys([*(vote.id for vote in votes), *ends]))
        known = {node.id: node for node in (self.ark.store.get(wanted) if wanted else []) if node is not None}
        return [  # scores from 1 down to above 0
            Hit(node, 1.0 - place / len(votes), tuple(why.named(known) for why in evidence[vote.id]))
            for place, vote in enumerate(votes)
            if (node := known.get(vote.id)) is not None and (where is None or where.matches(node))
        ]


def nothing_selected(sessions: Sequence[ArkSession]) -> RetrievalFailed:
    """What is raised of agents that have stopped, none of them with a node, where that is an error: how each ended."""
    ends = (f"agent {one.agent + 1} {one.stop}" + (f": {one.error}" if one.error else "") for one in sessions)
    return RetrievalFailed(f"ark failed: no agent selected a node ({', '.join(ends)})")


def _callers(model: ChatModel | Sequence[ChatModel], n: int) -> list[ToolCaller]:
    """Return a model that calls tools for each of `n` agents; agents of one model share it."""
    models = _one_each("model", model, n)
    for one in models:
        if not fulfils(one, ChatModel):
            raise InvalidInput(f"model: a chat model is expected, not {type(one).__name__}")
    made = {id(one): ToolCaller(one) for one in models}
    return [made[id(one)] for one in models]


def _one_each(what: str, given: Any, n: int) -> list[Any]:
    """Return one of `given` for each of `n` agents: the same for all, or a list of as many."""
    if not isinstance(given, (list, tuple)):
        return [given] * n
    if len(given) != n:
        raise InvalidInput(f"{what}: {n} agents need one, or {n}, not {len(given)}")
    return list(given)

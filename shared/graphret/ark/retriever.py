"""`Ark`: exploring agents as a retriever, with one loop for every way to run it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import Any, TypeAlias

from graphret.ark.observation import encodable, failure
from graphret.ark.prompt import system_prompt
from graphret.ark.run import ArkRun, step_stage
from graphret.ark.session import ArkSession
from graphret.ark.settings import ArkSettings
from graphret.ark.tool_caller import ToolCaller
from graphret.ark.tools import CallOutcome, Toolbox, as_store_error
from graphret.contracts import implements
from graphret.errors import GraphretError, InvalidInput, ModelError, RetrievalFailed
from graphret.index_retriever import IndexRetriever
from graphret.llm.chat import ChatModel, Message
from graphret.llm.errors import as_chat_error
from graphret.llm.event_loop import in_thread, run_sync
from graphret.retriever import (
    Call,
    Compute,
    Retriever,
    Steps,
    adrive,
    backfill,
    require_on_failure,
)
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.trace import Trace, emit
from graphret.types import Hit, Retrieval, Signals
from graphret.where import Where

_log = logging.getLogger(__name__)

#: Told of every run when it has ended.
OnRun: TypeAlias = Callable[[ArkRun], None]

#: Half a turn of the loop: it yields what is to be done, is sent what came of it, and
#: returns what went wrong.
Turn: TypeAlias = Generator[Call[Any], Any, GraphretError | None]


class Ark(Retriever):
    """Let agents explore a graph, and rank what they select by votes (ARK, section 3).

    Parameters
    ----------
    model
        The chat model that drives the agents, or one for each of them. One that cannot
        call tools is asked for JSON.
    store, index
        The graph, and what finds its nodes by text; give views of both, of one
        condition, to limit what agents may read.
    settings, hints
        Agents, steps, sizes, budgets and the way of voting; what else the agents should
        know of the domain.
    temperature
        Of all agents or one for each; `None` leaves it to the model. The paper has 0.7,
        so that several agents of one model differ (ARK, section 4.3).
    fallback
        Who fills the places below what the agents selected, and answers alone where
        they selected nothing; by default a search of `index`. What it reads cannot be
        checked: with views give one that reads nothing else.
    fill
        Whether it fills: exactly k hits come back then where that many qualify.
    on_failure
        ``"fallback"`` goes on with the agents that are left, and says so in the trace;
        ``"raise"`` raises `RetrievalFailed` when a model, the store or the index fails
        an agent, an agent makes a call that cannot be run, or no agent selects a node.
    on_run
        Called with each `ArkRun` that has ended, to show or to record it: also with one
        that was cancelled or interrupted, with what was done until then. What it raises
        is logged.

    Raises
    ------
    InvalidInput
        When there are neither one nor `settings.n_agents` models or temperatures, or
        store and index are not views of the same condition.
    """

    name = "ark"

    def __init__(
        self,
        model: ChatModel | Sequence[ChatModel],
        store: GraphStore,
        index: TextIndex,
        *,
        settings: ArkSettings | None = None,
        hints: str = "",
        temperature: float | Sequence[float | None] | None = None,
        fallback: Retriever | None = None,
        fill: bool = True,
        on_failure: str = "fallback",
        on_run: OnRun | None = None,
    ) -> None:
        self.store = store
        self.index = index
        self.settings = settings = settings or ArkSettings()
        self.toolbox = Toolbox(store, index, settings)
        self.models = _callers(model, settings)
        self.temperatures = _one_each("temperature", temperature, settings.n_agents)
        self.hints = hints
        self.fallback = IndexRetriever(index, store) if fallback is None else fallback
        self.fill = fill
        self.on_failure = require_on_failure(on_failure)
        self.on_run = on_run
        self._prompt: str | None = None

    def explore(self, question: str) -> ArkRun:
        """Let the agents explore and return all that they did.

        `RetrievalFailed` as `on_failure` says.
        """
        # By blocking calls in threads: the asynchronous clients of many packages serve
        # one event loop alone, theirs.
        return run_sync(self._explore(question, lambda step: in_thread(step.run)))

    async def aexplore(self, question: str) -> ArkRun:
        """Do what `explore` does asynchronously; cancelling stops every agent."""
        return await self._explore(question, methodcaller("arun"))

    def prompt(self) -> str:
        """Return the system message; a graph outside this process is read once.

        A `GraphretError` says that the graph cannot be read.
        """
        if self._prompt is None or self.store.local_graph() is not None:
            try:
                self._prompt = encodable(
                    system_prompt(self.store.schema(), self.settings, hints=self.hints)
                )
            except Exception as error:
                raise as_store_error(error) from error
        return self._prompt

    def begin(self, question: str) -> ArkRun:
        """Return a run whose agents have not begun, nor been given their prompt."""
        new_session = partial(ArkSession, question, "", settings=self.settings)
        return ArkRun(
            question,
            [
                new_session(agent=number, model=model.name)
                for number, model in enumerate(self.models)
            ],
        )

    def ask(self, session: ArkSession, run: ArkRun) -> Turn:
        """Ask an agent's model for its next calls, unless the run is to end.

        Then the agent stops.
        """
        run.sessions[session.agent] = session
        if reason := run.reason_to_stop():
            session.end(reason)
        if session.stop is not None:
            return None
        model, started, remaining = (
            self.models[session.agent],
            run.elapsed,
            run.remaining,
        )
        request: Any = {
            "temperature": self.temperatures[session.agent],
            "timeout": remaining,
        }
        request |= {"messages": session.messages, "tools": self.toolbox.tools}
        try:
            reply = yield Call(
                partial(model.chat, **request),
                lambda: asyncio.wait_for(model.achat(**request), remaining),
            )
        except Exception as raised:
            error = as_chat_error(raised, model.name)
            late = run.remaining == 0 and isinstance(
                raised, (TimeoutError, GraphretError)
            )
            session.fail(
                TimeoutError() if late else error,
                started=started,
                seconds=run.elapsed - started,
            )
            emit(step_stage(session, session.steps[-1]))
            return None if late else error
        session.receive(reply, started=started, seconds=run.elapsed - started)
        return None

    def answer(
        self, session: ArkSession, run: ArkRun, refused: Mapping[str, str] | None = None
    ) -> Turn:
        """Run the calls of an agent's last reply, and tell it what came of them.

        `refused` has the ids of calls that a person did not approve, and why.
        """
        run.sessions[session.agent] = session
        if not session.unanswered:
            return None
        why, words = refused or {}, "A person refused this call: {}. Do something else."
        calls = [call for call in session.pending if call.id not in why]
        no = [
            CallOutcome(call, failure(words.format(why[call.id])))
            for call in session.pending
            if call.id in why
        ]
        try:
            done: list[CallOutcome] = yield Call(
                partial(self.toolbox.run_calls, calls),
                lambda: asyncio.wait_for(self.toolbox.arun_calls(calls), run.remaining),
            )
        except TimeoutError:
            session.end("seconds")
            return None
        session.observe([*done, *no])
        emit(step_stage(session, session.steps[-1]))
        if problem := next(
            (outcome.failure for outcome in done if outcome.failure is not None), None
        ):
            return problem
        wrong = (
            None
            if no
            else next((call for call in session.steps[-1].calls if call.failed), None)
        )
        about = f"agent {session.agent + 1}, step {len(session.steps)}"
        return (
            None
            if wrong is None
            else ModelError(f"{about}, {wrong.tool}: {wrong.error}")
        )

    async def _explore(self, question: str, do: Callable[[Call[Any]], Any]) -> ArkRun:
        run, reason, strict = self.begin(question), None, self.on_failure == "raise"
        prompt = asyncio.ensure_future(in_thread(self.prompt))
        tasks = [
            asyncio.create_task(self._agent(session, run, prompt, do))
            for session in run.sessions
        ]
        waiting = set(tasks)
        try:
            while waiting and not reason:
                done, waiting = await asyncio.wait(
                    waiting, timeout=run.remaining, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    task.result()
                reason = (
                    "cancelled" if strict and run.failures else run.reason_to_stop()
                )
        finally:
            for session in run.sessions:
                session.end(reason or "cancelled")
            prompt.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(prompt, *tasks, return_exceptions=True)
            run.seconds = run.elapsed
            self.report_run(run)
        if run.failures and strict:
            raise RetrievalFailed(f"ark failed: {run.failures[0]}") from run.failures[0]
        return run

    async def _agent(
        self,
        session: ArkSession,
        run: ArkRun,
        prompt: asyncio.Future[str],
        do: Callable[[Call[Any]], Any],
    ) -> None:
        """Run an agent to its end; it fails if its prompt cannot be made."""
        try:
            session.messages[0] = Message.system(await asyncio.shield(prompt))
        except GraphretError as error:
            run.failures.append(error)
            session.end("failed", str(error))
        while session.stop is None:
            problem = await adrive(self.ask(session, run), do) or await adrive(
                self.answer(session, run), do
            )
            if problem is not None:
                run.failures.append(problem)
                if self.on_failure == "raise":
                    session.end("failed", str(problem))

    def report_run(self, run: ArkRun) -> None:
        """Hand a run that has ended to `on_run`; its errors are only logged."""
        try:
            if self.on_run is not None:
                self.on_run(run)
        except Exception:
            _log.warning("a run could not be handed on", exc_info=True)

    @property
    def graph_store(self) -> GraphStore | None:
        return self.store

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        run: ArkRun | None = None
        if query.strip():
            run = yield Call(lambda: self.explore(query), lambda: self.aexplore(query))
        return (yield from ArkRunRetriever(self, run)._steps(query, k, where))


class ArkRunRetriever(Retriever):
    """The hits of an ARK run that has ended, with evidence, filled up.

    For frameworks that run the agents in their own way. `run` is `None` where there was
    nothing to ask.
    """

    name = "ark"

    def __init__(self, ark: Ark, run: ArkRun | None) -> None:
        self.ark = ark
        self.run = run

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        run, fallback, on_failure = self.run, self.ark.fallback, self.ark.on_failure
        hits: list[Hit] = []
        trace = Trace()
        if run is not None:
            trace.extend(run.trace)
            for session in run.sessions:
                if session.failed:
                    agent = f"agent {session.agent + 1}"
                    trace.note("fallback", failed=agent, error=session.error)
            try:
                hits = yield Compute(lambda: self._hits(run, where))
            except Exception as error:
                problem = as_store_error(error)
                if on_failure == "raise":
                    raise RetrievalFailed(f"ark failed: {problem}") from error
                trace.note(
                    "fallback",
                    failed="store",
                    error=f"{type(problem).__name__}: {problem}",
                )
        signals = Signals(len(hits[:k]), walked_edges=False)
        if run is not None and hits:
            signals.walked_edges = any(
                why.kind == "neighbor" for hit in hits for why in hit.evidence
            )
            signals.confidence = max(vote.votes for vote in run.votes) / len(
                run.sessions
            )
        retrieval = Retrieval(query, k, hits[:k], signals, trace)
        if hits and not self.ark.fill:
            return retrieval
        if not hits:
            if run is not None and not run.votes and on_failure == "raise":
                stops = (
                    f"agent {session.agent + 1} {session.stop}"
                    f" {session.error or ''}".rstrip()
                    for session in run.sessions
                )
                raise RetrievalFailed(
                    f"ark failed: no agent selected a node ({', '.join(stops)})"
                )
            trace.note("fallback", reason="no agent selected a node that qualifies")
        return (yield from backfill(retrieval, fallback, on_failure, where))

    def _hits(self, run: ArkRun, where: Where | None) -> list[Hit]:
        """The nodes of the vote that satisfy a condition and are still in the graph."""
        votes, evidence = run.votes, run.evidence()
        sources = [
            why.source for whys in evidence.values() for why in whys if why.source
        ]
        ids = list(dict.fromkeys([*(voted.id for voted in votes), *sources]))
        nodes_by_id = {
            node.id: node
            for node in (self.ark.store.get(ids) if ids else [])
            if node is not None
        }
        return [  # scores from 1 down to above 0
            Hit(
                node,
                1.0 - place / len(votes),
                tuple(why.named(nodes_by_id) for why in evidence[voted.id]),
            )
            for place, voted in enumerate(votes)
            if (node := nodes_by_id.get(voted.id)) is not None
            and (where is None or where.matches(node))
        ]


def _callers(
    model: ChatModel | Sequence[ChatModel], settings: ArkSettings
) -> list[ToolCaller]:
    """Return a tool caller for each agent; those of one model share it."""
    models = _one_each("model", model, settings.n_agents)
    if wrong := next(
        (
            agent_model
            for agent_model in models
            if not implements(agent_model, ChatModel)
        ),
        None,
    ):
        raise InvalidInput(f"model: expected a chat model, got {type(wrong).__name__}")
    short = settings.prompt == "short"
    callers = {
        id(agent_model): ToolCaller(agent_model, short=short) for agent_model in models
    }
    return [callers[id(agent_model)] for agent_model in models]


def _one_each(what: str, value: Any, n: int) -> list[Any]:
    """Return `value` for each of `n` agents, or the `n` values that it lists."""
    values = list(value) if isinstance(value, (list, tuple)) else [value] * n
    if len(values) != n:
        raise InvalidInput(f"{what}: {n} agents need one, or {n}, not {len(values)}")
    return values

"""The loop of an agent, written once for every way to run it, and what ends it from outside.

An agent is asked, its calls are run, and again, until it stops. It stops by itself, as `ArkSession` decides
(`graphret.ark.session.STOPS`), or because its run ends: then `Board.reason_to_stop` says why.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphret.ark.observation import failure
from graphret.ark.session import ArkSession
from graphret.ark.settings import ArkSettings
from graphret.ark.tools import Outcome, Toolbox
from graphret.errors import GraphretError, ModelError
from graphret.fusion import settled
from graphret.llm.chat import ChatModel, Reply, ToolCall
from graphret.llm.event_loop import in_thread

#: The error of a step whose agent was stopped while its model was asked.
UNAWAITED = "nobody waited for the reply: the agent was stopped"

_TICK = 0.001


class Board:
    """What the agents of one run share: the clock, the tokens spent, and what each has selected.

    Parameters
    ----------
    n_agents
        How many agents there are; those that have not posted anything have selected nothing.
    settings
        The budgets, and whether agents stop early.
    """

    def __init__(self, n_agents: int, settings: ArkSettings) -> None:
        self.settings = settings
        self.began = time.perf_counter()
        self._selections: list[tuple[str, ...]] = [()] * n_agents
        self._tokens = [0] * n_agents
        self._stops: list[str | None] = [None] * n_agents

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.began

    @property
    def remaining(self) -> float | None:
        """Seconds that are left, at least 0; `None` without a limit."""
        limit = self.settings.max_seconds
        return None if limit is None else max(0.0, limit - self.seconds)

    @property
    def late(self) -> bool:
        """Whether no time is left, or so little of it that a clock may take it for none."""
        remaining = self.remaining
        return remaining is not None and remaining < _TICK

    @property
    def tokens(self) -> int:
        """Tokens that all agents have spent."""
        return sum(self._tokens)

    def post(self, session: ArkSession) -> None:
        """Take note of what an agent has selected and spent, and of whether it has stopped."""
        self._selections[session.agent] = tuple(session.selection)
        self._tokens[session.agent] = session.tokens
        self._stops[session.agent] = session.stop

    def reason_to_stop(self) -> str | None:
        """Return why those that still run should stop now, if they should: ``tokens``, ``seconds`` or ``settled``."""
        limit = self.settings.max_tokens
        if limit is not None and self.tokens >= limit:
            return "tokens"
        if self.late:
            return "seconds"
        return "settled" if self.settled else None

    @property
    def settled(self) -> bool:
        """Whether an agent has finished and those that still run cannot change the top of the vote."""
        running = [number for number, stop in enumerate(self._stops) if stop is None]
        if not self.settings.early_stop or not running or "finished" not in self._stops:
            return False
        return settled(self._selections, running, top=self.settings.settle, how=self.settings.vote)


@dataclass(frozen=True, slots=True)
class AskModel:
    """A step of the loop: put the conversation to the agent's model."""

    model: ChatModel
    session: ArkSession
    options: Mapping[str, Any]

    def work(self) -> Reply:
        """Ask by the model's blocking form."""
        return self.model.chat(self.session.messages, **self.options)

    async def awaited(self) -> Reply:
        """Ask within the time that is left, without blocking the event loop."""
        async with asyncio.timeout(self.options["timeout"]):
            return await self.model.achat(self.session.messages, **self.options)


@dataclass(frozen=True, slots=True)
class RunCalls:
    """A step of the loop: run the calls of a reply."""

    toolbox: Toolbox
    calls: Sequence[ToolCall]
    timeout: float | None

    def work(self) -> list[Outcome]:
        """Run them one after the other."""
        return self.toolbox.run_calls(self.calls)

    async def awaited(self) -> list[Outcome]:
        """Run them within the time that is left, without blocking the event loop."""
        async with asyncio.timeout(self.timeout):
            return await self.toolbox.arun_calls(self.calls)


#: Half a turn of the loop: it yields what is to be done, is sent what came of it, or has thrown in what that raised,
#: and returns what went wrong first, for runs in which that is an error.
Turn: TypeAlias = Generator[AskModel | RunCalls, Any, GraphretError | None]


def ask(session: ArkSession, model: ChatModel, temperature: float | None, toolbox: Toolbox, board: Board) -> Turn:
    """Ask an agent's model for its next calls, unless the run is to end: then the agent stops."""
    board.post(session)
    if session.stop is None and (reason := board.reason_to_stop()):
        session.end(reason)
    if session.stop is not None:
        return None
    started, remaining = board.seconds, board.remaining
    options = {"tools": toolbox.tools, "temperature": temperature, "timeout": remaining}
    try:
        reply = yield AskModel(model, session, options)
        session.receive(reply, started=started, seconds=board.seconds - started)
        return None
    except Exception as raised:
        error = as_model_error(raised, model, board)
        session.fail(error, started=started, seconds=board.seconds - started)
        return error if isinstance(error, ModelError) else None
    except BaseException as raised:
        why = reason_of(raised) or UNAWAITED
        session.fail(why, started=started, seconds=board.seconds - started, stop="cancelled")
        raise
    finally:
        board.post(session)


def answer(session: ArkSession, toolbox: Toolbox, board: Board, refused: Mapping[str, str] | None = None) -> Turn:
    """Run the calls of an agent's last reply, and tell it what came of them.

    Parameters
    ----------
    refused
        The ids of calls that a person did not approve, and why.
    """
    if not session.unanswered:
        return None
    why = refused or {}
    calls = [call for call in session.pending if call.id not in why]
    try:
        outcomes: list[Outcome] = (yield RunCalls(toolbox, calls, board.remaining)) if calls else []
    except TimeoutError:
        session.end("seconds")
        return None
    finally:
        board.post(session)
    refusals = [
        Outcome(call, failure(f"A person refused this call: {why[call.id]}. Do something else.", wrong=""))
        for call in session.pending
        if call.id in why
    ]
    wrong = session.observe([*outcomes, *refusals])
    board.post(session)
    return next((outcome.failure for outcome in outcomes if outcome.failure is not None), wrong)


async def in_threads(step: AskModel | RunCalls) -> Any:
    """Do a step with the model asked by its blocking form, in a thread.

    That is for synchronous callers: the asynchronous clients of many packages serve one event loop alone, theirs.
    """
    if isinstance(step, RunCalls):
        return await step.awaited()
    async with asyncio.timeout(step.options["timeout"]):
        return await in_thread(step.work)


def as_model_error(error: Exception, model: ChatModel, board: Board) -> ModelError | TimeoutError:
    """Return what a model raised as a `ModelError`, or as a `TimeoutError` where the run has no time left."""
    if board.late and isinstance(error, (TimeoutError, GraphretError)):
        return error if isinstance(error, TimeoutError) else TimeoutError()
    if isinstance(error, ModelError):
        return error
    said = "no answer in time" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
    made = ModelError(f"{model.name}: {error if isinstance(error, GraphretError) else said}")
    made.__cause__ = error
    return made


def reason_of(error: BaseException) -> str | None:
    """Return in words what stopped a run, `None` for a cancellation, of which there is no more to say."""
    if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
        return None
    return f"{type(error).__name__}: {error}".removesuffix(": ")

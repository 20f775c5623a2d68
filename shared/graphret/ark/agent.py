"""The loop of an agent, written once for every way to run it, and what ends it from outside.

An agent is asked, its calls are run, and again, until it stops. It stops by itself, as `ArkSession` decides
(`graphret.ark.session.STOPS`), or because its run ends: then `Board.reason_to_stop` says why.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Generator, Mapping
from functools import partial
from typing import Any, TypeAlias

from graphret.ark.observation import failure
from graphret.ark.session import ArkSession
from graphret.ark.settings import ArkSettings
from graphret.ark.tools import Outcome, Toolbox
from graphret.errors import GraphretError, ModelError
from graphret.fusion import settled
from graphret.llm.chat import ChatModel
from graphret.retriever import Call

_TICK = 0.001  # seconds that a clock may take for none


class Board:
    """What the agents of one run share: the clock, what each has selected and spent, and what went wrong (`failures`).

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
        self.failures: list[GraphretError] = []
        self._agents: list[ArkSession | None] = [None] * n_agents

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.began

    @property
    def remaining(self) -> float | None:
        """Seconds that are left, 0 where it is next to none; `None` without a limit."""
        limit = self.settings.max_seconds
        left = 0.0 if limit is None else limit - self.seconds
        return None if limit is None else left if left >= _TICK else 0.0

    def post(self, session: ArkSession) -> None:
        """Take note of an agent as it is now."""
        self._agents[session.agent] = session

    def reason_to_stop(self) -> str | None:
        """Return why those that still run should stop now, if they should: ``tokens``, ``seconds`` or ``settled``."""
        settings, known = self.settings, [one for one in self._agents if one is not None]
        if settings.max_tokens is not None and sum(one.tokens for one in known) >= settings.max_tokens:
            return "tokens"
        if self.remaining == 0:
            return "seconds"
        running = [number for number, one in enumerate(self._agents) if one is None or one.stop is None]
        if not settings.early_stop or not running or not any(one.stop == "finished" for one in known):
            return None
        selections = [[] if one is None else list(one.selection) for one in self._agents]
        return "settled" if settled(selections, running, top=settings.settle, how=settings.vote) else None


#: Half a turn of the loop: it yields what is to be done, is sent what came of it, or has thrown in what that raised,
#: and returns what went wrong first, for runs in which that is an error.
Turn: TypeAlias = Generator[Call[Any], Any, GraphretError | None]


def ask(session: ArkSession, model: ChatModel, temperature: float | None, toolbox: Toolbox, board: Board) -> Turn:
    """Ask an agent's model for its next calls, unless the run is to end: then the agent stops."""
    board.post(session)
    if reason := board.reason_to_stop():
        session.end(reason)
    if session.stop is not None:
        return None
    started, remaining = board.seconds, board.remaining
    given: Any = {"tools": toolbox.tools, "temperature": temperature, "timeout": remaining}
    try:
        reply = yield Call(
            partial(model.chat, session.messages, **given),
            lambda: _within(remaining, model.achat(session.messages, **given)),
        )
        session.receive(reply, started=started, seconds=board.seconds - started)
        return None
    except Exception as raised:
        error = _as_model_error(raised, model, board)
        session.fail(error, started=started, seconds=board.seconds - started)
        return error if isinstance(error, ModelError) else None


def answer(session: ArkSession, toolbox: Toolbox, board: Board, refused: Mapping[str, str] | None = None) -> Turn:
    """Run the calls of an agent's last reply, and tell it what came of them.

    Parameters
    ----------
    refused
        The ids of calls that a person did not approve, and why.
    """
    board.post(session)
    if not session.unanswered:
        return None
    why = refused or {}
    calls = [call for call in session.pending if call.id not in why]
    try:
        outcomes: list[Outcome] = yield Call(
            partial(toolbox.run_calls, calls), lambda: _within(board.remaining, toolbox.arun_calls(calls))
        )
    except TimeoutError:
        session.end("seconds")
        return None
    for call in session.pending:
        if call.id in why:
            said = f"A person refused this call: {why[call.id]}. Do something else."
            outcomes.append(Outcome(call, failure(said, blame=False)))
    wrong = session.observe(outcomes)
    return next((outcome.failure for outcome in outcomes if outcome.failure is not None), wrong)


async def _within(seconds: float | None, work: Awaitable[Any]) -> Any:
    async with asyncio.timeout(seconds):
        return await work


def _as_model_error(error: Exception, model: ChatModel, board: Board) -> ModelError | TimeoutError:
    """Return what a model raised as a `ModelError`, or as a `TimeoutError` where the run has no time left."""
    if board.remaining == 0 and isinstance(error, (TimeoutError, GraphretError)):
        return TimeoutError()
    if isinstance(error, ModelError):
        return error
    said = "no answer in time" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
    made = ModelError(f"{model.name}: {said}")
    made.__cause__ = error
    return made

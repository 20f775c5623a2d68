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
        """Whether no time is left."""
        remaining = self.remaining
        return remaining is not None and remaining < _TICK

    def post(self, session: ArkSession) -> None:
        """Take note of what an agent has selected and spent, and of whether it has stopped."""
        self._selections[session.agent] = tuple(session.selection)
        self._tokens[session.agent] = session.tokens
        self._stops[session.agent] = session.stop

    def reason_to_stop(self) -> str | None:
        """Return why those that still run should stop now, if they should: ``tokens``, ``seconds`` or ``settled``."""
        limit = self.settings.max_tokens
        if limit is not None and sum(self._tokens) >= limit:
            return "tokens"
        if self.late:
            return "seconds"
        running = [number for number, stop in enumerate(self._stops) if stop is None]
        if not self.settings.early_stop or not running or "finished" not in self._stops:
            return None
        top, how = self.settings.settle, self.settings.vote
        return "settled" if settled(self._selections, running, top=top, how=how) else None


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
        outcomes: list[Outcome] = yield Call(
            partial(toolbox.run_calls, calls), lambda: _within(board.remaining, toolbox.arun_calls(calls))
        )
    except TimeoutError:
        session.end("seconds")
        board.post(session)
        return None
    for call in session.pending:
        if call.id in why:
            said = f"A person refused this call: {why[call.id]}. Do something else."
            outcomes.append(Outcome(call, failure(said, blame=False)))
    wrong = session.observe(outcomes)
    board.post(session)
    return next((outcome.failure for outcome in outcomes if outcome.failure is not None), wrong)


async def _within(seconds: float | None, work: Awaitable[Any]) -> Any:
    async with asyncio.timeout(seconds):
        return await work


def _as_model_error(error: Exception, model: ChatModel, board: Board) -> ModelError | TimeoutError:
    """Return what a model raised as a `ModelError`, or as a `TimeoutError` where the run has no time left."""
    if board.late and isinstance(error, (TimeoutError, GraphretError)):
        return TimeoutError()
    if isinstance(error, ModelError):
        return error
    said = "no answer in time" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
    made = ModelError(f"{model.name}: {said}")
    made.__cause__ = error
    return made

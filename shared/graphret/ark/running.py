"""The loop: agents ask their models, run the calls and go on until they stop."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from graphret.ark.board import Board
from graphret.ark.observation import failure
from graphret.ark.run import Run
from graphret.ark.session import ArkSession, Outcome
from graphret.ark.tools import THREADS, Toolbox
from graphret.errors import GraphretError, InvalidInput, ModelError, StoreError
from graphret.llm.chat import ChatModel, Reply, ToolCall
from graphret.llm.failing import watch_attempts
from graphret.llm.running import in_thread

_log = logging.getLogger(__name__)

#: The error of a step whose agent was stopped while its model was asked.
UNAWAITED = "nobody waited for the reply: the agent was stopped"

#: What came of a call, and the failure of the store or the index, if it failed.
Attempt: TypeAlias = tuple[Outcome, GraphretError | None]

#: Told of an agent after each of its steps, and when it stops.
OnStep: TypeAlias = Callable[[ArkSession], None]

#: Told of every run when it has ended.
OnRun: TypeAlias = Callable[[Run], None]


@dataclass(slots=True)
class Agents:
    """Agents ready to run: each a session and the model that drives it.

    Parameters
    ----------
    sessions, models, temperatures
        One of each for every agent; a temperature of `None` leaves it to the model.
    toolbox
        What runs their calls.
    on_step
        Called after each step of an agent and when it stops, unless the run is cancelled, from the event loop's thread.
    blocking
        Whether models are asked by their blocking form.
    strict
        Whether the first failure stops all agents: the answer will not be used.
    """

    sessions: Sequence[ArkSession]
    models: Sequence[ChatModel]
    temperatures: Sequence[float | None]
    toolbox: Toolbox
    board: Board
    on_step: OnStep | None = None
    blocking: bool = False
    strict: bool = False
    failures: list[GraphretError] = field(default_factory=list)

    async def run(self) -> None:
        """Run all agents to their ends; cancelling this stops every one of them."""
        tasks = [asyncio.create_task(self._agent(number)) for number in range(len(self.sessions))]
        try:
            waiting = set(tasks)
            while waiting:
                done, waiting = await asyncio.wait(
                    waiting, timeout=self.board.remaining, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    if (escaped := task.result()) is not None:
                        raise escaped
                if waiting and (reason := self._reason_to_stop()):
                    stopped = [session for session in self.sessions if session.stop is None]
                    await self._stop(waiting, reason)
                    waiting = set()
                    for session in stopped:
                        self._tell(session)
        except BaseException as error:
            await self._stop(tasks, "cancelled", reason_of(error))
            raise

    def _reason_to_stop(self) -> str | None:
        return "cancelled" if self.strict and self.failures else self.board.reason_to_stop()

    async def _stop(self, tasks: Iterable[asyncio.Task[Any]], reason: str, error: str | None = None) -> None:
        for session in self.sessions:
            session.end(reason, error)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _agent(self, number: int) -> BaseException | None:
        """Run an agent to its end, and return what must not be raised in a task: the loop itself would end by it."""
        session, model = self.sessions[number], self.models[number]
        try:
            if session.stop is not None:  # it could not begin
                self._tell(session)
            while session.stop is None:
                if reason := self.board.reason_to_stop():
                    session.end(reason)
                else:
                    await self._step(session, model, self.temperatures[number])
                self._tell(session)
        except (KeyboardInterrupt, SystemExit) as error:
            return error
        return None

    def _tell(self, session: ArkSession) -> None:
        self.board.post(session)
        if self.on_step is not None:
            self.on_step(session)

    async def _step(self, session: ArkSession, model: ChatModel, temperature: float | None) -> None:
        started = self.board.seconds
        watch_attempts()
        try:
            asking = ask_apart if self.blocking else ask
            reply = await asking(model, session, self.toolbox, temperature, self.board)
        except (TimeoutError, ModelError) as error:
            if isinstance(error, ModelError):
                self.failures.append(error)
            return session.fail(error, started=started, seconds=self.board.seconds - started)
        except BaseException as error:
            why = reason_of(error) or UNAWAITED
            session.fail(why, started=started, seconds=self.board.seconds - started, stop="cancelled")
            raise
        calls = session.receive(reply, started=started, seconds=self.board.seconds - started)
        outcomes, problem = await run_calls(self.toolbox, calls)
        wrong = session.observe(outcomes)
        if (problem := problem or wrong) is not None:
            self.failures.append(problem)
            if self.strict:
                session.end("failed", str(problem))
        return None


@contextmanager
def told(run: Run, board: Board, on_run: OnRun | None, *, strict: bool) -> Iterator[None]:
    """Tell of a run when what is done here has ended, in whatever way; agents that have not stopped are cancelled.

    See `tell` for `strict`.
    """
    try:
        yield
    except BaseException as error:
        for session in run.sessions:
            session.end("cancelled", reason_of(error))
        run.seconds = board.seconds
        if on_run is not None:
            try:
                on_run(run)
            except Exception as problem:  # what stopped the run goes on
                error.add_note(f"the run could not be told: {type(problem).__name__}: {problem}")
        raise
    run.seconds = board.seconds
    tell(run, on_run, strict=strict)


def tell(run: Run, on_run: OnRun | None, *, strict: bool) -> None:
    """Tell of a run that has ended; what that raises is kept in `run.untold`, or raised where `strict`.

    The answer was paid for, and is not lost because it could not be recorded.
    """
    if on_run is not None:
        try:
            on_run(run)
        except Exception as error:
            if strict:
                raise
            _log.warning("a run could not be handed on", exc_info=True)
            run.untold = f"{type(error).__name__}: {error}"


def reason_of(error: BaseException) -> str | None:
    """Return in words what stopped a run, `None` for a cancellation, of which there is no more to say."""
    if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
        return None
    return f"{type(error).__name__}: {error}".removesuffix(": ")


async def ask(
    model: ChatModel, session: ArkSession, toolbox: Toolbox, temperature: float | None, board: Board
) -> Reply:
    """Ask an agent's model for its next calls, within the time that the run has left.

    Raises
    ------
    TimeoutError
        When the run's seconds are used up.
    ModelError
        When the model failed; whatever else it raises becomes one.
    """
    remaining = board.remaining
    with _as_model_error(model, board):
        async with asyncio.timeout(remaining):
            return await model.achat(session.messages, tools=toolbox.tools, temperature=temperature, timeout=remaining)


def ask_blocking(
    model: ChatModel, session: ArkSession, toolbox: Toolbox, temperature: float | None, board: Board
) -> Reply:
    """Do what `ask` does with the model's blocking form."""
    remaining = board.remaining
    with _as_model_error(model, board):
        return model.chat(session.messages, tools=toolbox.tools, temperature=temperature, timeout=remaining)


async def ask_apart(
    model: ChatModel, session: ArkSession, toolbox: Toolbox, temperature: float | None, board: Board
) -> Reply:
    """Do what `ask` does with the model's blocking form, in a thread.

    For synchronous callers: the asynchronous clients of many packages serve one event loop alone, and that is theirs.
    """
    async with asyncio.timeout(board.remaining):
        return await in_thread(lambda: ask_blocking(model, session, toolbox, temperature, board))


@contextmanager
def _as_model_error(model: ChatModel, board: Board) -> Iterator[None]:
    """Turn what a model raises into a `ModelError`, or into a `TimeoutError` where the run has no time left."""
    try:
        yield
    except TimeoutError as error:
        if not board.late:
            raise ModelError(f"{model.name}: no answer in time") from error
        raise
    except GraphretError as error:
        if board.late:
            raise TimeoutError from error
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{model.name}: {error}") from error
    except asyncio.CancelledError as error:
        if _is_cancelled():
            raise
        raise ModelError(f"{model.name}: the request was cancelled, by none of the run") from error
    except Exception as error:
        raise ModelError(f"{model.name}: {type(error).__name__}: {error}") from error


def _is_cancelled() -> bool:
    """Whether it is the task at hand that was cancelled, and not something that it waits for."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # there is no loop in this thread
        return False
    return task is not None and task.cancelling() > 0


async def run_calls(toolbox: Toolbox, calls: Sequence[ToolCall]) -> tuple[list[Outcome], GraphretError | None]:
    """Run the calls of one reply at once, in threads, and return what came of them.

    A call that the store or the index fails comes back as a failed observation, and the first such failure besides.
    """
    if not calls:
        return [], None
    together = _Calls(toolbox, calls)
    try:
        return _came_of(await asyncio.wrap_future(THREADS.submit(together.run)))
    except asyncio.CancelledError:
        together.cancel()
        raise


def run_calls_blocking(
    toolbox: Toolbox, calls: Sequence[ToolCall], timeout: float | None = None
) -> tuple[list[Outcome], GraphretError | None]:
    """Do what `run_calls` does, for a caller that has a thread of its own.

    Raises
    ------
    TimeoutError
        When the calls take longer than `timeout` seconds; their threads are left to themselves.
    """
    if not calls:
        return [], None
    together = _Calls(toolbox, calls)
    if timeout is None:
        return _came_of(together.run())
    try:
        return _came_of(THREADS.submit(together.run).result(timeout))
    except TimeoutError:
        together.cancel()
        raise


class _Calls:
    """Calls that are run at once: one in this thread, and the others in threads of their own.

    Whatever no other thread has begun when this one is free is run here: quick calls have ended before a thread wakes.
    Calls that nothing is waited for in take turns with those of other replies. They could not run at once for Python's
    lock, and the more threads want that, the longer each takes.
    """

    _TURN = threading.Lock()

    def __init__(self, toolbox: Toolbox, calls: Sequence[ToolCall]) -> None:
        self._toolbox = toolbox
        self._first, *self._others = calls
        self._begun: list[Future[Attempt]] = []
        self._cancelled = False

    def run(self) -> list[Attempt]:
        """Return what came of each; nothing of use where they are cancelled meanwhile."""
        with self._TURN if self._toolbox.computes else nullcontext():
            return self._run()

    def _run(self) -> list[Attempt]:
        self._begun = [THREADS.submit(partial(_attempt, self._toolbox, call)) for call in self._others]
        attempts = [_attempt(self._toolbox, self._first)]
        for call, other in zip(self._others, self._begun, strict=True):
            if self._cancelled:
                break
            attempts.append(_attempt(self._toolbox, call) if other.cancel() else other.result())
        return attempts

    def cancel(self) -> None:
        """Begin no more of them."""
        self._cancelled = True
        for other in self._begun:
            other.cancel()


def _came_of(results: Sequence[Attempt]) -> tuple[list[Outcome], GraphretError | None]:
    return [outcome for outcome, _ in results], next((error for _, error in results if error is not None), None)


def _attempt(toolbox: Toolbox, call: ToolCall) -> Attempt:
    began = time.perf_counter()
    problem: GraphretError | None = None
    try:
        observation = toolbox.run(call.name, call.parsed or {})
    except Exception as error:
        problem = as_store_error(error)
        observation = failure(f"The graph could not be read: {problem}", wrong="")
    return (call, observation, time.perf_counter() - began), problem


def as_store_error(error: Exception) -> GraphretError:
    """Return what a store or an index raised as an error of ours: those of others raise their own."""
    return error if isinstance(error, GraphretError) else StoreError(f"{type(error).__name__}: {error}")


def one_each(what: str, given: object, n: int) -> list[object]:
    """Return one of `given` for each of `n` agents: the same for all, or a list of as many."""
    if not isinstance(given, (list, tuple)):
        return [given] * n
    if len(given) != n:
        raise InvalidInput(f"{what}: {n} agents need one, or {n}, not {len(given)}")
    return list(given)

"""The loop: agents ask their models, run the calls and go on until they stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from graphret.ark.board import Board
from graphret.ark.observation import failure
from graphret.ark.run import Run
from graphret.ark.session import ArkSession, Outcome
from graphret.ark.tools import THREADS, Toolbox
from graphret.errors import GraphretError, InvalidInput, ModelError, StoreError
from graphret.llm.chat import ChatModel, Reply, ToolCall
from graphret.llm.running import in_thread

#: The error of a step whose agent was stopped while its model was asked.
UNAWAITED = "nobody waited for the reply: the agent was stopped"

#: What came of a call, and the failure of the store or the index, if it failed.
Attempt: TypeAlias = tuple[Outcome, GraphretError | None]

#: Told of an agent after each of its steps, and when it stops.
OnStep: TypeAlias = Callable[[ArkSession], None]


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
        Called after each step of an agent and when it stops, from the event loop's thread.
    blocking
        Whether models are asked by their blocking form.
    """

    sessions: Sequence[ArkSession]
    models: Sequence[ChatModel]
    temperatures: Sequence[float | None]
    toolbox: Toolbox
    board: Board
    on_step: OnStep | None = None
    blocking: bool = False
    failures: list[GraphretError] = field(default_factory=list)

    async def run(self, told: Callable[[Run], object] | None = None) -> Run:
        """Run all agents to their ends; cancelling this stops every one of them.

        `told` is called with the run when it has ended, in whatever way.
        """
        run = Run(self.sessions[0].question, list(self.sessions), how=self.board.settings.vote)
        try:
            await self._all()
        except BaseException as stopped:
            run.seconds = self.board.seconds
            if told is not None:
                try:
                    told(run)
                except Exception as error:  # what stopped the run goes on
                    stopped.add_note(f"the run could not be told: {type(error).__name__}: {error}")
            raise
        run.seconds = self.board.seconds
        if told is not None:
            told(run)
        return run

    async def _all(self) -> None:
        tasks = [asyncio.create_task(self._agent(number)) for number in range(len(self.sessions))]
        try:
            waiting = set(tasks)
            while waiting:
                done, waiting = await asyncio.wait(
                    waiting, timeout=self.board.remaining, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    task.result()
                if waiting and (reason := self.board.reason_to_stop()):
                    await self._stop(waiting, reason)
                    waiting = set()
        except BaseException:
            await self._stop(tasks, "cancelled")
            raise

    async def _stop(self, tasks: Sequence[asyncio.Task[None]] | set[asyncio.Task[None]], reason: str) -> None:
        for session in self.sessions:
            session.end(reason)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _agent(self, number: int) -> None:
        session, model = self.sessions[number], self.models[number]
        while session.stop is None:
            if reason := self.board.reason_to_stop():
                session.end(reason)
            else:
                await self._step(session, model, self.temperatures[number])
            self.board.post(session)
            if self.on_step is not None:
                self.on_step(session)

    async def _step(self, session: ArkSession, model: ChatModel, temperature: float | None) -> None:
        started = self.board.seconds
        try:
            asking = ask_apart if self.blocking else ask
            reply = await asking(model, session, self.toolbox, temperature, self.board)
        except asyncio.CancelledError:
            session.fail(UNAWAITED, started=started, seconds=self.board.seconds - started, stop="cancelled")
            raise
        except (TimeoutError, ModelError) as error:
            if isinstance(error, ModelError):
                self.failures.append(error)
            return session.fail(error, started=started, seconds=self.board.seconds - started)
        calls = session.receive(reply, started=started, seconds=self.board.seconds - started)
        outcomes, problem = await run_calls(self.toolbox, calls)
        session.observe(outcomes)
        if problem is not None:
            self.failures.append(problem)
        return None


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
        if board.remaining is None:
            raise ModelError(f"{model.name}: no answer in time") from error
        raise
    except GraphretError as error:
        if board.remaining == 0.0:
            raise TimeoutError from error
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{model.name}: {error}") from error
    except Exception as error:
        raise ModelError(f"{model.name}: {type(error).__name__}: {error}") from error


async def run_calls(toolbox: Toolbox, calls: Sequence[ToolCall]) -> tuple[list[Outcome], GraphretError | None]:
    """Run the calls of one reply at once, each in a thread, and return what came of them.

    A call that the store or the index fails comes back as a failed observation, and the first such failure besides.
    """
    running = [asyncio.wrap_future(THREADS.submit(partial(_attempt, toolbox, call))) for call in calls]
    return _came_of(await asyncio.gather(*running))


def run_calls_blocking(
    toolbox: Toolbox, calls: Sequence[ToolCall], timeout: float | None = None
) -> tuple[list[Outcome], GraphretError | None]:
    """Do what `run_calls` does, for a caller that has a thread of its own: one call is run in it.

    Raises
    ------
    TimeoutError
        When the calls take longer than `timeout` seconds; their threads are left to themselves.
    """
    if len(calls) == 1 and timeout is None:
        return _came_of([_attempt(toolbox, calls[0])])
    running = [THREADS.submit(partial(_attempt, toolbox, call)) for call in calls]
    if late := wait(running, timeout).not_done:
        for one in late:
            one.cancel()
        raise TimeoutError
    return _came_of([one.result() for one in running])


def _came_of(results: Sequence[Attempt]) -> tuple[list[Outcome], GraphretError | None]:
    return [outcome for outcome, _ in results], next((error for _, error in results if error is not None), None)


def _attempt(toolbox: Toolbox, call: ToolCall) -> Attempt:
    began = time.perf_counter()
    problem: GraphretError | None = None
    try:
        observation = toolbox.run(call.name, call.parsed or {})
    except Exception as error:
        problem = as_store_error(error)
        observation = failure(f"The graph could not be read: {problem}")
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

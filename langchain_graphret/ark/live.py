"""Runs under way in this process: what their agents share besides the checkpoint."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from langgraph.errors import GraphInterrupt

from graphret.ark import ArkSession, ArkSettings, Board, Run
from graphret.ark.running import reason_of
from graphret.errors import RetrievalFailed
from graphret.llm.running import Threads
from langchain_graphret.ark.state import Json

T = TypeVar("T")

_RUNS_KEPT = 1024
_ASKING = Threads()  # in which models are asked that nobody may wait for


class Live:
    """The board of a run, and the replies that its agents wait for.

    A run that goes on in another process gets a new board, which learns of each agent again at its next step. Until
    then it takes it for one that may still select anything, so that nothing is called settled that is not, and knows of
    its tokens what the others have saved of them.
    """

    def __init__(self, run: Json, settings: ArkSettings, question: str) -> None:
        self.run = run
        self.question = question
        self.from_the_start = False  # and not from a checkpoint, so that an agent not seen has not begun
        self.board = Board(settings.n_agents, settings)
        self.sessions: dict[int, ArkSession] = {}  # as they were last seen
        self._waiting: set[Callable[[], Any]] = set()  # each ends the wait for a reply
        self._kept: dict[int, tuple[Json, ArkSession]] = {}
        self.waits = False  # for a person
        self.stopped = False
        self._failure: RetrievalFailed | None = None

    def save(self, session: ArkSession) -> Json:
        """Return an agent as plain JSON, and keep it for `load`, which must be the next to see it."""
        saved = session.to_dict()
        self._kept[session.agent] = saved, session
        return saved

    def load(self, saved: Json) -> ArkSession:
        """Return an agent that was saved: read anew, unless it is the one just saved here and was not loaded since."""
        kept = self._kept.pop(saved["agent"], None)
        return self.take(kept[1] if kept is not None and kept[0] is saved else ArkSession.from_dict(saved))

    def begin(self) -> None:
        """Start the clock, unless an agent has begun before."""
        if not self.sessions:
            self.board.began = time.perf_counter()

    def take(self, session: ArkSession) -> ArkSession:
        """Take note of how an agent is now, for `broken_off`, and return it."""
        self.sessions[session.agent] = session
        return session

    def noted(self) -> Json:
        """Return what agents know the run by, and the tokens that count against its budget, for `recall`."""
        return self.run if self.board.settings.max_tokens is None else self.run | {"tokens": self.board.spent}

    def recall(self, run: Json) -> None:
        """Take note of the tokens that an agent has saved, its own and the others'."""
        spent = run.get("tokens") or ()
        if len(spent) == self.board.settings.n_agents:  # and not of a graph with more, or fewer
            self.board.recall(spent)

    @contextmanager
    def paused(self, session: ArkSession) -> Iterator[None]:
        """Stop the clock while a person is asked: it goes on from the agent's last reply when there is an answer."""
        try:
            yield
        except GraphInterrupt:
            self.waits = True
            raise
        spent = time.perf_counter() - seconds_of(session)
        self.board.began = spent if self.waits else min(self.board.began, spent)
        self.waits = False

    def post(self, session: ArkSession) -> None:
        """Tell the others of an agent; where that ends the run, no reply is waited for any longer."""
        self.board.post(session)
        if self._waiting and self.board.reason_to_stop():
            self._wake()

    def stop(self) -> None:
        """Have agents that block raise `asyncio.CancelledError` where they wait or would next be asked."""
        self.stopped = True
        self._wake()

    def fail(self, failure: RetrievalFailed) -> None:
        """Have agents that block raise the failure of another where they would next be asked.

        Replies that they wait for are paid for, and saved before.
        """
        self._failure = failure

    def check(self) -> None:
        """Raise `RetrievalFailed` where the run has failed, and `asyncio.CancelledError` where it was stopped."""
        if self._failure is not None:
            raise RetrievalFailed(str(self._failure)) from self._failure
        if self.stopped:
            raise asyncio.CancelledError

    def _wake(self) -> None:
        for end in list(self._waiting):
            with suppress(RuntimeError):  # a loop that has just been closed waits for nothing
                end()

    def broken_off(self, new: Callable[[str, int], ArkSession], error: BaseException) -> Run:
        """Return what was done of a run that an error ends here; its agents that have not stopped are cancelled.

        Parameters
        ----------
        new
            Makes an agent, by question and number, that has not begun.
        """
        settings, known = self.board.settings, self.sessions
        numbers = range(settings.n_agents) if self.from_the_start else sorted(known)
        sessions = [
            ArkSession.from_dict(known[number].to_dict()) if number in known else new(self.question, number)
            for number in numbers
        ]
        for session in sessions:
            session.end("cancelled", reason_of(error))
        return Run(self.question, sessions, self.board.seconds, settings.vote, self.run["created"])

    async def reply(self, asking: Coroutine[Any, Any, T]) -> T | None:
        """Await a reply, and return `None` where the run was ended meanwhile."""
        task = asyncio.create_task(asking)
        end = partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel)
        self._waiting.add(end)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is None or current.cancelling() or not self.board.reason_to_stop():
                raise
            return None
        finally:
            self._waiting.discard(end)

    def reply_blocking(self, asking: Callable[[], T]) -> T | None:
        """Do what `reply` does for a caller that blocks; a request that nobody waits for is left to its thread.

        Raises
        ------
        TimeoutError
            When the run's seconds are used up.
        """
        if not self._may_end:
            return asking()
        ended = threading.Event()
        self._waiting.add(ended.set)
        try:
            if self.board.reason_to_stop():  # since the agent has last looked
                return None
            asked = _ASKING.submit(asking)
            asked.add_done_callback(lambda _: ended.set())
            in_time = ended.wait(self.board.remaining)
            if asked.done():
                return asked.result()
            asked.cancel()
            self.check()
            if in_time:
                return None
            raise TimeoutError
        finally:
            self._waiting.discard(ended.set)

    @property
    def _may_end(self) -> bool:
        """Whether a run can end while an agent waits for its model."""
        settings = self.board.settings
        others = settings.n_agents > 1 and (settings.early_stop or settings.max_tokens is not None)
        return others or settings.max_seconds is not None


class LiveRuns:
    """The runs under way, by id, and those told of; the oldest are forgotten where very many were never ended."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, Live] = OrderedDict()
        self._told: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, run: Json, settings: ArkSettings, question: str, saved: Json | None = None) -> Live:
        """Return the run that an agent belongs to; the clock of one that is new here starts where the agent is."""
        with self._lock:
            live = self._runs.get(run["id"])
            if live is None:
                live = self._runs[run["id"]] = Live(run, settings, question)
                if saved is not None:
                    live.board.began -= seconds_of(ArkSession.from_dict(saved))
                while len(self._runs) > _RUNS_KEPT:
                    self._runs.popitem(last=False)
            live.recall(run)
            return live

    def end(self, run: str) -> Live | None:
        """Forget a run."""
        with self._lock:
            return self._runs.pop(run, None)

    def told(self, run: str, steps: Any) -> bool:
        """Whether it was told that a run ended with these steps."""
        return bool(self._told.get(run) == steps)

    def tell(self, run: str, steps: Any) -> None:
        """Take note that it was told."""
        with self._lock:
            self._told[run] = steps
            while len(self._told) > _RUNS_KEPT:
                self._told.popitem(last=False)


def seconds_of(session: ArkSession) -> float:
    """Return the seconds from the start of the run to the end of an agent's last step."""
    if not session.steps:
        return 0.0
    last = session.steps[-1]
    return last.started + last.seconds + sum(call.seconds for call in last.calls)

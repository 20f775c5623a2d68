"""Queries that nobody vouches for, in a process of their own, which can be killed.

The database stops a query between batches of rows. It stops none that it still plans, for which it holds the
interpreter's lock, nor one function that makes one huge value; and some queries crash it.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphret.errors import GraphretError, InvalidInput, QueryRefused, QueryTimeout, StoreUnavailable
from graphret.stores.base import Rows

if TYPE_CHECKING:
    from graphret.stores.ladybug.catalog import Layout
    from graphret.stores.ladybug.engine import Engine

#: Seconds beyond its time-out that the database has to stop a query by itself.
GRACE = 1.0
#: Seconds for a process to start and open the database.
START = 60.0
_AT_ONCE = 4


class Apart:
    """Processes that have a database open for reading, each for one query at a time.

    A process is started when none is free, and kept. What it reads is the database as it was opened: it opens it again
    after a write, and nothing is written as long as it reads.

    Parameters
    ----------
    engine
        The database; its gate ``apart`` is open while nothing is written.
    layout
        How a node is read.
    """

    def __init__(self, engine: Engine, layout: Layout) -> None:
        size, threads = engine.settings
        self._engine = engine
        self._options = {**asdict(layout), "read_only": True, "buffer_pool_size": size, "threads": threads}
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        self._idle: list[_Process] = []
        self._closed = False

    def query(self, cypher: str, parameters: Mapping[str, Any] | None, *, timeout: float, max_rows: int | None) -> Rows:
        """Run one query; see `LadybugStore.query_apart`."""
        try:
            values = pickle.dumps(dict(parameters) if parameters else None)
        except Exception as error:
            raise InvalidInput(f"parameters: they cannot be handed to another process: {error}") from error
        ends = time.monotonic() + timeout
        if not self._places.acquire(timeout=timeout):
            raise QueryTimeout(f"{timeout:g} s went by while {_AT_ONCE} other queries ran")
        try:
            with self._engine.apart.together(timeout) as let_in:
                left = ends - time.monotonic()
                if not let_in or left <= 0:
                    raise QueryTimeout(f"{timeout:g} s went by while the database was written")
                with self._process() as process:
                    process.open(self._engine.changes.state)
                    return process.run(cypher, values, left, max_rows)
        finally:
            self._places.release()

    @contextmanager
    def _process(self) -> Iterator[_Process]:
        """Give a process that is free; one that is left in the middle of a query is killed."""
        if self._closed:
            raise StoreUnavailable(f"{self._engine.path}: the store was closed")
        process = self._idle.pop() if self._idle else None
        if process is None or process.ended:
            process = _Process(self._engine.path, self._options)
        try:
            yield process
        except GraphretError:
            self._keep(process)
            raise
        except BaseException:
            process.kill()
            raise
        self._keep(process)

    def _keep(self, process: _Process) -> None:
        if not process.ended:
            self._idle.append(process)
        if self._closed:
            self.close()

    def close(self) -> None:
        """End the processes, those that still run a query as soon as it ends."""
        self._closed = True
        while self._idle:
            self._idle.pop().kill()

    def __del__(self) -> None:
        self.close()


class _Process:
    """One process, seen from this one. What is sent either way is pickled, and comes from graphret alone."""

    def __init__(self, path: Path, options: Mapping[str, Any]) -> None:
        self._path = path
        self._state: int | None = None
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {__name__} import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._send((os.path.abspath(path), dict(options)))

    @property
    def ended(self) -> bool:
        """Whether there is nobody left to answer."""
        return self._child.poll() is not None

    def open(self, state: int | None) -> None:
        """Open the database in the state that it now has."""
        if self._state is None or self._state != state:
            self._send(("open",))
            try:
                self._answer(START)
            except EOFError:
                raise StoreUnavailable(f"{self._path}: the process that runs its queries did not start") from None
            self._state = state

    def run(self, cypher: str, values: bytes, timeout: float, max_rows: int | None) -> Rows:
        """Run one query on it."""
        self._send(("query", cypher, values, timeout, max_rows))
        started = time.monotonic()
        try:
            return self._answer(timeout + GRACE)  # type: ignore[no-any-return]
        except EOFError:
            if time.monotonic() - started >= timeout:
                message = f"the query took longer than {timeout:.3g} s, and its process was killed"
                raise QueryTimeout(message) from None
            raise QueryRefused(f"Ladybug broke down on the query ({_ending(self._child.wait())})") from None

    def _send(self, message: Any) -> None:
        with suppress(OSError):  # of a process that has ended there is no answer, which is told there
            pickle.dump(message, self._child.stdin)  # type: ignore[arg-type]
            self._child.stdin.flush()  # type: ignore[union-attr]

    def _answer(self, seconds: float) -> Any:
        """Return what it answers, raise what it raises, and an `EOFError` where it ended or had to be killed."""
        clock = threading.Timer(seconds, self._child.kill)
        clock.daemon = True
        clock.start()
        try:
            done, what = pickle.load(self._child.stdout)  # type: ignore[arg-type]
        except (EOFError, pickle.UnpicklingError, OSError) as error:
            self.kill()
            raise EOFError from error
        finally:
            clock.cancel()
        if not done:
            raise what
        return what

    def kill(self) -> None:
        """End it."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


def _ending(code: int) -> str:
    try:
        return f"its process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"its process ended with {code}"


def serve() -> None:
    """Answer the questions that come in at standard input, until it ends: the other side of `_Process`."""
    from graphret.stores.ladybug.store import LadybugStore

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's, meant for the process that asks
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as mark:
        mark.write("1000")  # a machine without memory ends this process before that which asks
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    path, options = pickle.load(questions)
    store: LadybugStore | None = None

    def answer(question: str, *given: Any) -> Any:
        nonlocal store
        if question == "open":
            if store is not None:
                store.close()
            store = LadybugStore(path, **options)
            return None
        cypher, values, timeout, max_rows = given
        try:
            parameters = pickle.loads(values)
        except Exception as error:
            raise InvalidInput(f"parameters: they cannot be read in another process: {error}") from error
        assert store is not None
        # Where nobody is left to kill it: a clock that asks neither the interpreter nor the database.
        faulthandler.dump_traceback_later(timeout + 2 * GRACE, exit=True, file=nowhere)
        return store.query(cypher, parameters, timeout=timeout, max_rows=max_rows)

    with open(os.devnull, "w") as nowhere:
        while True:
            try:
                question = pickle.load(questions)
            except EOFError:
                return
            try:
                reply = pickle.dumps((True, answer(*question)))
            except GraphretError as error:
                reply = pickle.dumps((False, error))
            except Exception as error:
                reply = pickle.dumps((False, QueryRefused(f"Ladybug's answer cannot be read: {error!r}")))
            answers.write(reply)
            answers.flush()
            faulthandler.cancel_dump_traceback_later()

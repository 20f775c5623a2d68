"""The embedded database itself: opening, connections, transactions, and its errors in graphret's words."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from graphret.errors import (
    InvalidInput,
    MissingDependency,
    QueryRefused,
    QueryTimeout,
    StoreError,
    StoreMismatch,
    StoreUnavailable,
)
from graphret.stores.changes import Changes

_PLANS_KEPT = 500
_IDLE_KEPT = 16

_open_files: set[str] = set()
_open_guard = threading.Lock()


class Gate:
    """Lets readers in together, and a writer alone; a waiting writer goes first.

    The database runs readers beside a writer. Only what moves pages under the readers' feet needs to be alone: rolling
    back a `COPY` while another thread reads crashes the process (0.22), and a changed column fails the reads that were
    written for the old one.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._waiting = 0
        self._alone = False
        self._owner: int | None = None

    def _open(self) -> bool:
        return not (self._alone or self._waiting)

    @contextlib.contextmanager
    def together(self, timeout: float | None = None) -> Iterator[bool]:
        """Stay inside with other readers; the thread that is inside alone may read too.

        Yields whether one was let in within so many seconds; `None` waits as long as it takes.
        """
        if self._owner == threading.get_ident():
            yield True
            return
        with self._condition:
            let_in = self._open() or self._condition.wait_for(self._open, timeout)
            self._readers += let_in
        if not let_in:
            yield False
            return
        try:
            yield True
        finally:
            with self._condition:
                self._readers -= 1
                if not self._readers:
                    self._condition.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Stay inside with nobody else."""
        with self._condition:
            self._waiting += 1
            try:
                while self._alone or self._readers:
                    self._condition.wait()
            finally:
                self._waiting -= 1
            self._alone = True
            self._owner = threading.get_ident()
        try:
            yield
        finally:
            with self._condition:
                self._alone, self._owner = False, None
                self._condition.notify_all()


class Session:
    """A connection, with what it takes to run statements on it."""

    def __init__(self, ladybug: Any, database: Any) -> None:
        self._ladybug = ladybug
        self.connection = ladybug.Connection(database)
        self.begin_reading = self.prepared("BEGIN TRANSACTION READ ONLY")
        self.commit = self.prepared("COMMIT")
        #: Statements that ran in a read transaction and so, whatever the parameters, only read.
        self.reading: set[str] = set()
        self._timeout = 0
        self._texts: set[str] = set()
        self._plans: dict[str, Any] = {}

    @property
    def worn(self) -> bool:
        """Whether the plans that the connection keeps, and never drops, have become too many."""
        return len(self._texts) > _PLANS_KEPT

    def prepared(self, cypher: str) -> Any:
        """Return a prepared statement; several statements in one text are refused."""
        statement = self._ladybug.PreparedStatement(self.connection, cypher)
        if not statement.is_success():
            raise RuntimeError(statement.get_error_message())
        return statement

    def run(self, cypher: str, parameters: dict[str, Any] | None = None) -> Any:
        """Run one statement and return its result; never more than one, which the driver would run unasked."""
        self._texts.add(cypher)
        if parameters:
            return self.connection.execute(cypher, parameters)
        statement = self._plans.get(cypher)
        if statement is None:
            statement = self._plans[cypher] = self.prepared(cypher)
        return self.connection.execute(statement)

    def rows(self, cypher: str, parameters: dict[str, Any] | None = None) -> list[list[Any]]:
        """Run one statement and return all of its rows."""
        result = self.run(cypher, parameters)
        try:
            return result.get_all()  # type: ignore[no-any-return]
        finally:
            result.close()

    def table(self, cypher: str, parameters: dict[str, Any]) -> Any:
        """Run one statement and return its rows as an Arrow table."""
        result = self.run(cypher, parameters)
        try:
            return result.get_as_arrow()
        finally:
            result.close()

    def do(self, cypher: str, parameters: dict[str, Any] | None = None) -> None:
        """Run one statement for its effect."""
        self.run(cypher, parameters).close()

    def set_timeout(self, seconds: float | None) -> None:
        """Stop later statements after so many seconds; `None` is never."""
        milliseconds = max(1, round(seconds * 1000)) if seconds else 0
        if milliseconds != self._timeout:
            self.connection.set_query_timeout(milliseconds)
            self._timeout = milliseconds

    def close(self) -> None:
        """Give the connection back."""
        self._plans.clear()
        with contextlib.suppress(RuntimeError):
            self.connection.close()


def _default_pool() -> int:
    """Return a third of the machine's memory, between 512 MiB and 8 GiB."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        whole = 8 << 30
    return min(max(whole // 3, 512 << 20), 8 << 30)


class Engine:
    """An opened database.

    Parameters
    ----------
    path
        The file; ``:memory:`` is a file in a temporary folder, since the rollback of a database that is really in
        memory brings rows back (0.22).
    read_only
        Open it for reading; several processes may.
    buffer_pool_size
        At most this many bytes of memory for pages; 0 takes a third of the machine, 8 GiB at most.

    Raises
    ------
    StoreUnavailable
        When the file cannot be opened, or another store or process has it open for writing.
    StoreMismatch
        When the file is no Ladybug database, or one of another version.
    """

    def __init__(self, path: str | Path, *, read_only: bool, buffer_pool_size: int, threads: int) -> None:
        try:
            import ladybug
        except ImportError as error:
            raise MissingDependency("ladybug", "ladybug", "a Ladybug database") from error
        for what, given in (("buffer_pool_size", buffer_pool_size), ("threads", threads)):
            if isinstance(given, bool) or not isinstance(given, int) or given < 0:
                raise InvalidInput(f"{what}: a whole number of at least 0 is expected, not {given!r}")
        self._ladybug = ladybug
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if str(path) == ":memory:":
            self._folder = tempfile.TemporaryDirectory(prefix="graphret-ladybug-")
            path = Path(self._folder.name) / "graph.lbug"
            read_only = False
        self.path = Path(path)
        self.read_only = read_only
        self.gate = Gate()
        #: For what reads the file from another process: nothing is written while somebody is inside.
        self.apart = Gate()
        self.writing = threading.RLock()
        self.changes = Changes()
        self._idle: list[Session] = []
        self._guard = threading.Lock()
        self._key = os.path.realpath(self.path)
        with _open_guard:  # the database's own lock is the process's: a second opening in it would break the file
            if self._key in _open_files:
                raise StoreUnavailable(f"{self.path}: the database is open in another store of this process")
            self.settings = buffer_pool_size, threads
            self.database = self._opened(*self.settings)
            _open_files.add(self._key)

    def _opened(self, buffer_pool_size: int, threads: int) -> Any:
        try:
            return self._ladybug.Database(
                str(self.path),
                read_only=self.read_only,
                buffer_pool_size=buffer_pool_size or _default_pool(),
                max_num_threads=threads,
            )
        except (RuntimeError, IndexError, MemoryError) as error:
            text = _first_line(error)
            if "lock" in text.lower():
                raise StoreUnavailable(f"{self.path}: another process has the database open: {text}") from error
            if self.read_only and not self.path.exists():
                raise StoreUnavailable(f"{self.path}: there is no such database") from error
            if "IO exception" in text:
                raise StoreUnavailable(f"{self.path}: cannot be opened: {text}") from error
            raise StoreMismatch(f"{self.path}: not a database that Ladybug can open: {text}") from error

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self.database is None

    def session(self) -> Session:
        """Return a fresh connection."""
        if self.database is None:
            raise StoreUnavailable(f"{self.path}: the store was closed")
        return Session(self._ladybug, self.database)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a connection to one reader; what it reads in several statements may lie a write apart."""
        with self.gate.together():
            with self._guard:
                session = self._idle.pop() if self._idle and self.database is not None else None
            if session is None:
                session = self.session()
            try:
                yield session
            except BaseException:
                session.close()
                raise
            self._keep(session)

    def _keep(self, session: Session) -> None:
        with self._guard:
            if not session.worn and len(self._idle) < _IDLE_KEPT and self.database is not None:
                self._idle.append(session)
                return
        session.close()

    def forget_plans(self) -> None:
        """Close the idle connections, whose plans know the tables as they were."""
        with self._guard:
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()

    def replaced(self, make: Callable[[Path], None]) -> None:
        """Put another database in the place of this one, whole or not at all.

        Parameters
        ----------
        make
            Writes it at the path that it is given, beside this one's, and closes it.
        """
        part = self.path.with_name(f".{self.path.name}.loading")
        with self.writing, self.apart.alone(), self.gate.alone(), self.changes.writing():
            if self.database is None:
                raise StoreUnavailable(f"{self.path}: the store was closed")
            self.forget_plans()
            self.database.close()
            try:
                _remove(part)
                make(part)
                os.replace(part, self.path)
            finally:
                _remove(part)
                self.database = self._opened(*self.settings)

    def close(self) -> None:
        """Close the database; a temporary one is gone."""
        with self.writing, self.apart.alone(), self.gate.alone():
            if self.database is None:
                return
            self.forget_plans()
            self.database.close()
            self.database = None
            with _open_guard:
                _open_files.discard(self._key)
            if self._folder is not None:
                self._folder.cleanup()

    def __del__(self) -> None:
        if getattr(self, "database", None) is not None:
            with contextlib.suppress(Exception):
                self.close()


def _remove(path: Path) -> None:
    """Take a database away, with what the database keeps beside its file."""
    for one in path.parent.glob(f"{glob.escape(path.name)}*"):
        one.unlink()


def refused(error: Exception, timeout: float | None) -> Exception:
    """Return the error of graphret for what the database says of a query."""
    text = _first_line(error)
    if "Interrupted" in text:
        return QueryTimeout(
            f"the query took longer than {timeout:.3g} s" if timeout else f"the query was stopped: {text}"
        )
    return QueryRefused(f"Ladybug refuses the query: {text}")


def failed(error: RuntimeError, path: Path) -> StoreError:
    """Return the error of graphret for a write that the database could not do."""
    return StoreError(f"{path}: the write failed and nothing of it was kept: {_first_line(error)}")


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]

"""The embedded database: opening it, connections, transactions, and its errors."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from graphret.errors import (
    MissingDependency,
    QueryRefused,
    QueryTimeout,
    StoreError,
    StoreMismatch,
    StoreUnavailable,
)
from graphret.stores.ladybug.tables import Catalog

#: So many plans are kept; to plan takes longer than to run what finds a few nodes. One
#: that sorts or aggregates holds megabytes of the pool for as long.
_PLANS_KEPT = 50
#: Bytes of memory for pages; the database itself would take nearly all.
_POOL = 4 << 30

_open_files: set[tuple[int, int]] = set()
_open_guard = threading.Lock()


class Session:
    """A connection, its cached plans and its timeout."""

    def __init__(self, ladybug: Any, database: Any) -> None:
        self._ladybug = ladybug
        self._connection = ladybug.Connection(database)
        self._timeout: float | None = None
        self._plans: OrderedDict[str, Any] = OrderedDict()
        #: Statements that ran in a read transaction and so, whatever the parameters,
        #: only read.
        self.reading: set[str] = set()

    def prepared(self, cypher: str, parameters: dict[str, Any] | None = None) -> Any:
        """Return a prepared statement; several statements in one text are refused."""
        statement = self._ladybug.PreparedStatement(
            self._connection, cypher, parameters
        )
        if not statement.is_success():
            raise RuntimeError(statement.get_error_message())
        return statement

    def run(self, cypher: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Run one statement and return its result; its plan is kept for a while."""
        if cypher not in self._plans:
            if len(self._plans) >= _PLANS_KEPT:
                self._plans.popitem(last=False)
            self._plans[cypher] = self.prepared(cypher)
        self._plans.move_to_end(cypher)
        return self._connection.execute(self._plans[cypher], dict(parameters or {}))

    def forget_plans(self) -> None:
        """Give back the memory that the plans hold."""
        self._plans.clear()

    def rows(
        self, cypher: str, parameters: Mapping[str, Any] | None = None
    ) -> list[list[Any]]:
        """Run one statement and return all of its rows."""
        with contextlib.closing(self.run(cypher, parameters)) as result:
            return result.get_all()  # type: ignore[no-any-return]

    def do(self, cypher: str, **parameters: Any) -> None:
        """Run one statement for its effect.

        Its plan is not cached, because an Arrow table among the parameters is part of
        it.
        """
        self._connection.execute(self.prepared(cypher, parameters), parameters).close()

    def set_timeout(self, seconds: float | None) -> None:
        """Stop later statements after so many seconds; `None` is never."""
        if seconds != self._timeout:
            self._connection.set_query_timeout(
                max(1, round(seconds * 1000)) if seconds else 0
            )
            self._timeout = seconds

    def close(self) -> None:
        """Give the connection back."""
        self._plans.clear()
        with contextlib.suppress(RuntimeError):
            self._connection.close()


class Database:
    """An opened database; parameters and errors are those of `LadybugStore`.

    ``:memory:`` is a file in a temporary folder, since the rollback of a database that
    is really in memory brings rows back (0.22).
    """

    def __init__(
        self, path: str | Path, *, read_only: bool, buffer_pool_size: int
    ) -> None:
        try:
            import ladybug
        except ImportError as error:
            raise MissingDependency(
                "ladybug", "ladybug", "a Ladybug database"
            ) from error
        self._connect = partial(Session, ladybug)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if str(path) == ":memory:":
            self._folder = tempfile.TemporaryDirectory(prefix="graphret-ladybug-")
            path, read_only = Path(self._folder.name) / "graph.lbug", False
        self.path, self.read_only = Path(path), read_only
        #: One call at a time: reading while a `COPY` is rolled back crashes the process
        #: (0.22).
        self._lock = threading.RLock()
        #: Held while another process reads the file, and by a write.
        self.file_lock = threading.RLock()
        #: The number of writes, and the tables after the last one.
        self.writes, self.catalog = 0, Catalog({}, {})
        self._session: Session | None = None
        # The database locks its file for the whole process: opening it twice in one
        # process would break the file.
        with _open_guard:
            if self.path.exists() and os.stat(self.path)[1:3] in _open_files:
                raise StoreUnavailable(
                    f"{self.path}: the database is open in another store of this"
                    " process"
                )
            try:
                memory = buffer_pool_size or _POOL
                self._database: Any = ladybug.Database(
                    str(self.path), read_only=read_only, buffer_pool_size=memory
                )
            except (RuntimeError, IndexError, MemoryError) as error:
                text = first_line(error)
                lost = (
                    "lock" in text.lower()
                    or "IO exception" in text
                    or not self.path.exists()
                )
                if "Could not set lock" in text:
                    text += "; open it with read_only=True to read it meanwhile"
                kind = StoreUnavailable if lost else StoreMismatch
                raise kind(
                    f"{self.path}: Ladybug cannot open it as a database: {text}"
                ) from error
            self._key = os.stat(self.path)[
                1:3
            ]  # not its name, because another file may take its place
            _open_files.add(self._key)

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """Yield the connection to one call, whose statements see one database state."""
        with self._lock:
            if self._database is None:
                raise StoreUnavailable(f"{self.path}: the store was closed")
            if self._session is None:
                self._session = self._connect(self._database)
            self._session.set_timeout(None)
            try:
                yield self._session
            except BaseException:
                self._disconnect()
                raise

    @contextlib.contextmanager
    def writing(self) -> Iterator[Session]:
        """Yield the connection to a write; an error rolls back the open transaction."""
        with self.file_lock, self.session() as session:
            try:
                yield session
            except BaseException as error:
                with contextlib.suppress(
                    RuntimeError
                ):  # after a failed statement, the database has already rolled back
                    session.do("ROLLBACK")
                if isinstance(error, RuntimeError):
                    raise StoreError(
                        f"{self.path}: the write failed: {first_line(error)}"
                    ) from error
                raise
            finally:
                self.writes += 1
                self._disconnect()

    def _disconnect(self) -> None:
        """Close the connection, whose plans are outdated after a write."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def close(self) -> None:
        """Close the database; a temporary one is gone. A second call does nothing."""
        with self.file_lock, self._lock:
            if self._database is None:
                return
            self._disconnect()
            self._database.close()
            self._database = None
            with _open_guard:
                _open_files.discard(self._key)
            if self._folder is not None:
                self._folder.cleanup()

    def __del__(self) -> None:
        if getattr(self, "_database", None) is not None:
            with contextlib.suppress(Exception):
                self.close()


def refused(error: Exception, timeout: float | None) -> Exception:
    """Return graphret's error for the database's error on a query."""
    text = first_line(error)
    if "Interrupted" in text:
        return QueryTimeout(
            f"the query took longer than {timeout:.3g} s"
            if timeout
            else f"it was stopped: {text}"
        )
    return QueryRefused(f"Ladybug refuses the query: {text}")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]

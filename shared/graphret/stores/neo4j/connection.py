"""Running statements: sessions, transactions, limits, and errors of the driver."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from graphret.errors import (
    AccessDenied,
    GraphretError,
    InvalidInput,
    MissingDependency,
    QueryRefused,
    QueryTimeout,
    StoreError,
    StoreMismatch,
    StoreUnavailable,
)
from graphret.stores.base import within

if TYPE_CHECKING:
    import neo4j

T = TypeVar("T")

_ADDRESS = re.compile(r"[a-z0-9+]+://[^/@?#]+/?(\?.*)?")
#: Rows that the server sends at a time, and where their bytes are counted.
_FETCHED, _COUNTED = 1_000, 50


class QueryRows(list[list[Any]]):
    """The rows of a query, its columns and type, and whether a limit cut the rows.

    `profile` says how a query with ``PROFILE`` ran.
    """

    columns: list[str]
    kind: str | None
    more: bool
    profile: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Connection:
    """Runs the statements of a store, or, with a `transaction`, those of one write."""

    driver: neo4j.Driver
    uri: str
    database: str | None = None
    timeout: float | None = (
        None  # of a statement, in seconds; `None` is the server's own
    )
    transaction: neo4j.ManagedTransaction | None = None

    def run(
        self,
        text: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
    ) -> QueryRows:
        """Run a read-only statement, with retries, or any one in the transaction.

        At most `max_rows` rows are read, and none after the first `max_bytes`.
        """
        import neo4j
        from neo4j.exceptions import DriverError, Neo4jError

        def ask(
            runner: neo4j.Session | neo4j.ManagedTransaction, statement: Any
        ) -> QueryRows:
            try:
                result = runner.run(statement, dict(parameters or {}))
                rows = (
                    record.values() for record in itertools.islice(result, max_rows)
                )
                answer = QueryRows(
                    rows if max_bytes is None else within(rows, max_bytes)
                )
                answer.columns, answer.more = (
                    list(result.keys()),
                    result.peek() is not None,
                )
                summary = result.consume()
                answer.kind, answer.profile = summary.query_type, summary.profile
                return answer
            except Neo4jError as error:
                if "Memory" in (
                    error.code or ""
                ):  # the driver would retry, with the same result
                    raise _translated(error, self.uri) from error
                raise

        if self.transaction is not None:
            return ask(self.transaction, text)
        timeout = timeout or self.timeout
        with self._session(
            neo4j.READ_ACCESS, _FETCHED if max_bytes is None else _COUNTED
        ) as session:
            try:  # without a transaction, one round trip is enough instead of three
                return ask(session, neo4j.Query(text, timeout=timeout))
            except (DriverError, Neo4jError) as error:
                if not error.is_retryable():
                    raise
            return session.execute_read(neo4j.unit_of_work(timeout=timeout)(ask), text)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one write transaction, with retries, or in the current one."""
        import neo4j

        if self.transaction is not None:
            return work(self)
        in_time = neo4j.unit_of_work(timeout=self.timeout)
        with self._session(neo4j.WRITE_ACCESS) as session:
            return session.execute_write(
                in_time(lambda started: work(replace(self, transaction=started)))
            )

    def stream(
        self, text: str, parameters: Mapping[str, Any], size: int
    ) -> Iterator[list[list[Any]]]:
        """Read the rows of a query in blocks."""
        import neo4j

        with self._session(neo4j.READ_ACCESS) as session:
            result = session.run(
                neo4j.Query(text, timeout=self.timeout), dict(parameters)
            )
            while records := result.fetch(size):
                yield [record.values() for record in records]

    @contextmanager
    def _session(
        self, access: str, fetch_size: int = _FETCHED
    ) -> Iterator[neo4j.Session]:
        """Open a session that sees the driver's last writes, even on a cluster."""
        import neo4j
        from neo4j.exceptions import DriverError, Neo4jError

        try:
            with self.driver.session(
                database=self.database,
                default_access_mode=access,
                fetch_size=fetch_size,
                notifications_min_severity=neo4j.NotificationMinimumSeverity.OFF,
                bookmark_manager=self.driver.execute_query_bookmark_manager,
            ) as session:
                yield session
        except (DriverError, Neo4jError) as error:
            raise _translated(error, self.uri) from error
        except ValueError as error:
            if isinstance(error.__cause__, OSError):  # no such host
                raise StoreUnavailable(
                    f"{self.uri} cannot be reached: {error}"
                ) from error
            raise


def driver_of(uri: Any, **options: Any) -> neo4j.Driver:
    """Create a driver, which connects at the first call."""
    try:
        import neo4j
    except ImportError as error:
        raise MissingDependency("neo4j", "neo4j", "a store in Neo4j") from error

    if not isinstance(uri, str) or not _ADDRESS.fullmatch(
        uri
    ):  # the message leaves it out, because it may contain a password
        example = "expected an address such as 'neo4j://localhost:7687'"
        raise InvalidInput(
            f"uri: {example}; user and database go in auth=(user, password) and"
            " database="
        )
    try:
        return neo4j.GraphDatabase.driver(uri, user_agent="graphret", **options)
    except (
        neo4j.exceptions.ConfigurationError,
        OverflowError,
        TypeError,
        ValueError,
    ) as error:
        raise InvalidInput(
            f"uri: {uri} or an option of the driver is malformed: {error}"
        ) from error


def _translated(error: Exception, uri: str) -> GraphretError:
    """Return graphret's error for an error of the driver."""
    from neo4j import exceptions

    code = getattr(error, "code", None) or ""
    message = (isinstance(error, exceptions.Neo4jError) and error.message) or " ".join(
        str(error).split()
    )
    refused = (
        isinstance(error, exceptions.AuthError | exceptions.Forbidden)
        or ".Security." in code
    )
    lost = isinstance(
        error,
        exceptions.ServiceUnavailable
        | exceptions.SessionExpired
        | exceptions.TransientError,
    )
    kinds: list[tuple[bool, type[GraphretError], str]] = [
        (code.endswith(".AccessMode"), QueryRefused, "the query would write"),
        (refused, AccessDenied, f"{uri} refuses access"),
        (
            "TransactionTimedOut" in code,
            QueryTimeout,
            "the query took longer than its timeout",
        ),
        ("DatabaseNotFound" in code, StoreMismatch, uri),
        (isinstance(error, exceptions.ConfigurationError), InvalidInput, uri),
        ("Memory" in code, StoreError, "the server lacks the memory for the query"),
        (
            lost,
            StoreUnavailable,
            f"{uri} cannot be reached, or the connection was lost",
        ),
        (
            ".Statement." in code or ".Procedure." in code,
            QueryRefused,
            "Neo4j refuses the query",
        ),
        (True, StoreError, uri),
    ]
    return next(kind(f"{what}: {message}") for applies, kind, what in kinds if applies)

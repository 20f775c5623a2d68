"""How statements are run: what a driver and a session are made with, and the driver's errors as graphret's."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

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

#: The oldest server that knows the types of values (``IS ::``); vector indexes take one from 5.23 on.
OLDEST = (5, 13)
_AGENT = re.compile(r"Neo4j/(\d+)\.(\d+)")


class Answer(list[list[Any]]):
    """The rows of a query, the names of its columns, the kind of query it is, and whether bytes cut the rows."""

    columns: list[str]
    kind: str | None
    more: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """Runs a query and returns its rows, at most `cap` of them, and none after `max_bytes`."""

    send: Callable[[str, dict[str, Any]], neo4j.Result]

    def __call__(
        self,
        text: str,
        parameters: Mapping[str, Any] | None = None,
        cap: int | None = None,
        max_bytes: int | None = None,
    ) -> Answer:
        import neo4j.exceptions

        try:
            result = self.send(text, dict(parameters or {}))
            rows = (record.values() for record in itertools.islice(result, cap))
            answer = Answer(rows if max_bytes is None else within(rows, max_bytes))
            answer.columns = list(result.keys())
            answer.more = cap is not None and len(answer) < cap and result.peek() is not None
            answer.kind = result.consume().query_type
        except neo4j.exceptions.TransientError as error:
            if "Memory" in (error.code or ""):  # the driver would try again what asks for too much
                raise StoreError(f"the server lacks the memory for the query: {error.message}") from error
            raise
        return answer


@dataclass(slots=True)
class Connection:
    """The sessions of a store; `timeout` is for a call, in seconds, `None` for the server's own limit."""

    driver: neo4j.Driver
    uri: str
    database: str | None = None
    timeout: float | None = None
    closed: bool = False
    running: Run | None = None

    def read(self, work: Callable[[Run], T], *, timeout: float | None = None, fetch_size: int | None = None) -> T:
        """Do what reads, again in a transaction where it fails for a passing reason.

        A query by itself takes one round trip, not three; the server isolates several no further in a transaction.
        """
        import neo4j
        from neo4j.exceptions import DriverError, Neo4jError

        if self.running is not None:
            return work(self.running)
        timeout = timeout or self.timeout
        with self._session(neo4j.READ_ACCESS, fetch_size) as session:
            try:
                return work(Run(lambda text, values: session.run(neo4j.Query(text, timeout=timeout), values)))
            except (DriverError, Neo4jError) as error:
                if not error.is_retryable():
                    raise
            return session.execute_read(_transacted(work, timeout))

    def write(self, work: Callable[[Run], T]) -> T:
        """Do what writes in one transaction, again where it fails for a passing reason."""
        import neo4j

        with self._session(neo4j.WRITE_ACCESS) as session:
            return session.execute_write(_transacted(work, self.timeout))

    def stream(self, text: str, parameters: Mapping[str, Any], size: int) -> Iterator[list[list[Any]]]:
        """Read the rows of a query in blocks."""
        import neo4j

        with self._session(neo4j.READ_ACCESS) as session:
            result = session.run(neo4j.Query(text, timeout=self.timeout), dict(parameters))
            while records := result.fetch(size):
                yield [record.values() for record in records]

    @contextmanager
    def _session(self, access: str, fetch_size: int | None = None) -> Iterator[neo4j.Session]:
        """Open a session that sees what the last one of the same driver wrote, on a cluster too."""
        import neo4j

        if self.closed:  # the driver would connect anew, and nobody close that
            raise StoreUnavailable(f"{self.uri}: the store was closed")
        options: dict[str, Any] = {"database": self.database, "fetch_size": fetch_size}
        with (
            translated(self.uri),
            self.driver.session(
                default_access_mode=access,
                notifications_min_severity=neo4j.NotificationMinimumSeverity.OFF,
                bookmark_manager=self.driver.execute_query_bookmark_manager,
                **{name: value for name, value in options.items() if value is not None},
            ) as session,
        ):
            yield session


def _transacted(work: Callable[[Run], T], timeout: float | None) -> Callable[[neo4j.ManagedTransaction], T]:
    import neo4j

    return neo4j.unit_of_work(timeout=timeout)(lambda transaction: work(Run(transaction.run)))


def driver_of(uri: Any, **options: Any) -> neo4j.Driver:
    """Make a driver with those options that are given; it connects at the first call."""
    try:
        import neo4j
    except ImportError as error:
        raise MissingDependency("neo4j", "neo4j", "a store in Neo4j") from error

    try:
        parts = urlsplit(uri if isinstance(uri, str) else "")
        _ = parts.port  # the driver takes the rest of a port that is too large
    except ValueError as error:
        raise InvalidInput(f"uri: {error}") from error
    if not parts.netloc:
        raise InvalidInput(f"uri: an address such as 'neo4j://localhost:7687' is expected, not {uri!r}")
    if "@" in parts.netloc or parts.path.strip("/"):  # not shown, for the password; the driver knows no database there
        raise InvalidInput("uri: neither user nor database is part of it; pass auth=(user, password) and database=")
    given = {name: value for name, value in options.items() if value is not None}
    with translated(uri), sending():
        return neo4j.GraphDatabase.driver(uri, user_agent="graphret", **given)


# -- errors


def require_version(agent: str) -> None:
    """Raise a `StoreMismatch` if a server, by the name it gives itself, is too old."""
    found = _AGENT.match(agent)
    if found is not None and (int(found[1]), int(found[2])) < OLDEST:
        raise StoreMismatch(f"Neo4j {OLDEST[0]}.{OLDEST[1]} or later is needed; the server says it is {agent}")


@contextmanager
def translated(uri: str) -> Iterator[None]:
    """Raise the driver's errors as graphret's."""
    import neo4j.exceptions as driver

    try:
        yield
    except (driver.Neo4jError, driver.DriverError) as error:
        raise _translate(error, uri) from error
    except UnicodeEncodeError as error:
        raise InvalidInput(f"a text holds half of a surrogate pair, which Neo4j cannot hold: {error}") from error
    except ValueError as error:
        if isinstance(error.__cause__, OSError):  # no such host
            raise StoreUnavailable(f"{uri} cannot be reached: {error}") from error
        raise


@contextmanager
def sending() -> Iterator[None]:
    """Raise what the driver says of parameters that it cannot send as an `InvalidInput`."""
    try:
        yield
    except GraphretError:
        raise
    except (OverflowError, ValueError, TypeError) as error:
        raise InvalidInput(f"a parameter cannot be sent to Neo4j: {error}") from error


def _translate(error: Exception, uri: str) -> GraphretError:
    import neo4j.exceptions as driver

    code = getattr(error, "code", None) or ""
    said = (isinstance(error, driver.Neo4jError) and error.message) or " ".join(str(error).split())
    if isinstance(error, driver.Forbidden) and code.endswith(".AccessMode"):
        return QueryRefused(f"the query would write: {said}")
    if isinstance(error, driver.AuthError | driver.Forbidden) or ".Security." in code or "Impersonation" in said:
        return AccessDenied(f"{uri} refuses access: {said}")
    if "TransactionTimedOut" in code:
        return QueryTimeout(f"the query took longer than it was given: {said}")
    if "DatabaseNotFound" in code:
        return StoreMismatch(f"{uri}: {said}")
    if isinstance(error, driver.ConfigurationError):
        return InvalidInput(f"{uri}: {said}")
    if isinstance(error, driver.ServiceUnavailable | driver.SessionExpired | driver.TransientError):
        return StoreUnavailable(f"{uri} cannot be reached, or the connection was lost: {said}")
    if ".Statement." in code or ".Procedure." in code:
        return QueryRefused(said)
    return StoreError(f"{uri}: {said}")
